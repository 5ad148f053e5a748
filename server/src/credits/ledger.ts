import type { Clock, Milliseconds } from "../clock/clock.ts";
import { every } from "../clock/every.ts";
import { IdempotencyFull, type IdempotencyRecord } from "../store/idempotency.ts";
import { StoreUnavailable } from "../store/store.ts";
import type { Held, LedgerBatch, Taken } from "./procedures.ts";

/** What the ledger needs to know of a decision about limits. */
interface Decision {
  readonly allowed: boolean;
}

/** A call that costs credits, together with the limits that it meets: what they are is the limiter's business. */
export interface Spend<Charges, Limits extends Decision> {
  readonly poolId: string;
  /** Credits that it takes; 0 only looks. */
  readonly cost: number;
  /** Undefined: the call meets no limit. */
  readonly charges: Charges | undefined;
  /** Undefined: whoever repeats the call is charged again. `outcome` is what a repetition is told. */
  readonly repeatable?: (Omit<IdempotencyRecord, "outcome"> & { outcome(spent: Spent<Limits>): string }) | undefined;
}

/** A call that was charged. */
export interface Spent<Limits> {
  readonly outcome: "spent";
  readonly remaining: number | undefined;
  readonly limits: Limits | undefined;
}

/** What became of it. `remaining` is the balance after it; undefined: the pool has become unlimited. */
export type SpendOutcome<Limits extends Decision> =
  | Spent<Limits>
  /** It was made before, and charged then. */
  | { readonly outcome: "repeated"; readonly before: string }
  /** Its Idempotency-Key belongs to another call. */
  | { readonly outcome: "mismatched" }
  | { readonly outcome: "insufficient"; readonly remaining: number }
  | { readonly outcome: "limited"; readonly remaining: number | undefined; readonly limits: Limits };

export interface LedgerOptions<Charges, Limits extends Decision> {
  clock: Clock;
  /** Charges the limits of a call, all or nothing. */
  charge(charges: Charges): Limits | Promise<Limits>;
  /** Runs the procedure `spend`: holds the balances, asks `settle`, takes what it says, commits. */
  transact(batch: LedgerBatch, settle: (held: Held) => Promise<Taken>): Promise<unknown>;
}

/** Too many calls wait for the ledger. Nothing was charged. */
export class LedgerOverloaded extends Error {
  constructor() {
    super("Too many calls wait for their credits to be written");
    this.name = "LedgerOverloaded";
  }
}

/** A batch could not be written, and nothing of it was: whatever broke, the caller may come back (contract A2.19). */
export class LedgerFailed extends StoreUnavailable {
  constructor(cause: unknown) {
    super("Credits could not be written", { cause });
    this.name = "LedgerFailed";
  }
}

const WAITING_MAX = 100_000;
const BATCH_MAX = 20_000;
/** How long a call waits for its batch to begin. One whose batch has begun hears what became of it, however late. */
const PATIENCE: Milliseconds = 5_000;

/** What of each balance nobody in the batch holds. */
class FreeCredits {
  readonly #left: Map<string, number>;

  constructor(balances: ReadonlyMap<string, number>) {
    this.#left = new Map(balances);
  }

  /** Whether there was enough; then it is held. */
  hold({ poolId, cost }: { poolId: string; cost: number }): boolean {
    const left = this.#left.get(poolId);
    // Unlimited.
    if (left === undefined) return true;
    if (left < cost) return false;
    this.#left.set(poolId, left - cost);
    return true;
  }

  give({ poolId, cost }: { poolId: string; cost: number }): true {
    const left = this.#left.get(poolId);
    if (left !== undefined) this.#left.set(poolId, left + cost);
    return true;
  }
}

/** The limits of a call could not be decided, and nothing was charged. */
class Undecided {
  readonly cause: unknown;
  constructor(cause: unknown) {
    this.cause = cause;
  }
}

