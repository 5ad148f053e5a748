import type { Clock } from "../clock/clock.ts";
import type { Charge, ChargeResult, Counters, CountersUnavailable, LimitDecision, LimitState } from "./counters.ts";

/** What happens to a call that the counters cannot decide: refuse it with 503, or let it pass uncounted. */
export type UnavailablePolicy = "closed" | "open";

const reasons: Readonly<Record<CountersUnavailable["outcome"], string>> = {
  share: "The workspace has as many counters as its share of the memory allows",
  full: "There is no room for another counter beside those that still count",
  blocked: "The counters are held by a thread that does not answer",
  late: "Redis, where the counters are, answers too late",
  away: "Redis, where the counters are, does not answer",
  unclaimed: "Another process may be counting on the same database",
};

/** The counters could not decide a call, and nothing was taken. The caller may come back. */
export class LimiterUnavailable extends Error {
  constructor(outcome: CountersUnavailable["outcome"]) {
    super(reasons[outcome]);
    this.name = "LimiterUnavailable";
  }
}

/** The workspace has as many counters as its share of the memory allows; nothing was taken. Those that it has go on. */
export class CounterShareExceeded extends Error {
  constructor() {
    super("The workspace has as many counters as its share of the memory allows");
    this.name = "CounterShareExceeded";
  }
}

/** The limits of a call, decided by whichever counters there are, with the operator's word on what they leave open. */
export class Limiter {
  readonly #counters: Counters;
  readonly #policy: UnavailablePolicy;
  readonly #clock: Pick<Clock, "now">;
  /** Calls that the counters did not decide, for the metrics. */
  undecided = 0;

  /** `clock` is that of the counters, as far as it is known without them. */
  constructor(counters: Counters, policy: UnavailablePolicy, clock: Pick<Clock, "now">) {
    this.#counters = counters;
    this.#clock = clock;
    this.#policy = policy;
  }

  /**
   * Decides all limits of a call, and takes all or nothing.
   *
   * @throws {LimiterUnavailable} or rejects with it, where the policy is `closed`.
   */
  charge(charges: readonly Charge[]): LimitDecision | Promise<LimitDecision> {
    const verdict = this.#counters.charge(charges);
    return verdict instanceof Promise
      ? verdict.then((settled) => this.#decided(settled, charges))
      : this.#decided(verdict, charges);
  }

  /** Decides exactly as `charge` would, and takes nothing. */
  peek(charges: readonly Charge[]): LimitDecision | Promise<LimitDecision> {
    const verdict = this.#counters.peek(charges);
    return verdict instanceof Promise
      ? verdict.then((settled) => this.#decided(settled, charges))
      : this.#decided(verdict, charges);
  }

  #decided(verdict: ChargeResult, charges: readonly Charge[]): LimitDecision {
    if (verdict.outcome === "decided") return verdict;
    this.undecided++;
    if (verdict.outcome === "share" && this.#policy === "closed") throw new CounterShareExceeded();
    if (this.#policy === "closed") throw new LimiterUnavailable(verdict.outcome);
    const at = this.#clock.now();
    const limits = charges.map(
      ({ limit, duration, cost }): LimitState => ({
        allowed: true,
        // Nobody counts: this call is all that is known of the window.
        remaining: Math.max(0, limit - cost),
        reset: (Math.floor(at / duration) + 1) * duration,
        retryAfter: 0,
      }),
    );
    return { outcome: "decided", at, allowed: true, retryAfter: 0, limits };
  }
}
