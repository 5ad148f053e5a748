import type { Clock, Milliseconds } from "../../../../engine/src/clock/clock.ts";
import type {
  Charge,
  ChargeResult,
  Counters,
  LimitDecision,
  LimitState,
  Receipt,
  ReceiptCharge,
} from "../../../../engine/src/limits/counters.ts";
import { DenialCache } from "../../../../engine/src/limits/denial-cache.ts";
import type { KeptReceipt, Lender, LentCharge } from "../../../../engine/src/limits/lender.ts";
import { assertCharge } from "../../../../engine/src/limits/memory-counters.ts";
import { costChanges, receiptCharge, UNCOUNTED } from "../../../../engine/src/limits/receipts.ts";
import { alphanumeric, type Random } from "../../../../engine/src/random/random.ts";
import { LIMIT_MAX } from "../../../../engine/src/rules/window.ts";
import type { RedisEpoch } from "../store/redis-epochs.ts";
import { chargeScript, giveBackScript } from "./charge-script.ts";
import { type CountingRedis, RedisOutage } from "./connection.ts";

/** The scripts that a connection needs for these counters. */
export const counterScripts = { charge: chargeScript, giveBack: giveBackScript };

/** A batch is sent at this number of calls or charges, so that no script blocks Redis for long. */
const BATCH_CALLS_MAX = 128;
const BATCH_CHARGES_MAX = 512;
/** How often a call is sent when it misses its deadline in Redis. */
const ATTEMPTS_MAX = 3;
export const DENIALS_BYTES_MAX = 16 * 1024 * 1024;
/** Another node may have given back what a cached denial counts, so Redis is asked again after this time. */
const DENIAL_AGE_MAX: Milliseconds = 1_000;
/** How long the receipt of a call lasts at most: what it is for is over by then. */
const RECEIPT_LIFE_MAX: Milliseconds = 24 * 60 * 60 * 1000;

/**
 * The policy during an outage of Redis. `local`: counters of this node decide. They use the clock of the connection, so their
 * windows equal those in Redis. `closed` and `open`: the result is `outage`, and the limiter rejects or allows the call.
 *
 * `closed` also applies when Redis has lost data: the counts of windows that began before the loss are unknown, so these
 * windows count as full.
 */
export type OutagePolicy =
  | { readonly kind: "local"; readonly counters: Counters }
  | { readonly kind: "closed" }
  | { readonly kind: "open" };

export interface RedisCountersOptions {
  /** Opened with `counterScripts`. */
  readonly redis: CountingRedis;
  readonly clock: Pick<Clock, "monotonic">;
  readonly random: Random;
  readonly policy: OutagePolicy;
  /** The last epoch that an earlier process or another node saw. */
  readonly lastEpoch?: RedisEpoch | undefined;
  /** Called when `epoch` has changed. */
  onEpoch?(): void;
  /** Called when Redis has lost the counts before `at`, in ms of its clock. */
  onLoss(at: number): void;
  /** Prefix of all keys in Redis. */
  readonly prefix?: string;
  /** The cached denials, which counters can share; by default 16 MiB of their own. */
  readonly denials?: DenialCache;
  /** In tests: the time that the script uses. */
  readonly simulatedTime?: () => number;
}

/** A receipt in Redis. */
export interface RedisReceipt {
  readonly id: string;
  readonly life: Milliseconds;
}

/** What a call has consumed of a counter, and how much of that stays consumed. */
interface Consumed {
  readonly charge: LentCharge;
  readonly kept: number;
}

/** A call that waits for its result. */
interface Call {
  readonly charges: readonly Charge[];
  readonly mayConsume: boolean;
  /** The receipt that Redis writes. */
  readonly receipt?: RedisReceipt | undefined;
  /** Whether these charges are a part of a call. The whole call counts in the local counters. */
  readonly isPart?: boolean;
  readonly resolve: (result: ChargeResult | Promise<ChargeResult>) => void;
  readonly reject: (error: unknown) => void;
  attempts: number;
}

/**
 * Counters in Redis, shared by several nodes. One run of a script decides all calls of a turn of the event loop, up to
 * 128, at one instant of Redis' clock.
 *
 * With the policy `local`, this node also charges its own counters for each call that Redis allows. After a start, an
 * outage or a loss of data, a call in an affected window must be allowed by both. So a node never admits more than the
 * limit, and n nodes together never more than n times the limit.
 */
