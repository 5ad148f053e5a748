import type { Instant } from "../clock/clock.ts";
import type { Lack, Remaining } from "../credits/spend.ts";
import type { Derivation, KeyRecord } from "../directory/records.ts";

/** Whether a verification of the key charges a balance. */
export function hasBalances({ hasBalance, budgets, derivation }: KeyRecord): boolean {
  return hasBalance || budgets.length > 0 || (derivation !== null && derivation.balanceIds.length > 0);
}

/** Whether a verification of the key charges nothing but limits of the key itself and of its identity, and no plan gives more. */
export function chargesOnlyLimits(key: KeyRecord): boolean {
  const { concurrency, planId, identity } = key;
  return !hasBalances(key) && concurrency.length === 0 && planId === null && (identity?.planId ?? null) === null;
}

/**
 * The ids of the balances that a verification of the key charges, if it charges any: its own credits first, if it has them,
 * its budgets, and what it may spend at most if it is derived.
 */
export function balancesOf({ hasBalance, poolId, budgets, derivation }: KeyRecord): readonly string[] {
  const ofDerived = derivation === null ? NONE : derivation.balanceIds;
  if (budgets.length === 0 && ofDerived.length === 0) return [poolId];
  const ids = [...budgets.map(({ budgetId }) => budgetId), ...ofDerived];
  return hasBalance ? [poolId, ...ids] : ids;
}

const NONE: readonly string[] = [];

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
  { hasBalance, budgets, derivation }: KeyRecord,
  { remaining, held, lacks = [] }: BalancesLeft,
  { seesBudgets, now }: { seesBudgets: boolean; now: Instant },
): string {
  const first = hasBalance ? 1 : 0;
  const own = hasBalance ? remaining[0] : undefined;
  // A derived key may spend what is left of each.
  const credits =
    derivation === null ? own : leastOf([own, ...ofDerived(derivation, remaining, first + budgets.length)]);
  const text = credits === undefined ? "" : `,"credits":${credits}`;
  if (budgets.length === 0 || !seesBudgets) return text;
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

/** What is left of what a derived key may spend at most. */
function ofDerived({ balanceIds }: Derivation, remaining: Remaining, from: number): Remaining {
  return remaining.slice(from, from + balanceIds.length);
}

function leastOf(balances: Remaining): number | undefined {
  const known = balances.filter((one) => one !== undefined);
  return known.length === 0 ? undefined : Math.min(...known);
}
