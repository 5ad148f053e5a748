import type { Clock } from "../clock/clock.ts";
import { then } from "../clock/then.ts";
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
  ReceiptCharge,
} from "./counters.ts";
import { ExceededLimits } from "./exceeded-limits.ts";
import { receiptCharge, UNCOUNTED, uncountedReceipt } from "./receipts.ts";

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

/** A decision without any limit. */
const undenied: LimitDecision = { outcome: "decided", at: 0, allowed: true, retryAfter: 0, limits: [] };

function hasShadow(charges: readonly Charge[]): boolean {
  for (const { shadow } of charges) if (shadow === true) return true;
  return false;
}

/** The decision of the limits that are in force, with the states and the receipts of those in shadow mode. */
function joined(
  charges: readonly Charge[],
  enforced: LimitDecision,
  shadows: ReadonlyMap<Charge, LimitDecision>,
  asksReceipt: boolean,
): LimitDecision {
  const counted = enforced.receipt?.charges ?? [];
  let [nextState, nextReceipt] = [0, 0];
  const limits = charges.flatMap(
    (charge) => shadows.get(charge)?.limits ?? enforced.limits.slice(nextState, ++nextState),
  );
  const receiptOf = (charge: Charge) => {
    const shadow = shadows.get(charge);
    return shadow
      ? { ...receiptCharge(charge, UNCOUNTED), shadowReceipt: shadow.receipt ?? null }
      : counted.slice(nextReceipt, ++nextReceipt);
  };
  return {
    ...enforced,
    limits,
    ...([...shadows.values()].some(({ allowed }) => !allowed) && { isShadowed: true }),
    ...(asksReceipt && {
      receipt: {
        ...enforced.receipt,
        charges: charges.filter(({ commit }) => commit !== false).flatMap(receiptOf),
      },
    }),
  };
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
  /** Charges of limits in shadow mode that would have denied a call, for the metrics. */
  shadowed = 0;
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
   * A limit in shadow mode is charged for itself, after the others have allowed the call: what it denies it does not count, as
   * if it were in force. So it finds what it would deny, and not what it would deny after counting what it had denied.
   * Without its counter the call is decided without it.
   *
   * @throws {LimiterUnavailable} or rejects with it, where the policy is `closed`.
   */
  charge(charges: readonly Charge[], asksReceipt = false): LimitDecision | Promise<LimitDecision> {
    if (hasShadow(charges)) return this.#decideWithShadows(charges, true, asksReceipt);
    const result = this.#counters.charge(charges, asksReceipt);
    return result instanceof Promise
      ? result.then((settled) => this.#complete(settled, charges, asksReceipt))
      : this.#complete(result, charges, asksReceipt);
  }

  /** Decides exactly as `charge` would, and consumes nothing. */
  peek(charges: readonly Charge[]): LimitDecision | Promise<LimitDecision> {
    if (hasShadow(charges)) return this.#decideWithShadows(charges, false, false);
    const result = this.#counters.peek(charges);
    return result instanceof Promise
      ? result.then((settled) => this.#applyPolicy(settled, charges))
      : this.#applyPolicy(result, charges);
  }

  /** Corrects what a call was charged, as `Counters.adjust` says. Use each receipt once. */
  async adjust(receipt: Receipt, costs: readonly (number | undefined)[]): Promise<readonly boolean[]> {
    const corrected = await this.#adjust(receipt, costs);
    for (const [i, { cost, shadowReceipt }] of receipt.charges.entries()) {
      if ((costs[i] ?? cost) === cost || shadowReceipt === null) continue;
      if (corrected[i]) this.corrected++;
      else this.uncorrected++;
    }
    return corrected;
  }

  async #adjust(receipt: Receipt, costs: readonly (number | undefined)[]): Promise<readonly boolean[]> {
    const { charges } = receipt;
    const enforced = charges.filter(({ shadowReceipt }) => shadowReceipt === undefined);
    if (enforced.length === charges.length) return this.#counters.adjust(receipt, costs);
    const costOf = new Map(charges.map((charge, i) => [charge, costs[i]]));
    const corrected = new Map<ReceiptCharge, boolean | undefined>();
    const adjust = async (own: Receipt, some: readonly ReceiptCharge[]) => {
      const ownCosts = some.map((charge) => costOf.get(charge));
      const results = await this.#counters.adjust(own, ownCosts);
      for (const [i, charge] of some.entries()) corrected.set(charge, results[i]);
    };
    const adjusting = charges.flatMap((charge) => (charge.shadowReceipt ? adjust(charge.shadowReceipt, [charge]) : []));
    await Promise.all([adjust({ ...receipt, charges: enforced }, enforced), ...adjusting]);
    return charges.map((charge) => corrected.get(charge) === true);
  }

  #decideWithShadows(
    charges: readonly Charge[],
    mayConsume: boolean,
    asksReceipt: boolean,
  ): LimitDecision | Promise<LimitDecision> {
    const enforced = charges.filter(({ shadow }) => shadow !== true);
    const decided =
      enforced.length === 0
        ? { ...undenied, at: this.#clock.now() }
        : mayConsume
          ? this.charge(enforced, asksReceipt)
          : this.peek(enforced);
    return then(decided, (decision) => {
      const consumes = mayConsume && decision.allowed;
      const shadows = new Map<Charge, LimitDecision>();
      const answer = () => joined(charges, decision, shadows, asksReceipt && consumes);
      const waiting: Promise<unknown>[] = [];
      for (const charge of charges.filter(({ shadow }) => shadow)) {
        const one = then(this.#decideShadow(charge, consumes, asksReceipt), (settled) => shadows.set(charge, settled));
        if (one instanceof Promise) waiting.push(one);
      }
      return waiting.length === 0 ? answer() : Promise.all(waiting).then(answer);
    });
  }

  /** Whether the limit would allow the call. If its counter does not say, it does. */
  #decideShadow(
    { shadow: _, ...charge }: Charge,
    consumes: boolean,
    asksReceipt: boolean,
  ): LimitDecision | Promise<LimitDecision> {
    const result = consumes ? this.#counters.charge([charge], asksReceipt) : this.#counters.peek([charge]);
    return then(result, (settled) => {
      if (settled.outcome !== "decided") {
        this.undecided++;
        const at = this.#clock.now();
        return { ...undenied, at, limits: [uncountedState(charge, at)] };
      }
      if (consumes && !settled.allowed) this.shadowed++;
      return settled;
    });
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
