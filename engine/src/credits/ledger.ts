import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import type { Clock, Milliseconds } from "../clock/clock.ts";
import { Overloaded } from "../errors/overloaded.ts";
import { StoreUnavailable } from "../errors/store-unavailable.ts";
import type { BatchAnswers, EarlierCalls, LedgerBatch, LockedBatch, SettledBatch } from "./batch.ts";
import { LOCK_NOT_AVAILABLE } from "./batch.ts";
import { answerReplay, Settlement } from "./settlement.ts";
import { Call, type Decision, type Spend, type SpendOutcome } from "./spend.ts";
import { SpendQueue } from "./spend-queue.ts";

export interface LedgerOptions<Charges, Limits extends Decision> {
  clock: Clock;
  /** Charges all limits of a call, or none. */
  charge(charges: Charges): Limits | Promise<Limits>;
  /** Runs the procedure `spend`: locks balances, asks for calls and their spends, subtracts them, commits. */
  transact(batch: LedgerBatch, answer: BatchAnswers): Promise<unknown>;
}

/** Too many calls wait for the ledger. Nothing was charged. */
export class LedgerOverloaded extends Overloaded {
  constructor() {
    super("Too many calls wait for their credits to be written");
    this.name = "LedgerOverloaded";
  }
}

/** A batch was rolled back. The caller can retry. */
export class LedgerFailed extends StoreUnavailable {
  constructor(cause: unknown) {
    super("Credits could not be written", { cause });
    this.name = "LedgerFailed";
  }
}

/** How long a call waits for its batch to begin. After that, it is always answered with its outcome. */
const WAIT_MAX: Milliseconds = 5_000;
/** The most transactions that each wait for the lock of one contended pool. */
const WAITERS_MAX = 4;
/** How long they wait: longer than PostgreSQL's timeout for an idle transaction, for example of a frozen node. */
const LOCK_TIMEOUT: Milliseconds = 3_000;
/** Delays before contended pools are retried while no other pool has calls. */
const RETRY_DELAY_MIN: Milliseconds = 2;
const RETRY_DELAY_MAX: Milliseconds = 32;
/** How long the next batch waits for the answers of the previous one, so that immediate follow-up calls share a batch. */
const GATHER_MAX: Milliseconds = 20;
/** Calls answered in one event loop iteration, in which their responses are written. */
const ANSWERS_PER_ITERATION = 128;

/**
 * Group commit: calls that arrive while one batch is being written share the next batch. A batch is one transaction that
 * locks balances, decides the calls in the order of arrival, and subtracts the sums. Its calls are answered after the
 * commit; if it fails, all of them fail. Balances are stored only in the database.
 *
 * Locked pools leave the batch for a separate transaction, so no node delays the batches of another: a pool that another
 * transaction has locked is *contended*, and a transaction for this pool alone waits for the lock in PostgreSQL's queue. When `WAITERS_MAX` such
 * transactions exist, other contended pools are retried with each batch and after short delays.
 */
export class Ledger<Charges, Limits extends Decision> {
  readonly #options: LedgerOptions<Charges, Limits>;
  readonly #queue = new SpendQueue<Call<Charges, Limits>>();
  #sequence = 0;
  #isWriting = false;
  #waiters = 0;
  #retryDelay: Milliseconds = RETRY_DELAY_MIN;
  #isRetrying = false;
  #isExpiring = false;
  /** Committed batches, calls and credits, and failed batches, for the metrics. */
  readonly counts = { batches: 0, calls: 0, credits: 0, failures: 0 };

  constructor(options: LedgerOptions<Charges, Limits>) {
    this.#options = options;
  }

  /** Spends credits. If it rejects, nothing was subtracted from the balance. */
  spend(spend: Spend<Charges, Limits>): Promise<SpendOutcome<Limits>> {
    const answer = Promise.withResolvers<SpendOutcome<Limits>>();
    const arrival = { arrivedAt: this.#options.clock.monotonic(), sequence: this.#sequence++ };
    const isQueued = this.#queue.push(new Call(spend, arrival, answer));
    if (!isQueued) return Promise.reject(new LedgerOverloaded());
    this.#expireLater();
    this.#begin();
    return answer.promise;
  }

  /** The number of calls that wait for a batch. */
  get waiting(): number {
    return this.#queue.size;
  }

  #begin(): void {
    if (this.#isWriting || !this.#queue.hasReady) return;
    this.#isWriting = true;
    // At the end of this event loop iteration, so that requests that were read together share a batch.
    setImmediate(() => void this.#write());
  }

  async #write(): Promise<void> {
    for (;;) {
      const poolIds = this.#queue.choose();
      if (poolIds.length === 0) break;
      const calls = await this.#writeBatch(poolIds, undefined);
      await this.#answerForAWhile(calls);
      this.#retryDelay = calls.length > 0 ? RETRY_DELAY_MIN : Math.min(2 * this.#retryDelay, RETRY_DELAY_MAX);
      // Only contended pools are left, and an immediate retry would find them locked again.
      if (calls.length === 0 && !this.#queue.hasReady) break;
    }
    this.#isWriting = false;
    this.#retryLater();
    this.#begin();
  }

  #retryLater(): void {
    if (this.#isRetrying || this.#isWriting || !this.#queue.hasContended) return;
    this.#isRetrying = true;
    this.#options.clock.schedule(this.#retryDelay, () => {
      this.#isRetrying = false;
      if (this.#isWriting || !this.#queue.hasContended) return;
      this.#isWriting = true;
      void this.#write();
    });
  }

  /** Writes the calls of one contended pool when its lock is granted. */
  async #writeContended(poolId: string): Promise<void> {
    this.#waiters++;
    const calls = await this.#writeBatch([poolId], LOCK_TIMEOUT);
    this.#waiters--;
    this.#retryLater();
    this.#begin();
    this.#answer(calls);
  }

