import { setImmediate as nextTurn } from "node:timers/promises";
import type { Clock, Milliseconds } from "../clock/clock.ts";
import { LOCK_NOT_AVAILABLE } from "../store/credits/balances.ts";
import { StoreUnavailable } from "../store/store.ts";
import type { BatchAnswers, LedgerBatch } from "./procedures.ts";
import { answerReplay, Settlement } from "./settlement.ts";
import type { Call, Decision, Spend, SpendOutcome } from "./spend.ts";
import { SpendQueue } from "./spend-queue.ts";

export interface LedgerOptions<Charges, Limits extends Decision> {
  clock: Clock;
  /** Charges the limits of a call, all or nothing. */
  charge(charges: Charges): Limits | Promise<Limits>;
  /** Runs the procedure `spend`: locks the balances, asks for calls and for what they take, takes it, commits. */
  transact(batch: LedgerBatch, answer: BatchAnswers): Promise<unknown>;
}

/** Too many calls wait for the ledger. Nothing was charged. */
export class LedgerOverloaded extends Error {
  constructor() {
    super("Too many calls wait for their credits to be written");
    this.name = "LedgerOverloaded";
  }
}

/** A batch could not be written, and nothing of it was: whatever broke, the caller may come back. */
export class LedgerFailed extends StoreUnavailable {
  constructor(cause: unknown) {
    super("Credits could not be written", { cause });
    this.name = "LedgerFailed";
  }
}

/** How long a call waits for its batch. One whose batch has begun is told the outcome, however late. */
const WAIT_MAX: Milliseconds = 5_000;
/** Transactions that wait for the lock of one contended pool each. */
const WAITERS_MAX = 4;
/** How long they wait: longer than PostgreSQL lets a transaction idle whose node is frozen. */
const LOCK_TIMEOUT: Milliseconds = 3_000;
/** Pauses before contended pools are tried again, while nothing else is to be written. */
const RETRY_PAUSE_MIN: Milliseconds = 2;
const RETRY_PAUSE_MAX: Milliseconds = 32;
/** How long the next batch waits for the answers of the one before: callers that call again at once share a batch. */
const GATHER_MAX: Milliseconds = 20;
/** Calls answered in one turn of the event loop. Each continues there with its response. */
const ANSWERS_PER_TURN = 128;
/** A call with limits takes longer than one without. */
const WEIGHT_LIMITED = 4;

/**
 * Group commit: calls that arrive while one batch is being written go together into the next. A batch is one transaction
 * in which balances are locked, the calls decided in the order of their arrival, and the sums taken; its calls are
 * answered after its commit, and all fail when it fails. The balance lives in the database and only there.
 *
 * A batch never waits for a lock, so no node delays a batch of another. A pool whose lock another transaction has is
 * *contended*: it gets a waiter, a transaction for this pool alone that waits for the lock in PostgreSQL's queue. Beyond
 * `WAITERS_MAX` of them, contended pools are tried again with each batch and after short pauses.
 */
export class Ledger<Charges, Limits extends Decision> {
  readonly #options: LedgerOptions<Charges, Limits>;
  readonly #queue = new SpendQueue<Call<Charges, Limits>>();
  #sequence = 0;
  #isWriting = false;
  #waiters = 0;
  #retryPause: Milliseconds = RETRY_PAUSE_MIN;
  #isRetrying = false;
  #isExpiring = false;
  /** Batches, calls and credits that were committed, and batches that failed, for the metrics. */
  readonly counts = { batches: 0, calls: 0, credits: 0, failures: 0 };

  constructor(options: LedgerOptions<Charges, Limits>) {
    this.#options = options;
  }

