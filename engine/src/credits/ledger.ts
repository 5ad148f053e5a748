import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import type { Clock, Milliseconds } from "../clock/clock.ts";
import { pause } from "../clock/pause.ts";
import { Overloaded } from "../errors/overloaded.ts";
import { StoreUnavailable } from "../errors/store-unavailable.ts";
import type { Random } from "../random/random.ts";
import type {
  BatchAnswers,
  BatchNeeds,
  BatchQuestion,
  CommittedBatch,
  CurrentHolds,
  EarlierCalls,
  ExpiredHold,
  LedgerBatch,
  LockedBatch,
  OpenedHold,
  SettledBatch,
  StoredHold,
} from "./batch.ts";
import { LOCK_NOT_AVAILABLE } from "./batch.ts";
import { Change } from "./change.ts";
import type { ChangeOutcome, HoldChange } from "./hold.ts";
import { OwnHolds } from "./own-holds.ts";
import { answerReplay, Settlement, type SettlementOptions } from "./settlement.ts";
import { Call, type Decision, type Spend, type SpendOutcome } from "./spend.ts";
import { CLAIMS_MAX, type Lane, type Selection, SpendQueue } from "./spend-queue.ts";

export interface LedgerOptions<Charges, Limits extends Decision> {
  clock: Clock;
  random: Random;
  /** Charges all limits of a call, or none. */
  charge(charges: Charges, needsReceipts: boolean): Limits | Promise<Limits>;
  /**
   * Gives back what a call has charged to its limits, because its batch failed. With `isKept`, a commit whose outcome is unknown may have
   * stored what the call has charged: a repetition is answered with it, or a hold corrects it, which must not happen twice.
   */
  giveBack?(limits: Limits, isKept: boolean): Promise<unknown>;
  /**
   * Runs the procedure `spend`: locks balances, asks for calls and their spends, subtracts them, commits.
   */
  transact(batch: LedgerBatch, answer: BatchAnswers): Promise<CommittedBatch>;
  /** Gets the holds that a batch has made, after its commit. */
  onOpened?(holds: readonly OpenedHold[]): void;
}

/** What waits in the queue. */
type Entry<Charges, Limits extends Decision> = Call<Charges, Limits> | Change;

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
/** The most waiters. */
const WAITERS_MAX = 4;
/** After this time a waiter is taken to wait for a frozen node, and another one can begin. */
const STALL: Milliseconds = 100;
/** The same for a waiter that takes its turn, which includes the turns of other nodes. */
const TURN_STALL: Milliseconds = 500;
/** How long a waiter that has its turn waits for its balance. Shorter, so that it is the one that continues. */
const TURN_LOCK_TIMEOUT: Milliseconds = 400;
/**
 * Bounds of how long a waiter waits for its turn: twice as long as for the last one, and after each that it did not get. The
 * turns of many nodes take longer than that of a frozen one should be waited for.
 */
const TURN_TIMEOUT_MIN: Milliseconds = 400;
const TURN_TIMEOUT_MAX: Milliseconds = 1_600;
/** For how long no turn is taken after that: a frozen node has its turn until PostgreSQL ends its transaction. */
const TURN_PAUSE: Milliseconds = 2_000;
/** Bounds of the random pause after a waiter that could decide no call; it doubles with each in a row. */
const BACKOFF_MIN: Milliseconds = 4;
const BACKOFF_MAX: Milliseconds = 128;
/** How long they wait: longer than PostgreSQL's timeout for an idle transaction, for example of a frozen node. */
const LOCK_TIMEOUT: Milliseconds = 3_000;
/** Delays before contended lanes are tried again while no other lane has calls. */
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
 * A call is decided when all its balances are locked. A batch waits for none, so no node delays the batches of another: calls
 * of which another transaction has a balance, which is *contended*, leave the batch for a *waiter*, and so do all calls of
 * this balance in the next second: otherwise the batch that has just committed would take it again before the waiter wakes
 * up, and each node would get fragments.
 *
 * A waiter is a transaction that waits, while it has locked no balance, and then locks what it can of all that contended
 * calls need, so there is no deadlock. It waits for its turn, which one waiter of all nodes has at a time: so each node
 * decides at once what it has collected during the turns of the others. Then it waits for the balance of its oldest call,
 * which a batch can have. If one of the two takes too long, it gives its turn up, and the waiters of this node take none for
 * a while: what they wait for may be free while a frozen node has the turn. A waiter that has waited for long may wait for a
 * frozen node; then the next one of this node waits for another balance, and for no turn. When `WAITERS_MAX` waiters exist, contended calls are tried again with each batch and
 * after short delays.
 */