/** What is to be remembered of a call: only what charged something. */
function recordOf<Charges, Limits extends Decision>({
  repeatable,
  result,
  cost,
  charges,
}: Call<Charges, Limits>): IdempotencyRecord[] {
  if (!repeatable || result?.outcome !== "spent" || (cost === 0 && charges === undefined)) return [];
  return [{ ...repeatable, outcome: repeatable.outcome(result) }];
}

interface Call<Charges, Limits extends Decision> extends Spend<Charges, Limits> {
  resolve(outcome: SpendOutcome<Limits>): void;
  reject(error: unknown): void;
  /** In the clock's monotonic milliseconds. */
  readonly arrivedAt: number;
  result?: SpendOutcome<Limits>;
}

/**
 * Group commit: calls that arrive while one batch is being written go together into the next. A batch is one
 * transaction in which the balances are held, the calls decided in the order of their arrival, and the sums taken; its
 * calls are answered after its commit, and all fail when it fails. The balance lives in the database and only there.
 */
export class Ledger<Charges, Limits extends Decision> {
  readonly #options: LedgerOptions<Charges, Limits>;
  #waiting: Call<Charges, Limits>[] = [];
  #isWriting = false;
  /** Batches, calls and credits that were committed, for the metrics. */
  readonly counts = { batches: 0, calls: 0, credits: 0, failures: 0 };

  constructor(options: LedgerOptions<Charges, Limits>) {
    this.#options = options;
  }

  /** Rejects when nothing of the call was taken from the balance. */
  spend(spend: Spend<Charges, Limits>): Promise<SpendOutcome<Limits>> {
    if (this.#waiting.length >= WAITING_MAX) return Promise.reject(new LedgerOverloaded());
    const { promise, resolve, reject } = Promise.withResolvers<SpendOutcome<Limits>>();
    this.#waiting.push({ ...spend, resolve, reject, arrivedAt: this.#options.clock.monotonic() });
    if (!this.#isWriting) {
      this.#isWriting = true;
      // At the end of this turn of the loop, so that requests which were read together are written together.
      setImmediate(() => void this.#write());
    }
    return promise;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  async #write(): Promise<void> {
    while (this.#waiting.length > 0) await this.#writeBatch(this.#nextBatch());
    this.#isWriting = false;
  }

  /** Tells those who have waited too long behind a batch that does not end to come back. */
  #sendAway(): void {
    const since = this.#options.clock.monotonic() - PATIENCE;
    const staying = this.#waiting.findIndex(({ arrivedAt }) => arrivedAt > since);
    for (const call of this.#waiting.splice(0, staying === -1 ? Infinity : staying))
      call.reject(new LedgerOverloaded());
  }

  /** What waits, in the order of arrival; of calls that repeat each other only the first, for the next to find. */
  #nextBatch(): Call<Charges, Limits>[] {
    const batch: Call<Charges, Limits>[] = [];
    const later: Call<Charges, Limits>[] = [];
    const scopes = new Set<string>();
    for (const call of this.#waiting) {
      const scope = call.repeatable?.scope;
      if (batch.length >= BATCH_MAX || (scope !== undefined && scopes.has(scope))) later.push(call);
      else {
        batch.push(call);
        if (scope !== undefined) scopes.add(scope);
      }
    }
    this.#waiting = later;
    return batch;
  }

  async #writeBatch(batch: readonly Call<Charges, Limits>[]): Promise<void> {
    const poolIds = [...new Set(batch.map((call) => call.poolId))].sort();
    const scopes = batch.flatMap((call) => call.repeatable?.scope ?? []);
    let isSettled = false;
    let credits = 0;
    const impatience = every(this.#options.clock, PATIENCE / 5, async () => this.#sendAway());
    try {
      await this.#options.transact({ poolIds, scopes, now: this.#options.clock.now() }, async (held) => {
        // Asked again the limits would be charged again.
        if (isSettled) throw new Error("A batch of the ledger was asked for a second time");
        isSettled = true;
        const spends = await this.#settle(
          batch.filter((call) => this.#isNew(call, held)),
          held.balances,
        );
        credits = spends.reduce((sum, { amount }) => sum + amount, 0);
        return { spends, records: batch.flatMap(recordOf) };
      });
    } catch (error) {
      this.counts.failures++;
      const failure = error instanceof StoreUnavailable ? error : new LedgerFailed(error);
      for (const call of batch) call.reject(failure);
      return;
    } finally {
      impatience.cancel();
    }
    this.counts.batches++;
    this.counts.calls += batch.length;
    this.counts.credits += credits;
    for (const call of batch) if (call.result) call.resolve(call.result);
  }

