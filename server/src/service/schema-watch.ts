import type { Clock } from "../../../engine/src/clock/clock.ts";
import { every } from "../../../engine/src/clock/every.ts";
import type { Events } from "../log/events.ts";
import { isSupported, type SchemaState } from "../platform/store/migrate.ts";

/** Interval between two looks at the schema. Well below the time that a rolling upgrade needs for one node. */
const CHECK_INTERVAL = 10_000;

/**
 * Notices while the service runs that a newer release has changed the database in a way that this one does not support.
 * The node reports it in its log and is not ready, so that load balancers leave it out.
 */
export class SchemaWatch {
  /** Why this program should not run on the database; undefined if it may. */
  trouble: string | undefined;
  readonly #timer: { cancel(): void };

  constructor(read: () => Promise<SchemaState>, clock: Clock, events: Pick<Events, "schemaTooNew">) {
    this.#timer = every(clock, CHECK_INTERVAL, async () => {
      const state = await read();
      const trouble = isSupported(state)
        ? undefined
        : `needs a release of schema ${state.needs} or newer; this one is of schema ${state.program}`;
      if (trouble !== undefined && this.trouble === undefined) events.schemaTooNew(state);
      this.trouble = trouble;
    });
  }

  stop(): void {
    this.#timer.cancel();
  }
}
