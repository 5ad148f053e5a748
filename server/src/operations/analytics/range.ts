import { z } from "zod";
import { type Level, levels } from "../../analytics/levels.ts";
import { verificationCodes } from "../../verification/request.ts";
import { EXPIRES_MAX, integer, text } from "../schema.ts";

/** Buckets of one answer. */
const BUCKETS_MAX = 10_000;

/** Up to which length of range each granularity is taken by itself; beyond them it is `day`. */
const MINUTES_UP_TO = 3 * levels.hour;
const HOURS_UP_TO = 7 * levels.day;

/** What part of the past is asked about. */
export const rangeInput = {
  start: integer(0, EXPIRES_MAX).describe(
    "Unix time in milliseconds at which the range begins; rounded down to a whole bucket.",
  ),
  end: integer(0, EXPIRES_MAX).describe(
    "Unix time in milliseconds at which it ends, itself not in it; rounded up to a whole bucket.",
  ),
  granularity: z
    .enum(["minute", "hour", "day"])
    .optional()
    .describe("Length of the buckets, in UTC. When omitted: up to 3 hours minutes, up to 7 days hours, else days."),
};

export const tagsInput = {
  tags: z.array(text(1, 128)).max(10).optional().describe("Only verifications that carry all of these."),
};

/** The range as it is answered. */
export const rangeOutput = {
  start: z.int().describe("Beginning of the first bucket."),
  end: z.int().describe("End of the last bucket."),
  granularity: z.enum(["minute", "hour", "day"]),
};

const outcomes = z
  .partialRecord(z.enum(verificationCodes), z.int())
  .describe("Verifications by code. A code that did not occur is left out.");

const verificationCounts = {
  total: z.int().describe("Verifications."),
  valid: z.int().describe("Those that passed."),
  outcomes,
  creditsSpent: z.int(),
};

export const verificationStats = {
  ...verificationCounts,
  series: z
    .array(z.strictObject({ time: z.int().describe("Beginning of the bucket."), ...verificationCounts }))
    .describe("Every bucket of the range, in order, the empty ones too."),
  tags: z
    .array(z.strictObject({ tag: z.string(), total: z.int(), valid: z.int() }))
    .describe("The 100 most frequent tags."),
  tagsUntold: z
    .int()
    .optional()
    .describe("Verifications whose tags were not kept: a bucket tells 100 sets of tags apart. Absent: none."),
};

const ratelimitCounts = {
  total: z.int().describe("Decisions."),
  passed: z.int(),
  denied: z.int(),
  cost: z.int().describe("What the limits were charged."),
};

export const ratelimitStats = {
  ...ratelimitCounts,
  series: z
    .array(z.strictObject({ time: z.int().describe("Beginning of the bucket."), ...ratelimitCounts }))
    .describe("Every bucket of the range, in order, the empty ones too."),
  identifiers: z
    .array(z.strictObject({ identifier: z.string(), denied: z.int(), total: z.int() }))
    .describe("The 100 identifiers that were denied most."),
  identifiersUntold: z
    .int()
    .optional()
    .describe("Decisions whose identifier was not kept: a bucket tells 1,000 apart. Absent: none."),
};

interface Range {
  start: number;
  end: number;
  granularity?: Level | undefined;
}

/** Whole buckets that cover the range. What cannot be answered is told by `fail`. */
export function bucketsOf(
  { start, end, granularity }: Range,
  fail: (code: "invalid_input", detail: string) => never,
): { level: Level; start: number; end: number } {
  if (start >= end) return fail("invalid_input", "`start` must lie before `end`.");
  const level = granularity ?? (end - start <= MINUTES_UP_TO ? "minute" : end - start <= HOURS_UP_TO ? "hour" : "day");
  const length = levels[level];
  const first = Math.floor(start / length) * length;
  const last = Math.ceil(end / length) * length;
  const buckets = (last - first) / length;
  if (buckets > BUCKETS_MAX) {
    return fail(
      "invalid_input",
      `The range has ${buckets} buckets of a ${level}; ask for at most ${BUCKETS_MAX}, or for a coarser granularity.`,
    );
  }
  return { level, start: first, end: last };
}

/** Tags as a question has them: in order, each once. */
export function tagSetOf(tags: readonly string[] | undefined): string[] {
  return [...new Set(tags)].sort();
}
