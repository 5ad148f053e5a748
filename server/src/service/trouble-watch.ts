import type { Clock } from "../../../engine/src/clock/clock.ts";
import { every } from "../../../engine/src/clock/every.ts";
import type { Events } from "../log/events.ts";
import { isSupported, type SchemaState } from "../platform/store/migrate.ts";

/** Interval between two looks. Well below the time that an upgrade, or new settings, node by node need for one node. */
const CHECK_INTERVAL = 10_000;

interface Trouble {
  readonly text: string;
  /** Called once, when it begins. */
  report(): void;
}

/** Notices while the service runs that the database was changed so that this process cannot work with all of it. */
export class TroubleWatch {
  /** Why it cannot; undefined if it can. */
  trouble: string | undefined;
  readonly #timer: { cancel(): void };

  constructor(clock: Clock, find: () => Promise<Trouble | undefined>) {
    this.#timer = every(clock, CHECK_INTERVAL, async () => {
      const found = await find();
      if (this.trouble === undefined) found?.report();
      this.trouble = found?.text;
    });
  }

  stop(): void {
    this.#timer.cancel();
  }
}

/**
 * Watches for a newer release that has changed the database in a way that this one does not support. The node is not ready then,
 * so that load balancers leave it out.
 */
export function watchSchema(
  read: () => Promise<SchemaState>,
  clock: Clock,
  events: Pick<Events, "schemaTooNew">,
): TroubleWatch {
  return new TroubleWatch(clock, async () => {
    const state = await read();
    if (isSupported(state)) return undefined;
    const text = `needs a release of schema ${state.needs} or newer; this one is of schema ${state.program}`;
    return { text, report: () => events.schemaTooNew(state) };
  });
}

/**
 * Watches for a change of the vault's master key to one that this process does not have. It answers from the data keys that it has
 * opened, and calls that need another one fail.
 */
export function watchVault(
  isLocked: () => Promise<boolean>,
  clock: Clock,
  events: Pick<Events, "vaultLocked">,
): TroubleWatch {
  const text =
    "this process does not have the master key of the vault, which was changed: set LATCHKEY_VAULT_KEY to it";
  return new TroubleWatch(clock, async () =>
    (await isLocked()) ? { text, report: () => events.vaultLocked() } : undefined,
  );
}
