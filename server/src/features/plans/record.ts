import { z } from "zod";
import { ratelimitRecord } from "../../../../engine/src/directory/records.ts";
import type { PlanBudget, PlanCredits } from "../../../../engine/src/rules/plan-credits.ts";
import {
  ConcurrencyOutput,
  CREDITS_MAX,
  concurrency,
  IDENTITY_META_BYTES_MAX,
  integer,
  meta,
  PERMISSIONS_PER_KEY_MAX,
  RatelimitOutput,
  ROLES_PER_KEY_MAX,
  ratelimits,
  slug,
  text,
} from "../../platform/vocabulary/schema.ts";
import { OnEmpty, sortedThresholds, Thresholds, Unit } from "../budgets/record.ts";
import { PlanRefillInput, PlanRefillOutput, refillError } from "../credits/record.ts";
import type { StoredPlan } from "./statements/plans.ts";

const NAME_LENGTH_MAX = 64;

const NAME = {
  regex: /^[a-zA-Z0-9_.-]+$/,
  says: "may hold letters, digits, underscores, dots and hyphens",
};

export const PlanName = text(1, NAME_LENGTH_MAX, NAME)
  // Names do not begin like ids, so that a reference is one or the other. Not in the pattern: that would need a look-ahead, which
  // many readers of the reference do not have.
  .refine((name) => !name.startsWith("plan_"), { error: "must not begin with plan_, as ids do" })
  .describe(
    "The name by which keys and identities refer to the plan. Unique in the workspace. Never changes. Not `plan_…`.",
  );

export const PlanReference = text(1, 255, NAME).describe("The name of a plan, or its id.");

/** `plan` of a key or an identity. */
export const AssignedPlan = PlanReference.describe("The name of the plan, or its id. Needs `assign_plan` on it.");

/** The fields of a plan that can change. */
export const planFields = {
  ratelimits: ratelimits.describe(
    "Limits of each key with the plan, and of each identity with it, whose keys share them. A limit of the same name that a " +
      "key or an identity has itself takes its place there. `autoApply` is ignored for identities, as it is for their own limits.",
  ),
  concurrency: concurrency.describe(
    "How many calls of each key with the plan, and of the keys of each identity with it, may run at once. Verifications of " +
      "such a key need `hold`.",
  ),
  credits: z
    .strictObject({
      amount: integer(1, CREDITS_MAX).describe("What each period has. A new amount counts from the next refill."),
      refill: PlanRefillInput.optional().describe("When the next period begins. Omitted: never."),
    })
    .describe(
      "A balance for each key with the plan, or for its reroll chain. Credits that a key has itself take its place. A plan " +
        "with credits is for keys only.",
    ),
  budget: z
    .strictObject({
      amount: integer(1, CREDITS_MAX).describe("What each period has. A new amount counts from the next refill."),
      refill: PlanRefillInput.optional().describe("When the next period begins. Omitted: never."),
      onEmpty: OnEmpty.default("deny"),
      thresholds: Thresholds.default([]),
      unit: Unit.optional(),
    })
    .describe(
      "A budget for each identity with the plan, which verifications of all its keys spend from. A `budgetId` of the identity " +
        "takes its place. A plan with a budget is for identities only, and has no `credits`.",
    ),
  permissions: z
    .array(slug(1, 128))
    .max(PERMISSIONS_PER_KEY_MAX)
    .describe("Slugs that keys with the plan have besides their own. Those that do not exist yet are created."),
  roles: z
    .array(text(1, 128))
    .max(ROLES_PER_KEY_MAX)
    .describe("Names of existing roles that keys with the plan have besides their own."),
  meta: meta(IDENTITY_META_BYTES_MAX),
};

export const PlanOutput = z
  .strictObject({
    planId: z.string(),
    name: z.string(),
    ratelimits: z.array(RatelimitOutput).describe("In the order of their names."),
    concurrency: z.array(ConcurrencyOutput).optional(),
    credits: z.strictObject({ amount: z.int(), refill: PlanRefillOutput.optional() }).optional(),
    budget: z
      .strictObject({
        amount: z.int(),
        refill: PlanRefillOutput.optional(),
        onEmpty: OnEmpty,
        thresholds: z.array(z.int()).describe("In ascending order."),
        unit: z.string().optional(),
      })
      .optional(),
    permissions: z.array(z.string()).describe("Without those of its roles."),
    roles: z.array(z.string()),
    meta: z.record(z.string(), z.unknown()).optional(),
    version: z.int().describe("1 for a new plan. Each change adds 1."),
    createdAt: z.int().describe("Unix time in milliseconds."),
    updatedAt: z.int().optional(),
  })
  .meta({
    id: "Plan",
    description: "What many keys and identities get from one place. Fields without a value are omitted.",
  });

