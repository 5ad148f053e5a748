import { z } from "zod";
import { changeBooks, fall, nextThreshold } from "../../../../engine/src/rules/books.ts";
import { mutation } from "../../platform/rpc/operation.ts";
import { updateEvents } from "../../platform/vocabulary/changed-values.ts";
import { exampleBudget } from "../../platform/vocabulary/examples.ts";
import { CREDITS_MAX, integer } from "../../platform/vocabulary/schema.ts";
import { CreditsOutput, toCreditsOutput } from "../credits/record.ts";
import { BalanceWriter, thresholdEvents } from "../credits/statements/balances.ts";
import { BudgetId } from "./record.ts";
import { BudgetWriter, thresholdsOf } from "./statements.ts";

export const updateCredits = mutation("budgets.updateCredits", {
  summary: "Update the credits of a budget",
  description:
    "Sets, increments or decrements the balance. A decrement stops at 0. What the balance really changes by counts as " +
    "granted, also below 0. A budget that a plan gives to an identity is changed too; the plan does not change.",
  idempotent: true,
  permissions: ["budgets.{budgetId}.update_budget"],
  input: z.strictObject({
    budgetId: BudgetId,
    operation: z.enum(["set", "increment", "decrement"]),
    value: integer(0, CREDITS_MAX).describe("The new balance, or the amount of the change."),
  }),
  output: CreditsOutput,
  problems: ["budget_not_found"],
  examples: [
    {
      summary: "Add 1,000,000 credits",
      input: { budgetId: exampleBudget.budgetId, operation: "increment", value: 1_000_000 },
      output: { remaining: exampleBudget.remaining + 1_000_000, refill: exampleBudget.refill },
    },
    {
      summary: "A budget that does not exist",
      input: { budgetId: "bud_03yhWPSEYjF9lWCM", operation: "set", value: 0 },
      problem: "budget_not_found",
    },
  ],
}).handle(async ({ budgetId, operation, value }, { store, principal, random, now, invalidate, audit, fail }) => {
  principal.authorize(`budgets.${budgetId}.update_budget`);
  const [budgets, balances] = [store.of(BudgetWriter), store.of(BalanceWriter)];
  await budgets.lock(budgetId);
  await balances.findForUpdate(budgetId, random, now);
  const budget = await budgets.findAny(budgetId, now);
  if (!budget) return fail("budget_not_found");
  const before = budget.balance;
  const results = {
    set: value,
    increment: before.remaining + value,
    decrement: before.remaining - Math.min(value, Math.max(0, before.remaining)),
  };
  const remaining = results[operation];
  if (remaining > CREDITS_MAX) {
    return fail("invalid_input", `The balance would exceed its maximum of ${CREDITS_MAX}.`);
  }
  const after = changeBooks(before, remaining);
  const thresholds = thresholdsOf(budget);
  const isFall = operation === "decrement";
  const { reached, low_at } = isFall
    ? fall(thresholds, before, after)
    : { reached: [], low_at: nextThreshold(thresholds, after) };
  await balances.put(after, low_at);
  invalidate.nothing("Balances are not cached.");
  const { name } = budget;
  const changed: Record<string, unknown> = remaining === before.remaining ? {} : { credits: remaining };
  audit([budgetId], { operation, value, before: before.remaining, after: remaining }, [
    ...updateEvents("budget", budgetId, { budgetId, name }, changed),
    ...thresholdEvents(budget, after, reached),
  ]);
  return toCreditsOutput(after);
});
