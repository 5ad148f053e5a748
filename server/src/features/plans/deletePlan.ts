import { z } from "zod";
import { mutation } from "../../platform/rpc/operation.ts";
import { examplePlan } from "../../platform/vocabulary/examples.ts";
import { Empty } from "../../platform/vocabulary/schema.ts";
import { PlanReference } from "./record.ts";
import { PlanWriter } from "./statements/plans.ts";

const inUse = {
  keys: "Keys have this plan. Delete them, or give them another one with keys.updateKey.",
  identities: "Identities have this plan. Delete them, or give them another one with identities.updateIdentity.",
};

export const deletePlan = mutation("plans.deletePlan", {
  summary: "Delete a plan",
  description:
    "Refused while keys or identities have it: they would have no limits. A deleted key that had it cannot be restored " +
    "afterwards. Its name can be used again.",
  permissions: ["plans.{planId}.delete_plan"],
  input: z.strictObject({ plan: PlanReference }),
  output: Empty,
  problems: ["plan_not_found", "plan_in_use"],
  examples: [
    { summary: "Delete a plan", input: { plan: examplePlan.name }, output: {} },
    { summary: "A plan that does not exist", input: { plan: "platinum" }, problem: "plan_not_found" },
  ],
}).handle(async ({ plan: reference }, { store, principal, invalidate, audit, fail }) => {
  const plans = store.of(PlanWriter);
  const plan = await plans.findForUpdate(reference);
  if (!plan) return fail("plan_not_found");
  principal.authorize(`plans.${plan.id}.delete_plan`);
  const user = await plans.user(plan.id);
  if (user) return fail("plan_in_use", inUse[user]);
  const { id: planId, name } = plan;
  await plans.delete(planId);
  invalidate.plan(planId);
  audit([planId], { name }, [{ type: "plan.deleted", objectId: planId, data: { planId, name } }]);
  return {};
});
