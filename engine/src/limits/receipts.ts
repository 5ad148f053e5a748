import { LIMIT_MAX } from "../rules/window.ts";
import type { Charge, Receipt, ReceiptCharge } from "./counters.ts";

/** The epoch of a charge that was counted nowhere, or where it cannot be corrected. */
export const UNCOUNTED = "";

/** What a receipt says of a charge that was counted in the data with this name. */
export function receiptCharge({ counter, duration, mode, cost, owner }: Charge, epoch: string): ReceiptCharge {
  return { counter, duration, mode, cost, owner, epoch };
}

/** The receipt of a call that was counted nowhere, or where it cannot be corrected. */
export function uncountedReceipt(charges: readonly Charge[]): Receipt {
  const committed = charges.filter(({ commit }) => commit !== false);
  return { charges: committed.map((charge) => receiptCharge(charge, UNCOUNTED)) };
}

/** How the cost of one charge of a receipt changes. */
export interface CostChange {
  readonly charge: ReceiptCharge;
  /** What is given back; 0 for nothing. */
  readonly excess: number;
  /** The forced charge of what was consumed beyond the receipt. */
  readonly raise?: Charge;
}

/**
 * The change of each charge of a receipt to its new cost. Without a new cost it stays.
 *
 * @throws {RangeError} if a cost is not valid. Requests are validated before, so it is a bug.
 */
export function costChanges({ charges }: Receipt, costs: readonly (number | undefined)[]): CostChange[] {
  return charges.map((charge, i) => {
    const { counter, duration, mode, owner, cost: charged } = charge;
    const cost = costs[i] ?? charged;
    if (!(Number.isInteger(cost) && cost >= 0 && cost <= LIMIT_MAX)) throw new RangeError(`Bad cost ${cost}`);
    if (cost <= charged) return { charge, excess: charged - cost };
    const raise: Charge = { counter, duration, mode, owner, limit: LIMIT_MAX, cost: cost - charged, force: true };
    return { charge, excess: 0, raise };
  });
}
