import type { Charge, Counters, Undecided, Verdict } from "./counters.ts";

const unclaimed: Undecided = { outcome: "unclaimed" };

/** Counters that decide nothing while another process may be counting apart from this one. */
export class ClaimedCounters implements Counters {
  readonly #counters: Counters;
  readonly #claim: { readonly mayCount: boolean };

  constructor(counters: Counters, claim: { readonly mayCount: boolean }) {
    this.#counters = counters;
    this.#claim = claim;
  }

  charge(charges: readonly Charge[]): Verdict | Promise<Verdict> {
    return this.#claim.mayCount ? this.#counters.charge(charges) : unclaimed;
  }

  peek(charges: readonly Charge[]): Verdict | Promise<Verdict> {
    return this.#claim.mayCount ? this.#counters.peek(charges) : unclaimed;
  }
}