export class RedisCounters implements Counters, Lender {
  /** Calls that were sent to Redis, for the metrics. */
  sent = 0;
  /** Runs of the script, for the metrics. */
  batches = 0;
  /** Calls that missed their deadline in Redis and were sent again or given up. */
  late = 0;
  /** Calls that the denial cache has denied. */
  denialCacheHits = 0;
  /** How often Redis has lost data. */
  losses = 0;
  readonly #options: RedisCountersOptions;
  readonly #prefix: string;
  readonly #denials: DenialCache;
  #batch: Call[] = [];
  #batchCharges = 0;
  #flushing: NodeJS.Immediate | undefined;
  #epoch = "";
  #lostAt = 0;
  /** Time of the last loss that this node has detected. */
  #lossDetectedAt = 0;
  #redisTimeMax = 0;
  /** The time of the last reply of Redis. */
  #redisTime = 0;
  #outages = 0;

  constructor(options: RedisCountersOptions) {
    this.#options = options;
    this.#prefix = options.prefix ?? "latchkey:";
    this.#denials = options.denials ?? new DenialCache(DENIALS_BYTES_MAX);
    const { lastEpoch } = options;
    if (!lastEpoch) return;
    this.#epoch = lastEpoch.epoch;
    this.#lostAt = lastEpoch.lostAt;
    this.#redisTimeMax = lastEpoch.seenAt;
  }

  charge(charges: readonly Charge[], asksReceipt = false): ChargeResult | Promise<ChargeResult> {
    return this.#decide(charges, true, asksReceipt);
  }

  peek(charges: readonly Charge[]): ChargeResult | Promise<ChargeResult> {
    return this.#decide(charges, false, false);
  }

