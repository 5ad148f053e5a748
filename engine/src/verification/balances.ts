import type { Instant } from "../clock/clock.ts";
import type { Lack, Remaining } from "../credits/spend.ts";
import type { KeyRecord } from "../directory/records.ts";

/** Whether a verification of the key charges a balance. */
export function hasBalances({ hasBalance, budgets }: KeyRecord): boolean {
  return hasBalance || budgets.length > 0;
}

/**
 * The ids of the balances that a verification of the key charges, if it charges any: its own credits first, if it has them,
 * and its budgets.
 */
export function balancesOf({ hasBalance, poolId, budgets }: KeyRecord): readonly string[] {
  if (budgets.length === 0) return [poolId];
  const ids = budgets.map(({ budgetId }) => budgetId);
  return hasBalance ? [poolId, ...ids] : ids;
}

/** What the balances of a key have after a call, in the order of `balancesOf`. */
export interface BalancesLeft {
  readonly remaining: Remaining;
  /** What open holds have taken from each. Absent: nothing. */
  readonly held?: readonly number[] | undefined;
  /** Those that did not cover the call. */
  readonly lacks?: readonly Lack[];
}

/** The balances as JSON members: `credits` of the key, and `budgets` if the caller may see them. */
export function balancesText(
  { hasBalance, budgets }: KeyRecord,
  { remaining, held, lacks = [] }: BalancesLeft,
  { seesBudgets, now }: { seesBudgets: boolean; now: Instant },
): string {
  const credits = hasBalance ? remaining[0] : undefined;
  const text = credits === undefined ? "" : `,"credits":${credits}`;
  if (budgets.length === 0 || !seesBudgets) return text;
  const first = hasBalance ? 1 : 0;
  const states = budgets.flatMap(({ budgetId, name }, i) => {
    const left = remaining[first + i];
    // It has been deleted, which the record of the key does not know yet.
    if (left === undefined) return [];
    const lack = lacks.find(({ balanceId }) => balanceId === budgetId);
    const retryAfter = lack?.refillAt ? { retryAfter: Math.max(0, lack.refillAt - now) } : {};
    return {
      budgetId,
      name,
      remaining: left,
      held: held?.[first + i] ?? 0,
      exceeded: lack !== undefined,
      ...retryAfter,
    };
  });
  return `${text},"budgets":${JSON.stringify(states)}`;
}
