import type { Clock, Instant } from "../clock/clock.ts";
import { IdempotencyQuotaExceeded, type OnceResult } from "../store/idempotency.ts";
import { type IdempotentCall, type Outcome, type Replay, type ReplayStore, ReplayStoreFull } from "./replay-store.ts";

export interface DatabaseReplayStoreOptions {
  clock: Clock;
  /** Runs the procedure `once`: claims the scope, asks `make` for what is to be remembered, remembers it. */
  transact(call: IdempotentCall & { now: Instant }, make: () => Promise<string | undefined>): Promise<OnceResult>;
}

/**
 * Outcomes in the database, where several nodes that count together find them. Limits are charged inside of the
 * transaction that remembers what came of it, so only a failed commit or a crash can leave them charged and forgotten.
 */
export class DatabaseReplayStore implements ReplayStore {
  readonly #options: DatabaseReplayStoreOptions;

  constructor(options: DatabaseReplayStoreOptions) {
    this.#options = options;
  }

  async once<T extends object>(
    call: IdempotentCall,
    make: () => T | Promise<T>,
    outcomeOf: (made: T) => Outcome | undefined,
  ): Promise<T | Replay> {
    const { clock, transact } = this.#options;
    const { scope, fingerprint, workspaceId, isOverQuota } = call;
    let made: T | undefined;
    const reply = await transact({ scope, fingerprint, workspaceId, isOverQuota, now: clock.now() }, async () => {
      // Asked again the limits would be charged again.
      if (made !== undefined) throw new Error("A call was to be made a second time");
      made = await make();
      return outcomeOf(made)?.text;
    });
    switch (reply.kind) {
      case "made":
        return made!;
      case "known":
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
