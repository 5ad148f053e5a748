import { z } from "zod";
import { mutation } from "../../platform/rpc/operation.ts";
import { exampleIdentityInput } from "../../platform/vocabulary/examples.ts";
import { Empty, Identity } from "../../platform/vocabulary/schema.ts";
import { IdentityWriter } from "./statements.ts";

export const deleteIdentity = mutation("identities.deleteIdentity", {
  summary: "Delete an identity",
  description:
    "Its keys remain valid, without the identity and its limits. The external id can be used again at once, by an " +
    "identity with a new id. If the identity has a budget, its keys leave that.",
  permissions: ["identities.*.delete_identity", "budgets.{budgetId}.assign_budget"],
  input: z.strictObject({ identity: Identity }),
  output: Empty,
  problems: ["identity_not_found"],
  examples: [
    { summary: "Delete an identity", input: { identity: exampleIdentityInput.externalId }, output: {} },
    { summary: "An identity that does not exist", input: { identity: "initech" }, problem: "identity_not_found" },
  ],
}).handle(async ({ identity: idOrExternalId }, { store, principal, now, invalidate, audit, fail }) => {
  principal.authorize("identities.*.delete_identity");
  const identities = store.of(IdentityWriter);
  const identity = await identities.findForUpdate(idOrExternalId);
  if (!identity) return fail("identity_not_found");
  // Its keys leave the budget.
  if (identity.budget_id !== null) principal.authorize(`budgets.${identity.budget_id}.assign_budget`);
  await identities.update(identity.id, { deleted_at: now });
  invalidate.identity(identity.id);
  const { id: identityId, external_id: externalId } = identity;
  audit([identityId], { externalId }, [
    { type: "identity.deleted", objectId: identityId, data: { identityId, externalId } },
  ]);
  return {};
});
