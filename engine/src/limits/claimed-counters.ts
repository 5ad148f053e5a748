import type { Charge, ChargeResult, Counters, CountersUnavailable, LimitDecision, Receipt } from "./counters.ts";
import type { KeptReceipt, Lender, LentCharge } from "./lender.ts";

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

/** The same for what they lend. */
export class ClaimedLender implements Lender {
  readonly #lender: Lender;
  readonly #claim: { readonly mayCount: boolean };

  constructor(lender: Lender, claim: { readonly mayCount: boolean }) {
    this.#lender = lender;
    this.#claim = claim;
  }

  async lend(charges: readonly Charge[], receipt: KeptReceipt): Promise<LimitDecision | undefined> {
    const decision = this.#claim.mayCount ? await this.#lender.lend(charges, receipt) : undefined;
    // Another process may have begun to count meanwhile.
    return this.#claim.mayCount ? decision : undefined;
  }

  async settle(
    name: string,
    charges: readonly LentCharge[],
    costs: readonly number[],
  ): Promise<readonly boolean[] | undefined> {
    return this.#claim.mayCount ? this.#lender.settle(name, charges, costs) : undefined;
  }
}
