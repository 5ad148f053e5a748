import type { Clock, Instant, Milliseconds } from "../clock/clock.ts";
import { IdempotencyFull, IdempotencyQuotaExceeded } from "../errors/idempotency.ts";
import { Overloaded } from "../errors/overloaded.ts";
import { StoreUnavailable } from "../errors/store-unavailable.ts";
import type { IdempotencyRecord } from "../rules/idempotency.ts";
import type { BalanceChange, EarlierCalls, LockedBatch, OpenedHold, SettledBatch, StoredHold } from "./batch.ts";
import type { Change } from "./change.ts";
import { HeldCredits } from "./held-credits.ts";
import type { HoldRequest } from "./hold.ts";
import { LackingCalls } from "./lacking-calls.ts";
import { firstLacking, LockedBalance } from "./locked-balance.ts";
import type { Call, Decision, Remaining, SpendOutcome, Spent } from "./spend.ts";
import { TimeSlice } from "./time-slice.ts";

/**
 * After this time a batch, which holds locks, starts no further round of decisions. Open calls move to a later batch.
 */
const ROUNDS_MAX: Milliseconds = 50;
/** How many lacking calls may move to another of their balances in a round, besides one for each call that released credits. */
const MOVES = 64;

/** The open holds of a balance have as many credits as it can count. */
export class HoldsExceeded extends Overloaded {
  constructor() {
    super("The open holds of a balance have too many credits");
    this.name = "HoldsExceeded";
  }
}

/** Another node changes the same hold. */
export class HoldBusy extends StoreUnavailable {
  constructor() {
    super("Another call changes this hold");
    this.name = "HoldBusy";
  }
}

/** The limits of a call could not be decided and were not charged. */
class ChargeFailure {
  readonly cause: unknown;
  constructor(cause: unknown) {
    this.cause = cause;
  }
}

/** The call is no longer current and was not charged. */
const OUTDATED: unique symbol = Symbol("outdated");

/** The result of charging the limits of a call; undefined: it has none. */
type Answer<Limits> = Limits | undefined | ChargeFailure | typeof OUTDATED;

export interface SettlementOptions<Charges, Limits extends Decision> {
  clock: Clock;
  charge(charges: Charges, needsReceipts: boolean): Limits | Promise<Limits>;
  /** Whether the call has waited for holds to expire. */
  hasAwaited(call: Call<Charges, Limits>): boolean;
}

/**
 * Decides the calls of one batch. A call that all its balances cover reserves its credits, and then its limits are charged.
 * A call that its limits deny releases its credits to the next call, in the order of arrival, that they cover. Each call is
 * processed a limited number of times, and long work yields to the event loop.
 */
export class Settlement<Charges, Limits extends Decision> {
  /** Undecided calls, which go into a later batch. */
  readonly open: Call<Charges, Limits>[] = [];
  /** Calls that lack credits of balances of which holds may have expired. */
  readonly awaiting: Call<Charges, Limits>[] = [];
  readonly #options: SettlementOptions<Charges, Limits>;
  readonly #earlier: EarlierCalls | undefined;
  readonly #slice: TimeSlice;
  readonly #balances = new Map<string, LockedBalance>();
  readonly #lacking = new LackingCalls<Call<Charges, Limits>>();
  readonly #holds: HeldCredits | undefined;
  /** The last call, because consecutive calls often have the same balances. */
  #last: Call<Charges, Limits> | undefined;
  /** The costs of the calls that were charged, except those whose balances are all unlimited. */
  credits = 0;

  /**
   * @param earlier needed if the batch has needs, or makes or changes holds.
   * @param known the holds that it changes and that were not read.
   */
  constructor(
    options: SettlementOptions<Charges, Limits>,
    balances: LockedBatch["balances"],
    earlier: EarlierCalls | undefined,
    known: readonly StoredHold[],
  ) {
    this.#options = options;
    this.#earlier = earlier;
    this.#slice = new TimeSlice(options.clock);
    for (const state of balances) this.#balances.set(state.id, new LockedBalance(state.id, state));
    if (earlier?.holds) this.#holds = new HeldCredits(earlier.holds, known);
  }

  /** The holds that it makes. */
  get opened(): readonly OpenedHold[] {
    return this.#holds?.opened ?? [];
  }

  /** The holds that it changes. */
  get changed(): Iterable<StoredHold> {
    return this.#holds?.changed ?? [];
  }

