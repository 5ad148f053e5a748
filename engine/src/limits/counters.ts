import type { LimitMode } from "../rules/strict-window.ts";

/** One limit of a call. All numbers are integers: limit and cost 0 to 10^12, duration 1 ms to 366 days. */
export interface Charge {
  /** Name of the counter, e.g. workspace, pool and name joined by "\u0000". Another duration or mode is another counter. */
  readonly counter: string;
  readonly limit: number;
  /** Length of the window in milliseconds. */
  readonly duration: number;
  /** `standard` by default. */
  readonly mode?: LimitMode | undefined;
  /** How much to consume. 0 checks the limit and consumes nothing. */
  readonly cost: number;
  /** `false`: decides as a charge of this cost would, and consumes nothing. */
  readonly commit?: boolean;
  /**
   * `true`: a forced charge. It never denies, and may consume more than the limit, because what it counts has happened. A
   * count stops at 10^12, which no limit exceeds.
   */
  readonly force?: boolean;
  /** `true`: a limit in shadow mode. The limiter counts it and never lets it deny. Counters do not know it. */
  readonly shadow?: boolean;
  /** The workspace that owns the counter. Each owner has a share of the counter memory; without an owner there is no share. */
  readonly owner?: string | undefined;
}

/** The state of one limit of a call. */
export interface LimitState {
  /** Whether this limit alone would allow the call, also if it is in shadow mode. */
  readonly allowed: boolean;
  /** What remains after the call. */
  readonly remaining: number;
  /**
   * End of the current window, in milliseconds since the epoch. Of a strict limit: when its oldest charge stops counting, or
   * would if it were made now.
   */
  readonly reset: number;
  /** Milliseconds until this cost is allowed if there are no other calls; 0 when allowed, undefined when it never is. */
  readonly retryAfter: number | undefined;
}

/** The decision on all limits of a call, at one instant. */
export interface LimitDecision {
  readonly outcome: "decided";
  /** The instant, by the clock of the counters. `reset` is relative to this clock. */
  readonly at: number;
  /** Whether all limits allow the call that are not in shadow mode. Only then the limits that commit are charged. */
  readonly allowed: boolean;
  /** Whether a limit in shadow mode would have denied the call. */
  readonly isShadowed?: boolean;
  /** The largest `retryAfter` of the limits that deny; undefined when one of them never allows the call; 0 when allowed. */
  readonly retryAfter: number | undefined;
  /** One state per charge, in the order of the call. */
  readonly limits: readonly LimitState[];
  /** Only if the call asked for it and was allowed. Counters leave it out if they cannot correct the call. */
  readonly receipt?: Receipt;
}

/** What a call has charged, for `adjust`. Plain data that can be stored as JSON. */
export interface Receipt {
  /** Its name in Redis, which has the rest of it. */
  readonly id?: string;
  /** The charges that commit, in the order of the call. */
  readonly charges: readonly ReceiptCharge[];
}

/** One charge of a receipt. */
export interface ReceiptCharge extends Pick<Charge, "counter" | "duration" | "mode" | "cost" | "owner"> {
  /** Names the data in which it was counted. Data with another name does not contain it. Empty: it cannot be corrected. */
  readonly epoch: string;
  /** In memory: the end of the counter when it was charged; of a strict one the index of the sub-window. */
  readonly window?: number;
  /** Of a limit in shadow mode: its own receipt. Null: it was over and counted nothing, or it cannot be corrected. */
  readonly shadowReceipt?: Receipt | null;
}

/**
 * The counters could not decide, and consumed nothing. The limiter's policy decides the call.
 *
 * `full`: there is no room for a new counter. `share`: the owner has used up its share of the counter memory. `blocked`:
 * another thread held a lock for too long, presumably because it died. `outage`: Redis does not answer. `late`: Redis
 * answered after the deadline of the call. `unclaimed`: another process may be counting on the same database.
 */
export interface CountersUnavailable {
  readonly outcome: "full" | "share" | "blocked" | "outage" | "late" | "unclaimed";
}

export type ChargeResult = LimitDecision | CountersUnavailable;

/**
 * A store of counters. Counters in memory answer synchronously; Redis returns a promise.
 *
 * All charges of a call are decided together, at one instant of the counters' clock, and consumed together or not at all.
 * Charges with the same counter, duration and mode add up in the given order: the decision on each includes the charges before
 * it.
 */
export interface Counters {
  /** Decides, and consumes if all limits allow the call. With `asksReceipt`, the decision has a receipt for `adjust`. */
  charge(charges: readonly Charge[], asksReceipt?: boolean): ChargeResult | Promise<ChargeResult>;
  /** Decides exactly as `charge` would, and consumes nothing. */
  peek(charges: readonly Charge[]): ChargeResult | Promise<ChargeResult>;
  /**
   * Corrects what a call was charged: `costs` has the new cost of each charge of the receipt; where it has none, the charge
   * stays. The result says for each charge whose cost changes whether it was corrected.
   *
   * A lower cost is subtracted from the window in which it was charged, and only there. A higher one is a forced charge of
   * the difference at this time. Nothing is corrected where the window has ended, the data that counted the charge is gone,
   * or the counters cannot be reached, so a count can stay too high. It never becomes too low, if each receipt is
   * used once. This is up to the caller, who also uses receipts without a correction: Redis keeps them until then.
   */
  adjust(receipt: Receipt, costs: readonly (number | undefined)[]): readonly boolean[] | Promise<readonly boolean[]>;
}