  /** Writes the calls that are queued for these pools when their locks are granted. Returns the calls to answer. */
  async #writeBatch(
    poolIds: readonly string[],
    lockTimeout: Milliseconds | undefined,
  ): Promise<Call<Charges, Limits>[]> {
    const { clock, transact } = this.#options;
    let locked = poolIds;
    let calls: Call<Charges, Limits>[] = [];
    let balances: LockedBatch["balances"] = [];
    let settlement: Settlement<Charges, Limits> | undefined;
    let credits = 0;
    const settle = async (earlier?: EarlierCalls): Promise<SettledBatch> => {
      settlement = new Settlement(this.#options, balances, earlier);
      const settled = await settlement.settle(calls);
      for (const { amount } of settled.spends) credits += amount;
      return settled;
    };
    try {
      await transact({ poolIds, lockTimeout, now: clock.now() }, (question) => {
        // A second settlement would charge the limits again.
        if (settlement) throw new Error("A batch of the ledger must not be settled twice");
        if (question.step === "settle") return settle(question);
        // After a restart of the transaction, calls of the first attempt go back to the queue.
        this.#queue.putBack(calls);
        locked = this.#excludeContended(locked, question.contended);
        calls = this.#queue.take(locked);
        balances = question.balances;
        const scopes = calls.flatMap(({ scope }) => scope ?? []);
        return scopes.length > 0 ? { scopes } : settle();
      });
    } catch (error) {
      if (!settlement && isLockTimeout(error)) {
        this.#queue.putBack(calls);
        for (const poolId of poolIds) this.#queue.markContended(poolId);
        return [];
      }
      this.counts.failures++;
      if (calls.length === 0) calls.push(...this.#queue.takeAll(locked));
      const failure = error instanceof StoreUnavailable ? error : new LedgerFailed(error);
      for (const call of calls) {
        call.result = undefined;
        call.failure ??= failure;
      }
      this.#queue.release(locked);
      return this.#withReplays(calls);
    }
    const open = new Set(settlement?.open);
    if (open.size > 0) {
      this.#queue.putBack([...open]);
      calls = calls.filter((call) => !open.has(call));
    }
    this.#queue.release(locked);
    if (calls.length > 0) this.counts.batches++;
    this.counts.calls += calls.length;
    this.counts.credits += credits;
    return this.#withReplays(calls);
  }

  /** Arranges for contended pools to be written later; returns the others. */
  #excludeContended(poolIds: readonly string[], contended: readonly string[]): readonly string[] {
    if (contended.length === 0) return poolIds;
    for (const poolId of contended) {
      if (this.#waiters >= WAITERS_MAX) this.#queue.markContended(poolId);
      else if (this.#queue.markWaiting(poolId)) void this.#writeContended(poolId);
    }
    const isContended = new Set(contended);
    return poolIds.filter((poolId) => !isContended.has(poolId));
  }

  /** Appends the replays of these calls that can be answered with their outcomes. */
  #withReplays(calls: Call<Charges, Limits>[]): Call<Charges, Limits>[] {
    const originals = calls.filter(({ scope }) => scope !== undefined);
    for (const { scope, recorded, idempotent, result } of originals) {
      const outcome = result?.outcome === "repeated" ? result.before : recorded;
      const isRecorded = outcome !== undefined && (result?.outcome === "spent" || result?.outcome === "repeated");
      const replays = this.#queue.finish(scope!, (call) => {
        if (isRecorded) {
          answerReplay(call, { fingerprint: idempotent!.fingerprint, outcome }, this.#options.clock.now());
        }
        return isRecorded;
      });
      calls.push(...replays);
    }
    return calls;
  }

  /** Answers calls, a limited number in each event loop iteration. */
  async #answer(calls: readonly Call<Charges, Limits>[], from = 0): Promise<void> {
    for (let i = from; i < calls.length; i += ANSWERS_PER_ITERATION) {
      if (i > from) await yieldToEventLoop();
      answerChunk(calls, i);
    }
  }

  /** Does the same, but returns after `GATHER_MAX` while the rest continues in the background. */
  async #answerForAWhile(calls: readonly Call<Charges, Limits>[]): Promise<void> {
    const { clock } = this.#options;
    const end = clock.monotonic() + GATHER_MAX;
    for (let i = 0; i < calls.length; i += ANSWERS_PER_ITERATION) {
      if (clock.monotonic() > end) {
        void this.#answer(calls, i);
        return;
      }
      answerChunk(calls, i);
      await yieldToEventLoop();
    }
  }

  #expireLater(): void {
    if (this.#isExpiring) return;
    this.#isExpiring = true;
    this.#options.clock.schedule(WAIT_MAX / 5, () => {
      this.#isExpiring = false;
      const expired = this.#queue.expire(this.#options.clock.monotonic() - WAIT_MAX);
      for (const call of expired) call.failure = new LedgerOverloaded();
      void this.#answer(expired);
      if (this.#queue.size > 0) this.#expireLater();
      this.#begin();
    });
  }
}

function answerChunk<Charges, Limits extends Decision>(calls: readonly Call<Charges, Limits>[], from: number): void {
  const end = Math.min(from + ANSWERS_PER_ITERATION, calls.length);
  for (let i = from; i < end; i++) {
    const { result, failure, resolve, reject } = calls[i]!;
    if (failure === undefined) resolve(result!);
    else reject(failure);
  }
}

function isLockTimeout(error: unknown): boolean {
  const { code, cause } = error as { code?: string; cause?: { code?: string } };
  return (code ?? cause?.code) === LOCK_NOT_AVAILABLE;
}
