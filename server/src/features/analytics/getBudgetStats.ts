import { z } from "zod";
import { exampleBudget, exampleEmptyStats, exampleRange } from "../../platform/vocabulary/examples.ts";
import { BudgetId } from "../budgets/record.ts";
import { BudgetReader } from "../budgets/statements.ts";
import { analysis } from "../services.ts";
import { answerCounts, type Counted } from "./counts.ts";
import { bucketsOf, rangeInput, rangeOutput, tagSetOf, tagsInput, verificationStats } from "./range.ts";

export const getBudgetStats = analysis("analytics.getBudgetStats", {
  summary: "Get the verification statistics of a budget",
  description:
    "The same as `analytics.getKeyStats`, for all keys that spent from the budget at the time of the verification: those " +
    "with it, those of identities with it, and those that spend from a budget below it. `creditsSpent` is what they spent " +
    "from it. Of a settlement with `uncovered` it has what every balance covered, also where this budget was charged more. " +
    "A verification counts for each budget that it spends from. Requires the permission to read the budget.",
  permissions: ["budgets.{budgetId}.read_budget"],
  input: z.strictObject({ budgetId: BudgetId, ...rangeInput, ...tagsInput }),
  output: z.strictObject({ budgetId: z.string(), ...rangeOutput, ...verificationStats }),
  problems: ["budget_not_found"],
  examples: [
    {
      summary: "Two minutes of a budget without keys",
      input: { budgetId: exampleBudget.budgetId, ...exampleRange },
      output: { budgetId: exampleBudget.budgetId, ...exampleRange, granularity: "minute", ...exampleEmptyStats },
    },
    {
      summary: "A budget that does not exist",
      input: { budgetId: "bud_03yhWPSEYjF9lWCM", ...exampleRange },
      problem: "budget_not_found",
    },
  ],
})
  .authorize(async ({ budgetId, tags, ...range }, { store, principal, now, fail }): Promise<Counted> => {
    principal.authorize(`budgets.${budgetId}.read_budget`);
    if (!(await store.of(BudgetReader).findAny(budgetId, now))) return fail("budget_not_found");
    const { level, start, end } = bucketsOf(range, fail);
    return {
      members: { budgetId, start, end, granularity: level },
      query: { about: "verifications", subject: budgetId, level, start, end, tags: tagSetOf(tags) },
    };
  })
  .answer(answerCounts);
