import type { Clock, Instant, Milliseconds } from "../clock/clock.ts";
import { IdempotencyFull, IdempotencyQuotaExceeded } from "../errors/idempotency.ts";
import type { IdempotencyRecord } from "../rules/idempotency.ts";
import type { EarlierCalls, LockedBatch, SettledBatch } from "./batch.ts";
import { LackingCalls } from "./lacking-calls.ts";
import { type Call, covers, type Decision } from "./spend.ts";
import { TimeSlice } from "./time-slice.ts";

/**
 * After this time a batch, which holds locks, starts no further round of decisions. Open calls move to a later batch.
 */
const ROUNDS_MAX: Milliseconds = 50;

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

/** A balance during a batch; undefined: unlimited. */
interface Balance<C extends { readonly cost: number }> {
  readonly poolId: string;
  /** After the decided calls. */
  remaining: number | undefined;
  /** Credits that no call of the batch has reserved. */
  free: number | undefined;
  /** The sum that the batch spends. */
  spent: number;
  /** Calls that the free credits did not cover. */
  lacking: LackingCalls<C> | undefined;
}

export interface SettlementOptions<Charges, Limits extends Decision> {
  clock: Clock;
  charge(charges: Charges): Limits | Promise<Limits>;
}

/**
 * Decides the calls of one batch. A call that its balance covers reserves its credits, and then its limits are charged. A
 * call that its limits deny releases its credits to the next call, in the order of arrival, that they cover. Each call is
 * processed a limited number of times, and long work yields to the event loop.
 */
export class Settlement<Charges, Limits extends Decision> {
  /** Undecided calls, which go into a later batch. */
  readonly open: Call<Charges, Limits>[] = [];
  readonly #options: SettlementOptions<Charges, Limits>;
  readonly #earlier: EarlierCalls | undefined;
  readonly #slice: TimeSlice;
  readonly #balances = new Map<string, Balance<Call<Charges, Limits>>>();
  /** The balance of the last look-up, because consecutive calls often have the same pool. */
  #last: Balance<Call<Charges, Limits>> | undefined;

  /** `earlier`: needed if calls have an Idempotency-Key. */
  constructor(
    options: SettlementOptions<Charges, Limits>,
    balances: LockedBatch["balances"],
    earlier: EarlierCalls | undefined,
  ) {
    this.#options = options;
    this.#earlier = earlier;
    this.#slice = new TimeSlice(options.clock);
    for (const { poolId, remaining } of balances) {
      this.#balances.set(poolId, { poolId, remaining, free: remaining, spent: 0, lacking: undefined });
    }
  }

  /** Sets a result or a failure on every call, except on those that it adds to `open`. */
  async settle(calls: readonly Call<Charges, Limits>[]): Promise<SettledBatch> {
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
      const freed = new Set<Balance<Call<Charges, Limits>>>();
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
        const balance = this.#balanceOf(call.poolId);
        if (balance.free !== undefined) balance.free += call.cost;
        if (balance.lacking) freed.add(balance);
      }
      if (clock.monotonic() - startedAt <= ROUNDS_MAX) {
        reserved = await this.#reserveNext(freed);
        continue;
      }
      for (const balance of freed) this.#leaveOpen(balance);
      break;
    }
    return this.#conclude(decided);
  }

  /** Reserves credits for calls in the order of arrival; returns the covered ones. */
  async #reserveFirst(calls: readonly Call<Charges, Limits>[]): Promise<Call<Charges, Limits>[]> {
    const reserved: Call<Charges, Limits>[] = [];
    for (const call of calls) {
      if (!this.#isNew(call)) continue;
      const balance = this.#balanceOf(call.poolId);
      if (covers(balance.free, call.cost)) {
        if (balance.free !== undefined) balance.free -= call.cost;
        reserved.push(call);
      } else {
        balance.lacking ??= new LackingCalls();
        balance.lacking.push(call);
      }
      if (this.#slice.isOver()) await this.#slice.yield();
    }
    return reserved;
  }

  /** Reserves released credits for calls that lacked them; returns those calls. */
  async #reserveNext(freed: ReadonlySet<Balance<Call<Charges, Limits>>>): Promise<Call<Charges, Limits>[]> {
    const reserved: Call<Charges, Limits>[] = [];
    for (const balance of freed) {
      for (;;) {
        const call = balance.lacking!.takeFirst(balance.free!);
        if (!call) break;
        balance.free! -= call.cost;
        reserved.push(call);
        if (this.#slice.isOver()) await this.#slice.yield();
      }
    }
    return freed.size > 1 ? reserved.sort((a, b) => a.sequence - b.sequence) : reserved;
  }

  /** Does not yield, so that no call becomes outdated between its last check and its charge. */
  #conclude(decided: readonly Call<Charges, Limits>[]): SettledBatch {
    const now = this.#options.clock.now();
    const spends: { poolId: string; amount: number }[] = [];
    const records: IdempotencyRecord[] = [];
    for (const call of decided) {
      const { cost, limits } = call;
      const balance = this.#balanceOf(call.poolId);
      if (limits?.allowed === false) {
        call.result = { outcome: "limited", remaining: balance.remaining, limits };
        continue;
      }
      if (!isCurrent(call, now)) {
        call.result = { outcome: "outdated" };
        // Its credits are free again, so calls that lacked them are undecided.
        this.#leaveOpen(balance);
        continue;
      }
      if (balance.remaining !== undefined) {
        balance.remaining -= cost;
        balance.spent += cost;
      }
      call.result = { outcome: "spent", remaining: balance.remaining, limits };
      // Only calls that charged something are recorded.
      if (call.idempotent && (cost > 0 || call.charges !== undefined)) {
        call.recorded = call.idempotent.outcome(call.result);
        const { scope, fingerprint, keyId } = call.idempotent;
        records.push({ scope, fingerprint, keyId, workspaceId: call.workspaceId, outcome: call.recorded });
      }
    }
    for (const { poolId, remaining, spent, lacking } of this.#balances.values()) {
      if (spent > 0) spends.push({ poolId, amount: spent });
      for (const call of lacking?.rest() ?? []) {
        call.result = isCurrent(call, now)
          ? { outcome: "insufficient", remaining: remaining! }
          : { outcome: "outdated" };
      }
    }
    return { spends, records };
  }

  #leaveOpen(balance: Balance<Call<Charges, Limits>>): void {
    this.open.push(...(balance.lacking?.rest() ?? []));
    balance.lacking = undefined;
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

  #balanceOf(poolId: string): Balance<Call<Charges, Limits>> {
    if (poolId === this.#last?.poolId) return this.#last;
    let balance = this.#balances.get(poolId);
    if (!balance) {
      balance = { poolId, remaining: undefined, free: undefined, spent: 0, lacking: undefined };
      this.#balances.set(poolId, balance);
    }
    this.#last = balance;
    return balance;
  }

  /** Never rejects: a rejection during the wait for another decision would be unhandled. */
  #charge(call: Call<Charges, Limits>, now: Instant): Answer<Limits> | Promise<Answer<Limits>> {
    if (!isCurrent(call, now)) return OUTDATED;
    if (call.charges === undefined) return undefined;
    try {
      const decision = this.#options.charge(call.charges);
      return decision instanceof Promise ? decision.catch((error: unknown) => new ChargeFailure(error)) : decision;
    } catch (error) {
      return new ChargeFailure(error);
    }
  }
}

function isCurrent<Charges, Limits extends Decision>(call: Call<Charges, Limits>, now: Instant): boolean {
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
