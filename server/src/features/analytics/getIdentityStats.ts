import { z } from "zod";
import { exampleKeyInput, exampleRange, exampleStats } from "../../platform/vocabulary/examples.ts";
import { Identity } from "../../platform/vocabulary/schema.ts";
import { IdentityReader } from "../identities/statements.ts";
import { analysis } from "../services.ts";
import { answerCounts, type Counted } from "./counts.ts";
import { bucketsOf, rangeInput, rangeOutput, tagSetOf, tagsInput, verificationStats } from "./range.ts";

export const getIdentityStats = analysis("analytics.getIdentityStats", {
  summary: "Get the verification statistics of an identity",
  description:
    "The same as `analytics.getKeyStats`, for all keys that belonged to the identity at the time of the verification. " +
    "Requires the permission to read the identity.",
  permissions: ["identities.{identityId}.read_identity"],
  input: z.strictObject({ identity: Identity, ...rangeInput, ...tagsInput }),
  output: z.strictObject({
    identity: z.string().describe("As in the request."),
    ...rangeOutput,
    ...verificationStats,
  }),
  problems: ["identity_not_found"],
  examples: [
    {
      summary: "Two minutes of a customer",
      input: { identity: exampleKeyInput.externalId, ...exampleRange },
      output: { identity: exampleKeyInput.externalId, ...exampleRange, granularity: "minute", ...exampleStats },
    },
    {
      summary: "An identity that does not exist",
      input: { identity: "initech", ...exampleRange },
      problem: "identity_not_found",
    },
  ],
})
  .authorize(async ({ identity: idOrExternalId, tags, ...range }, { store, principal, fail }): Promise<Counted> => {
    const identity = await store.of(IdentityReader).find(idOrExternalId);
    if (!identity) return fail("identity_not_found");
    principal.authorize(`identities.${identity.id}.read_identity`);
    const { level, start, end } = bucketsOf(range, fail);
    return {
      members: { identity: idOrExternalId, start, end, granularity: level },
      query: { about: "verifications", subject: identity.id, level, start, end, tags: tagSetOf(tags) },
    };
  })
  .answer(answerCounts);
