import type { Instant } from "../../../../engine/src/clock/clock.ts";
import type { StoredBalance } from "../../../../engine/src/rules/refill.ts";
import type { StoreReader } from "../../platform/store/workspace-store.ts";
import { BudgetReader } from "../budgets/statements.ts";
import { budgetOfPlan } from "../identities/plan-budget.ts";
import type { StoredKey } from "../keys/statements/stored-key.ts";

/** What the balances that a key spends from have left together. */
export interface Left {
  readonly remaining: number;
  readonly unit?: string;
}

/**
 * What each of these keys has left, by its id: the least remainder of its own credits and of the budgets that deny. Nothing
 * else of a budget: neither which one it is nor how many there are. Without entry: a key that no balance limits, and one
 * whose budgets have different units, because calls of any cost are refused.
 */
export async function leftOf(
  keys: readonly StoredKey[],
  credits: ReadonlyMap<string, StoredBalance>,
  store: StoreReader,
  now: Instant,
): Promise<ReadonlyMap<string, Left>> {
  const budgetIdsOf = (key: StoredKey) => [key.budget_id, key.identity?.budget_id ?? null].filter((id) => id !== null);
  const chains = await store.of(BudgetReader).balancesOfChains([...new Set(keys.flatMap(budgetIdsOf))], now);
  // All keys of a page have one identity.
  const owner = keys.find(({ identity }) => identity !== null)?.identity;
  const given = owner && (await budgetOfPlan(owner, store, now));
  const ofPlan = given
    ? [{ ...given.balance, unit: given.budget.unit ?? null, watched: given.budget.onEmpty === "allow" ? 1 : 0 }]
    : [];
  const left = new Map<string, Left>();
  for (const key of keys) {
    const created = budgetIdsOf(key).flatMap((id) => chains.get(id) ?? []);
    const budgets = key.identity === null ? created : [...created, ...ofPlan];
    const [unit, ...others] = new Set(budgets.flatMap((budget) => budget.unit ?? []));
    const remainders = budgets.filter(({ watched }) => watched !== 1).map(({ remaining }) => remaining);
    const remaining = Math.min(credits.get(key.id)?.remaining ?? Number.POSITIVE_INFINITY, ...remainders);
    if (others.length === 0 && remaining !== Number.POSITIVE_INFINITY) {
      left.set(key.id, { remaining, ...(unit !== undefined && { unit }) });
    }
  }
  return left;
}
