import type { Charge, ChargeResult, Counters, CountersUnavailable, Receipt } from "./counters.ts";

const unclaimed: CountersUnavailable = { outcome: "unclaimed" };

/** Counters that decide only while this process holds the claim on the database, so there are never two independent counts of one limit. */
export class ClaimedCounters implements Counters {
  readonly #counters: Counters;
  readonly #claim: { readonly mayCount: boolean };

  constructor(counters: Counters, claim: { readonly mayCount: boolean }) {
    this.#counters = counters;
    this.#claim = claim;
  }

  charge(charges: readonly Charge[], asksReceipt?: boolean): ChargeResult | Promise<ChargeResult> {
    return this.#claim.mayCount ? this.#counters.charge(charges, asksReceipt) : unclaimed;
  }

  peek(charges: readonly Charge[]): ChargeResult | Promise<ChargeResult> {
    return this.#claim.mayCount ? this.#counters.peek(charges) : unclaimed;
  }

  adjust(receipt: Receipt, costs: readonly (number | undefined)[]): readonly boolean[] | Promise<readonly boolean[]> {
    return this.#claim.mayCount ? this.#counters.adjust(receipt, costs) : receipt.charges.map(() => false);
  }
}
