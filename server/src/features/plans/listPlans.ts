import { z } from "zod";
import { pagedQuery } from "../../platform/rpc/operation.ts";
import { examplePlan } from "../../platform/vocabulary/examples.ts";
import { pageInput, pageOf, placeOf } from "../../platform/vocabulary/paging.ts";
import { search } from "../../platform/vocabulary/schema.ts";
import { PlanOutput, toPlanOutput } from "./record.ts";
import { PlanReader } from "./statements/plans.ts";

const LIST = "plans.listPlans";

export const listPlans = pagedQuery("plans.listPlans", {
  summary: "List plans",
  description: "Ordered by creation time. The root key must be allowed to read every plan on the page.",
  permissions: ["plans.{planId}.read_plan"],
  input: z.strictObject({
    ...pageInput(LIST, 100),
    search: search("names and ids").optional(),
  }),
  output: z.array(PlanOutput),
  problems: [],
  examples: [{ summary: "The first page", input: {}, output: [examplePlan] }],
}).handle(async ({ limit, cursor, search: part = "" }, { store, principal }) => {
  const from = placeOf(LIST, cursor);
  const rows = await store.of(PlanReader).page({ search: part.trim(), from, limit: limit + 1 });
  // The error names no id, so that it does not reveal a plan that the caller may not read.
  const readable = rows.slice(0, limit).every(({ id }) => principal.may(`plans.${id}.read_plan`));
  if (!readable) principal.authorize("plans.*.read_plan");
  return pageOf(LIST, rows, limit, toPlanOutput);
});
