import { z } from "zod";
import { changeBooks, nextThreshold } from "../../../../engine/src/rules/books.ts";
import { mutation } from "../../platform/rpc/operation.ts";
import { changedValues, updateEvents } from "../../platform/vocabulary/changed-values.ts";
import { type ColumnsFor, columnsOf, flag, WRITTEN_APART } from "../../platform/vocabulary/columns.ts";
import { exampleBudget, exampleTime } from "../../platform/vocabulary/examples.ts";
import { RefillInput, refillColumns, refillError } from "../credits/record.ts";
import { BalanceWriter } from "../credits/statements/balances.ts";
import { metaColumn } from "../identities/record.ts";
import {
  BudgetId,
  BudgetMeta,
  BudgetName,
  BudgetOutput,
  GIVEN_BY_PLAN,
  OnEmpty,
  sortedThresholds,
  Thresholds,
  thresholdsColumn,
  toBudgetOutput,
} from "./record.ts";
import { BudgetWriter, thresholdsOf } from "./statements.ts";

export const updateBudget = mutation("budgets.updateBudget", {
  summary: "Update a budget",
  description:
    "Omitted fields do not change. `thresholds` and `meta` are replaced as a whole. The parent and the unit never change. " +
    'With `onEmpty: "deny"`, a balance below 0 becomes 0. To change the balance, use `budgets.updateCredits`.',
  permissions: ["budgets.{budgetId}.update_budget"],
  input: z.strictObject({
    budgetId: BudgetId,
    name: BudgetName.optional(),
    refill: RefillInput.nullish().describe("The new refill. Null: no refill. The balance does not change."),
    onEmpty: OnEmpty.optional(),
    thresholds: Thresholds.optional(),
    meta: BudgetMeta.optional(),
  }),
  output: BudgetOutput,
  problems: ["budget_not_found"],
  examples: [
    {
      summary: "Count, and deny nothing",
      input: { budgetId: exampleBudget.budgetId, onEmpty: "allow" },
      output: { ...exampleBudget, onEmpty: "allow", updatedAt: exampleTime },
    },
    {
      summary: "A budget that does not exist",
      input: { budgetId: "bud_03yhWPSEYjF9lWCM", name: "Search" },
      problem: "budget_not_found",
    },
  ],
}).handle(async (input, { store, principal, random, now, invalidate, audit, fail }) => {
  const { budgetId, ...given } = input;
  principal.authorize(`budgets.${budgetId}.update_budget`);
  const invalid = refillError(input.refill, false, "refill");
  if (invalid) return fail("invalid_input", invalid);
  const [budgets, balances] = [store.of(BudgetWriter), store.of(BalanceWriter)];
  await budgets.lock(budgetId);
  await balances.findForUpdate(budgetId, random, now);
  const budget = await budgets.find(budgetId, now);
  if (!budget) {
    if (await budgets.findGiven(budgetId, now)) return fail("invalid_input", GIVEN_BY_PLAN);
    return fail("budget_not_found");
  }
  const changed = Object.keys(given);
  if (changed.length === 0) return toBudgetOutput(budget);

  const thresholds = input.thresholds ? sortedThresholds(input.thresholds) : thresholdsOf(budget);
  await budgets.update(
    budgetId,
    columnsOf(given, {
      name: (name) => ({ name }),
      thresholds: () => ({ thresholds: thresholdsColumn(thresholds) }),
      meta: (value) => ({ meta: metaColumn(value) }),
      refill: WRITTEN_APART,
      onEmpty: WRITTEN_APART,
    } satisfies ColumnsFor<typeof given>),
    now,
  );
  const isWatched = input.onEmpty === undefined ? budget.balance.watched === 1 : input.onEmpty === "allow";
  const remaining = isWatched ? budget.balance.remaining : Math.max(0, budget.balance.remaining);
  const balance = {
    ...changeBooks(budget.balance, remaining),
    watched: flag(isWatched),
    ...(input.refill !== undefined && refillColumns(input.refill, now)),
  };
  const isRaised = remaining > budget.balance.remaining;
  await balances.put(balance, input.thresholds || isRaised ? nextThreshold(thresholds, balance) : balance.low_at);
  const updated = (await budgets.find(budgetId, now)) ?? budget;
  if (updated.name !== budget.name) invalidate.budget(budgetId);
  else invalidate.nothing("Cached keys hold names of budgets only.");
  const differing = changedValues(
    valuesOf(toBudgetOutput(updated), changed),
    valuesOf(toBudgetOutput(budget), changed),
  );
  audit(
    [budgetId],
    { changed, ...differing },
    updateEvents("budget", budgetId, { budgetId, name: updated.name }, differing.after),
  );
  return toBudgetOutput(updated);
});

/** The values of these members, null for those that it lacks. */
function valuesOf(budget: object, members: readonly string[]): Record<string, unknown> {
  const all = new Map(Object.entries(budget));
  return Object.fromEntries(members.map((member) => [member, all.get(member) ?? null]));
}
