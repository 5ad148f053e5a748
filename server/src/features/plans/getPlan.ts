import { z } from "zod";
import { query } from "../../platform/rpc/operation.ts";
import { examplePlan } from "../../platform/vocabulary/examples.ts";
import { PlanOutput, PlanReference, toPlanOutput } from "./record.ts";
import { PlanReader } from "./statements/plans.ts";

export const getPlan = query("plans.getPlan", {
  summary: "Get a plan",
  description: "A plan with what it gives.",
  permissions: ["plans.{planId}.read_plan"],
  input: z.strictObject({ plan: PlanReference }),
  output: PlanOutput,
  problems: ["plan_not_found"],
  examples: [
    { summary: "By name", input: { plan: examplePlan.name }, output: examplePlan },
    { summary: "A plan that does not exist", input: { plan: "platinum" }, problem: "plan_not_found" },
  ],
}).handle(async ({ plan: reference }, { store, principal, fail }) => {
  const plan = await store.of(PlanReader).find(reference);
  if (!plan) return fail("plan_not_found");
  principal.authorize(`plans.${plan.id}.read_plan`);
  return toPlanOutput(plan);
});