  /** Sets a result or a failure on every change and call, except on calls that it adds to `open` or `awaiting`. */
  async settle(calls: readonly Call<Charges, Limits>[], changes: readonly Change[]): Promise<SettledBatch> {
    for (const change of changes) this.#change(change);
    const { clock } = this.#options;
    const slice = this.#slice;
    const startedAt = clock.monotonic();
    /** In the order of their decisions. */
    const decided: Call<Charges, Limits>[] = [];
    for (let reserved = await this.#reserveFirst(calls); reserved.length > 0; ) {
      const decisions: (Answer<Limits> | Promise<Answer<Limits>>)[] = [];
      const now = clock.now();
      // In the order of arrival, which is the order in which the counters see them.
      for (const call of reserved) {
        decisions.push(this.#charge(call, now));
        if (slice.isOver()) await slice.yield();
      }
      const freed = new Set<LockedBalance>();
      let released = 0;
      for (let i = 0; i < reserved.length; i++) {
        const call = reserved[i]!;
        const decision = decisions[i];
        const limits = decision instanceof Promise ? await decision : decision;
        if (slice.isOver()) await slice.yield();
        if (limits === OUTDATED) call.result = { outcome: "outdated" };
        else if (limits instanceof ChargeFailure) call.failure = limits.cause;
        else {
          call.limits = limits;
          decided.push(call);
          if (limits === undefined || limits.allowed) continue;
        }
        for (const balance of call.locked) {
          balance.free += call.amountOf(balance);
          if (!this.#lacking.isEmpty) freed.add(balance);
        }
        released++;
      }
      if (clock.monotonic() - startedAt > ROUNDS_MAX) break;
      reserved = await this.#reserveNext(freed, MOVES + released);
    }
    return this.#conclude(decided);
  }

  /** Reserves credits for calls in the order of arrival; returns the covered ones. */
  async #reserveFirst(calls: readonly Call<Charges, Limits>[]): Promise<Call<Charges, Limits>[]> {
    const reserved: Call<Charges, Limits>[] = [];
    for (const call of calls) {
      if (!this.#isNew(call)) continue;
      call.locked = this.#balancesOf(call);
      if (call.lacksBalance) {
        call.result = { outcome: "unprepared" };
        continue;
      }
      if (call.hold && !call.locked.every((balance) => balance.mayHold(call.amountOf(balance)))) {
        call.failure = new HoldsExceeded();
        continue;
      }
      const lacking = firstLacking(call);
      if (lacking) this.#lacking.push(call, lacking);
      else reserve(call, reserved);
      if (this.#slice.isOver()) await this.#slice.yield();
    }
    return reserved;
  }

  /** Reserves released credits for calls that lacked them; returns those calls. */
  async #reserveNext(freed: ReadonlySet<LockedBalance>, moves: number): Promise<Call<Charges, Limits>[]> {
    const reserved: Call<Charges, Limits>[] = [];
    this.#lacking.moves = moves;
    for (const balance of freed) {
      for (let call = this.#lacking.take(balance); call; call = this.#lacking.take(balance)) {
        reserve(call, reserved);
        if (this.#slice.isOver()) await this.#slice.yield();
      }
    }
    return freed.size > 1 ? reserved.sort((a, b) => a.sequence - b.sequence) : reserved;
  }

  /** Does not yield, so that no call becomes outdated between its last check and its charge. */
  #conclude(decided: readonly Call<Charges, Limits>[]): SettledBatch {
    const now = this.#options.clock.now();
    const records: IdempotencyRecord[] = [];
    for (const call of decided) {
      const { cost, limits, locked } = call;
      if (limits?.allowed === false) {
        call.result = withHeld({ outcome: "limited" as const, remaining: remainingOf(locked), limits }, locked);
        continue;
      }
      if (!isCurrent(call, now)) {
        call.result = { outcome: "outdated" };
        for (const balance of locked) balance.free += call.amountOf(balance);
        continue;
      }
      const spent = call.hold && this.#holds ? this.#open(call, call.hold, this.#holds) : this.#spend(call);
      call.result = spent;
      // Only calls that charged or held something are recorded.
      if (call.idempotent && (cost > 0 || call.charges !== undefined || call.hold)) {
        call.recorded = call.idempotent.outcome(spent);
        const { scope, fingerprint, keyId } = call.idempotent;
        records.push({ scope, fingerprint, keyId, workspaceId: call.workspaceId, outcome: call.recorded });
      }
    }
    const spends: { balanceId: string; amount: number }[] = [];
    const changed: BalanceChange[] = [];
    for (const balance of this.#balances.values()) {
      const change = this.#holds && balance.change;
      if (change) changed.push(change);
      else if (balance.spent > 0) spends.push({ balanceId: balance.id, amount: balance.spent });
    }
    // Credits that were released since a call was last tried may cover it.
    const { lacking, untried } = this.#lacking.rest();
    this.open.push(...untried);
    const due = new Set<string>();
    for (const call of lacking) {
      if (!isCurrent(call, now)) call.result = { outcome: "outdated" };
      else if (this.#awaits(call, now, due)) this.awaiting.push(call);
      else call.result = insufficient(call, this.#holds?.at ?? now);
    }
    return {
      spends,
      records,
      holds: this.#holds?.writes(changed),
      due: due.size > 0 ? [...due] : undefined,
    };
  }

  /** Whether holds may have expired of what a call lacks. */
  #awaits(call: Call<Charges, Limits>, now: Instant, due: Set<string>): boolean {
    if (this.#options.hasAwaited(call)) return false;
    let awaits = false;
    for (const balance of call.locked) {
      if (balance.nextExpiryAt === null || balance.nextExpiryAt > now || balance.covers(call.needOf(balance))) continue;
      awaits = true;
      due.add(balance.id);
    }
    return awaits;
  }

  #open(call: Call<Charges, Limits>, hold: HoldRequest, holds: HeldCredits): Spent<Limits> {
    const { locked, limits } = call;
    const made = { holdId: hold.holdId, expiresAt: holds.open(call, hold) };
    return withHeld({ outcome: "spent" as const, remaining: remainingOf(locked), limits, hold: made }, locked);
  }

  #spend({ cost, limits, locked }: Call<Charges, Limits>): Spent<Limits> {
    let isCharged = false;
    for (const balance of locked) if (balance.spend(cost)) isCharged = true;
    if (isCharged) this.credits += cost;
    return withHeld({ outcome: "spent" as const, remaining: remainingOf(locked), limits }, locked);
  }

  #change(change: Change): void {
    const holds = this.#holds;
    if (!holds || this.#earlier?.claimedElsewhere.includes(change.holdId)) change.failure = new HoldBusy();
    else if (!holds.isLocked(change)) change.failure = new Error(`${change.holdId} has other balances`);
    else if (!isCurrent(change, this.#options.clock.now())) change.result = { outcome: "outdated" };
    else {
      const charged = holds.chargedOf(change.holdId);
      change.result = holds.change(change, (id) => this.#balanceOf(id));
      this.credits += holds.chargedOf(change.holdId) - charged;
    }
  }

  /** Whether a call must be decided; a replay gets the recorded outcome. */
  #isNew(call: Call<Charges, Limits>): boolean {
    const { idempotent } = call;
    if (!idempotent) return true;
    const { recorded, claimedElsewhere, hasCapacity } = this.#earlier!;
    const before = recorded.get(idempotent.scope);
    if (before) answerReplay(call, before, this.#options.clock.now());
    else if (claimedElsewhere.includes(idempotent.scope)) call.result = { outcome: "running" };
    else if (idempotent.isOverQuota) call.failure = new IdempotencyQuotaExceeded();
    else if (!hasCapacity) call.failure = new IdempotencyFull();
    else return true;
    return false;
  }

  #balancesOf(call: Call<Charges, Limits>): readonly LockedBalance[] {
    const last = this.#last;
    this.#last = call;
    if (last?.lane === call.lane) return last.locked;
    return call.balances.map((id) => this.#balanceOf(id));
  }

  #balanceOf(id: string): LockedBalance {
    let balance = this.#balances.get(id);
    if (!balance) {
      balance = new LockedBalance(id, undefined);
      this.#balances.set(id, balance);
    }
    return balance;
  }

  /** Never rejects: a rejection during the wait for another decision would be unhandled. */
  #charge(call: Call<Charges, Limits>, now: Instant): Answer<Limits> | Promise<Answer<Limits>> {
    if (!isCurrent(call, now)) return OUTDATED;
    if (call.charges === undefined) return undefined;
    try {
      const decision = this.#options.charge(call.charges, call.hold !== undefined);
      return decision instanceof Promise ? decision.catch((error: unknown) => new ChargeFailure(error)) : decision;
    } catch (error) {
      return new ChargeFailure(error);
    }
  }
}

function reserve<Charges, Limits extends Decision>(
  call: Call<Charges, Limits>,
  reserved: Call<Charges, Limits>[],
): void {
  for (const balance of call.locked) balance.free -= call.amountOf(balance);
  reserved.push(call);
}

function remainingOf(balances: readonly LockedBalance[]): Remaining {
  return balances.map(({ remaining }) => remaining);
}

/** An outcome with the credits of the open holds of each balance, if one has any. */
function withHeld<O extends object>(outcome: O, balances: readonly LockedBalance[]): O {
  for (const { held } of balances) if (held > 0) return { ...outcome, held: balances.map(({ held }) => held) };
  return outcome;
}

/** The result of a call that some balance does not cover. `now`: by the clock of holds. */
function insufficient<Charges, Limits extends Decision>(
  call: Call<Charges, Limits>,
  now: Instant,
): SpendOutcome<never> {
  const { locked } = call;
  const lacks = locked.flatMap((balance) => {
    if (balance.covers(call.needOf(balance))) return [];
    const { id: balanceId, refillAt, expiresAt } = balance;
    if (!call.takesSlot(balance)) return { balanceId, refillAt };
    return { balanceId, refillAt, retryAfter: Math.max(1, (expiresAt ?? now) - now) };
  });
  return withHeld({ outcome: "insufficient" as const, remaining: remainingOf(locked), lacks }, locked);
}

function isCurrent(call: Pick<Change, "isCurrent">, now: Instant): boolean {
  return call.isCurrent === undefined || call.isCurrent(now);
}

/** Sets the result of a replay. A replay that is no longer current is outdated, like any other call. */
export function answerReplay<Charges, Limits extends Decision>(
  call: Call<Charges, Limits>,
  before: { readonly fingerprint: string; readonly outcome: string },
  now: Instant,
): void {
  if (!isCurrent(call, now)) call.result = { outcome: "outdated" };
  else if (before.fingerprint !== call.idempotent!.fingerprint) call.result = { outcome: "mismatched" };
  else call.result = { outcome: "repeated", before: before.outcome };
}
