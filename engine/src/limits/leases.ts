import type { Milliseconds } from "../clock/clock.ts";
import { digest } from "../crypto/digest.ts";
import { alphanumeric, type Random } from "../random/random.ts";
import type { Charge } from "./counters.ts";
import type { Lender, LentCharge } from "./lender.ts";

/** How long a lease lasts at most. */
export const LEASE_MAX: Milliseconds = 10_000;
/** What one question of an edge has at most: requests for leases, and in each of them ended leases of its limit. */
export const LEASES_PER_QUESTION = 256;
export const RETURNS_PER_LEASE = 4;
/** Of a limit, the part that can be leased or lost within its window. */
const SHARE = 10;
/** Smaller limits have no part that is worth it, and shorter windows end before a lease pays. */
const LIMIT_MIN = 100;
const DURATION_MIN: Milliseconds = 2_000;
/** A lease of less does not pay. */
const AMOUNT_MIN = 5;
/** How long a lease can be returned at most. */
const RETURN_MAX: Milliseconds = 60 * 60 * 1_000;

/** What a lease is of. */
export interface LeasedCounter extends Pick<Charge, "counter" | "duration"> {
  /** The workspace. */
  readonly owner: string;
}

export interface LeasedLimit extends LeasedCounter {
  readonly limit: number;
}

/** A stored limit. */
export type StandingLimit = Required<Pick<Charge, "limit" | "duration" | "mode" | "shadow">>;

/** An amount that is counted already, and that its holder may spend. */
export interface Lease {
  readonly id: string;
  readonly amount: number;
  /** What remains of the limit besides. */
  readonly remaining: number;
  /** The end of the window. */
  readonly reset: number;
  /** How long the lease lasts. */
  readonly expiresIn: Milliseconds;
}

/** What has happened, for the metrics. */
export interface LeaseCounts {
  granted: number;
  refused: number;
  returned: number;
  /** Returns of leases that are not known, or no longer. */
  unknown: number;
}

/** Whether parts of a limit may be leased. */
export function isLeasable({ limit, duration, mode, shadow }: StandingLimit): boolean {
  return mode === "standard" && !shadow && limit >= LIMIT_MIN && duration >= DURATION_MIN;
}

/**
 * Leases parts of limits. A part is charged to the limit before it is leased, together with a companion: a counter of what
 * is leased or lost. It has the window of the limit and a tenth of its size, so no more than that can be out at one time, whoever
 * holds it. A return gives back what was not spent, and all of it to the companion. What is never returned stays in both until
 * the window ends.
 */
export class Leases {
  readonly counts: LeaseCounts = { granted: 0, refused: 0, returned: 0, unknown: 0 };
  readonly #lender: Lender;
  readonly #random: Random;
  /** The last prefix of names of receipts: the returns of a question are of one counter. */
  #named = { counter: "", duration: 0, prefix: "" };

  constructor(lender: Lender, random: Random) {
    this.#lender = lender;
    this.#random = random;
  }

  /** Leases up to `want` of a limit that `isLeasable`; null: nothing. */
  async grant(limit: LeasedLimit, want: number): Promise<Lease | null> {
    const half = Math.ceil(Math.floor(limit.limit / SHARE) / 2);
    const tried = await this.#try(limit, Math.min(want, half));
    const lease = typeof tried === "number" ? await this.#try(limit, Math.min(want, tried)) : tried;
    if (typeof lease !== "object" || lease === null) {
      this.counts.refused++;
      return null;
    }
    this.counts.granted++;
    return lease;
  }

  /** Takes a lease back, of which `spent` was spent. False: there is no such lease of this counter, or no longer. */
  async takeBack(counter: LeasedCounter, id: string, spent: number): Promise<boolean> {
    const settled = await this.#lender.settle(
      this.#receiptName(counter, id),
      [counter, companionOf(counter)],
      [spent, 0],
    );
    if (settled === undefined) this.counts.unknown++;
    else this.counts.returned++;
    return settled !== undefined;
  }

  /** The name of a receipt, under which nothing is found for another counter. */
  #receiptName({ counter, duration }: LeasedCounter, id: string): string {
    if (this.#named.counter !== counter || this.#named.duration !== duration) {
      this.#named = { counter, duration, prefix: `lease:${digest(`${duration}:${counter}`)}:` };
    }
    return this.#named.prefix + id;
  }

  /** A lease of the amount, what could be leased instead, or null. */
  async #try(limit: LeasedLimit, amount: number): Promise<Lease | number | null> {
    if (amount < AMOUNT_MIN) return null;
    const { duration } = limit;
    const charge: Charge = { ...limit, cost: amount };
    const companion: Charge = { ...charge, ...companionOf(limit), limit: Math.floor(limit.limit / SHARE) };
    // The last two say: at most a quarter of what remains, and half of what can be leased. So leases become small before a limit
    // is exhausted, and one does not take everything.
    const charges: Charge[] = [
      charge,
      companion,
      { ...charge, cost: 3 * amount, commit: false },
      { ...companion, cost: amount - 1, commit: false },
    ];
    const id = alphanumeric(this.#random, 20);
    const life = Math.min(2 * duration, RETURN_MAX);
    const decision = await this.#lender.lend(charges, { name: this.#receiptName(limit, id), life });
    const [of, ofCompanion] = decision?.limits ?? [];
    if (decision === undefined || of === undefined || ofCompanion === undefined) return null;
    const { remaining, reset } = of;
    if (decision.allowed) {
      return { id, amount, remaining, reset, expiresIn: Math.min(LEASE_MAX, reset - decision.at) };
    }
    return Math.min(Math.floor(remaining / 4), Math.ceil(ofCompanion.remaining / 2));
  }
}

/** The counter of what is leased of another one. Names of limits have no U+0000, so it is no limit, and in Redis it is beside it. */
function companionOf({ counter, duration, owner }: LeasedCounter): LentCharge {
  return { counter: `${counter}\0leased`, duration, owner };
}
