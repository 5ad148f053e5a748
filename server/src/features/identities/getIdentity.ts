import { z } from "zod";
import { creditsOf } from "../../../../engine/src/verification/explanation.ts";
import { query } from "../../platform/rpc/operation.ts";
import { exampleIdentity, exampleIdentityInput } from "../../platform/vocabulary/examples.ts";
import { Identity } from "../../platform/vocabulary/schema.ts";
import { SlotReader } from "../credits/statements/slots.ts";
import { IdentityOutput, slotsOfIdentity, toIdentityOutput } from "../keys/record.ts";
import { budgetOfPlan } from "./plan-budget.ts";
import { IdentityReader } from "./statements.ts";

export const getIdentity = query("identities.getIdentity", {
  summary: "Get an identity",
  description: "Finds an identity by its id or by your external id.",
  permissions: ["identities.{identityId}.read_identity"],
  input: z.strictObject({ identity: Identity }),
  output: IdentityOutput,
  problems: ["identity_not_found"],
  examples: [
    {
      summary: "By external id",
      input: { identity: exampleIdentityInput.externalId },
      output: exampleIdentity,
    },
    { summary: "By id", input: { identity: exampleIdentity.id }, output: exampleIdentity },
    { summary: "An identity that does not exist", input: { identity: "initech" }, problem: "identity_not_found" },
  ],
}).handle(async ({ identity: idOrExternalId }, { store, principal, now, fail }) => {
  const identity = await store.of(IdentityReader).find(idOrExternalId);
  if (!identity) return fail("identity_not_found");
  principal.authorize(`identities.${identity.id}.read_identity`);
  const given = await budgetOfPlan(identity, store, now);
  return {
    ...toIdentityOutput(identity, await store.of(SlotReader).inUse([slotsOfIdentity(identity)])),
    ...(given && {
      budget: {
        budgetId: given.budgetId,
        ...creditsOf(given.balance, now),
        held: given.balance.held ?? 0,
      },
    }),
  };
});
