import type { Clock, Instant, Milliseconds } from "../clock/clock.ts";
import { IdempotencyFull, IdempotencyQuotaExceeded, type IdempotencyRecord } from "../store/idempotency.ts";
import { LackingCalls } from "./lacking-calls.ts";
import { Pace } from "./pace.ts";
import type { LockedBatch, SettledBatch } from "./procedures.ts";
import type { Call, Decision } from "./spend.ts";

/**
 * How long a batch begins further rounds of decisions while it holds its locks. What is open then goes with a later
 * batch.
 */
const ROUNDS_MAX: Milliseconds = 50;

/** The limits of a call could not be decided, and nothing was charged. */
class Undecided {
  readonly cause: unknown;
  constructor(cause: unknown) {
    this.cause = cause;
  }
}

/** The call was not charged, because it is no longer current. */
const OUTDATED: unique symbol = Symbol("outdated");

/** What came of charging the limits of a call; undefined: it has none. */
type Answer<Limits> = Limits | undefined | Undecided | typeof OUTDATED;

/** A balance during a batch; undefined: unlimited. */
interface Balance<C extends { readonly cost: number }> {
  readonly poolId: string;
  /** After the calls that were decided. */
  remaining: number | undefined;
  /** What no call of the batch holds. */
  free: number | undefined;
  /** What the batch takes. */
  spent: number;
  /** Calls that it did not cover. */
  lacking: LackingCalls<C> | undefined;
}

export interface SettlementOptions<Charges, Limits extends Decision> {
  clock: Clock;
  charge(charges: Charges): Limits | Promise<Limits>;
}

/**
 * Decides the calls of one batch. Every call that its balance still covers holds its credits and meets its limits; one
 * that they refuse frees its credits for the next call in the order of arrival that these cover. Each call is looked at
 * a bounded number of times, and long work is divided so that the event loop is never kept.
 */
export class Settlement<Charges, Limits extends Decision> {
  /** Calls that were left open: their batch is to be a later one. */
  readonly open: Call<Charges, Limits>[] = [];
  readonly #options: SettlementOptions<Charges, Limits>;
  readonly #held: LockedBatch;
  readonly #pace: Pace;
  readonly #balances = new Map<string, Balance<Call<Charges, Limits>>>();
  /** The balance that was looked up last: many calls in a row may be of one pool. */
  #last: Balance<Call<Charges, Limits>> | undefined;

  constructor(options: SettlementOptions<Charges, Limits>, held: LockedBatch) {
    this.#options = options;
    this.#held = held;
    this.#pace = new Pace(options.clock);
    for (const { poolId, remaining } of held.balances) {
      this.#balances.set(poolId, { poolId, remaining, free: remaining, spent: 0, lacking: undefined });
    }
  }

  /** Gives every call a result or a failure, except for those that it leaves open. */
  async settle(calls: readonly Call<Charges, Limits>[]): Promise<SettledBatch> {
    const { clock } = this.#options;
    const pace = this.#pace;
    const startedAt = clock.monotonic();
    /** In the order of their decisions. */
    const decided: Call<Charges, Limits>[] = [];
    for (let holders = await this.#holdFirst(calls); holders.length > 0; ) {
      const decisions: (Answer<Limits> | Promise<Answer<Limits>>)[] = [];
      const now = clock.now();
      // In the order of arrival, which is the order in which the counters see them.
      for (const call of holders) {
        decisions.push(this.#charge(call, now));
        if (pace.isDue()) await pace.rest();
      }
      const freed = new Set<Balance<Call<Charges, Limits>>>();
      for (let i = 0; i < holders.length; i++) {
        const call = holders[i]!;
        const decision = decisions[i];
        const limits = decision instanceof Promise ? await decision : decision;
        if (pace.isDue()) await pace.rest();
        if (limits === OUTDATED) call.result = { outcome: "outdated" };
        else if (limits instanceof Undecided) call.failure = limits.cause;
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
        holders = await this.#holdNext(freed);
        continue;
      }
      for (const balance of freed) this.#leaveOpen(balance);
      break;
    }
    return this.#conclude(decided);
  }

  /** Calls that hold their credits at the first look. */
  async #holdFirst(calls: readonly Call<Charges, Limits>[]): Promise<Call<Charges, Limits>[]> {
    const holders: Call<Charges, Limits>[] = [];
    for (const call of calls) {
      if (!this.#isNew(call)) continue;
      const balance = this.#balanceOf(call.poolId);
      if (balance.free === undefined || balance.free >= call.cost) {
        if (balance.free !== undefined) balance.free -= call.cost;
        holders.push(call);
      } else {
        balance.lacking ??= new LackingCalls();
        balance.lacking.push(call);
      }
      if (this.#pace.isDue()) await this.#pace.rest();
    }
    return holders;
  }

  /** Calls that lacked credits and hold them after others freed some. */
  async #holdNext(freed: ReadonlySet<Balance<Call<Charges, Limits>>>): Promise<Call<Charges, Limits>[]> {
    const holders: Call<Charges, Limits>[] = [];
    for (const balance of freed) {
      for (;;) {
        const call = balance.lacking!.takeFirst(balance.free!);
        if (!call) break;
        balance.free! -= call.cost;
        holders.push(call);
        if (this.#pace.isDue()) await this.#pace.rest();
      }
    }
    return freed.size > 1 ? holders.sort((a, b) => a.sequence - b.sequence) : holders;
  }

  /** Without a pause, so that nothing becomes outdated between the last look at a call and its charge. */
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
        // Those that lacked credits were passed over for a call that takes none.
        this.#leaveOpen(balance);
        continue;
      }
      if (balance.remaining !== undefined) {
        balance.remaining -= cost;
        balance.spent += cost;
      }
      call.result = { outcome: "spent", remaining: balance.remaining, limits };
      // Only what charged something is remembered.
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

  /** Whether a call is to be decided; one that was made before is answered with its outcome then. */
  #isNew(call: Call<Charges, Limits>): boolean {
    const { idempotent } = call;
    if (!idempotent) return true;
    const { recorded, claimedElsewhere, hasCapacity } = this.#held;
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

  /** Never rejects: while one decision is awaited, nothing would handle the rejection of another. */
  #charge(call: Call<Charges, Limits>, now: Instant): Answer<Limits> | Promise<Answer<Limits>> {
    if (!isCurrent(call, now)) return OUTDATED;
    if (call.charges === undefined) return undefined;
    try {
      const decision = this.#options.charge(call.charges);
      return decision instanceof Promise ? decision.catch((error: unknown) => new Undecided(error)) : decision;
    } catch (error) {
      return new Undecided(error);
    }
  }
}

function isCurrent<Charges, Limits extends Decision>(call: Call<Charges, Limits>, now: Instant): boolean {
  return call.isCurrent === undefined || call.isCurrent(now);
}

/** Gives a call that was made before its result. The checks that cost nothing hold for it too. */
export function answerReplay<Charges, Limits extends Decision>(
  call: Call<Charges, Limits>,
  before: { readonly fingerprint: string; readonly outcome: string },
  now: Instant,
): void {
  if (!isCurrent(call, now)) call.result = { outcome: "outdated" };
  else if (before.fingerprint !== call.idempotent!.fingerprint) call.result = { outcome: "mismatched" };
  else call.result = { outcome: "repeated", before: before.outcome };
}