export class Ledger<Charges, Limits extends Decision> {
  readonly #options: LedgerOptions<Charges, Limits>;
  readonly #settlementOptions: SettlementOptions<Charges, Limits>;
  readonly #queue = new SpendQueue<Entry<Charges, Limits>>();
  readonly #ownHolds = new OwnHolds();
  /** Calls that have waited for holds to expire, which they do once. */
  readonly #hasAwaited = new WeakSet<Call<Charges, Limits>>();
  #sequence = 0;
  #isWriting = false;
  #waiters = 0;
  /** The balances that have a waiter. */
  readonly #awaited = new Set<string>();
  /** The waiter that has not stalled. */
  #active: symbol | undefined;
  /** Whether a waiter has the turn of this node, or waits for it. */
  #hasTurn = false;
  /** When turns are taken again, by the monotonic clock. */
  #turnsFrom: Milliseconds = 0;
  #turnTimeout: Milliseconds = TURN_TIMEOUT_MIN;
  #backoff: Milliseconds = BACKOFF_MIN;
  #retryDelay: Milliseconds = RETRY_DELAY_MIN;
  #isRetrying = false;
  #isExpiring = false;
  /** Committed batches, calls and credits, and failed batches, for the metrics. */
  readonly counts = { batches: 0, calls: 0, credits: 0, failures: 0 };

