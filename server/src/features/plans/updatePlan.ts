import { z } from "zod";
import { mutation } from "../../platform/rpc/operation.ts";
import { changedValues, limitValues, sortedSet, updateEvents } from "../../platform/vocabulary/changed-values.ts";
import { examplePlan, examplePlanInput, exampleTime } from "../../platform/vocabulary/examples.ts";
import { metaColumn } from "../identities/record.ts";
import { acceptShadow } from "../ratelimits/shadow.ts";
import { setGrants } from "./grants.ts";
import { storedLimits } from "./limits.ts";
import {
  BUDGET_OF_KEY,
  CREDITS_OF_IDENTITY,
  CREDITS_OR_BUDGET,
  creditsError,
  OLDER_PROGRAMS,
  PlanOutput,
  PlanReference,
  planFields,
  storedBudget,
  storedCredits,
  TOO_MANY_VERSIONS,
  toPlanOutput,
  UNIT_CHANGED,
  VERSIONS_MAX,
} from "./record.ts";
import { PlanWriter, type StoredPlan } from "./statements/plans.ts";

/** The fields of an update, which its preview has too. */
export const planUpdateInput = {
  plan: PlanReference,
  ratelimits: planFields.ratelimits.nullish(),
  concurrency: planFields.concurrency.nullish(),
  credits: planFields.credits.nullish(),
  budget: planFields.budget.nullish(),
  permissions: planFields.permissions.nullish(),
  roles: planFields.roles.nullish(),
  meta: planFields.meta.nullish(),
};

const PlanUpdate = z.strictObject(planUpdateInput);

export const updatePlan = mutation("plans.updatePlan", {
  summary: "Update a plan",
  description:
    "Omitted fields do not change. Null removes a value. Lists and `meta` are replaced as a whole. Every key and identity with " +
    "the plan has the new values with its next verification on the same node, and on other nodes within a second. A call sees a " +
    "change whole or not at all. A limit with an existing name keeps its id and its counts; a changed `duration` or `mode` starts " +
    "them at 0. `plans.previewUpdate` says what a change would do.",
  permissions: ["plans.{planId}.update_plan", "permissions.*.create_permission"],
  input: PlanUpdate,
  output: PlanOutput,
  problems: ["plan_not_found", "role_not_found", "precondition_failed"],
  examples: [
    {
      summary: "Raise a limit for all keys of the plan",
      input: { plan: examplePlan.name, ratelimits: [{ ...examplePlanInput.ratelimits[0], limit: 1_000 }] },
      output: {
        ...examplePlan,
        ratelimits: [{ ...examplePlan.ratelimits[0], limit: 1_000 }],
        version: 2,
        updatedAt: exampleTime,
      },
    },
    { summary: "A plan that does not exist", input: { plan: "platinum", roles: [] }, problem: "plan_not_found" },
  ],
}).handle(async (input, context) => {
  const { store, principal, random, now, invalidate, audit, fail } = context;
  const plans = store.of(PlanWriter);
  const plan = await plans.findForUpdate(input.plan);
  if (!plan) return fail("plan_not_found");
  principal.authorize(`plans.${plan.id}.update_plan`);
  const { plan: _, ...given } = input;
  const changed = Object.keys(given);
  if (changed.length === 0) return toPlanOutput(plan);

  const { meta } = given;
  const credits = given.credits === undefined ? undefined : storedCredits(given.credits);
  const concurrency = given.concurrency === null ? [] : given.concurrency;
  const budget = given.budget === undefined ? undefined : storedBudget(given.budget);
  const invalid = creditsError(given);
  if (invalid) return fail("invalid_input", invalid);
  if ((credits ?? (credits === undefined && plan.credits)) && (budget ?? (budget === undefined && plan.budget))) {
    return fail("invalid_input", CREDITS_OR_BUDGET);
  }
  if (credits && (await plans.hasOwners(plan.id, "identity"))) return fail("invalid_input", CREDITS_OF_IDENTITY);
  if (budget && (await plans.hasOwners(plan.id, "key"))) return fail("invalid_input", BUDGET_OF_KEY);
  if (budget && (await plans.hasBudgetInOtherUnit(plan, budget))) return fail("invalid_input", UNIT_CHANGED);
  if (budget && !(await plans.acceptsBudgets())) return fail("precondition_failed", OLDER_PROGRAMS);
  const areCreditsChanged = credits !== undefined && JSON.stringify(credits) !== JSON.stringify(plan.credits);
  const isBudgetChanged = budget !== undefined && JSON.stringify(budget) !== JSON.stringify(plan.budget);
  if ((areCreditsChanged || isBudgetChanged) && (await plans.countVersions(plan)) >= VERSIONS_MAX) {
    return fail("precondition_failed", TOO_MANY_VERSIONS);
  }
  await acceptShadow(given.ratelimits, context);
  const ratelimits =
    given.ratelimits === undefined ? undefined : storedLimits(given.ratelimits ?? [], plan.ratelimits, random);
  const grants = {
    permissions: given.permissions === null ? [] : given.permissions,
    roles: given.roles === null ? [] : given.roles,
  };
  await plans.update(
    plan,
    {
      ...(meta !== undefined && { meta: metaColumn(meta ?? undefined) }),
      ...(ratelimits && { ratelimits }),
      ...(areCreditsChanged && { credits }),
      ...(isBudgetChanged && { budget }),
      ...(concurrency && { concurrency }),
    },
    now,
  );
  await setGrants(plan.id, grants, context);
  invalidate.plan(plan.id);
  const updated = (await plans.find(plan.id)) ?? plan;
  const differing = changedValues(valuesOf(updated, changed), valuesOf(plan, changed));
  const { id: planId, name } = plan;
  audit(
    [planId],
    { changed, version: updated.version, ...differing },
    updateEvents("plan", planId, { planId, name, version: updated.version }, differing.after),
  );
  return toPlanOutput(updated);
});

/** The values of a plan by the names of the fields that were given. */
function valuesOf(plan: StoredPlan, members: readonly string[]): Record<string, unknown> {
  const all: Record<string, unknown> = {
    ratelimits: limitValues(plan.ratelimits),
    concurrency: plan.concurrency.length > 0 ? plan.concurrency : null,
    credits: plan.credits,
    budget: plan.budget,
    permissions: sortedSet(plan.permissions),
    roles: sortedSet(plan.roles),
    meta: plan.meta === null ? null : JSON.parse(plan.meta),
  };
  return Object.fromEntries(members.map((member) => [member, all[member] ?? null]));
}
