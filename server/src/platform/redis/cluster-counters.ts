import type { Clock, Milliseconds, Timer } from "../../../../engine/src/clock/clock.ts";
import type {
  Charge,
  ChargeResult,
  Counters,
  CountersUnavailable,
  LimitDecision,
  LimitState,
  Receipt,
  ReceiptCharge,
} from "../../../../engine/src/limits/counters.ts";
import { DenialCache } from "../../../../engine/src/limits/denial-cache.ts";
import type { KeptReceipt, Lender, LentCharge } from "../../../../engine/src/limits/lender.ts";
import { uncountedState } from "../../../../engine/src/limits/limiter.ts";
import { assertCharge } from "../../../../engine/src/limits/memory-counters.ts";
import { receiptCharge, UNCOUNTED } from "../../../../engine/src/limits/receipts.ts";
import type { RedisEpoch } from "../store/redis-epochs.ts";
import type { CountingRedis } from "./connection.ts";
import { partitionOf, prefixOf } from "./partitions.ts";
import {
  DENIALS_BYTES_MAX,
  newReceipt,
  type OutagePolicy,
  RedisCounters,
  type RedisCountersOptions,
} from "./redis-counters.ts";

/** How long the receipt of a call over several partitions lasts, in which the call can be given back. */
const RECEIPT_LIFE: Milliseconds = 10_000;
/** Interval between attempts to give back what could not be given back at once. */
const RETRY_INTERVAL: Milliseconds = 250;
/** Parts of calls that wait for it. Beyond this number the charges stay. */
const OWED_MAX = 10_000;

const outage: CountersUnavailable = { outcome: "outage" };

export interface ClusterCountersOptions extends Pick<RedisCountersOptions, "random" | "policy" | "simulatedTime"> {
  /** Where the counters of a partition are. */
  partition(number: number): CountingRedis;
  readonly clock: Pick<Clock, "monotonic" | "now" | "schedule">;
  /** What nodes last recorded of each partition. */
  readonly lastEpochs?: ReadonlyMap<number, RedisEpoch>;
  /** Called when an epoch has changed. */
  onEpoch?(): void;
  /** Called when a partition has lost the counts before `at`, in ms of the clock of its Redis. */
  onLoss(at: number, partition: number): void;
  /** Comes before the prefixes of partitions. */
  readonly prefix?: string;
}

/** The charges of a call that are in one partition. */
interface Part<T = Charge> {
  readonly partition: number;
  readonly counters: RedisCounters;
  readonly charges: T[];
  /** The place of each charge in the call. */
  readonly places: number[];
}

/** A part of a call whose charges must be given back. */
interface Owed {
  readonly part: Part;
  readonly receipt: string;
  readonly until: Milliseconds;
}

/**
 * Counters in a cluster of Redis, in 1,024 partitions. Each partition has its own epoch, and decides by one script.
 *
 * A call whose limits are in several partitions first looks at all of them at once, and a denial ends it there. Otherwise
 * it charges one partition after the other, in ascending order, so that of several calls with the same limits one always
 * gets through. If a later partition denies or does not answer, the earlier ones get back what the call has charged,
 * by its receipts. Until then other calls see counts that are too high, never too low.
 */
export class ClusterCounters implements Counters, Lender {
  /** Calls with limits in several partitions, for the metrics. */
  spread = 0;
  /** Parts of calls that were given back. */
  returned = 0;
  /** Parts of calls that could not be given back and stay charged until their windows end. */
  unreturned = 0;
  /** Partitions that have lost data. */
  losses = 0;
  readonly #options: ClusterCountersOptions;
  readonly #partitions: (RedisCounters | undefined)[] = [];
  readonly #denials = new DenialCache(DENIALS_BYTES_MAX);
  readonly #owed = new Set<Owed>();
  #retry: Timer | undefined;

  constructor(options: ClusterCountersOptions) {
    this.#options = options;
  }

  charge(charges: readonly Charge[], asksReceipt = false): ChargeResult | Promise<ChargeResult> {
    const only = this.#onlyPartition(charges);
    if (only !== undefined) return this.#countersOf(only).charge(charges, asksReceipt);
    for (const charge of charges) assertCharge(charge);
    return this.#chargeParts(charges, this.#divide(charges), asksReceipt);
  }

  peek(charges: readonly Charge[]): ChargeResult | Promise<ChargeResult> {
    const only = this.#onlyPartition(charges);
    if (only !== undefined) return this.#countersOf(only).peek(charges);
    for (const charge of charges) assertCharge(charge);
    return this.#peekParts(this.#divide(charges));
  }