  async adjust(receipt: Receipt, costs: readonly (number | undefined)[]): Promise<readonly boolean[]> {
    const changes = costChanges(receipt, costs);
    if (receipt.id === undefined) return changes.map(() => false);
    // A counter that nothing was consumed from is not in the receipt.
    const consumed = changes.filter(({ charge }) => charge.cost > 0);
    const returned = await this.#tryToReturn(
      receipt.id,
      consumed.map(({ charge, excess }) => ({ charge, kept: charge.cost - excess })),
    );
    return Promise.all(
      changes.map(async ({ charge, raise }) => {
        if (!raise) return returned?.from.has(counterKey(charge)) ?? false;
        // A receipt lasts as long as its charges count, and a higher cost counts from this time on.
        if (charge.epoch === UNCOUNTED || returned?.epoch !== charge.epoch || this.hasOutage) return false;
        return (await this.charge([raise])).outcome === "decided";
      }),
    );
  }

  /** What a receipt says of a charge that was decided last. */
  receiptCharge(charge: Charge): ReceiptCharge {
    return receiptCharge(charge, this.#epoch);
  }

  get hasOutage(): boolean {
    return this.#options.redis.hasOutage;
  }

  /**
   * Charges a part of a call, and writes a receipt with which `giveBack` undoes it. The local counters are neither asked
   * nor charged. If the result is not a decision, the part may have been charged nevertheless.
   */
  reserve(charges: readonly Charge[], receipt: RedisReceipt): Promise<ChargeResult> {
    return new Promise((resolve, reject) =>
      this.#enqueue({ charges, mayConsume: true, receipt, isPart: true, resolve, reject, attempts: 0 }),
    );
  }

  /**
   * Gives back what `reserve` has charged with this receipt. False if there is no receipt: nothing was charged, it was
   * given back before, or the receipt has expired. Rejects if Redis does not answer; then it can be repeated.
   */
  async giveBack(charges: readonly Charge[], receipt: string): Promise<boolean> {
    const consumed = charges.filter(({ commit, cost }) => commit !== false && cost > 0);
    const { isFound } = await this.#return(
      receipt,
      consumed.map((charge) => ({ charge, kept: 0 })),
    );
    return isFound;
  }

  /**
   * With the policy `local`, this node's own counters are only asked, where Redis may lack counts. They learn what was spent when
   * it is settled, because what is given back at another node would stay in them.
   */
  async lend(charges: readonly Charge[], receipt: KeptReceipt): Promise<LimitDecision | undefined> {
    for (const charge of charges) assertCharge(charge);
    if (this.hasOutage) return undefined;
    const denial = this.#denyLocally(charges);
    if (denial) return denial;
    const result = await this.reserve(charges, { id: receipt.name, life: receipt.life });
    if (result.outcome !== "decided") return undefined;
    // The reply may have told of a loss.
    const late = result.allowed ? this.#denyLocally(charges) : undefined;
    if (late) await this.giveBack(charges, receipt.name).catch(() => {});
    return late ?? result;
  }

  async settle(
    name: string,
    charges: readonly LentCharge[],
    costs: readonly number[],
  ): Promise<readonly boolean[] | undefined> {
    if (this.hasOutage) return undefined;
    const kept = charges.map((charge, i) => ({ charge, kept: costs[i] ?? LIMIT_MAX }));
    const returned = await this.#tryToReturn(name, kept);
    if (!returned?.isFound) return undefined;
    const { policy } = this.#options;
    for (const { charge, kept: cost } of kept) {
      if (policy.kind !== "local" || cost === 0 || !returned.isCurrent.has(counterKey(charge))) continue;
      await policy.counters.charge([{ ...charge, limit: LIMIT_MAX, cost, force: true }]);
    }
    return charges.map((charge) => returned.from.has(counterKey(charge)));
  }

  /** Undefined if Redis does not answer. */
  async #tryToReturn(receipt: string, consumed: readonly Consumed[]) {
    try {
      return await this.#return(receipt, consumed);
    } catch (error) {
      // As in `#send`.
      if (!(error instanceof RedisOutage)) this.#options.redis.reportOutage(error);
      return undefined;
    }
  }

  /**
   * Drops a receipt, and gives back what is not kept of each of its charges. The result has the counters that got it back.
   */
  async #return(receipt: string, consumed: readonly Consumed[]) {
    const { redis } = this.#options;
    const amounts = new Map<string, number>();
    for (const { charge, kept } of consumed) {
      const name = counterKey(charge);
      amounts.set(name, (amounts.get(name) ?? 0) + kept);
    }
    const names = [...amounts.keys()];
    for (const name of names) this.#denials.delete(name);
    const keys = ["epoch", receiptKey(receipt), ...names].map((name) => this.#prefix + name);
    const reply = await redis.decide("giveBack", keys, Array.from(amounts.values(), String));
    const [, , epoch, isFound, ...isReturned] = reply as GiveBackReply;
    return {
      epoch,
      isFound: isFound === 1,
      from: new Set(names.filter((_, i) => (isReturned[i] ?? 0) > 0)),
      /** Those whose window is still the one of the call. */
      isCurrent: new Set(names.filter((_, i) => isReturned[i] === 2)),
    };
  }

  /** The epoch of the data in Redis; undefined before the first reply. */
  get epoch(): RedisEpoch | undefined {
    if (this.#epoch === "") return undefined;
    const seenAt = Math.floor(this.#redisTimeMax / 60_000) * 60_000;
    return { epoch: this.#epoch, lostAt: this.#lostAt, seenAt };
  }

  #decide(charges: readonly Charge[], mayConsume: boolean, asksReceipt: boolean): ChargeResult | Promise<ChargeResult> {
    for (const charge of charges) assertCharge(charge);
    if (charges.length === 0) return { outcome: "decided", at: 0, allowed: true, retryAfter: 0, limits: [] };
    const { redis } = this.#options;
    if (redis.outages !== this.#outages) {
      this.#outages = redis.outages;
      this.#denials.clear();
    }
    if (redis.hasOutage) return this.#decideInOutage(charges, mayConsume);
    const denial = this.#denyCached(charges) ?? this.#denyLocally(charges);
    if (denial) return denial;
    const receipt = asksReceipt ? newReceipt(this.#options.random, charges) : undefined;
    return new Promise((resolve, reject) =>
      this.#enqueue({ charges, mayConsume, receipt, resolve, reject, attempts: 0 }),
    );
  }

  #decideInOutage(charges: readonly Charge[], mayConsume: boolean): ChargeResult | Promise<ChargeResult> {
    const { policy } = this.#options;
    if (policy.kind !== "local") return { outcome: "outage" };
    return mayConsume ? policy.counters.charge(charges) : policy.counters.peek(charges);
  }

  /** The denial of the denial cache. */
  #denyCached(charges: readonly Charge[]): LimitDecision | undefined {
    if (charges.length !== 1 || this.#denials.size === 0 || charges[0]!.force) return undefined;
    const { redis, clock, simulatedTime } = this.#options;
    const at = clock.monotonic();
    const earliest = simulatedTime?.() ?? redis.time.earliest(at);
    const latest = simulatedTime?.() ?? redis.time.latest(at);
    const denial = this.#denials.deny(counterKey(charges[0]!), charges[0]!, earliest, latest, at);
    if (denial) this.denialCacheHits++;
    return denial;
  }

  /** The denial of this node's own counters, in windows in which Redis may lack admissions of this node. */
  #denyLocally(charges: readonly Charge[]): LimitDecision | undefined {
    const { policy } = this.#options;
    if (policy.kind !== "local" || !this.isIncomplete(charges)) return undefined;
    return denialOf(policy.counters.peek(charges));
  }

  /** Whether Redis may lack counts: one of the windows began before the last reconnection or the last loss of data. */
  isIncomplete(charges: readonly Charge[]): boolean {
    const { redis, clock, simulatedTime } = this.#options;
    const now = simulatedTime?.() ?? redis.time.earliest(clock.monotonic());
    const since = Math.max(redis.reconnectedAt, this.#lossDetectedAt);
    return charges.some(({ duration }) => (Math.floor(now / duration) - 1) * duration <= since);
  }

  #enqueue(call: Call): void {
    const charges = call.charges.length;
    if (this.#batch.length === BATCH_CALLS_MAX || this.#batchCharges + charges > BATCH_CHARGES_MAX) this.#flush();
    this.#batch.push(call);
    this.#batchCharges += charges;
    this.#flushing ??= setImmediate(() => this.#flush());
  }

  #flush(): void {
    if (this.#flushing) clearImmediate(this.#flushing);
    this.#flushing = undefined;
    const calls = this.#batch;
    if (calls.length === 0) return;
    this.#batch = [];
    this.#batchCharges = 0;
    this.#send(calls).catch((error: unknown) => {
      for (const call of calls) call.reject(error);
    });
  }

  async #send(calls: readonly Call[]): Promise<void> {
    const { redis, random, policy, simulatedTime } = this.#options;
    this.batches++;
    this.sent += calls.length;
    const { names, numbers } = encode(calls);
    const keys = [`${this.#prefix}epoch`, ...names.map((name) => this.#prefix + name)];
    const time = simulatedTime?.();
    const args = [
      this.#epoch,
      alphanumeric(random, 16),
      String(this.#redisTimeMax),
      policy.kind === "closed" ? "1" : "0",
      JSON.stringify(numbers),
    ];
    if (time !== undefined) args.push(String(time));
    const deadline = time === undefined ? undefined : Number.MAX_SAFE_INTEGER;
    let reply: Reply;
    try {
      reply = (await redis.decide("charge", keys, args, deadline)) as Reply;
    } catch (error) {
      // Redis rejects the script: it is full, loading, or demoted to a replica. It cannot count, so this is an outage.
      if (!(error instanceof RedisOutage)) redis.reportOutage(error);
      for (const call of calls) call.resolve(this.#giveUp(call));
      return;
    }
    this.#redisTimeMax = Math.max(this.#redisTimeMax, reply[1]);
    // The clock of Redis was set back: any call may have moved its counters, so what is cached of them may be outdated.
    if (reply[1] < this.#redisTime) this.#denials.clear();
    this.#redisTime = reply[1];
    if (reply[0] === 1) {
      this.#recordEpoch(reply[2], reply[3], reply[1]);
      this.#resolveAll(calls, reply);
      return;
    }
    this.late += calls.length;
    for (const call of calls) {
      if (++call.attempts < ATTEMPTS_MAX && !redis.hasOutage) this.#enqueue(call);
      else call.resolve(this.#giveUp(call));
    }
  }

  /** The result of a call that Redis did not decide in time. The policy decides it only during an outage. */
  #giveUp({ charges, mayConsume, isPart }: Call): ChargeResult | Promise<ChargeResult> {
    if (!this.#options.redis.hasOutage) return { outcome: "late" };
    return isPart ? { outcome: "outage" } : this.#decideInOutage(charges, mayConsume);
  }

  #recordEpoch(epoch: string, lostAt: number, time: number): void {
    const isChanged = epoch !== this.#epoch || lostAt > this.#lostAt;
    if (!isChanged) return;
    const isLost = this.#epoch !== "";
    this.#epoch = epoch;
    this.#lostAt = lostAt;
    // After a loss the clock may be behind: it is that of another server, or it was set back.
    if (isLost) this.#redisTimeMax = time;
    this.#options.onEpoch?.();
    if (!isLost) return;
    this.#denials.clear();
    this.losses++;
    this.#lossDetectedAt = lostAt;
    this.#options.onLoss(lostAt);
  }

  #resolveAll(calls: readonly Call[], reply: Reply): void {
    let at = 4;
    const next = () => reply[at++] as number;
    const { clock } = this.#options;
    for (const { charges, mayConsume, receipt, isPart = false, resolve } of calls) {
      const limits: LimitState[] = [];
      let retryAfter: number | undefined = 0;
      for (let i = 0; i < charges.length; i++) {
        const remaining = next();
        const reset = next();
        const wait = next();
        const own = wait === -1 ? undefined : wait;
        limits.push({ allowed: wait === 0, remaining, reset, retryAfter: own });
        retryAfter = retryAfter === undefined || own === undefined ? undefined : Math.max(retryAfter, own);
      }
      const allowed = retryAfter === 0;
      const denial = allowed && mayConsume ? this.#recordConsumed(charges, isPart) : undefined;
      if (denial) {
        resolve(denial);
        continue;
      }
      if (!allowed && charges.length === 1) {
        const state =
          charges[0]!.mode === "strict"
            ? { first: next(), counts: Array.from({ length: next() }, next) }
            : { end: next(), current: next(), previous: next() };
        const until = clock.monotonic() + DENIAL_AGE_MAX;
        if (limits[0]!.remaining === 0) this.#denials.set(counterKey(charges[0]!), state, until);
      }
      const decision: LimitDecision = { outcome: "decided", at: reply[1], allowed, retryAfter, limits };
      if (!receipt || isPart || !allowed) resolve(decision);
      else {
        const committed = charges.filter(({ commit }) => commit !== false);
        const { id } = receipt;
        resolve({ ...decision, receipt: { id, charges: committed.map((charge) => this.receiptCharge(charge)) } });
      }
    }
  }

  /**
   * Charges this node's own counters for a call that Redis has allowed. If Redis may lack counts, a denial by them is
   * final: concurrent calls passed `#denyLocally` one by one, and a loss of data is detected by the reply itself.
   */
  #recordConsumed(charges: readonly Charge[], isPart: boolean): LimitDecision | undefined {
    if (this.#denials.size > 0) for (const charge of charges) this.#denials.delete(counterKey(charge));
    const { policy } = this.#options;
    if (policy.kind !== "local" || isPart) return undefined;
    const own = policy.counters.charge(charges);
    return this.isIncomplete(charges) ? denialOf(own) : undefined;
  }
}

/** The reply that `charge-script.ts` describes. */
type Reply = [isDecided: 0 | 1, time: number, epoch: string, lostAt: number, ...figures: number[]];

/** The reply of the script that gives back. */
type GiveBackReply = [isDone: 1, time: number, epoch: string, isFound: 0 | 1, ...isReturned: (0 | 1 | 2)[]];

/** A receipt with a name of its own, that lasts as long as the charges count. */
export function newReceipt(random: Random, charges: readonly Charge[]): RedisReceipt {
  const life = 2 * Math.max(...charges.map(({ duration }) => duration));
  return { id: alphanumeric(random, 16), life: Math.min(RECEIPT_LIFE_MAX, life) };
}

/** Encodes a batch: the names of its counters, each once, and its calls as the script expects them. */
function encode(calls: readonly Call[]): { names: string[]; numbers: number[] } {
  const indexOf = new Map<string, number>();
  const numbers: number[] = [];
  const indexFor = (name: string) => {
    let index = indexOf.get(name);
    if (index === undefined) {
      index = indexOf.size + 1;
      indexOf.set(name, index);
    }
    return index;
  };
  for (const { charges, mayConsume, receipt } of calls) {
    // The epoch is before the names, so the index in KEYS is one more.
    if (receipt) numbers.push(charges.length, indexFor(receiptKey(receipt.id)) + 1, receipt.life);
    else numbers.push(charges.length, mayConsume ? 1 : 0);
    for (const charge of charges) {
      const index = indexFor(counterKey(charge));
      const flags = (charge.commit === false ? 0 : 1) + (charge.mode === "strict" ? 2 : 0) + (charge.force ? 4 : 0);
      numbers.push(index, charge.limit, charge.duration, charge.cost, flags);
    }
  }
  return { names: [...indexOf.keys()], numbers };
}

/** The result if it is a denial. Local counters answer synchronously; if they cannot decide, they deny nothing. */
function denialOf(result: ChargeResult | Promise<ChargeResult>): LimitDecision | undefined {
  return !(result instanceof Promise) && result.outcome === "decided" && !result.allowed ? result : undefined;
}

/** The name of a counter in Redis. The duration and the mode come first, because the name can end with any text. */
function counterKey({ counter, duration, mode }: Pick<Charge, "counter" | "duration" | "mode">): string {
  return mode === "strict" ? `${duration}s:${counter}` : `${duration}:${counter}`;
}

/** The name of a receipt. It begins unlike the name of a counter. */
function receiptKey(receipt: string): string {
  return `receipt:${receipt}`;
}
