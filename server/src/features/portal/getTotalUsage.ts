import { z } from "zod";
import { integer } from "../../platform/vocabulary/schema.ts";
import { levels } from "../analytics/levels.ts";
import { bucketsOf } from "../analytics/range.ts";
import { sumOf } from "../analytics/sums.ts";
import { KeyReader } from "../keys/statements/keys.ts";
import { analysis } from "../services.ts";
import { callerWith } from "./caller.ts";
import { PORTAL } from "./portal-caller.ts";

const DAYS_MAX = 90;
/** The newest keys of the owner, which are counted together. */
const KEYS_COUNTED_MAX = 100;

export const getTotalUsage = analysis("portal.getTotalUsage", {
  audience: PORTAL,
  summary: "Get the verifications of the owner's newest keys together, by day",
  description: "",
  permissions: ["apis.{apiId}.read_analytics"],
  input: z.strictObject({
    days: integer(1, DAYS_MAX).default(30).describe("Days in UTC, the present one included."),
  }),
  output: z.strictObject({
    total: z.int(),
    valid: z.int(),
    series: z.array(z.strictObject({ time: z.int(), total: z.int(), valid: z.int() })),
  }),
  problems: [],
  examples: [],
})
  .authorize(async ({ days }, { store, principal, now, fail }) => {
    const { apiId, externalId } = callerWith("usage", principal);
    const place = { order: "desc", from: undefined, limit: KEYS_COUNTED_MAX } as const;
    const { keys } = await store.of(KeyReader).page({ apiId, filter: { externalId }, now }, place);
    const range = { start: now - (days - 1) * levels.day, end: now + 1, granularity: "day" } as const;
    const { level, start, end } = bucketsOf(range, fail);
    return { subjects: keys.map(({ id }) => id), level, start, end };
  })
  .answer(async ({ subjects, ...range }, { analytics }, context) => {
    const counted = await analytics.countEach({ subjects, ...range }, context);
    const series = [];
    for (let time = range.start; time < range.end; time += levels.day) series.push({ time, total: 0, valid: 0 });
    const all = { total: 0, valid: 0 };
    for (const { time, total, valid } of counted.flatMap((key) => key.series)) {
      const day = series[(time - range.start) / levels.day];
      for (const sum of day ? [day, all] : []) {
        sum.total = sumOf(sum.total, total);
        sum.valid = sumOf(sum.valid, valid);
      }
    }
    return { ...all, series };
  });
