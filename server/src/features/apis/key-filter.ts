import { z } from "zod";
import { Prefix, search, text, time } from "../../platform/vocabulary/schema.ts";
import { BudgetId } from "../budgets/record.ts";
import { type KeyFilter, keyStates } from "../keys/statements/key-search.ts";
import { PlanReference } from "../plans/record.ts";

/** The input fields that select keys of an API. A key must meet all of them. */
export const keyFilterInput = {
  search: search("name, `keyId`, `start` or `externalId`").optional(),
  externalId: text(1, 255).optional().describe("Only keys of the identity with this external id."),
  budgetId: BudgetId.optional().describe("Only keys with this budget; not those that have it by their identity."),
  plan: PlanReference.optional().describe(
    "Only keys with the plan of this name or id; not those that have it by their identity.",
  ),
  state: z
    .enum(keyStates)
    .optional()
    .describe("Only keys in this state. A disabled key that has expired counts as disabled."),
  expiresBefore: time()
    .optional()
    .describe("Only keys that expire before this Unix time in milliseconds, including those that have expired."),
  prefix: Prefix.optional().describe("Only keys whose string begins with this prefix and an underscore."),
  role: text(1, 255).optional().describe("Only keys with the role of this name, regardless of case."),
};

/** The input field that lists deleted keys. */
export const deletedInput = {
  deleted: z
    .boolean()
    .default(false)
    .describe(
      "Only keys that were deleted without `permanent` and that `keys.restoreKey` can restore, instead of those that are not " +
        "deleted.",
    ),
};

/** The filter that a caller gave. */
export function keyFilter({ search, ...filter }: KeyFilter): KeyFilter {
  const { externalId, budgetId, plan, state, expiresBefore, prefix, role } = filter;
  return { search: search?.trim(), externalId, budgetId, plan, state, expiresBefore, prefix, role };
}
