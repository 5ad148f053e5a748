import type { Instant } from "../../../../engine/src/clock/clock.ts";
import type { DirectoryPlanUse } from "../../../../engine/src/directory/stored.ts";
import {
  adoptedColumns,
  type PlanBudget,
  planBudgetId,
  unitPartOf,
} from "../../../../engine/src/rules/plan-credits.ts";
import type { HeldBalance } from "../../../../engine/src/verification/stored.ts";
import type { MutationContext } from "../../platform/rpc/operation.ts";
import type { StoreReader } from "../../platform/store/workspace-store.ts";
import { BudgetReader } from "../budgets/statements.ts";
import { type BalancesMode, PlanBalanceWriter, resetError, type Settled } from "../credits/statements/plan-balances.ts";
import type { StoredIdentityRow } from "./statements.ts";

/** Why the budget of an identity is not reset. */
const OWN_BUDGET =
  "The identity has a budget of its own, which no plan resets. Set its credits with budgets.updateCredits, or leave `balances` out.";

/**
 * Checks that the caller may take keys out of the budget that the plan of their identity gives. Otherwise whoever may update keys
 * could take one out of the cap that holds for it.
 */
export function authorizeLeaving(
  { budget_id, plan }: Pick<StoredIdentityRow, "budget_id" | "plan">,
  principal: MutationContext<never>["principal"],
): void {
  if (budget_id === null && plan !== null && plan.budget !== null) {
    principal.authorize(`plans.${plan.id}.assign_plan`);
  }
}

/** An identity with what it is to have. */
interface Change {
  identity: Pick<StoredIdentityRow, "id" | "budget_id" | "plan">;
  /** `budgetId`: undefined: the present one. */
  next: { plan: DirectoryPlanUse | null; budgetId: string | null | undefined };
  mode: BalancesMode | undefined;
}

/**
 * Gives an identity the budget of its plan, or takes it away. Returns what was given, for the audit log; undefined: nothing was.
 */
export async function settleBudget(
  { identity, next, mode }: Change,
  { store, random, now, fail }: Pick<MutationContext<never>, "store" | "random" | "now" | "fail">,
): Promise<Omit<Settled, "kind"> | undefined> {
  const hasOwn = (next.budgetId === undefined ? identity.budget_id : next.budgetId) !== null;
  if (hasOwn && mode === "reset") return fail("invalid_input", OWN_BUDGET);
  // Nothing to give or to take away.
  if (identity.plan === null && next.plan === null) return undefined;
  const planId = hasOwn ? null : (next.plan?.id ?? null);
  const settled = await store.of(PlanBalanceWriter).settleBudget(identity.id, { planId, mode, now }, random);
  if (settled.kind === "refused") return fail("invalid_input", resetError(settled));
  if (settled.kind !== "given") return undefined;
  const { kind: _, ...granted } = settled;
  return granted;
}

/** The budget that the plan of an identity gives it, with its balance as it is now; undefined: it gives none. */
export async function budgetOfPlan(
  { id, budget_id, plan }: Pick<StoredIdentityRow, "id" | "budget_id" | "plan">,
  store: StoreReader,
  now: Instant,
): Promise<{ budget: PlanBudget; budgetId: string; balance: HeldBalance } | undefined> {
  if (budget_id !== null || plan === null || plan.budget === null) return undefined;
  const budget: PlanBudget = JSON.parse(plan.budget);
  const budgetId = planBudgetId(id, unitPartOf(budget));
  const found = await store.of(BudgetReader).findGiven(budgetId, now);
  // The first verification makes it.
  const first = { remaining: budget.amount, held: null, ...adoptedColumns(budget, now, null) };
  return { budget, budgetId, balance: found?.balance ?? first };
}
