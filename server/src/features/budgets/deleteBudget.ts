import { z } from "zod";
import { mutation } from "../../platform/rpc/operation.ts";
import { exampleBudget } from "../../platform/vocabulary/examples.ts";
import { Empty } from "../../platform/vocabulary/schema.ts";
import { BalanceWriter } from "../credits/statements/balances.ts";
import { BudgetId, GIVEN_BY_PLAN } from "./record.ts";
import { type BudgetUser, BudgetWriter } from "./statements.ts";

const inUse: Record<BudgetUser | "holds", string> = {
  holds: "Open holds have taken credits from this budget. Settle or release them, or wait until they expire.",
  keys: "Keys use this budget. Delete them, or give them another one with keys.updateKey.",
  identities: "Identities use this budget. Delete them, or give them another one with identities.updateIdentity.",
  budgets: "This budget has children. Delete them first.",
};

export const deleteBudget = mutation("budgets.deleteBudget", {
  summary: "Delete a budget",
  description:
    "Its credits are lost. Refused while keys, identities, other budgets or open holds use it: they would have no cap. A deleted key " +
    "that used it cannot be restored afterwards.",
  permissions: ["budgets.{budgetId}.delete_budget"],
  input: z.strictObject({ budgetId: BudgetId }),
  output: Empty,
  problems: ["budget_not_found", "budget_in_use"],
  examples: [
    { summary: "Delete a budget", input: { budgetId: exampleBudget.budgetId }, output: {} },
    {
      summary: "A budget that does not exist",
      input: { budgetId: "bud_03yhWPSEYjF9lWCM" },
      problem: "budget_not_found",
    },
  ],
}).handle(async ({ budgetId }, { store, principal, random, now, invalidate, audit, fail }) => {
  principal.authorize(`budgets.${budgetId}.delete_budget`);
  const budgets = store.of(BudgetWriter);
  await budgets.lock(budgetId);
  const budget = await budgets.find(budgetId, now);
  if (!budget) {
    if (await budgets.findGiven(budgetId, now)) return fail("invalid_input", GIVEN_BY_PLAN);
    return fail("budget_not_found");
  }
  const user = await budgets.user(budgetId);
  if (user) return fail("budget_in_use", inUse[user]);
  // Locked: a call whose key had the budget a moment ago may be making a hold.
  const balance = await store.of(BalanceWriter).findForUpdate(budgetId, random, now);
  if (balance?.held) return fail("budget_in_use", inUse.holds);
  const { name } = budget;
  await budgets.delete(budgetId);
  invalidate.nothing("No key has the budget.");
  audit([budgetId], { name, remaining: balance?.remaining }, [
    { type: "budget.deleted", objectId: budgetId, data: { budgetId, name } },
  ]);
  return {};
});
