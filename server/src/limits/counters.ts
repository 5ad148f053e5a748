/** One limit that a call meets. Whole numbers: limit and cost 0 to 10^12, duration 1 ms to 366 days. */
export interface Charge {
  /** What is counted, e.g. workspace, pool and name joined by "\u0000". The same under another duration is another counter. */
  readonly counter: string;
  readonly limit: number;
  /** Length of the window in milliseconds. */
  readonly duration: number;
  /** How much is taken. 0 asks whether the limit is kept and takes nothing. */
  readonly cost: number;
  /** `false`: refuses exactly as a charge of this cost would, and takes nothing. */
  readonly commit?: boolean;
  /** The workspace whose counter it is: memory for counters is shared among owners. Without one it always finds room. */
  readonly owner?: string;
}

/** How one limit of a call stands. */
export interface LimitState {
  /** Whether this limit by itself would let the call pass. */
  readonly allowed: boolean;
  /** What is left after the call; when nothing was taken, what is truly left. */
  readonly remaining: number;
  /** End of the current window, in milliseconds since the epoch. */
  readonly reset: number;
  /** Milliseconds until this cost would pass if nobody else called; 0 when allowed, undefined when it never can. */
  readonly retryAfter: number | undefined;
}

/** All limits of a call were decided at one instant. */
export interface LimitDecision {
  readonly outcome: "decided";
  /** That instant, by the clock of the counters: what `reset` is to be compared with. */
  readonly at: number;
  /** Whether every limit allowed it. Only then, and then by every limit that commits, something was taken. */
  readonly allowed: boolean;
  /** The largest among the limits that refused; undefined when one of them can never pass; 0 when allowed. */
  readonly retryAfter: number | undefined;
  /** One per charge, in the order of the call. */
  readonly limits: readonly LimitState[];
}

/**
 * The counters could not decide, and took nothing. What the caller hears is a policy above.
 *
 * `full`: a new counter found no room beside windows that still count. `share`: its owner has as many as it may. `blocked`: another thread held the counters
 * for too long, presumably because it died. `away`: Redis does not answer. `late`: Redis answers, later than calls are
 * waited for. `unclaimed`: another process may be counting on the same database.
 */
export interface CountersUnavailable {
  readonly outcome: "full" | "share" | "blocked" | "away" | "late" | "unclaimed";
}

export type ChargeResult = LimitDecision | CountersUnavailable;

/**
 * Where charges are counted. In memory the answer is there at once, without a promise; Redis promises one.
 *
 * All charges of a call are decided together, at one instant of the counters' own clock, and taken together or not at
 * all. Charges that name the same counter and duration add up in the order given: each meets what stands before it in
 * the call, and waits accordingly long.
 */
export interface Counters {
  /** Decides, and takes if everything passes. */
  charge(charges: readonly Charge[]): ChargeResult | Promise<ChargeResult>;
  /** Decides exactly as `charge` would, and takes nothing. */
  peek(charges: readonly Charge[]): ChargeResult | Promise<ChargeResult>;
}
