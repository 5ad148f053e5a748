import type { Clock } from "../clock/clock.ts";
import { alphanumeric, type Random } from "../random/random.ts";
import { chargeScript } from "../redis/charge-script.ts";
import { RedisAway, type RedisConnection } from "../redis/connection.ts";
import type { RedisEpoch } from "../store/redis-epochs.ts";

import type { Charge, ChargeResult, Counters, LimitDecision, LimitState } from "./counters.ts";
import { DenialCache } from "./denial-cache.ts";
import { assertCharge } from "./memory-counters.ts";

/** The scripts that a connection needs for these counters. */
export const counterScripts = { charge: chargeScript };

/** A batch is sent when it holds so many calls or charges, so that no script holds Redis up for long. */
const BATCH_CALLS_MAX = 128;
const BATCH_CHARGES_MAX = 512;
/** How often a call is sent when Redis answers that it came too late. */
const ATTEMPTS_MAX = 3;
const DENIALS_BYTES_MAX = 16 * 1024 * 1024;

/**
 * What decides while the node stands apart from Redis. `local`: counters of this node, which go by the connection's clock
 * so that their windows are the same. `closed` and `open`: nothing; the
 * verdict is `away`, and the limiter refuses the call or lets it pass.
 *
 * `closed` also holds when Redis answers but has lost data: what it counted in windows that began before is unknown, so
 * they count as full.
 */
export type AwayPolicy =
  | { readonly kind: "local"; readonly counters: Counters }
  | { readonly kind: "closed" }
  | { readonly kind: "open" };

export interface RedisCountersOptions {
  /** Opened with `counterScripts`. */
  readonly redis: RedisConnection;
  readonly clock: Pick<Clock, "monotonic">;
  readonly random: Random;
  readonly policy: AwayPolicy;
  /** The last epoch that an earlier process or another node saw. */
  readonly lastEpoch?: RedisEpoch | undefined;
  /** Called when `epoch` has changed. */
  onEpoch?(): void;
  /** Told when Redis was found to have lost what it counted before `at`, in ms of its clock. */
  onLoss(at: number): void;
  /** What the names of all keys begin with. */
  readonly prefix?: string;
  /** Bytes of memory for denials that are remembered; 16 MiB by default. */
  readonly denialCacheBytesMax?: number;
  /** In tests: the time that Redis is told. */
  readonly simulatedTime?: () => number;
}

/** One call that waits for its verdict. */
interface Call {
  readonly charges: readonly Charge[];
  readonly mayTake: boolean;
  readonly resolve: (verdict: ChargeResult | Promise<ChargeResult>) => void;
  readonly reject: (error: unknown) => void;
  attempts: number;
}

/**
 * Counters that several nodes share, in one Redis. All calls of a turn of the event loop, up to 128, are decided by one
 * run of a script, at one instant of Redis' clock.
 *
 * With the policy `local` this node's own counters take part in two ways, so that no node ever admits more than the limit
 * and all together never more than their number times the limit: what Redis admits is charged to them as well, and after
 * a start, an absence or a loss they have to agree, in windows that it touched.
 */
export class RedisCounters implements Counters {
  /** Calls that were sent to Redis, for the metrics. */
  sent = 0;
  /** Runs of the script. */
  batches = 0;
  /** Calls that came too late for their deadline and were sent again or given up. */
  late = 0;
  /** Calls that were refused without asking. */
  denialCacheHits = 0;
  /** How often Redis was found to have lost data. */
  losses = 0;
  readonly #options: RedisCountersOptions;
  readonly #prefix: string;
  readonly #denials: DenialCache;
  #gathered: Call[] = [];
  #gatheredCharges = 0;
  #flushing: NodeJS.Immediate | undefined;
  #epoch = "";
  #lostAt = 0;
  /** The last loss that this node went through. */
  #lossNotedAt = 0;
  #redisTimeMax = 0;
  #outages = 0;

  constructor(options: RedisCountersOptions) {
    this.#options = options;
    this.#prefix = options.prefix ?? "latchkey:";
    this.#denials = new DenialCache(options.denialCacheBytesMax ?? DENIALS_BYTES_MAX);
    const { lastEpoch } = options;
    if (!lastEpoch) return;
    this.#epoch = lastEpoch.epoch;
    this.#lostAt = lastEpoch.lostAt;
    this.#redisTimeMax = lastEpoch.seenAt;
  }

  charge(charges: readonly Charge[]): ChargeResult | Promise<ChargeResult> {
    return this.#decide(charges, true);
  }