/** A plan as the API returns it. */
export function toPlanOutput(plan: StoredPlan): z.input<typeof PlanOutput> {
  return {
    planId: plan.id,
    name: plan.name,
    ratelimits: plan.ratelimits.map(ratelimitRecord),
    ...(plan.concurrency.length > 0 && { concurrency: plan.concurrency }),
    ...(plan.credits && { credits: plan.credits }),
    ...(plan.budget && { budget: plan.budget }),
    permissions: [...plan.permissions],
    roles: [...plan.roles],
    ...(plan.meta !== null && { meta: JSON.parse(plan.meta) }),
    version: plan.version,
    createdAt: plan.created_at,
    ...(plan.updated_at !== null && { updatedAt: plan.updated_at }),
  };
}

/** The most versions of its credits or of its budget that balances of a plan may still have to take. */
export const VERSIONS_MAX = 100;

/** The credits that a caller gave, as they are stored. */
export function storedCredits(
  credits: z.output<(typeof planFields)["credits"]> | null | undefined,
): PlanCredits | null {
  if (!credits) return null;
  const { amount, refill } = credits;
  if (refill === undefined) return { amount };
  const { interval, refillDay, refillMonth, timeZone, rollover } = refill;
  return {
    amount,
    refill: {
      interval,
      ...(refillDay !== undefined && { refillDay }),
      ...(refillMonth !== undefined && { refillMonth }),
      ...(timeZone !== undefined && { timeZone }),
      ...(rollover !== undefined && { rollover }),
    },
  };
}

type BudgetInput = z.output<(typeof planFields)["budget"]>;

/** The budget that a caller gave, as it is stored. */
export function storedBudget(budget: BudgetInput | null | undefined): PlanBudget | null {
  const credits = storedCredits(budget);
  if (!budget || credits === null) return null;
  const { onEmpty, thresholds, unit } = budget;
  return { ...credits, onEmpty, thresholds: sortedThresholds(thresholds), ...(unit !== undefined && { unit }) };
}

/** Why the credits of a plan cannot be changed. */
export const TOO_MANY_VERSIONS = `The last ${VERSIONS_MAX} changes of the credits or the budget have not reached all balances yet. Send the request again in a minute.`;

/** Why credits and a budget of valid shape are not allowed, as a sentence; undefined if they are. */
export function creditsError({
  credits,
  budget,
}: {
  credits?: z.output<(typeof planFields)["credits"]> | null | undefined;
  budget?: BudgetInput | null | undefined;
}): string | undefined {
  const errorOf = (given: typeof credits, member: string) =>
    given?.refill && refillError({ ...given.refill, amount: given.amount }, false, member);
  return errorOf(credits, "credits.refill") ?? errorOf(budget, "budget.refill");
}

/** Why a plan does not give both. */
export const CREDITS_OR_BUDGET =
  "A plan has `credits`, and is for keys, or `budget`, and is for identities. Make two plans: one for the customer, and one for its keys.";

/** Why a key cannot have a plan with a budget. */
export const BUDGET_OF_KEY =
  "A plan with a budget is for identities, whose keys share it. Give it to the identity of the key, or give the key a plan with `credits`.";

/** Why `balances` is not given alone. */
export const BALANCES_WITHOUT_PLAN = "`balances` says what happens to credits when `plan` changes: send both.";

/** Why the unit of a budget does not change. */
export const UNIT_CHANGED =
  "The unit of the budget of a plan never changes: what is left in one unit is nothing in another. Create another plan, and move its identities.";

/** Why an identity cannot have a plan with credits. */
export const CREDITS_OF_IDENTITY =
  "A plan with credits is for keys: each key of an identity would have a balance of its own, or none. Give identities a plan with " +
  "`budget`, which all their keys share.";

/** Why plans cannot be stored. */
export const OLDER_PROGRAMS =
  "Another node runs an earlier release, which would not apply plans, or is starting. " +
  "Upgrade every node, then send the request again.";
