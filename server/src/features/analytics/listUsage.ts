import { z } from "zod";
import { exampleApi, exampleKey, exampleRange } from "../../platform/vocabulary/examples.ts";
import { ApiId, KeyId } from "../../platform/vocabulary/schema.ts";
import { ApiReader } from "../apis/statements.ts";
import { KeyReader } from "../keys/statements/keys.ts";
import { analysis } from "../services.ts";
import { levels } from "./levels.ts";
import { bucketsOf, rangeInput, rangeOutput } from "./range.ts";
import { sumOf } from "./sums.ts";

const IDS_MAX = 100;
/** Maximum number of buckets that one call reads, of all subjects together: some tens of milliseconds. */
const BUCKETS_READ_MAX = 10_000;

const usage = {
  total: z.int().describe("Number of verifications."),
  valid: z.int().describe("Number of valid ones."),
  series: z
    .array(z.strictObject({ time: z.int().describe("Start of the bucket."), total: z.int(), valid: z.int() }))
    .describe("The buckets with verifications, in order."),
};

export const listUsage = analysis("analytics.listUsage", {
  summary: "List the verifications of several keys and APIs",
  description:
    "Counts the verifications of each of up to 100 keys and APIs over time, as `analytics.getKeyStats` and " +
    "`analytics.getApiStats` do, without codes and tags. Ids that do not exist have no entry. Deleted keys and APIs have one.",
  permissions: ["apis.{apiId}.read_analytics"],
  input: z.strictObject({
    keyIds: z.array(KeyId).max(IDS_MAX).default([]).describe("The keys. With `apiIds` at most 100."),
    apiIds: z.array(ApiId).max(IDS_MAX).default([]).describe("The APIs."),
    ...rangeInput,
  }),
  output: z.strictObject({
    ...rangeOutput,
    keys: z.array(z.strictObject({ keyId: z.string(), ...usage })).describe("In the order of `keyIds`."),
    apis: z.array(z.strictObject({ apiId: z.string(), ...usage })).describe("In the order of `apiIds`."),
  }),
  problems: [],
  examples: [
    {
      summary: "Two minutes of a key",
      input: { keyIds: [exampleKey.keyId], ...exampleRange },
      output: {
        ...exampleRange,
        granularity: "minute",
        keys: [
          { keyId: exampleKey.keyId, total: 1, valid: 1, series: [{ time: exampleRange.start, total: 1, valid: 1 }] },
        ],
        apis: [],
      },
    },
    {
      summary: "Too many buckets",
      input: { apiIds: [exampleApi.apiId], start: 0, end: 700_000_000, granularity: "minute" },
      problem: "invalid_input",
      detail:
        "The range has 11667 buckets of one minute. Use a range of at most 10000 buckets, or a coarser granularity.",
    },
  ],
})
  .authorize(async (input, { store, principal, fail }) => {
    const keyIds = [...new Set(input.keyIds)];
    const apiIds = [...new Set(input.apiIds)];
    const count = keyIds.length + apiIds.length;
    if (count > IDS_MAX) return fail("invalid_input", `\`keyIds\` and \`apiIds\` have ${count} ids: send at most 100.`);
    const { level, start, end } = bucketsOf(input, fail);
    const buckets = (end - start) / levels[level];
    if (count * buckets > BUCKETS_READ_MAX) {
      return fail(
        "invalid_input",
        `The range has ${buckets} buckets of one ${level} for each of ${count} ids. Send fewer ids, a shorter range or a ` +
          `coarser granularity, so that these are at most ${BUCKETS_READ_MAX} together.`,
      );
    }
    const owners = new Map((await store.of(KeyReader).findOwners(keyIds)).map(({ id, api_id }) => [id, api_id]));
    const existing = await store.of(ApiReader).existing(apiIds);
    if (count === 0) principal.authorize("apis.*.read_analytics");
    for (const apiId of new Set([...owners.values(), ...existing])) principal.authorize(`apis.${apiId}.read_analytics`);
    return {
      range: { start, end, granularity: level },
      keyIds: keyIds.filter((id) => owners.has(id)),
      apiIds: apiIds.filter((id) => existing.has(id)),
    };
  })
  .answer(async ({ range, keyIds, apiIds }, { analytics }, context) => {
    const { start, end, granularity: level } = range;
    const found = await analytics.countEach({ subjects: [...keyIds, ...apiIds], level, start, end }, context);
    const series = new Map(found.map((one) => [one.subject, one.series]));
    const usageOf = (id: string) => {
      const buckets = series.get(id) ?? [];
      const sum = (of: "total" | "valid") => buckets.reduce((sum, bucket) => sumOf(sum, bucket[of]), 0);
      return { total: sum("total"), valid: sum("valid"), series: [...buckets] };
    };
    return {
      ...range,
      keys: keyIds.map((keyId) => ({ keyId, ...usageOf(keyId) })),
      apis: apiIds.map((apiId) => ({ apiId, ...usageOf(apiId) })),
    };
  });
