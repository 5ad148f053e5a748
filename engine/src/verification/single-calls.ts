import type { Clock, Instant } from "../clock/clock.ts";
import { GatheredReads } from "../credits/gathered-reads.ts";
import { StoreUnavailable } from "../errors/store-unavailable.ts";
import type { Outcome, Replay, ReplayableCall, ReplayStore } from "../limits/replay-store.ts";

interface Recorded {
  readonly fingerprint: string;
  readonly outcome: string;
}

export interface SingleCallsOptions {
  clock: Clock;
  /** Outcomes of calls that charged limits alone. */
  replays: ReplayStore;
  /** The records of calls in the database by scope: those of the ledger, and of `replays` if it is there. */
  findRecorded(question: { scopes: readonly string[]; now: Instant }): Promise<ReadonlyMap<string, Recorded>>;
  /** Whether the database can be asked. */
  isReachable(): boolean;
}

/**
 * Makes each idempotent verification once.
 *
 * Where its outcome is stored depends on what its key charges: credits, in the database by the ledger; limits alone, in
 * `replays`. An Idempotency-Key belongs to one call, whichever key another call presents and whatever became of the key
 * since, so a call looks in both places, and calls that would be stored in different places do not run side by side.
 *
 * If `replays` is in the database, both places are the same table, whose rows are claimed. If it is in memory, no other
 * process serves calls with limits, so the claims are here.
 */
export class SingleCalls {
  readonly #replays: ReplayStore;
  readonly #isReachable: () => boolean;
  readonly #recorded: GatheredReads<Recorded>;
  /** The calls that are running, by scope: all charge credits, or all charge limits alone. */
  readonly #running = new Map<string, { readonly spends: boolean; calls: number }>();

  constructor({ clock, replays, findRecorded, isReachable }: SingleCallsOptions) {
    this.#replays = replays;
    this.#isReachable = isReachable;
    this.#recorded = new GatheredReads((scopes) => findRecorded({ scopes, now: clock.now() }));
  }

  /** Charges limits alone, unless the call was made before. */
  async chargeOnce<T extends object>(
    call: ReplayableCall,
    charge: () => T | Promise<T>,
    outcomeOf: (decided: T) => Outcome | undefined,
  ): Promise<T | Replay> {
    if (this.#replays.isInDatabase) return this.#replays.once(call, charge, outcomeOf);
    return (
      this.#replays.find(call) ??
      this.#alone(
        call,
        false,
        async () => (await this.#findRecorded(call)) ?? this.#replays.once(call, charge, outcomeOf),
      )
    );
  }

  /** Spends credits, unless the call was made before. The ledger finds its own earlier calls. */
  async spendOnce<T extends object>(call: ReplayableCall, spend: () => Promise<T>): Promise<T | Replay> {
    return this.#replays.isInDatabase ? spend() : (this.#replays.find(call) ?? this.#alone(call, true, spend));
  }

  /** The earlier call, for one that charges nothing, and so is not recorded; undefined: there is none. */
  async find(call: ReplayableCall): Promise<Replay | undefined> {
    return this.#replays.find(call) ?? this.#findRecorded(call);
  }

  async #alone<T extends object>(call: ReplayableCall, spends: boolean, make: () => Promise<T>): Promise<T | Replay> {
    const { scope } = call;
    const running = this.#running.get(scope) ?? { spends, calls: 0 };
    if (running.spends !== spends) return { replay: "running" };
    running.calls++;
    this.#running.set(scope, running);
    try {
      return await make();
    } finally {
      if (--running.calls === 0) this.#running.delete(scope);
    }
  }

  /** Finds nothing while the database is unreachable: calls that charge nothing in it must not wait for it. */
  async #findRecorded({ scope, fingerprint }: ReplayableCall): Promise<Replay | undefined> {
    if (!this.#isReachable()) return undefined;
    try {
      const recorded = await this.#recorded.find(scope);
      if (!recorded) return undefined;
      return recorded.fingerprint === fingerprint
        ? { replay: "completed", text: recorded.outcome }
        : { replay: "mismatched" };
    } catch (error) {
      if (error instanceof StoreUnavailable) return undefined;
      throw error;
    }
  }
}