  /** Whether a call is to be decided; one that was made before is told what came of it then. */
  #isNew(call: Call<Charges, Limits>, { recorded, hasRoom }: Held): boolean {
    if (!call.repeatable) return true;
    const before = recorded.get(call.repeatable.scope);
    if (before) {
      call.result =
        before.fingerprint === call.repeatable.fingerprint
          ? { outcome: "repeated", before: before.outcome }
          : { outcome: "mismatched" };
      return false;
    }
    if (!hasRoom) call.reject(new IdempotencyFull());
    return hasRoom;
  }

  /**
   * Decides a batch. Every call that the balance still covers holds its credits, then meets its limits; one that they
   * refuse frees what it held for those behind it, who are looked at again.
   */
  async #settle(batch: readonly Call<Charges, Limits>[], held: Held["balances"]): Promise<Taken["spends"]> {
    const balances = new Map(held.map(({ poolId, remaining }) => [poolId, remaining]));
    const free = new FreeCredits(balances);
    const taken = new Map<string, number>();

    let undecided: readonly Call<Charges, Limits>[] = batch;
    while (undecided.length > 0) {
      const holders: Call<Charges, Limits>[] = [];
      const lacking: Call<Charges, Limits>[] = [];
      for (const call of undecided) {
        if (free.hold(call)) holders.push(call);
        else lacking.push(call);
      }
      // Started in the order of arrival, which is the order in which the counters see them.
      const decisions = holders.map((call) => this.#charge(call));
      let freed = false;
      for (let i = 0; i < holders.length; i++) {
        const call = holders[i]!;
        const { poolId, cost } = call;
        const decision = decisions[i]!;
        const limits = decision instanceof Promise ? await decision : decision;
        if (limits instanceof Undecided) {
          call.reject(limits.cause);
          freed = free.give(call);
          continue;
        }
        const balance = balances.get(poolId);
        if (limits && !limits.allowed) {
          freed = free.give(call);
          call.result = { outcome: "limited", remaining: balance, limits };
          continue;
        }
        if (balance === undefined) {
          call.result = { outcome: "spent", remaining: undefined, limits };
          continue;
        }
        balances.set(poolId, balance - cost);
        if (cost > 0) taken.set(poolId, (taken.get(poolId) ?? 0) + cost);
        call.result = { outcome: "spent", remaining: balance - cost, limits };
      }
      if (freed) {
        undecided = lacking;
        continue;
      }
      for (const call of lacking) {
        call.result = { outcome: "insufficient", remaining: balances.get(call.poolId)! };
      }
      break;
    }
    return [...taken].map(([poolId, amount]) => ({ poolId, amount }));
  }

  /** Never rejects: while one decision is waited for, nobody would listen to the next. */
  #charge({ charges }: Spend<Charges, Limits>): Limits | undefined | Undecided | Promise<Limits | Undecided> {
    if (charges === undefined) return undefined;
    try {
      const decision = this.#options.charge(charges);
      return decision instanceof Promise ? decision.catch((error: unknown) => new Undecided(error)) : decision;
    } catch (error) {
      return new Undecided(error);
    }
  }
}