  peek(charges: readonly Charge[]): ChargeResult | Promise<ChargeResult> {
    return this.#decide(charges, false);
  }

  /** Bytes of memory that remembered denials take, estimated. */
  get denialCacheBytes(): number {
    return this.#denials.bytes;
  }

  /** The epoch of the data in Redis; undefined before the first reply. */
  get epoch(): RedisEpoch | undefined {
    if (this.#epoch === "") return undefined;
    const seenAt = Math.floor(this.#redisTimeMax / 60_000) * 60_000;
    return { epoch: this.#epoch, lostAt: this.#lostAt, seenAt };
  }

  #decide(charges: readonly Charge[], mayTake: boolean): ChargeResult | Promise<ChargeResult> {
    for (const charge of charges) assertCharge(charge);
    if (charges.length === 0) return { outcome: "decided", at: 0, allowed: true, retryAfter: 0, limits: [] };
    const { redis } = this.#options;
    if (redis.outages !== this.#outages) {
      this.#outages = redis.outages;
      this.#denials.clear();
    }
    if (redis.isAway) return this.#decideApart(charges, mayTake);
    const refusal = this.#recall(charges) ?? this.#refuseOwn(charges);
    if (refusal) return refusal;
    return new Promise((resolve, reject) => this.#gather({ charges, mayTake, resolve, reject, attempts: 0 }));
  }

  #decideApart(charges: readonly Charge[], mayTake: boolean): ChargeResult | Promise<ChargeResult> {
    const { policy } = this.#options;
    if (policy.kind !== "local") return { outcome: "away" };
    return mayTake ? policy.counters.charge(charges) : policy.counters.peek(charges);
  }

  /** The refusal that was remembered. */
  #recall(charges: readonly Charge[]): LimitDecision | undefined {
    if (charges.length !== 1 || this.#denials.size === 0) return undefined;
    const { redis, clock, simulatedTime } = this.#options;
    const at = clock.monotonic();
    const earliest = simulatedTime?.() ?? redis.time.earliest(at);
    const latest = simulatedTime?.() ?? redis.time.latest(at);
    const denial = this.#denials.recall(nameOf(charges[0]!), charges[0]!, earliest, latest);
    if (denial) this.denialCacheHits++;
    return denial;
  }

  /** The refusal by this node's own counters, where they may know of admissions that Redis does not. */
  #refuseOwn(charges: readonly Charge[]): LimitDecision | undefined {
    const { policy } = this.#options;
    if (policy.kind !== "local" || !this.#mayKnowMore(charges)) return undefined;
    return refusalOf(policy.counters.peek(charges));
  }

  /** Whether one of the windows that count now had begun before Redis was there last, with all that it ever counted. */
  #mayKnowMore(charges: readonly Charge[]): boolean {
    const { redis, clock, simulatedTime } = this.#options;
    const now = simulatedTime?.() ?? redis.time.earliest(clock.monotonic());
    const since = Math.max(redis.reconnectedAt, this.#lossNotedAt);
    return charges.some(({ duration }) => (Math.floor(now / duration) - 1) * duration <= since);
  }

  #gather(call: Call): void {
    const charges = call.charges.length;
    if (this.#gathered.length === BATCH_CALLS_MAX || this.#gatheredCharges + charges > BATCH_CHARGES_MAX) this.#flush();
    this.#gathered.push(call);
    this.#gatheredCharges += charges;
    this.#flushing ??= setImmediate(() => this.#flush());
  }

  #flush(): void {
    if (this.#flushing) clearImmediate(this.#flushing);
    this.#flushing = undefined;
    const calls = this.#gathered;
    if (calls.length === 0) return;
    this.#gathered = [];
    this.#gatheredCharges = 0;
    this.#send(calls).catch((error: unknown) => {
      for (const call of calls) call.reject(error);
    });
  }

