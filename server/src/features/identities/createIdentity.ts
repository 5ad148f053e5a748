import { z } from "zod";
import { mutation } from "../../platform/rpc/operation.ts";
import { exampleIdentity, exampleIdentityInput } from "../../platform/vocabulary/examples.ts";
import {
  concurrency,
  ExternalId,
  IDENTITY_META_BYTES_MAX,
  meta,
  ratelimits,
} from "../../platform/vocabulary/schema.ts";
import { assignBudgets } from "../budgets/assign.ts";
import { AssignedBudget } from "../budgets/record.ts";
import { SlotWriter } from "../credits/statements/slots.ts";
import { acceptConcurrency, concurrencyColumn } from "../holds/concurrency.ts";
import { choosePlan } from "../plans/assign.ts";
import { AssignedPlan } from "../plans/record.ts";
import { PlanWriter } from "../plans/statements/plans.ts";
import { acceptShadow } from "../ratelimits/shadow.ts";
import { RatelimitWriter } from "../ratelimits/statements/ratelimits.ts";
import { metaColumn } from "./record.ts";
import { IdentityWriter } from "./statements.ts";

export const createIdentity = mutation("identities.createIdentity", {
  summary: "Create an identity",
  description:
    "An identity is an owner of keys, such as a user or an organization. All its keys share its limits. Creating or " +
    "updating a key with a new external id creates an identity without limits.",
  idempotent: true,
  permissions: ["identities.*.create_identity", "budgets.{budgetId}.assign_budget", "plans.{planId}.assign_plan"],
  // Published clients may send fields of newer versions.
  input: z.object({
    externalId: ExternalId,
    meta: meta(IDENTITY_META_BYTES_MAX).optional(),
    ratelimits: ratelimits.optional().describe("Limits that all keys of the identity share."),
    concurrency: concurrency.optional().describe("How many calls of all its keys together may run at once."),
    budgetId: AssignedBudget.optional(),
    plan: AssignedPlan.optional(),
  }),
  output: z.strictObject({ identityId: z.string() }),
  problems: ["identity_already_exists", "budget_not_found", "plan_not_found", "precondition_failed"],
  examples: [
    {
      summary: "Create an identity with a limit",
      input: exampleIdentityInput,
      output: { identityId: exampleIdentity.id },
    },
    {
      summary: "An external id that is taken",
      input: { externalId: "acme" },
      problem: "identity_already_exists",
      detail: "An identity with the external id 'acme' already exists.",
    },
  ],
}).handle(async (input, context) => {
  const { store, principal, random, now, invalidate, audit, fail } = context;
  principal.authorize("identities.*.create_identity");
  const { externalId, budgetId } = input;
  await assignBudgets([{ former: null, next: budgetId ?? null }], context);
  const plan = await choosePlan("identity", null, input.plan ?? null, context);
  await acceptConcurrency(input.concurrency, context);
  await acceptShadow(input.ratelimits, context);
  const concurrency = concurrencyColumn(input.concurrency);
  const values = { externalId, meta: metaColumn(input.meta), budgetId: budgetId ?? null, concurrency };
  const identityId = await store.of(IdentityWriter).insert(values, random, now);
  if (identityId === undefined) {
    return fail("identity_already_exists", `An identity with the external id '${externalId}' already exists.`);
  }
  const ratelimits = store.of(RatelimitWriter);
  if (input.ratelimits) await ratelimits.replace({ identity_id: identityId }, input.ratelimits, random, now);
  if (plan) await store.of(PlanWriter).assign("identity", identityId, plan.id);
  if (input.concurrency) await store.of(SlotWriter).insertAll([{ id: identityId, limits: input.concurrency }]);
  invalidate.nothing("No key has the new identity.");
  audit([identityId], { externalId, budgetId, plan: plan?.name }, [
    { type: "identity.created", objectId: identityId, data: { identityId, externalId } },
  ]);
  return { identityId };
});
