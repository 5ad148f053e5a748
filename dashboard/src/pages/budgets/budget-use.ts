import type { Budget } from "@latchkey/sdk";
import { exactNumber, relativeTime } from "../../api/format.ts";
import { nextRefills } from "../../api/refill.ts";
import type { Tone } from "../../ui/text/status-badge.tsx";

type Balance = Pick<Budget, "spent" | "held" | "remaining">;

/** What the period of a budget had. */
export function hadInPeriod({ spent, held, remaining }: Balance): number {
  return spent + held + remaining;
}

/** The parts of the period's credits that were spent and that open holds have taken, from 0 to 1 together. */
export function sharesOf(budget: Balance): { spent: number; held: number } {
  const { spent, held, remaining } = budget;
  // A period without credits is spent.
  if (held + remaining <= 0) return { spent: 1, held: 0 };
  const had = hadInPeriod(budget);
  // With a negative balance, more than the rest is held.
  return { spent: spent / had, held: Math.min(held, had - spent) / had };
}

/** The highest threshold that the spends of the period have reached. */
export function reachedThreshold(budget: Balance & Pick<Budget, "thresholds">): number | undefined {
  const had = hadInPeriod(budget);
  return budget.thresholds.findLast((threshold) => budget.spent > 0 && budget.spent * 100 >= threshold * had);
}

/** The state of a budget in words, and how good it is. */
export function stateOf(budget: Balance & Pick<Budget, "thresholds" | "onEmpty">): {
  tone: Tone;
  text: string;
} {
  const { held, remaining } = budget;
  if (held + remaining < 0) return { tone: "warn", text: "Overspent" };
  if (remaining <= 0 && held > 0) return { tone: "warn", text: "Held by calls" };
  if (remaining === 0) {
    return budget.onEmpty === "deny" ? { tone: "bad", text: "Used up" } : { tone: "warn", text: "Used up" };
  }
  const reached = reachedThreshold(budget);
  return reached === undefined ? { tone: "good", text: "Available" } : { tone: "warn", text: `${reached} % reached` };
}

/** What open holds have taken, as the end of a sentence: `, 40 held`. Nothing if there are none. */
export function heldText(budget: Pick<Budget, "held" | "unit">): string {
  return budget.held === 0 ? "" : `, ${amountText(budget.held, budget)} held`;
}

/** What happens to calls that a budget does not cover. */
export const onEmptyTexts: Readonly<Record<Budget["onEmpty"], string>> = {
  deny: "Denied: USAGE_EXCEEDED",
  allow: "Counted: the balance falls below 0",
};

/** An amount with the unit of the budget: `200 usd_micro`. */
export function amountText(value: number, { unit }: Pick<Budget, "unit">): string {
  return unit === undefined ? exactNumber(value) : `${exactNumber(value)} ${unit}`;
}

/** When the next refill is due: `in 8 days`. */
export function nextRefillText({ refill }: Pick<Budget, "refill">): string {
  const [next] = refill ? nextRefills(refill) : [];
  return next === undefined ? "never" : relativeTime(next);
}