  /** Rejects when nothing of the call was taken from the balance. */
  spend(spend: Spend<Charges, Limits>): Promise<SpendOutcome<Limits>> {
    const { promise, resolve, reject } = Promise.withResolvers<SpendOutcome<Limits>>();
    // One literal, so that all calls have one shape.
    const isQueued = this.#queue.push({
      workspaceId: spend.workspaceId,
      poolId: spend.poolId,
      cost: spend.cost,
      charges: spend.charges,
      idempotent: spend.idempotent,
      isCurrent: spend.isCurrent,
      scope: spend.idempotent?.scope,
      arrivedAt: this.#options.clock.monotonic(),
      sequence: this.#sequence++,
      weight: spend.charges === undefined ? 1 : WEIGHT_LIMITED,
      resolve,
      reject,
      limits: undefined,
      result: undefined,
      failure: undefined,
      recorded: undefined,
    });
    if (!isQueued) return Promise.reject(new LedgerOverloaded());
    this.#expireLater();
    this.#begin();
    return promise;
  }

  /** Calls that wait for a batch. */
  get waiting(): number {
    return this.#queue.size;
  }

  #begin(): void {
    if (this.#isWriting || !this.#queue.hasReady) return;
    this.#isWriting = true;
    // At the end of this turn of the loop, so that requests which were read together are written together.
    setImmediate(() => void this.#write());
  }

  async #write(): Promise<void> {
    for (;;) {
      const poolIds = this.#queue.choose();
      if (poolIds.length === 0) break;
      const calls = await this.#writeBatch(poolIds, undefined);
      await this.#answerForAWhile(calls);
      this.#retryPause = calls.length > 0 ? RETRY_PAUSE_MIN : Math.min(2 * this.#retryPause, RETRY_PAUSE_MAX);
      // With nothing but contended pools, another attempt at once would only find them so.
      if (calls.length === 0 && !this.#queue.hasReady) break;
    }
    this.#isWriting = false;
    this.#retryLater();
    this.#begin();
  }

  #retryLater(): void {
    if (this.#isRetrying || this.#isWriting || !this.#queue.hasContended) return;
    this.#isRetrying = true;
    this.#options.clock.schedule(this.#retryPause, () => {
      this.#isRetrying = false;
      if (this.#isWriting || !this.#queue.hasContended) return;
      this.#isWriting = true;
      void this.#write();
    });
  }

  /** Writes the calls of one contended pool, once its lock is there. */
  async #writeContended(poolId: string): Promise<void> {
    this.#waiters++;
    const calls = await this.#writeBatch([poolId], LOCK_TIMEOUT);
    this.#waiters--;
    this.#retryLater();
    this.#begin();
    this.#answer(calls);
  }

  /** Writes what is queued for these pools by the time they are locked. Gives the calls that are to be answered. */
  async #writeBatch(
    poolIds: readonly string[],
    lockTimeout: Milliseconds | undefined,
  ): Promise<Call<Charges, Limits>[]> {
    const { clock, transact } = this.#options;
    let locked = poolIds;
    let calls: Call<Charges, Limits>[] = [];
    let settlement: Settlement<Charges, Limits> | undefined;
    let credits = 0;
    try {
      await transact({ poolIds, lockTimeout, now: clock.now() }, (question) => {
        // Asked again the limits would be charged again.
        if (settlement) throw new Error("A batch of the ledger was asked for a second time");
        if (question.step === "choose") {
          // Some were taken already when the transaction had to be begun anew.
          this.#queue.putBack(calls);
          locked = this.#sortOut(locked, question.contended);
          calls = this.#queue.take(locked);
          return { scopes: calls.flatMap(({ scope }) => scope ?? []) };
        }
        settlement = new Settlement(this.#options, question);
        return settlement.settle(calls).then((taken) => {
          for (const { amount } of taken.spends) credits += amount;
          return taken;
        });
      });
    } catch (error) {
      if (!settlement && isLockTimeout(error)) {
        this.#queue.putBack(calls);
        for (const poolId of poolIds) this.#queue.noteContended(poolId);
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
      return this.#withRepetitions(calls);
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
    return this.#withRepetitions(calls);
  }

  /** Sees to the pools whose lock another transaction has; gives the others. */
  #sortOut(poolIds: readonly string[], contended: readonly string[]): readonly string[] {
    if (contended.length === 0) return poolIds;
    for (const poolId of contended) {
      if (this.#waiters >= WAITERS_MAX) this.#queue.noteContended(poolId);
      else if (this.#queue.noteWaiting(poolId)) void this.#writeContended(poolId);
    }
    const isContended = new Set(contended);
    return poolIds.filter((poolId) => !isContended.has(poolId));
  }

  /** The same calls, and after them those that repeat one of them and can be answered with its outcome. */
  #withRepetitions(calls: Call<Charges, Limits>[]): Call<Charges, Limits>[] {
    const repeated = calls.filter(({ scope }) => scope !== undefined);
    for (const { scope, recorded, idempotent, result } of repeated) {
      const outcome = result?.outcome === "repeated" ? result.before : recorded;
      const isRecorded = outcome !== undefined && (result?.outcome === "spent" || result?.outcome === "repeated");
      const repetitions = this.#queue.finish(scope!, (call) => {
        if (isRecorded) {
          answerReplay(call, { fingerprint: idempotent!.fingerprint, outcome }, this.#options.clock.now());
        }
        return isRecorded;
      });
      calls.push(...repetitions);
    }
    return calls;
  }

  /** Answers calls, a bounded number in each turn of the event loop. */
  async #answer(calls: readonly Call<Charges, Limits>[], from = 0): Promise<void> {
    for (let i = from; i < calls.length; i += ANSWERS_PER_TURN) {
      if (i > from) await nextTurn();
      answerTurn(calls, i);
    }
  }

  /** The same, but after a while the rest is left to go on by itself. */
  async #answerForAWhile(calls: readonly Call<Charges, Limits>[]): Promise<void> {
    const { clock } = this.#options;
    const end = clock.monotonic() + GATHER_MAX;
    for (let i = 0; i < calls.length; i += ANSWERS_PER_TURN) {
      if (clock.monotonic() > end) {
        void this.#answer(calls, i);
        return;
      }
      answerTurn(calls, i);
      await nextTurn();
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

function answerTurn<Charges, Limits extends Decision>(calls: readonly Call<Charges, Limits>[], from: number): void {
  const end = Math.min(from + ANSWERS_PER_TURN, calls.length);
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
