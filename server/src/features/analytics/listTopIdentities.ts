import { z } from "zod";
import {
  exampleApi,
  exampleCounts,
  exampleKeyInput,
  exampleRange,
  exampleVerification,
} from "../../platform/vocabulary/examples.ts";
import { ApiReader } from "../apis/statements.ts";
import { analysis } from "../services.ts";
import { topInput, topOutput, usageBucketsOf, verificationCounts } from "./range.ts";

export const listTopIdentities = analysis("analytics.listTopIdentities", {
  summary: "List the identities with the most verifications",
  description:
    "The same as `analytics.listTopKeys`, by the identity that each key had at the time of the verification. " +
    "Verifications of keys without an identity are in no entry. Requires the permission to read identities and, for one " +
    "API, its analytics.",
  permissions: ["identities.*.read_identity", "apis.{apiId}.read_analytics"],
  input: z.strictObject(topInput),
  output: z.strictObject({
    ...topOutput,
    identities: z.array(
      z.strictObject({
        identityId: z.string(),
        externalId: z.string().optional().describe("Absent if the identity is deleted."),
        ...verificationCounts,
      }),
    ),
  }),
  problems: ["api_not_found"],
  examples: [
    {
      summary: "An hour of an API",
      input: { apiId: exampleApi.apiId, ...exampleRange },
      output: {
        start: exampleRange.start,
        end: exampleRange.start + 3_600_000,
        granularity: "hour",
        identities: [
          {
            identityId: exampleVerification.identity.id,
            externalId: exampleKeyInput.externalId,
            ...exampleCounts,
          },
        ],
      },
    },
    {
      summary: "An API that does not exist",
      input: { apiId: "api_03yhWPSEYjF9lWCM", ...exampleRange },
      problem: "api_not_found",
    },
  ],
})
  .authorize(async ({ apiId, limit, ...range }, { store, principal, fail }) => {
    if (apiId !== undefined && !(await store.of(ApiReader).exists(apiId))) return fail("api_not_found");
    principal.authorize("identities.*.read_identity");
    if (apiId !== undefined) principal.authorize(`apis.${apiId}.read_analytics`);
    const { level, start, end } = usageBucketsOf(range, fail);
    return { withNames: true, apiId, level, start, end, limit };
  })
  .answer(async (subject, { analytics }, context) => {
    const { ranked, incompleteBefore, ...range } = await analytics.rank({ by: "identity", ...subject }, context);
    const identities = ranked.map(({ id, name, counts }) => ({ identityId: id, ...name, ...counts }));
    return { ...range, identities, incompleteBefore };
  });
