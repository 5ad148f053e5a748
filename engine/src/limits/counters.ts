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
  /** The workspace that owns the counter. Each owner has a share of the counter memory; without an owner there is no share. */
  readonly owner?: string;
}

/** The state of one limit of a call. */
export interface LimitState {
  /** Whether this limit alone would allow the call. */
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
  /** Whether all limits allow the call. Only then the limits that commit are charged. */
  readonly allowed: boolean;
  /** The largest `retryAfter` of the limits; undefined when one of them never allows the call; 0 when allowed. */
  readonly retryAfter: number | undefined;
  /** One state per charge, in the order of the call. */
  readonly limits: readonly LimitState[];
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
  /** Decides, and consumes if all limits allow the call. */
  charge(charges: readonly Charge[]): ChargeResult | Promise<ChargeResult>;
  /** Decides exactly as `charge` would, and consumes nothing. */
  peek(charges: readonly Charge[]): ChargeResult | Promise<ChargeResult>;
}
