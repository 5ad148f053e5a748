import { z } from "zod";
import { query } from "../../platform/rpc/operation.ts";
import { exampleBudget } from "../../platform/vocabulary/examples.ts";
import { BudgetId, BudgetOutput, toBudgetOutput } from "./record.ts";
import { BudgetReader } from "./statements.ts";

export const getBudget = query("budgets.getBudget", {
  summary: "Get a budget",
  description: "A budget with its balance and its books, also one that a plan gives to an identity.",
  permissions: ["budgets.{budgetId}.read_budget"],
  input: z.strictObject({ budgetId: BudgetId }),
  output: BudgetOutput,
  problems: ["budget_not_found"],
  examples: [
    { summary: "By id", input: { budgetId: exampleBudget.budgetId }, output: exampleBudget },
    {
      summary: "A budget that does not exist",
      input: { budgetId: "bud_03yhWPSEYjF9lWCM" },
      problem: "budget_not_found",
    },
  ],
}).handle(async ({ budgetId }, { store, principal, now, fail }) => {
  principal.authorize(`budgets.${budgetId}.read_budget`);
  const budget = await store.of(BudgetReader).findAny(budgetId, now);
  return budget ? toBudgetOutput(budget) : fail("budget_not_found");
});
