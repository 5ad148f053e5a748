import { z } from "zod";
import { mutation } from "../../platform/rpc/operation.ts";
import { exampleIdentityInput } from "../../platform/vocabulary/examples.ts";
import { Empty, Identity } from "../../platform/vocabulary/schema.ts";
import { PlanBalanceWriter } from "../credits/statements/plan-balances.ts";
import { PlanWriter } from "../plans/statements/plans.ts";
import { authorizeLeaving } from "./plan-budget.ts";
import { IdentityWriter } from "./statements.ts";

export const deleteIdentity = mutation("identities.deleteIdentity", {
  summary: "Delete an identity",
  description:
    "Its keys remain valid, without the identity and its limits. The external id can be used again at once, by an " +
    "identity with a new id. If the identity has a budget, its keys leave that; one that its plan gives ends.",
  permissions: ["identities.*.delete_identity", "budgets.{budgetId}.assign_budget", "plans.{planId}.assign_plan"],
  input: z.strictObject({ identity: Identity }),
  output: Empty,
  problems: ["identity_not_found"],
  examples: [
    { summary: "Delete an identity", input: { identity: exampleIdentityInput.externalId }, output: {} },
    { summary: "An identity that does not exist", input: { identity: "initech" }, problem: "identity_not_found" },
  ],
}).handle(async ({ identity: idOrExternalId }, { store, principal, random, now, invalidate, audit, fail }) => {
  principal.authorize("identities.*.delete_identity");
  const identities = store.of(IdentityWriter);
  const identity = await identities.findForUpdate(idOrExternalId);
  if (!identity) return fail("identity_not_found");
  // Its keys leave the budget.
  if (identity.budget_id !== null) principal.authorize(`budgets.${identity.budget_id}.assign_budget`);
  authorizeLeaving(identity, principal);
  await store.of(PlanWriter).lockAssignment(identity.id);
  await identities.update(identity.id, { deleted_at: now });
  await store.of(PlanBalanceWriter).endBudgets(identity.id, now, random);
  invalidate.identity(identity.id);
  const { id: identityId, external_id: externalId } = identity;
  audit([identityId], { externalId }, [
    { type: "identity.deleted", objectId: identityId, data: { identityId, externalId } },
  ]);
  return {};
});
