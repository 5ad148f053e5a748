import { z } from "zod";
import { newId } from "../../../../engine/src/random/random.ts";
import { nextThreshold, openBooks } from "../../../../engine/src/rules/books.ts";
import { mutation } from "../../platform/rpc/operation.ts";
import { flag } from "../../platform/vocabulary/columns.ts";
import { exampleBudget, exampleBudgetInput } from "../../platform/vocabulary/examples.ts";
import { RefillInput, refillColumns, refillError } from "../credits/record.ts";
import { BalanceWriter } from "../credits/statements/balances.ts";
import { metaColumn } from "../identities/record.ts";
import { assignBudgets } from "./assign.ts";
import {
  BudgetId,
  BudgetMeta,
  BudgetName,
  OLDER_PROGRAMS,
  OnEmpty,
  Remaining,
  sortedThresholds,
  Thresholds,
  thresholdsColumn,
  Unit,
} from "./record.ts";
import { BudgetWriter, LEVELS_MAX } from "./statements.ts";

export const createBudget = mutation("budgets.createBudget", {
  summary: "Create a budget",
  description:
    "A budget is a balance that many keys spend from: those with its `budgetId`, and those of identities with it. A call is " +
    "charged to the budget and its ancestors together, or to none of them. A budget never gets another parent.",
  idempotent: true,
  permissions: ["budgets.*.create_budget", "budgets.{parentId}.assign_budget"],
  input: z.strictObject({
    name: BudgetName,
    remaining: Remaining,
    refill: RefillInput.optional(),
    parentId: BudgetId.optional().describe(
      `The budget that its spends are charged to as well. A tree has at most ${LEVELS_MAX} levels.`,
    ),
    onEmpty: OnEmpty.default("deny"),
    thresholds: Thresholds.optional(),
    unit: Unit.optional(),
    meta: BudgetMeta.optional(),
  }),
  output: z.strictObject({ budgetId: z.string() }),
  problems: ["budget_not_found", "precondition_failed"],
  examples: [
    {
      summary: "A budget that is refilled each month",
      input: exampleBudgetInput,
      output: { budgetId: exampleBudget.budgetId },
    },
    {
      summary: "A parent that does not exist",
      input: { name: "Search team", remaining: 0, parentId: "bud_03yhWPSEYjF9lWCM" },
      problem: "budget_not_found",
    },
  ],
}).handle(async (input, context) => {
  const { store, principal, random, now, invalidate, audit, fail } = context;
  principal.authorize("budgets.*.create_budget");
  const invalid = refillError(input.refill, false, "refill");
  if (invalid) return fail("invalid_input", invalid);
  const budgets = store.of(BudgetWriter);
  // Metadata can be large, and is not part of the audit log.
  const { meta, ...audited } = input;
  const { name, remaining, refill, parentId = null } = input;
  // Its spends are spends of the parent.
  await assignBudgets([{ former: null, next: parentId }], context);
  const parent = parentId === null ? undefined : await budgets.find(parentId, now);
  if (parent && (await budgets.level(parent)) >= LEVELS_MAX) {
    return fail(
      "invalid_input",
      `parentId must not be on level ${LEVELS_MAX}: a tree of budgets has ${LEVELS_MAX} levels.`,
    );
  }
  const unit = input.unit ?? parent?.unit ?? null;
  if (parent && unit !== parent.unit) {
    return fail("invalid_input", `unit must be that of the parent, ${JSON.stringify(parent.unit)}, or be left out.`);
  }
  if (!(await budgets.accepts())) return fail("precondition_failed", OLDER_PROGRAMS);

  const id = newId(random, "bud");
  const thresholds = sortedThresholds(input.thresholds ?? []);
  await budgets.insert({
    id,
    name,
    parent_id: parentId,
    unit,
    thresholds: thresholdsColumn(thresholds),
    meta: metaColumn(meta),
    created_at: now,
  });
  const books = openBooks(remaining);
  await store
    .of(BalanceWriter)
    .put(
      { pool_id: id, ...books, ...refillColumns(refill, now), watched: flag(input.onEmpty === "allow") },
      nextThreshold(thresholds, books),
    );
  invalidate.nothing("No key has the new budget.");
  audit([id, ...(parentId === null ? [] : [parentId])], audited, [
    { type: "budget.created", objectId: id, data: { budgetId: id, name } },
  ]);
  return { budgetId: id };
});