  constructor(options: LedgerOptions<Charges, Limits>) {
    this.#options = options;
    const { clock } = options;
    this.#settlementOptions = {
      clock,
      charge: (charges, needsReceipts) => options.charge(charges, needsReceipts),
      hasAwaited: (call) => this.#hasAwaited.has(call),
    };
  }

  /** Spends credits. If it rejects, nothing was subtracted from the balance. */
  spend(spend: Spend<Charges, Limits>): Promise<SpendOutcome<Limits>> {
    const answer = Promise.withResolvers<SpendOutcome<Limits>>();
    return this.#push(new Call(spend, this.#arrive(), answer))
      ? answer.promise
      : Promise.reject(new LedgerOverloaded());
  }

  /**
   * Settles, releases, extends or expires a hold. Its balances take what it needs as far as they have it, and get the rest
   * back. If it rejects, nothing was changed.
   */
  change(change: HoldChange): Promise<ChangeOutcome> {
    const answer = Promise.withResolvers<ChangeOutcome>();
    return this.#push(new Change(change, this.#arrive(), answer))
      ? answer.promise
      : Promise.reject(new LedgerOverloaded());
  }

  #arrive() {
    return { arrivedAt: this.#options.clock.monotonic(), sequence: this.#sequence++ };
  }

  #push(entry: Entry<Charges, Limits>): boolean {
    if (!this.#queue.push(entry)) return false;
    this.#expireLater();
    this.#begin();
    return true;
  }

  /** The number of calls and changes that wait for a batch. */
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
      const selection = this.#queue.choose(this.#options.clock.monotonic(), this.#mayWait);
      this.#waitForContended();
      if (selection.lanes.length === 0) break;
      const calls = (await this.#writeBatch(selection)) ?? [];
      await this.#answerForAWhile(calls);
      this.#retryDelay = calls.length > 0 ? RETRY_DELAY_MIN : Math.min(2 * this.#retryDelay, RETRY_DELAY_MAX);
      // Only contended calls are left, and an immediate retry would find their balances locked again.
      if (calls.length === 0 && !this.#queue.hasReady) break;
    }
    this.#isWriting = false;
    this.#continue();
  }

  /** Begins what can be done with the calls that wait. */
  #continue(): void {
    this.#waitForContended();
    this.#retryLater();
    this.#begin();
  }

  get #hasContended(): boolean {
    return this.#queue.hasLeft && !this.#mayWait;
  }

  #retryLater(): void {
    if (this.#isRetrying || this.#isWriting || !this.#hasContended) return;
    this.#isRetrying = true;
    this.#options.clock.schedule(this.#retryDelay, () => {
      this.#isRetrying = false;
      if (this.#isWriting || !this.#hasContended) return;
      this.#isWriting = true;
      void this.#write();
    });
  }

  /** Whether there is a waiter that has not stalled, or can be. */
  get #mayWait(): boolean {
    return this.#active !== undefined || this.#waiters < WAITERS_MAX;
  }

  #waitForContended(): void {
    if (this.#active !== undefined || this.#waiters >= WAITERS_MAX) return;
    const balanceId = this.#queue.nextAwaited(this.#awaited);
    if (balanceId !== undefined) void this.#writeContended(balanceId);
  }

  /** Writes the calls that are left to waiters when the lock of this balance is granted. */
  async #writeContended(balanceId: string): Promise<void> {
    const waiter = Symbol(balanceId);
    const stop = () => {
      if (this.#active === waiter) this.#active = undefined;
    };
    this.#active = waiter;
    const { clock, random } = this.#options;
    const takesTurn = !this.#hasTurn && clock.monotonic() >= this.#turnsFrom;
    if (takesTurn) this.#hasTurn = true;
    this.#awaited.add(balanceId);
    const stall = clock.schedule(takesTurn ? TURN_STALL : STALL, () => {
      stop();
      this.#continue();
    });
    this.#waiters++;
    const calls = await this.#writeBatch({ lanes: [], balanceIds: [balanceId] }, { takesTurn });
    this.#waiters--;
    if (takesTurn) this.#hasTurn = false;
    this.#awaited.delete(balanceId);
    if (calls === undefined) {
      if (takesTurn) this.#turnsFrom = clock.monotonic() + TURN_PAUSE;
    } else if (calls.length > 0) {
      void this.#answer(calls);
      this.#backoff = BACKOFF_MIN;
    } else {
      // Two nodes that each had what the other needs could try again at the same times for ever.
      await pause(clock, 1 + random.below(this.#backoff));
      this.#backoff = Math.min(2 * this.#backoff, BACKOFF_MAX);
    }
    stall.cancel();
    stop();
    this.#continue();
  }

  /**
   * Writes the calls that are queued in these lanes when their balances are locked. Returns the calls to answer; undefined if
   * it waited for too long. A waiter waits for the one balance, and then takes the lanes that are left to waiters.
   */
  async #writeBatch(
    { lanes: chosen, balanceIds }: Selection<Entry<Charges, Limits>>,
    waiter?: { takesTurn: boolean },
  ): Promise<Entry<Charges, Limits>[] | undefined> {
    const { clock, transact } = this.#options;
    const startedAt = clock.monotonic();
    let lanes: readonly Lane<Entry<Charges, Limits>>[] = chosen;
    let calls: Entry<Charges, Limits>[] = [];
    let balances: LockedBatch["balances"] = [];
    let settlement: Settlement<Charges, Limits> | undefined;
    let changes: readonly Change[] = [];
    let current: CurrentHolds | undefined;
    /** The holds of the changes that need not be read. */
    let known: readonly StoredHold[] = [];
    const settle = (earlier?: EarlierCalls): Promise<SettledBatch> => {
      settlement = new Settlement(this.#settlementOptions, balances, earlier, known);
      const decided = changes.length === 0 ? (calls as Call<Charges, Limits>[]) : calls.filter(isCall);
      return settlement.settle(decided, changes);
    };
    let hasJoined = false;
    /** The other balances of the calls that a waiter decides. */
    const join = (hasWaited: boolean): string[] => {
      if (!waiter) return [];
      // After a restart of the transaction it keeps its calls.
      if (!hasJoined) {
        const accepts = (missing: string) => balanceIds.includes(missing) || !this.#awaited.has(missing);
        lanes = this.#queue.join(accepts, hasWaited ? clock.monotonic() : undefined);
      }
      hasJoined = true;
      const ids = new Set(lanes.flatMap(({ balances }) => balances.map(({ id }) => id)));
      return [...ids].filter((id) => !balanceIds.includes(id));
    };
    const answer = (question: BatchQuestion) => {
      // A second settlement would charge the limits again.
      if (settlement) throw new Error("A batch of the ledger must not be settled twice");
      if (question.step === "settle") return settle(question);
      // After a restart of the transaction, calls of the first attempt go back to the queue.
      this.#queue.putBack(calls);
      calls = [];
      changes = [];
      if (question.step === "join") {
        if (waiter?.takesTurn) this.#adaptTurnTimeout(clock.monotonic() - startedAt);
        return { balanceIds: join(question.hasWaited) };
      }
      lanes = this.#excludeContended(lanes, question.contended);
      balances = question.balances;
      calls = this.#queue.take(lanes);
      changes = calls.filter((entry) => entry.isChange);
      const unlocked = unlockedChanges(changes, balances);
      const excess = new Set<Entry<Charges, Limits>>(unlocked.splice(CLAIMS_MAX));
      if (excess.size > 0) {
        this.#queue.putBack([...excess]);
        calls = calls.filter((entry) => !excess.has(entry));
        changes = changes.filter((change) => !excess.has(change));
      }
      current = question.holds;
      known = this.#ownHolds.find(changes, current);
      return needsOf(calls, changes, { unlocked, known, current }) ?? settle(earlierOf(current));
    };
    let committed: CommittedBatch;
    try {
      const takesTurn = waiter?.takesTurn === true;
      const lockTimeout = waiter && (takesTurn ? TURN_LOCK_TIMEOUT : LOCK_TIMEOUT);
      const turnTimeout = takesTurn ? this.#turnTimeout : undefined;
      committed = await transact({ balanceIds, lockTimeout, turnTimeout, now: clock.now() }, answer);
    } catch (error) {
      if (!settlement && isLockTimeout(error)) {
        if (waiter?.takesTurn && !hasJoined) this.#adaptTurnTimeout(this.#turnTimeout);
        this.#queue.putBack(calls);
        this.#queue.release(lanes);
        return undefined;
      }
      this.counts.failures++;
      this.#ownHolds.forget();
      // The calls that wait for what it could not lock.
      if (!hasJoined) join(false);
      if (calls.length === 0) calls.push(...this.#queue.takeAll(lanes));
      const failure = error instanceof StoreUnavailable ? error : new LedgerFailed(error);
      const givingBack: (Promise<unknown> | undefined)[] = [];
      for (const call of calls) {
        call.result = undefined;
        call.failure ??= failure;
        if (!isCall(call) || !call.limits?.allowed) continue;
        const isKept = call.idempotent !== undefined || call.hold !== undefined;
        givingBack.push(this.#options.giveBack?.(call.limits, isKept));
      }
      // Before the answers: otherwise calls that fail for an hour use up the limits of a day.
      await Promise.allSettled(givingBack);
      this.#queue.release(lanes);
      return this.#withReplays(calls);
    }
    const { open = [], awaiting = [], opened = [] } = settlement ?? {};
    if (opened.length > 0) this.#options.onOpened?.(opened);
    this.#ownHolds.update(settlement, current?.version, committed.holdsVersion);
    if (open.length > 0 || awaiting.length > 0) {
      const undecided = new Set<Entry<Charges, Limits>>([...open, ...awaiting]);
      calls = calls.filter((call) => !undecided.has(call));
    }
    this.#queue.putBack(open);
    this.#queue.release(lanes);
    if (awaiting.length > 0) void this.#expireFirst(awaiting, committed.due);
    if (calls.length > 0) this.counts.batches++;
    this.counts.calls += calls.length;
    this.counts.credits += settlement?.credits ?? 0;
    return this.#withReplays(calls);
  }

  #adaptTurnTimeout(waited: Milliseconds): void {
    this.#turnTimeout = Math.max(TURN_TIMEOUT_MIN, Math.min(2 * waited, TURN_TIMEOUT_MAX));
  }

  /** Puts calls back that lacked credits, when holds have expired that may have had them. */
  async #expireFirst(calls: readonly Call<Charges, Limits>[], holds: readonly ExpiredHold[]): Promise<void> {
    const action = { kind: "expire" } as const;
    const expired = holds.map(({ id: holdId, ...hold }) => this.change({ ...hold, holdId, action }));
    // What cannot be expired now, for example at a balance that a frozen node has locked, is left to the sweep.
    await Promise.race([Promise.allSettled(expired), pause(this.#options.clock, STALL)]);
    for (const call of calls) this.#hasAwaited.add(call);
    this.#queue.putBack(calls);
    this.#continue();
  }

  /** Arranges for contended lanes to be written later; returns the others. */
  #excludeContended(
    lanes: readonly Lane<Entry<Charges, Limits>>[],
    contended: readonly string[],
  ): readonly Lane<Entry<Charges, Limits>>[] {
    if (contended.length === 0) return lanes;
    const isContended = new Set(contended);
    const now = this.#options.clock.monotonic();
    const others = lanes.filter((lane) => {
      const missing = lane.balances.find(({ id }) => isContended.has(id));
      if (missing) this.#queue.leave(lane, missing.id, now);
      return !missing;
    });
    this.#waitForContended();
    return others;
  }

  /** Appends the replays of these calls that can be answered with their outcomes. */
  #withReplays(calls: Entry<Charges, Limits>[]): Entry<Charges, Limits>[] {
    const originals = calls.filter(isCall).filter(({ scope }) => scope !== undefined);
    for (const { scope, recorded, idempotent, result } of originals) {
      const outcome = result?.outcome === "repeated" ? result.before : recorded;
      const isRecorded = outcome !== undefined && (result?.outcome === "spent" || result?.outcome === "repeated");
      const replays = this.#queue.finish(scope!, (call) => {
        if (isRecorded && isCall(call)) {
          answerReplay(call, { fingerprint: idempotent!.fingerprint, outcome }, this.#options.clock.now());
        }
        return isRecorded;
      });
      calls.push(...replays);
    }
    return calls;
  }

  /** Answers calls, a limited number in each event loop iteration. */
  async #answer(calls: readonly Entry<Charges, Limits>[], from = 0): Promise<void> {
    for (let i = from; i < calls.length; i += ANSWERS_PER_ITERATION) {
      if (i > from) await yieldToEventLoop();
      answerChunk(calls, i);
    }
  }

  /** Does the same, but returns after `GATHER_MAX` while the rest continues in the background. */
  async #answerForAWhile(calls: readonly Entry<Charges, Limits>[]): Promise<void> {
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

function answerChunk<Charges, Limits extends Decision>(calls: readonly Entry<Charges, Limits>[], from: number): void {
  const end = Math.min(from + ANSWERS_PER_ITERATION, calls.length);
  for (let i = from; i < end; i++) calls[i]!.answer();
}

function isCall<Charges, Limits extends Decision>(entry: Entry<Charges, Limits>): entry is Call<Charges, Limits> {
  return !entry.isChange;
}

/** The changes of holds of which no balance is locked, so that their holds must be claimed. */
function unlockedChanges(changes: readonly Change[], locked: LockedBatch["balances"]): Change[] {
  const lockedIds = new Set(locked.map(({ id }) => id));
  return changes.filter(({ balances }) => !balances.some((id) => lockedIds.has(id)));
}

interface ChangedHolds {
  /** The changes whose holds the batch claims. */
  readonly unlocked: readonly Change[];
  /** The holds that it need not read. */
  readonly known: readonly StoredHold[];
  readonly current: CurrentHolds | undefined;
}

/** What a batch must read before it is settled; undefined: nothing. */
function needsOf<Charges, Limits extends Decision>(
  entries: readonly Entry<Charges, Limits>[],
  changes: readonly Change[],
  { unlocked, known, current }: ChangedHolds,
): BatchNeeds | undefined {
  const scopes = entries.flatMap(({ scope }) => scope ?? []);
  const hasHolds = changes.length > 0 || entries.some((entry) => isCall(entry) && entry.hold !== undefined);
  if (!hasHolds) return scopes.length > 0 ? { scopes, claims: scopes, holdIds: undefined } : undefined;
  const unknown = new Set(changes.map(({ holdId }) => holdId));
  for (const { id } of known) unknown.delete(id);
  if (current && scopes.length === 0 && unlocked.length === 0 && unknown.size === 0) return undefined;
  return {
    scopes,
    claims: [...scopes, ...new Set(unlocked.map(({ holdId }) => holdId))],
    holdIds: [...unknown],
  };
}

/** What is known of earlier calls and holds if nothing is read. */
function earlierOf(holds: CurrentHolds | undefined): EarlierCalls | undefined {
  if (!holds) return undefined;
  const read = { step: "settle", recorded: new Map(), claimedElsewhere: [], hasCapacity: true } as const;
  return { ...read, holds: { at: holds.at, stored: [] } };
}

function isLockTimeout(error: unknown): boolean {
  const { code, cause } = error as { code?: string; cause?: { code?: string } };
  return (code ?? cause?.code) === LOCK_NOT_AVAILABLE;
}
