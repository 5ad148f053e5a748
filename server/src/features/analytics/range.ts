import { z } from "zod";
import type { Milliseconds } from "../../../../engine/src/clock/clock.ts";
import { verificationCodes } from "../../../../engine/src/verification/request.ts";
import { ApiId, integer, text, time } from "../../platform/vocabulary/schema.ts";
import type { UsageLevel } from "./batch.ts";
import { type Level, levels } from "./levels.ts";

/** Maximum number of buckets in one response. */
const BUCKETS_MAX = 10_000;

/** The longest ranges for which `minute` and `hour` are the default granularity. Longer ranges use `day`. */
const MINUTES_UP_TO = 3 * levels.hour;
const HOURS_UP_TO = 7 * levels.day;

/** The input fields of a time range. */
export const rangeInput = {
  start: time().describe("Start of the range, Unix time in milliseconds. Rounded down to the start of a bucket."),
  end: time().describe("End of the range (exclusive), Unix time in milliseconds. Rounded up to the end of a bucket."),
  granularity: z
    .enum(["minute", "hour", "day"])
    .optional()
    .describe(
      "Length of a bucket, aligned to UTC. Omitted: minutes for up to 3 hours, hours for up to 7 days, else days.",
    ),
};

export const tagsInput = {
  tags: z.array(text(1, 128)).max(10).optional().describe("Only verifications with all of these tags."),
};

/** The output fields of a time range. */
export const rangeOutput = {
  start: z.int().describe("Start of the first bucket."),
  end: z.int().describe("End of the last bucket."),
  granularity: z.enum(["minute", "hour", "day"]),
};

const outcomes = z
  .partialRecord(z.enum(verificationCodes), z.int())
  .describe("Verifications by code. Codes that did not occur are omitted.");

export const verificationCounts = {
  total: z.int().describe("Number of verifications."),
  valid: z.int().describe("Number of valid ones."),
  outcomes,
  creditsSpent: z.int(),
};

export const verificationStats = {
  ...verificationCounts,
  series: z
    .array(z.strictObject({ time: z.int().describe("Start of the bucket."), ...verificationCounts }))
    .describe("Every bucket of the range in order, including empty ones."),
  tags: z
    .array(z.strictObject({ tag: z.string(), total: z.int(), valid: z.int() }))
    .describe("The 100 most frequent tags."),
  tagsUntold: z
    .int()
    .optional()
    .describe(
      "Verifications whose tags are not counted, because a bucket holds at most 100 sets of tags. Absent: none.",
    ),
};

/** The input fields of a ranking. */
export const topInput = {
  start: rangeInput.start,
  end: rangeInput.end,
  granularity: z
    .enum(["hour", "day"])
    .optional()
    .describe("Buckets that are counted, aligned to UTC. Omitted: hours for up to 7 days, else days."),
  apiId: ApiId.optional().describe("Only verifications of keys of this API."),
  limit: integer(1, 100).default(10).describe("Maximum number of entries."),
};

/** The output fields of a ranking. */
export const topOutput = {
  start: rangeOutput.start,
  end: rangeOutput.end,
  granularity: z.enum(["hour", "day"]),
  incompleteBefore: z
    .int()
    .optional()
    .describe(
      "Counts before this Unix time in milliseconds are missing, because a ranking examines a limited number of keys, " +
        "those of the newest buckets first. Ask for a shorter range or a coarser granularity. Absent: all are counted.",
    ),
};

const ratelimitCounts = {
  total: z.int().describe("Number of decisions."),
  passed: z.int(),
  denied: z.int(),
  cost: z.int().describe("Total cost that was charged."),
};

export const ratelimitStats = {
  ...ratelimitCounts,
  series: z
    .array(z.strictObject({ time: z.int().describe("Start of the bucket."), ...ratelimitCounts }))
    .describe("Every bucket of the range in order, including empty ones."),
  identifiers: z
    .array(z.strictObject({ identifier: z.string(), denied: z.int(), total: z.int() }))
    .describe("The 100 identifiers with the most denied decisions."),
  identifiersUntold: z
    .int()
    .optional()
    .describe(
      "Decisions whose identifier is not counted, because a bucket holds at most 1,000 identifiers. Absent: none.",
    ),
};

interface Range {
  start: number;
  end: number;
  granularity?: Level | undefined;
}

type Fail = (code: "invalid_input", detail: string) => never;

/** The whole buckets that cover the range. Calls `fail` for an empty range and for too many buckets. */
export function bucketsOf({ granularity, ...range }: Range, fail: Fail) {
  const length = range.end - range.start;
  return coveredBy(granularity ?? (length <= MINUTES_UP_TO ? "minute" : usageLevelOf(length)), range, fail);
}

/** The same for a ranking. */
export function usageBucketsOf(
  { granularity, ...range }: Range & { granularity?: UsageLevel | undefined },
  fail: Fail,
) {
  return coveredBy(granularity ?? usageLevelOf(range.end - range.start), range, fail);
}

function usageLevelOf(length: Milliseconds): UsageLevel {
  return length <= HOURS_UP_TO ? "hour" : "day";
}

function coveredBy<L extends Level>(
  level: L,
  { start, end }: Omit<Range, "granularity">,
  fail: Fail,
): { level: L; start: number; end: number } {
  if (start >= end) return fail("invalid_input", "`start` must lie before `end`.");
  const length = levels[level];
  const first = Math.floor(start / length) * length;
  const last = Math.ceil(end / length) * length;
  const buckets = (last - first) / length;
  if (buckets > BUCKETS_MAX) {
    return fail(
      "invalid_input",
      `The range has ${buckets} buckets of one ${level}. Use a range of at most ${BUCKETS_MAX} buckets, or a coarser granularity.`,
    );
  }
  return { level, start: first, end: last };
}

/** The tags in the form of a query: sorted, without duplicates. */
export function tagSetOf(tags: readonly string[] | undefined): string[] {
  return [...new Set(tags)].sort();
}