  async adjust({ charges, ...receipt }: Receipt, costs: readonly (number | undefined)[]): Promise<readonly boolean[]> {
    const corrected = new Map<ReceiptCharge, boolean | undefined>();
    const adjusting = this.#divide(charges).map(async (part) => {
      const ownCosts = part.places.map((place) => costs[place]);
      const own = await part.counters.adjust({ ...receipt, charges: part.charges }, ownCosts);
      for (const [i, charge] of part.charges.entries()) corrected.set(charge, own[i]);
    });
    await Promise.all(adjusting);
    return charges.map((charge) => corrected.get(charge) === true);
  }

  /** The charges must be in one partition, whose Redis keeps the receipt. */
  lend(charges: readonly Charge[], receipt: KeptReceipt): Promise<LimitDecision | undefined> {
    return this.#ofOnePartition(charges).lend(charges, receipt);
  }

  settle(
    name: string,
    charges: readonly LentCharge[],
    costs: readonly number[],
  ): Promise<readonly boolean[] | undefined> {
    return this.#ofOnePartition(charges).settle(name, charges, costs);
  }

  #ofOnePartition(charges: readonly LentCharge[]): RedisCounters {
    const only = this.#onlyPartition(charges);
    if (only === undefined) throw new RangeError("Charges of several partitions cannot be lent");
    return this.#countersOf(only);
  }

  get sent(): number {
    return this.#sum(({ sent }) => sent);
  }

  get batches(): number {
    return this.#sum(({ batches }) => batches);
  }

  get denialCacheHits(): number {
    return this.#sum(({ denialCacheHits }) => denialCacheHits);
  }

  /** The epochs that are known, by partition. */
  get epochs(): Map<number, RedisEpoch> {
    const known = new Map<number, RedisEpoch>();
    for (const [partition, counters] of this.#partitions.entries()) {
      if (counters?.epoch) known.set(partition, counters.epoch);
    }
    return known;
  }

  close(): void {
    this.#retry?.cancel();
  }

  #sum(read: (counters: RedisCounters) => number): number {
    return this.#partitions.reduce((sum, counters) => sum + (counters ? read(counters) : 0), 0);
  }

  /** The partition of all charges; undefined if there are several. */
  #onlyPartition(charges: readonly LentCharge[]): number | undefined {
    if (charges.length === 0) return 0;
    const first = partitionOf(charges[0]!.counter);
    for (let i = 1; i < charges.length; i++) if (partitionOf(charges[i]!.counter) !== first) return undefined;
    return first;
  }

  #divide<T extends Pick<Charge, "counter">>(charges: readonly T[]): Part<T>[] {
    const parts = new Map<number, Part<T>>();
    for (const [place, charge] of charges.entries()) {
      const partition = partitionOf(charge.counter);
      let part = parts.get(partition);
      if (!part) {
        part = { partition, counters: this.#countersOf(partition), charges: [], places: [] };
        parts.set(partition, part);
      }
      part.charges.push(charge);
      part.places.push(place);
    }
    return [...parts.values()].sort((a, b) => a.partition - b.partition);
  }

  #countersOf(partition: number): RedisCounters {
    const known = this.#partitions[partition];
    if (known) return known;
    const { clock, random, policy, simulatedTime, lastEpochs, onEpoch, onLoss, prefix = "" } = this.#options;
    const counters = new RedisCounters({
      clock,
      random,
      policy,
      redis: this.#options.partition(partition),
      denials: this.#denials,
      prefix: prefix + prefixOf(partition),
      lastEpoch: lastEpochs?.get(partition),
      onLoss: (at) => {
        this.losses++;
        onLoss(at, partition);
      },
      ...(onEpoch && { onEpoch }),
      ...(simulatedTime && { simulatedTime }),
    });
    this.#partitions[partition] = counters;
    return counters;
  }

  /** What each part decides without being charged, or why the call cannot be decided. */
  async #look(parts: readonly Part[]): Promise<LimitDecision[] | CountersUnavailable> {
    const results = await Promise.all(parts.map(async (part) => part.counters.peek(part.charges)));
    const isOpen = this.#options.policy.kind === "open" && results.some(({ outcome }) => outcome === "decided");
    const decisions: LimitDecision[] = [];
    for (const [i, result] of results.entries()) {
      if (result.outcome === "decided") decisions.push(result);
      else if (isOpen && result.outcome === "outage") decisions.push(this.#uncounted(parts[i]!.charges));
      else return result;
    }
    return decisions;
  }

  async #peekParts(parts: readonly Part[]): Promise<ChargeResult> {
    const looked = await this.#look(parts);
    return Array.isArray(looked) ? combine(parts, looked) : looked;
  }

  async #chargeParts(charges: readonly Charge[], parts: readonly Part[], asksReceipt: boolean): Promise<ChargeResult> {
    this.spread++;
    const decisions = await this.#look(parts);
    if (!Array.isArray(decisions)) return decisions;
    const looked = combine(parts, decisions);
    if (!looked.allowed) return looked;
    const { policy, random } = this.#options;
    const { id, life } = newReceipt(random, charges);
    const receipt = { id, life: asksReceipt ? Math.max(life, RECEIPT_LIFE) : RECEIPT_LIFE };
    const charged = [...decisions];
    const uncounted = new Set<Part>();
    for (const [i, part] of parts.entries()) {
      const result = part.counters.hasOutage ? outage : await part.counters.reserve(part.charges, receipt);
      if (result.outcome === "decided") {
        charged[i] = result;
        if (result.allowed) continue;
        await this.#giveBack(parts.slice(0, i), receipt.id);
        return combine(parts, decisions.with(i, result));
      }
      if (result.outcome === "outage" && policy.kind !== "closed") {
        uncounted.add(part);
        continue;
      }
      // A part without a decision may have been charged.
      await this.#giveBack(parts.slice(0, i + 1), receipt.id);
      return result;
    }
    const decision =
      policy.kind === "local"
        ? await this.#chargeOwn(charges, parts, charged, uncounted, receipt.id)
        : combine(parts, charged);
    if (!asksReceipt || decision.outcome !== "decided" || !decision.allowed) return decision;
    const countedBy = new Map<Charge, RedisCounters>();
    for (const part of parts) {
      if (!uncounted.has(part)) for (const charge of part.charges) countedBy.set(charge, part.counters);
    }
    const committed = charges.filter(({ commit }) => commit !== false);
    const receiptCharges = committed.map(
      (charge) => countedBy.get(charge)?.receiptCharge(charge) ?? receiptCharge(charge, UNCOUNTED),
    );
    return { ...decision, receipt: { id: receipt.id, charges: receiptCharges } };
  }

  /**
   * Charges this node's own counters for a call that Redis has allowed. They decide the parts that no Redis has decided, and
   * those in windows in which Redis may lack counts.
   */
  async #chargeOwn(
    charges: readonly Charge[],
    parts: readonly Part[],
    charged: readonly LimitDecision[],
    uncounted: ReadonlySet<Part>,
    receipt: string,
  ): Promise<ChargeResult> {
    const own = await (this.#options.policy as OutagePolicy & { kind: "local" }).counters.charge(charges);
    const decides = uncounted.size > 0 || parts.some((part) => part.counters.isIncomplete(part.charges));
    const isDenied = own.outcome === "decided" ? !own.allowed : uncounted.size > 0;
    if (decides && isDenied) {
      await this.#giveBack(parts, receipt);
      return own;
    }
    const decisions = charged.map((decision, i) => {
      const part = parts[i]!;
      if (own.outcome !== "decided" || !uncounted.has(part)) return decision;
      return { ...own, limits: part.places.map((place) => own.limits[place]!) };
    });
    return combine(parts, decisions);
  }

  #uncounted(charges: readonly Charge[]): LimitDecision {
    const at = this.#options.clock.now();
    const limits = charges.map((charge) => uncountedState(charge, at));
    return { outcome: "decided", at, allowed: true, retryAfter: 0, limits };
  }

  /** Gives back what the call has charged in these parts. What does not succeed is repeated in the background. */
  async #giveBack(parts: readonly Part[], receipt: string): Promise<void> {
    const until = this.#options.clock.monotonic() + RECEIPT_LIFE;
    await Promise.all(parts.map((part) => this.#pay({ part, receipt, until })));
  }

  async #pay(owed: Owed): Promise<void> {
    try {
      const wasCharged = await owed.part.counters.giveBack(owed.part.charges, owed.receipt);
      this.#owed.delete(owed);
      if (wasCharged) this.returned++;
    } catch {
      if (!this.#owed.has(owed) && this.#owed.size >= OWED_MAX) this.unreturned++;
      else this.#owed.add(owed);
      this.#retry ??= this.#options.clock.schedule(RETRY_INTERVAL, () => void this.#payAll());
    }
  }

  async #payAll(): Promise<void> {
    this.#retry = undefined;
    const now = this.#options.clock.monotonic();
    for (const owed of this.#owed) {
      if (now < owed.until) continue;
      this.#owed.delete(owed);
      this.unreturned++;
    }
    await Promise.all([...this.#owed].filter(({ part }) => !part.counters.hasOutage).map((owed) => this.#pay(owed)));
    if (this.#owed.size > 0) this.#retry ??= this.#options.clock.schedule(RETRY_INTERVAL, () => void this.#payAll());
  }
}

/** The decision on a call, from the decisions on its parts. */
function combine(parts: readonly Part[], decisions: readonly LimitDecision[]): LimitDecision {
  const limits: LimitState[] = [];
  let at = 0;
  let retryAfter: number | undefined = 0;
  for (const [i, decision] of decisions.entries()) {
    for (const [j, place] of parts[i]!.places.entries()) limits[place] = decision.limits[j]!;
    at = Math.max(at, decision.at);
    const own = decision.retryAfter;
    retryAfter = retryAfter === undefined || own === undefined ? undefined : Math.max(retryAfter, own);
  }
  return { outcome: "decided", at, allowed: decisions.every(({ allowed }) => allowed), retryAfter, limits };
}
