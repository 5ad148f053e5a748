import { z } from "zod";
import { newId } from "../../../../engine/src/random/random.ts";
import { mutation } from "../../platform/rpc/operation.ts";
import { limitValues } from "../../platform/vocabulary/changed-values.ts";
import { examplePlan, examplePlanInput } from "../../platform/vocabulary/examples.ts";
import { metaColumn } from "../identities/record.ts";
import { acceptShadow } from "../ratelimits/shadow.ts";
import { setGrants } from "./grants.ts";
import { storedLimits } from "./limits.ts";
import {
  CREDITS_OR_BUDGET,
  creditsError,
  OLDER_PROGRAMS,
  PlanName,
  planFields,
  storedBudget,
  storedCredits,
} from "./record.ts";
import { PlanWriter } from "./statements/plans.ts";

export const createPlan = mutation("plans.createPlan", {
  summary: "Create a plan",
  description:
    "A plan gives limits, credits, permissions and roles to many keys, and limits and a budget to identities: to those with its " +
    "name as their `plan`. A change of it reaches all of them within a second.",
  idempotent: true,
  permissions: ["plans.*.create_plan", "permissions.*.create_permission"],
  input: z.strictObject({
    name: PlanName,
    ratelimits: planFields.ratelimits.optional(),
    concurrency: planFields.concurrency.optional(),
    credits: planFields.credits.optional(),
    budget: planFields.budget.optional(),
    permissions: planFields.permissions.optional(),
    roles: planFields.roles.optional(),
    meta: planFields.meta.optional(),
  }),
  output: z.strictObject({ planId: z.string() }),
  problems: ["plan_already_exists", "role_not_found", "precondition_failed"],
  examples: [
    {
      summary: "Create a plan with a limit and a permission",
      input: examplePlanInput,
      output: { planId: examplePlan.planId },
    },
    {
      summary: "A role that does not exist",
      input: { name: "silver", roles: ["reader"] },
      problem: "role_not_found",
      detail: "Role 'reader' was not found.",
    },
  ],
}).handle(async (input, context) => {
  const { store, principal, random, now, invalidate, audit, fail } = context;
  principal.authorize("plans.*.create_plan");
  const plans = store.of(PlanWriter);
  if (!(await plans.accepts())) return fail("precondition_failed", OLDER_PROGRAMS);
  await acceptShadow(input.ratelimits, context);
  const { name, meta, permissions, roles, concurrency = [] } = input;
  const [credits, budget] = [storedCredits(input.credits), storedBudget(input.budget)];
  const invalid = creditsError(input);
  if (invalid) return fail("invalid_input", invalid);
  if (credits && budget) return fail("invalid_input", CREDITS_OR_BUDGET);
  if (budget && !(await plans.acceptsBudgets())) return fail("precondition_failed", OLDER_PROGRAMS);
  const id = newId(random, "plan");
  const ratelimits = storedLimits(input.ratelimits ?? [], [], random);
  if (
    !(await plans.insert({
      id,
      name,
      ratelimits,
      credits,
      budget,
      concurrency,
      meta: metaColumn(meta),
      created_at: now,
    }))
  ) {
    return fail("plan_already_exists");
  }
  await setGrants(id, { permissions, roles }, context);
  invalidate.nothing("No key has the new plan.");
  audit([id], { name, ratelimits: limitValues(ratelimits), permissions, roles, credits, budget, concurrency }, [
    { type: "plan.created", objectId: id, data: { planId: id, name } },
  ]);
  return { planId: id };
});
