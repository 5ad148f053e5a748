import type { SimulatedClock } from "../clock/simulated.ts";
import { limitCounter } from "../directory/records.ts";
import type { Charge, LimitDecision, Receipt } from "../limits/counters.ts";
import { MemoryCounters } from "../limits/memory-counters.ts";
import { MemoryTable, reserveTable, SEGMENT_BYTES } from "../limits/memory-table.ts";
import { DURATION_LEASED_MIN, LEASE_TIME_MAX, LIMIT_LEASED_MIN, OUTSTANDING_SHARE } from "../rules/leases.ts";
import type { LeaseGrant, LeaseRequest, LeaseReturn, ReplicaKey } from "./home.ts";

const SEGMENTS = 8;
/** Smaller amounts are not worth a question. */
const AMOUNT_MIN = 5;

/** A limit that a call names. */
export interface NamedCost {
  readonly name: string;
  readonly cost: number;
}

/** The limits of home in a simulation: its counters, and what it has lent of them. */
export class SimulatedLimits {
  /** Called with what was allowed and charged for a call. */
  onCharge: (charges: readonly Charge[]) => void = () => {};
  /** Amounts that were lent, and what of them was given back. */
  readonly lent = { grants: 0, granted: 0, returns: 0, returned: 0 };
  readonly #clock: SimulatedClock;
  readonly #table = new MemoryTable(reserveTable(SEGMENTS * SEGMENT_BYTES, false), 1, [17, -4]);
  #receipts = new Map<string, Receipt>();
  #epoch = 0;
  #counters: MemoryCounters;
  #ids = 0;

  constructor(clock: SimulatedClock) {
    this.#clock = clock;
    this.#counters = new MemoryCounters(this.#table, clock, "0");
  }

  /** The process of home starts again: its counters are in the journal, and its receipts are not. */
  restart(): void {
    this.#receipts = new Map();
    this.#counters = new MemoryCounters(this.#table, this.#clock, String(++this.#epoch));
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
    return read.outcome === "decided" ? 1_000_000 - read.limits[0]!.remaining : 0;
  }

  lease(key: ReplicaKey | undefined, { key: { name, owner }, ...asked }: LeaseRequest): LeaseGrant | null {
    if (key === undefined) return null;
    const counter = limitCounter(owner, owner === "key" ? key.poolId : (key.identity?.id ?? ""), name);
    for (const returned of asked.returns ?? []) this.#takeBack(counter, asked.duration, returned);
    const limits = (owner === "key" ? key.ratelimits : key.identity?.ratelimits) ?? [];
    const { limit, duration, mode, shadow } = limits.find((one) => one.name === name) ?? {};
    if (limit !== asked.limit || duration !== asked.duration || mode === "strict" || shadow === 1) return null;
    if (limit < LIMIT_LEASED_MIN || duration < DURATION_LEASED_MIN || asked.want === 0) return null;
    const charges = (cost: number) => [
      { counter, limit, duration, cost },
      { counter: `${counter}\0lent`, limit: Math.floor(limit / OUTSTANDING_SHARE), duration, cost },
    ];
    const peeked = this.#counters.peek(charges(0));
    if (peeked.outcome !== "decided") return null;
    const [left, mayLend] = peeked.limits.map(({ remaining }) => remaining) as [number, number];
    const amount = Math.min(asked.want, Math.ceil(mayLend / 2), Math.floor(left / 4));
    if (amount < AMOUNT_MIN) return null;
    const lent = this.#counters.charge(charges(amount), true);
    if (lent.outcome !== "decided" || !lent.allowed || lent.receipt === undefined) return null;
    const id = `lease_${++this.#ids}`;
    this.#receipts.set(id, lent.receipt);
    this.lent.grants++;
    this.lent.granted += amount;
    const { remaining, reset } = lent.limits[0]!;
    return { id, amount, remaining, reset, expiresIn: Math.min(reset - lent.at, LEASE_TIME_MAX) };
  }

  #takeBack(counter: string, duration: number, { id, spent }: LeaseReturn): void {
    const receipt = this.#receipts.get(id);
    if (receipt === undefined) return;
    const { counter: lentOf, duration: lentFor, cost } = receipt.charges[0]!;
    if (lentOf !== counter || lentFor !== duration) return;
    this.#receipts.delete(id);
    this.lent.returns++;
    const kept = Math.min(spent, cost);
    if (this.#counters.adjust(receipt, [kept, 0])[0]) this.lent.returned += cost - kept;
  }
}

/** What a verification charges: the limits that apply, at a cost of 1, or those that it names, and looks at the others. */
export function chargesOf(key: ReplicaKey, named: readonly NamedCost[] = []): Charge[] {
  const stored = [
    ...key.ratelimits.map((one) => ({ ...one, counter: limitCounter("key", key.poolId, one.name), isAlways: false })),
    ...(key.identity?.ratelimits ?? []).map((one) => ({
      ...one,
      counter: limitCounter("identity", key.identity!.id, one.name),
      isAlways: true,
    })),
  ];
  return stored.flatMap(({ name, counter, limit, duration, mode, shadow, auto_apply, isAlways }): Charge[] => {
    const cost = named.find((one) => one.name === name)?.cost;
    if (cost === undefined && !isAlways && auto_apply !== 1) return [];
    const isRead = named.length > 0 && cost === undefined;
    const charge = { counter, limit, duration, mode, cost: cost ?? 1 };
    return [{ ...charge, ...(isRead && { commit: false }), ...(shadow === 1 && { shadow: true }) }];
  });
}
