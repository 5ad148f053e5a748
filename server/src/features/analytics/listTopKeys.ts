import { z } from "zod";
import {
  exampleApi,
  exampleCounts,
  exampleKey,
  exampleKeyInput,
  exampleRange,
} from "../../platform/vocabulary/examples.ts";
import { ApiReader } from "../apis/statements.ts";
import { analysis } from "../services.ts";
import { topInput, topOutput, usageBucketsOf, verificationCounts } from "./range.ts";

const named = (schema: z.ZodType, what: string) =>
  schema.optional().describe(`${what} Absent if the key is deleted, or if the root key may not read all these keys.`);

export const listTopKeys = analysis("analytics.listTopKeys", {
  summary: "List the keys with the most verifications",
  description:
    "The keys of the workspace, or of one API, with the most verifications in a range of time, the first one with the " +
    "most. Verifications with unknown keys are in no entry. Counts are about one second old, and a few seconds under " +
    "load.",
  permissions: ["apis.{apiId}.read_analytics"],
  input: z.strictObject(topInput),
  output: z.strictObject({
    ...topOutput,
    keys: z.array(
      z.strictObject({
        keyId: z.string(),
        apiId: named(z.string(), "The API of the key."),
        start: named(z.string(), "The first characters of the key."),
        name: named(z.string(), "The name of the key, if it has one."),
        externalId: named(z.string(), "The owner of the key, if it has one."),
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
        keys: [
          {
            keyId: exampleKey.keyId,
            apiId: exampleApi.apiId,
            start: exampleKey.start,
            name: exampleKey.name,
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
    principal.authorize(`apis.${apiId ?? "*"}.read_analytics`);
    const { level, start, end } = usageBucketsOf(range, fail);
    const withNames = principal.may(`apis.${apiId ?? "*"}.read_key`);
    return { withNames, apiId, level, start, end, limit };
  })
  .answer(async (subject, { analytics }, context) => {
    const { ranked, incompleteBefore, ...range } = await analytics.rank({ by: "key", ...subject }, context);
    const keys = ranked.map(({ id, name, counts }) => ({ keyId: id, ...name, ...counts }));
    return { ...range, keys, incompleteBefore };
  });
