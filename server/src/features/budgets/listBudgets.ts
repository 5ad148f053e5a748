import { z } from "zod";
import { pagedQuery } from "../../platform/rpc/operation.ts";
import { exampleBudget } from "../../platform/vocabulary/examples.ts";
import { pageInput, pageOf, placeOf } from "../../platform/vocabulary/paging.ts";
import { search } from "../../platform/vocabulary/schema.ts";
import { BudgetId, BudgetOutput, toBudgetOutput } from "./record.ts";
import { BudgetReader } from "./statements.ts";

const LIST = "budgets.listBudgets";

export const listBudgets = pagedQuery("budgets.listBudgets", {
  summary: "List budgets",
  description:
    "Ordered by creation time, without those that plans give to identities: `identities.getIdentity` shows these. The root key " +
    "must be allowed to read every budget on the page.",
  permissions: ["budgets.{budgetId}.read_budget"],
  input: z.strictObject({
    ...pageInput(LIST, 100),
    search: search("names and ids").optional(),
    parentId: BudgetId.nullish().describe("Only the children of this budget. Null: only budgets without a parent."),
  }),
  output: z.array(BudgetOutput),
  problems: [],
  examples: [
    { summary: "The first page", input: {}, output: [exampleBudget] },
    { summary: "The roots", input: { parentId: null }, output: [exampleBudget] },
    { summary: "The children of one", input: { parentId: exampleBudget.budgetId }, output: [] },
  ],
}).handle(async ({ limit, cursor, search: part = "", parentId }, { store, principal, now }) => {
  const from = placeOf(LIST, cursor);
  const rows = await store.of(BudgetReader).page({ search: part.trim(), from, limit: limit + 1, parentId }, now);
  // The error names no id, so that it does not reveal a budget that the caller may not read.
  const readable = rows.slice(0, limit).every(({ id }) => principal.may(`budgets.${id}.read_budget`));
  if (!readable) principal.authorize("budgets.*.read_budget");
  return pageOf(LIST, rows, limit, toBudgetOutput);
});