  async #send(calls: readonly Call[]): Promise<void> {
    const { redis, clock, random, policy, simulatedTime } = this.#options;
    this.batches++;
    this.sent += calls.length;
    const { names, numbers } = encode(calls);
    const keys = [`${this.#prefix}epoch`, ...names.map((name) => this.#prefix + name)];
    const time = simulatedTime?.();
    const args = [
      String(time === undefined ? redis.deadline() : Number.MAX_SAFE_INTEGER),
      this.#epoch,
      alphanumeric(random, 16),
      String(this.#redisTimeMax),
      policy.kind === "closed" ? "1" : "0",
      JSON.stringify(numbers),
    ];
    if (time !== undefined) args.push(String(time));
    const sentAt = clock.monotonic();
    let reply: Reply;
    try {
      reply = (await redis.run("charge", keys, args)) as Reply;
    } catch (error) {
      // Redis refuses to run the script: full, loading, demoted to a replica. All of it means that it cannot count.
      if (!(error instanceof RedisAway)) redis.markAway(error);
      for (const call of calls) call.resolve(this.#giveUp(call));
      return;
    }
    if (time === undefined) redis.time.learn(sentAt, clock.monotonic(), reply[1]);
    this.#redisTimeMax = Math.max(this.#redisTimeMax, reply[1]);
    if (reply[0] === 1) {
      this.#recordEpoch(reply[2], reply[3], reply[1]);
      this.#answer(calls, reply);
      return;
    }
    this.late += calls.length;
    for (const call of calls) {
      if (++call.attempts < ATTEMPTS_MAX && !redis.isAway) this.#gather(call);
      else call.resolve(this.#giveUp(call));
    }
  }

  /** A call that Redis did not decide in time is decided apart only while Redis is away. */
  #giveUp({ charges, mayTake }: Call): ChargeResult | Promise<ChargeResult> {
    return this.#options.redis.isAway ? this.#decideApart(charges, mayTake) : { outcome: "late" };
  }

  #recordEpoch(epoch: string, lostAt: number, time: number): void {
    const isChanged = epoch !== this.#epoch || lostAt > this.#lostAt;
    if (!isChanged) return;
    const isLost = this.#epoch !== "";
    this.#epoch = epoch;
    this.#lostAt = lostAt;
    // After a loss time begins anew: the clock of another server, or of one that was set back, may be behind.
    if (isLost) this.#redisTimeMax = time;
    this.#options.onEpoch?.();
    if (!isLost) return;
    this.#denials.clear();
    this.losses++;
    this.#lossNotedAt = lostAt;
    this.#options.onLoss(lostAt);
  }

  #answer(calls: readonly Call[], reply: Reply): void {
    let at = 4;
    const next = () => reply[at++] as number;
    for (const { charges, mayTake, resolve } of calls) {
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
      const refusal = allowed && mayTake ? this.#recordTaken(charges) : undefined;
      if (refusal) {
        resolve(refusal);
        continue;
      }
      if (!allowed && charges.length === 1) {
        const state = { end: next(), current: next(), previous: next() };
        if (limits[0]!.remaining === 0) this.#denials.remember(nameOf(charges[0]!), state);
      }
      resolve({ outcome: "decided", at: reply[1], allowed, retryAfter, limits });
    }
  }

  /**
   * Charges this node's own counters with what Redis has admitted. Where they may know more than Redis, their refusal
   * holds: calls that were under way together passed them one by one, and a loss shows in the very reply that admits.
   */
  #recordTaken(charges: readonly Charge[]): LimitDecision | undefined {
    if (this.#denials.size > 0) for (const charge of charges) this.#denials.forget(nameOf(charge));
    const { policy } = this.#options;
    if (policy.kind !== "local") return undefined;
    const own = policy.counters.charge(charges);
    return this.#mayKnowMore(charges) ? refusalOf(own) : undefined;
  }
}

/** As `charge-script.ts` describes it. */
type Reply = [isDecided: 0 | 1, time: number, epoch: string, lostAt: number, ...figures: number[]];

/** The counters of a batch, each once, and its calls as the script takes them. */
function encode(calls: readonly Call[]): { names: string[]; numbers: number[] } {
  const indexOf = new Map<string, number>();
  const numbers: number[] = [];
  for (const { charges, mayTake } of calls) {
    numbers.push(charges.length, mayTake ? 1 : 0);
    for (const charge of charges) {
      const name = nameOf(charge);
      let index = indexOf.get(name);
      if (index === undefined) {
        index = indexOf.size + 1;
        indexOf.set(name, index);
      }
      numbers.push(index, charge.limit, charge.duration, charge.cost, charge.commit === false ? 0 : 1);
    }
  }
  return { names: [...indexOf.keys()], numbers };
}

/** Counters of one process answer at once, and those that cannot decide refuse nothing. */
function refusalOf(verdict: ChargeResult | Promise<ChargeResult>): LimitDecision | undefined {
  return !(verdict instanceof Promise) && verdict.outcome === "decided" && !verdict.allowed ? verdict : undefined;
}

/** The duration comes first: the counter's text may end in anything. */
function nameOf(charge: Charge): string {
  return `${charge.duration}:${charge.counter}`;
}
