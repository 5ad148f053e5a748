import type { Clock } from "../clock/clock.ts";
import { Overloaded } from "../errors/overloaded.ts";
import { releaseOf, subWindow } from "../rules/strict-window.ts";
import type {
  Charge,
  ChargeResult,
  Counters,
  CountersUnavailable,
  LimitDecision,
  LimitState,
  Receipt,
} from "./counters.ts";
import { ExceededLimits } from "./exceeded-limits.ts";
import { uncountedReceipt } from "./receipts.ts";

/** The policy for calls that the counters cannot decide: `closed` rejects them with 503, `open` allows them uncounted. */
export type UnavailablePolicy = "closed" | "open";

const reasons: Readonly<Record<CountersUnavailable["outcome"], string>> = {
  share: "The workspace has used up its share of the counter memory",
  full: "There is no room for another counter",
  blocked: "The counters are locked by a thread that does not answer",
  late: "Redis answers too late",
  outage: "Redis does not answer",
  unclaimed: "Another process may be counting on the same database",
};

/** The counters could not decide a call, and nothing was consumed. The caller may retry. */
export class LimiterUnavailable extends Overloaded {
  constructor(outcome: CountersUnavailable["outcome"]) {
    super(reasons[outcome]);
    this.name = "LimiterUnavailable";
  }
}

/** The workspace has used up its share of the counter memory. Nothing was consumed. Its existing counters still work. */
export class CounterShareExceeded extends Overloaded {
  constructor() {
    super(reasons.share, "counters", 10);
    this.name = "CounterShareExceeded";
  }
}

/** The state of a limit that allows a call although there is no counter: only this call is known. */
export function uncountedState({ limit, duration, mode, cost }: Charge, at: number): LimitState {
  const reset =
    mode === "strict"
      ? releaseOf(Math.floor(at / subWindow(duration)), duration)
      : (Math.floor(at / duration) + 1) * duration;
  return { allowed: true, remaining: Math.max(0, limit - cost), reset, retryAfter: 0 };
}

/** Decides the limits of a call by the configured counters, and by a policy when they cannot decide. */
export class Limiter {
  readonly #counters: Counters;
  readonly #policy: UnavailablePolicy;
  readonly #clock: Pick<Clock, "now">;
  /** The first rejections of limits, which their callers add. */
  readonly exceeded = new ExceededLimits();
  /** Calls that the counters did not decide, for the metrics. */
  undecided = 0;
  /** Charges whose cost was corrected, for the metrics. */
  corrected = 0;
  /** Charges whose cost could not be corrected, for the metrics. */
  uncorrected = 0;

  /** `clock` approximates the clock of the counters. */
  constructor(counters: Counters, policy: UnavailablePolicy, clock: Pick<Clock, "now">) {
    this.#counters = counters;
    this.#clock = clock;
    this.#policy = policy;
  }

  /**
   * Decides all limits of a call, and consumes from all or none. With `asksReceipt`, the decision on an allowed call has a
   * receipt for `adjust`, also if nothing was counted.
   *
   * @throws {LimiterUnavailable} or rejects with it, where the policy is `closed`.
   */
  charge(charges: readonly Charge[], asksReceipt = false): LimitDecision | Promise<LimitDecision> {
    const result = this.#counters.charge(charges, asksReceipt);
    return result instanceof Promise
      ? result.then((settled) => this.#complete(settled, charges, asksReceipt))
      : this.#complete(result, charges, asksReceipt);
  }

  /** Decides exactly as `charge` would, and consumes nothing. */
  peek(charges: readonly Charge[]): LimitDecision | Promise<LimitDecision> {
    const result = this.#counters.peek(charges);
    return result instanceof Promise
      ? result.then((settled) => this.#applyPolicy(settled, charges))
      : this.#applyPolicy(result, charges);
  }

  /** Corrects what a call was charged, as `Counters.adjust` says. Use each receipt once. */
  async adjust(receipt: Receipt, costs: readonly (number | undefined)[]): Promise<readonly boolean[]> {
    const corrected = await this.#counters.adjust(receipt, costs);
    for (const [i, { cost }] of receipt.charges.entries()) {
      if ((costs[i] ?? cost) === cost) continue;
      if (corrected[i]) this.corrected++;
      else this.uncorrected++;
    }
    return corrected;
  }

  #complete(result: ChargeResult, charges: readonly Charge[], asksReceipt: boolean): LimitDecision {
    const decision = this.#applyPolicy(result, charges);
    if (!asksReceipt || decision.receipt || !decision.allowed) return decision;
    return { ...decision, receipt: uncountedReceipt(charges) };
  }

  #applyPolicy(result: ChargeResult, charges: readonly Charge[]): LimitDecision {
    if (result.outcome === "decided") return result;
    this.undecided++;
    if (result.outcome === "share" && this.#policy === "closed") throw new CounterShareExceeded();
    if (this.#policy === "closed") throw new LimiterUnavailable(result.outcome);
    const at = this.#clock.now();
    const limits = charges.map((charge) => uncountedState(charge, at));
    return { outcome: "decided", at, allowed: true, retryAfter: 0, limits };
  }
}
