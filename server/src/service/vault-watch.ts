import type { Clock } from "../../../engine/src/clock/clock.ts";
import { every } from "../../../engine/src/clock/every.ts";
import type { Events } from "../log/events.ts";

/** Interval between two looks at the vault. Operators change its master key node by node. */
const CHECK_INTERVAL = 10_000;

/**
 * Notices while the service runs that the master key of the vault was changed to one that this process does not have. It
 * answers from the data keys that it has opened, and calls that need another one fail.
 */
export class VaultWatch {
  /** Why recoverable keys of some workspaces cannot be read or made; undefined if all can. */
  trouble: string | undefined;
  readonly #timer: { cancel(): void };

  constructor(isLocked: () => Promise<boolean>, clock: Clock, events: Pick<Events, "vaultLocked">) {
    this.#timer = every(clock, CHECK_INTERVAL, async () => {
      const trouble = (await isLocked())
        ? "this process does not have the master key of the vault, which was changed: set LATCHKEY_VAULT_KEY to it"
        : undefined;
      if (trouble !== undefined && this.trouble === undefined) events.vaultLocked();
      this.trouble = trouble;
    });
  }

  stop(): void {
    this.#timer.cancel();
  }
}
