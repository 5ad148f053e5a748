import { z } from "zod";
import { spentInPeriod } from "../../../../engine/src/rules/books.ts";
import { CREDITS_MAX, IDENTITY_META_BYTES_MAX, integer, meta, Name, text } from "../../platform/vocabulary/schema.ts";
import { CreditsOutput, toCreditsOutput } from "../credits/record.ts";
import { type StoredBudget, thresholdsOf } from "./statements.ts";

const UNIT_LENGTH_MAX = 32;
const THRESHOLDS_MAX = 10;

export const BudgetId = text(3, 255, {
  regex: /^[a-zA-Z0-9_]+$/,
  says: "may hold letters, digits and underscores",
}).describe("Identifier of a budget, as createBudget gave it.");

/** `budgetId` of a key or an identity. */
export const AssignedBudget = BudgetId.describe(
  "The budget that verifications spend from too, together with its ancestors. Needs `assign_budget` on it.",
);

export const BudgetName = Name.describe("The name of the budget. Verifications with a root key show it.");

export const Remaining = integer(0, CREDITS_MAX).describe("The credits that it begins with.");

export const Unit = text(1, UNIT_LENGTH_MAX).describe(
  "What a credit is, as a label: `usd_micro`, `token`. Never changes. A child has the unit of its parent.",
);

export const OnEmpty = z
  .enum(["deny", "allow"])
  .describe(
    "What happens to calls that it does not cover. `deny`: `USAGE_EXCEEDED`. `allow`: it counts them, and may fall below 0.",
  );

export const Thresholds = z
  .array(integer(1, 100))
  .max(THRESHOLDS_MAX)
  .describe(
    "Percentages of a period's credits. The event `budget.threshold_reached` is written with the spend that reaches one.",
  );

export const BudgetMeta = meta(IDENTITY_META_BYTES_MAX);

export const BudgetOutput = z
  .strictObject({
    budgetId: z.string(),
    name: z.string(),
    plan: z.string().optional().describe("The name of the plan that gives it to an identity. Absent: it was created."),
    identity: z
      .strictObject({ id: z.string(), externalId: z.string() })
      .optional()
      .describe("The identity that has it from its plan."),
    parentId: z.string().optional().describe("The budget that its spends are charged to as well."),
    unit: z.string().optional(),
    onEmpty: OnEmpty,
    remaining: z.int().describe('Its credits. Below 0 only with `onEmpty: "allow"`.'),
    held: z.int().describe("What open holds have taken from it."),
    refill: CreditsOutput.shape.refill,
    spent: z.int().describe("What was spent since the last refill; without a refill, since credits were last added."),
    totals: z
      .strictObject({
        granted: z.int(),
        spent: z.int(),
        lapsed: z.int().describe("What refills have replaced, and what holds gave back after them."),
      })
      .describe(
        "Since its creation: `granted` = `spent` + `held` + `remaining` + `lapsed`. They begin again with the present period when " +
          "`granted` exceeds 4 × 10^15.",
      ),
    thresholds: z.array(z.int()).describe("In ascending order."),
    meta: z.record(z.string(), z.unknown()).optional(),
    createdAt: z.int().describe("Unix time in milliseconds."),
    updatedAt: z.int().optional(),
  })
  .meta({ id: "Budget", description: "Credits that many keys share. Fields without a value are omitted." });

/** Why budgets cannot be stored. */
export const OLDER_PROGRAMS =
  "Another node runs an earlier release, which would not charge budgets, or is starting. " +
  "Upgrade every node, then send the request again.";

/** Why a budget of a plan is neither updated nor deleted. */
export const GIVEN_BY_PLAN =
  "A plan gives this budget to an identity: change the plan with plans.updatePlan, or give the identity a budget of its own with `budgetId`.";

/** Distinct thresholds in ascending order. */
export function sortedThresholds(thresholds: readonly number[]): number[] {
  return [...new Set(thresholds)].sort((a, b) => a - b);
}

/** The database value of sorted thresholds. */
export function thresholdsColumn(thresholds: readonly number[]): string | null {
  return thresholds.length === 0 ? null : JSON.stringify(thresholds);
}

/** A budget as the API returns it. */
export function toBudgetOutput(budget: StoredBudget): z.input<typeof BudgetOutput> {
  const { balance } = budget;
  const { granted, spent, lapsed } = balance;
  return {
    budgetId: budget.id,
    name: budget.name,
    ...(budget.given && {
      plan: budget.given.plan,
      identity: { id: budget.given.identityId, externalId: budget.given.externalId },
    }),
    ...(budget.parent_id !== null && { parentId: budget.parent_id }),
    ...(budget.unit !== null && { unit: budget.unit }),
    onEmpty: balance.watched === 1 ? "allow" : "deny",
    ...toCreditsOutput(balance),
    held: balance.held ?? 0,
    spent: spentInPeriod(balance),
    totals: { granted, spent, lapsed },
    thresholds: thresholdsOf(budget),
    ...(budget.meta !== null && { meta: JSON.parse(budget.meta) }),
    createdAt: budget.created_at,
    ...(budget.updated_at !== null && { updatedAt: budget.updated_at }),
  };
}
