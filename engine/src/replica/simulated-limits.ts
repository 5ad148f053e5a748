import type { SimulatedClock } from "../clock/simulated.ts";
import { limitCounter } from "../directory/records.ts";
import type { Charge, LimitDecision } from "../limits/counters.ts";
import { isLeasable, Leases } from "../limits/leases.ts";
import { MemoryCounters } from "../limits/memory-counters.ts";
import { MemoryLender } from "../limits/memory-lender.ts";
import { MemoryTable, reserveTable, SEGMENT_BYTES } from "../limits/memory-table.ts";
import type { Random } from "../random/random.ts";
import type { LeaseGrant, LeaseRequest, ReplicaKey } from "./home.ts";

const SEGMENTS = 8;
/** The workspace of all counters. */
const OWNER = "ws_1";

/** A limit that a call names. */
export interface NamedCost {
  readonly name: string;
  readonly cost: number;
}

/** The limits of home in a simulation: its counters, and what it has lent of them. */
export class SimulatedLimits {
  /** Called with what was allowed and charged for a call. */
  onCharge: (charges: readonly Charge[]) => void = () => {};
  /** Leases that were granted, and returned. */
  readonly lent = { granted: 0, returned: 0 };
  readonly #clock: SimulatedClock;
  readonly #random: Random;
  readonly #table = new MemoryTable(reserveTable(SEGMENTS * SEGMENT_BYTES, false), 1, [17, -4]);
  #epoch = 0;
  #counters: MemoryCounters;
  #leases: Leases;

  constructor(clock: SimulatedClock, random: Random) {
    this.#clock = clock;
    this.#random = random;
    [this.#counters, this.#leases] = this.#open();
  }

  #open(): [MemoryCounters, Leases] {
    const counters = new MemoryCounters(this.#table, this.#clock, String(++this.#epoch));
    const lender = new MemoryLender({ counters, clock: this.#clock, flush: async () => {} });
    return [counters, new Leases(lender, this.#random)];
  }

  /** The process of home starts again: its counters are in the journal, and its receipts are not. */
  restart(): void {
    [this.#counters, this.#leases] = this.#open();
  }

  /** Decides a verification; undefined if the key has no limits. */
  charge(key: ReplicaKey, named: readonly NamedCost[] = []): LimitDecision | undefined {
    const charges = chargesOf(key, named);
    if (charges.length === 0) return undefined;
    const enforced = charges.filter(({ shadow }) => !shadow);
    const decided = this.#counters.charge(enforced);
    if (decided.outcome !== "decided") throw new Error("The counters of the simulation are full");
    if (decided.allowed) this.onCharge(enforced);
    return decided;
  }

  /** What is used of a limit. */
  used(charge: Charge): number {
    const read = this.#counters.peek([{ ...charge, limit: 1_000_000, cost: 0 }]);
    return read.outcome === "decided" ? 1_000_000 - (read.limits[0]?.remaining ?? 0) : 0;
  }

  async lease(key: ReplicaKey | undefined, asked: LeaseRequest): Promise<LeaseGrant | null> {
    if (key === undefined) return null;
    const { name, owner } = asked.key;
    const { limit, duration } = asked;
    const leases = this.#leases;
    const ownerId = owner === "key" ? key.poolId : (key.identity?.id ?? "");
    const counter = { counter: limitCounter(owner, ownerId, name), duration, owner: OWNER };
    for (const { id, spent } of asked.returns ?? []) {
      if (await leases.takeBack(counter, id, spent)) this.lent.returned++;
    }
    const limits = (owner === "key" ? key.ratelimits : key.identity?.ratelimits) ?? [];
    const stored = limits.find((one) => one.name === name);
    if (stored === undefined || stored.limit !== limit || stored.duration !== duration) return null;
    if (asked.want === 0 || !isLeasable({ ...stored, shadow: stored.shadow === 1 })) return null;
    const lease = await leases.grant({ ...counter, limit }, asked.want);
    if (lease !== null) this.lent.granted++;
    return lease;
  }
}

/** What a verification charges: the limits that apply, at a cost of 1, or those that it names, and looks at the others. */
export function chargesOf(key: ReplicaKey, named: readonly NamedCost[] = []): Charge[] {
  const stored = [
    ...key.ratelimits.map((one) => ({ ...one, counter: limitCounter("key", key.poolId, one.name), isAlways: false })),
    ...(key.identity?.ratelimits ?? []).map((one) => ({
      ...one,
      counter: limitCounter("identity", key.identity?.id ?? "", one.name),
      isAlways: true,
    })),
  ];
  return stored.flatMap(({ name, counter, limit, duration, mode, shadow, auto_apply, isAlways }): Charge[] => {
    const cost = named.find((one) => one.name === name)?.cost;
    if (cost === undefined && !isAlways && auto_apply !== 1) return [];
    const isRead = named.length > 0 && cost === undefined;
    const charge = { counter, limit, duration, mode, cost: cost ?? 1, owner: OWNER };
    return [{ ...charge, ...(isRead && { commit: false }), ...(shadow === 1 && { shadow: true }) }];
  });
}
