import type { Milliseconds } from "../clock/clock.ts";
import type { Charge, LimitDecision } from "./counters.ts";

/** A receipt that the counters keep by its name. */
export interface KeptReceipt {
  readonly name: string;
  /** How long it is kept at most. */
  readonly life: Milliseconds;
}

/** A charge of a call that was lent. */
export type LentCharge = Pick<Charge, "counter" | "duration" | "mode" | "owner">;

/**
 * Counters that count what somebody else will spend, and take back what was not spent.
 *
 * Only counters that everybody shares lend. A count of this process alone, during an outage of Redis, would neither be
 * known to others nor be given back, so nothing is counted then.
 */
export interface Lender {
  /**
   * Charges a call as `Counters.charge` does, and keeps its receipt. When it resolves, the count outlives a crash of this
   * process. Undefined: the counters cannot lend at this time. The call is not charged then, or stays charged until its
   * windows end.
   */
  lend(charges: readonly Charge[], receipt: KeptReceipt): Promise<LimitDecision | undefined>;
  /**
   * Gives back what a call of `lend` was charged beyond `costs`, in the windows of the call and at most what was charged.
   * `charges` are those that commit, in their order, each of another counter. The name of the receipt must name the counters,
   * because a receipt in Redis does not. Each receipt is used once. The result says for each charge whether its count is `costs`
   * now; undefined: there is no such receipt, or the counters cannot be reached.
   */
  settle(
    name: string,
    charges: readonly LentCharge[],
    costs: readonly number[],
  ): Promise<readonly boolean[] | undefined>;
}
