import type { Clock, Instant } from "../../../../engine/src/clock/clock.ts";
import { IdempotencyQuotaExceeded } from "../../../../engine/src/errors/idempotency.ts";
import {
  type Outcome,
  type Replay,
  type ReplayableCall,
  type ReplayStore,
  ReplayStoreFull,
} from "../../../../engine/src/limits/replay-store.ts";
import type { OnceResult } from "./idempotency.ts";

export interface DatabaseReplayStoreOptions {
  clock: Clock;
  /** Runs the procedure `once`: claims the scope, calls `make`, and stores its result. */
  transact(call: ReplayableCall & { now: Instant }, make: () => Promise<string | undefined>): Promise<OnceResult>;
}

/**
 * Stores outcomes in the database, for several nodes that share their counters. Limits are charged within the
 * transaction that stores the outcome, so only a failed commit or a crash can leave a charge without an outcome.
 */
export class DatabaseReplayStore implements ReplayStore {
  readonly isInDatabase = true;
  readonly #options: DatabaseReplayStoreOptions;

  constructor(options: DatabaseReplayStoreOptions) {
    this.#options = options;
  }

  find(): undefined {}

  async once<T extends object>(
    call: ReplayableCall,
    make: () => T | Promise<T>,
    outcomeOf: (made: T) => Outcome | undefined,
  ): Promise<T | Replay> {
    const { clock, transact } = this.#options;
    const { scope, fingerprint, workspaceId, isOverQuota } = call;
    let made: T | undefined;
    const reply = await transact({ scope, fingerprint, workspaceId, isOverQuota, now: clock.now() }, async () => {
      // A second run would charge the limits again.
      if (made !== undefined) throw new Error("The transaction ran its call twice");
      made = await make();
      return outcomeOf(made)?.text;
    });
    switch (reply.kind) {
      case "executed":
        return made!;
      case "recorded":
        return { replay: "completed", text: reply.outcome };
      case "over quota":
        throw new IdempotencyQuotaExceeded();
      case "full":
        throw new ReplayStoreFull();
      default:
        return { replay: reply.kind };
    }
  }
}
