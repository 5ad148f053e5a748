import { z } from "zod";
import { exampleApi, exampleRange, exampleStats } from "../../platform/vocabulary/examples.ts";
import { ApiId } from "../../platform/vocabulary/schema.ts";
import { ApiReader } from "../apis/statements.ts";
import { analysis } from "../services.ts";
import { answerCounts, type Counted } from "./counts.ts";
import { bucketsOf, rangeInput, rangeOutput, tagSetOf, tagsInput, verificationStats } from "./range.ts";

export const getApiStats = analysis("analytics.getApiStats", {
  summary: "Get the verification statistics of an API",
  description: "The same as `analytics.getKeyStats`, for all keys of an API together, including deleted keys.",
  permissions: ["apis.{apiId}.read_analytics"],
  input: z.strictObject({ apiId: ApiId, ...rangeInput, ...tagsInput }),
  output: z.strictObject({ apiId: z.string(), ...rangeOutput, ...verificationStats }),
  problems: ["api_not_found"],
  examples: [
    {
      summary: "Two minutes of an API",
      input: { apiId: exampleApi.apiId, ...exampleRange },
      output: { apiId: exampleApi.apiId, ...exampleRange, granularity: "minute", ...exampleStats },
    },
    {
      summary: "An API that does not exist",
      input: { apiId: "api_03yhWPSEYjF9lWCM", ...exampleRange },
      problem: "api_not_found",
    },
  ],
})
  .authorize(async ({ apiId, tags, ...range }, { store, principal, fail }): Promise<Counted> => {
    if (!(await store.of(ApiReader).exists(apiId))) return fail("api_not_found");
    principal.authorize(`apis.${apiId}.read_analytics`);
    const { level, start, end } = bucketsOf(range, fail);
    return {
      members: { apiId, start, end, granularity: level },
      query: { about: "verifications", subject: apiId, level, start, end, tags: tagSetOf(tags) },
    };
  })
  .answer(answerCounts);
