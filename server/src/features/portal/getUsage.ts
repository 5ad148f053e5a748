import { z } from "zod";
import { integer, KeyId } from "../../platform/vocabulary/schema.ts";
import { levels } from "../analytics/levels.ts";
import { bucketsOf, rangeOutput, verificationCounts } from "../analytics/range.ts";
import { KeyReader } from "../keys/statements/keys.ts";
import { analysis } from "../services.ts";
import { callerWith, isOwn } from "./caller.ts";
import { PORTAL } from "./portal-caller.ts";

const DAYS_MAX = 90;

export const getUsage = analysis("portal.getUsage", {
  audience: PORTAL,
  summary: "Get the verifications of a key of the owner by day",
  description: "",
  permissions: ["apis.{apiId}.read_analytics"],
  input: z.strictObject({
    keyId: KeyId,
    days: integer(1, DAYS_MAX).default(30).describe("Days in UTC, the present one included."),
  }),
  output: z.strictObject({
    keyId: z.string(),
    ...rangeOutput,
    ...verificationCounts,
    series: z.array(z.strictObject({ time: z.int(), ...verificationCounts })),
  }),
  problems: ["key_not_found"],
  examples: [],
})
  .authorize(async ({ keyId, days }, { store, principal, now, fail }) => {
    const caller = callerWith("usage", principal);
    const key = await store.of(KeyReader).find(keyId);
    if (!key || !isOwn(key, caller)) return fail("key_not_found");
    const range = { start: now - (days - 1) * levels.day, end: now + 1, granularity: "day" } as const;
    const { level, start, end } = bucketsOf(range, fail);
    return { about: "verifications", subject: keyId, level, start, end, tags: [] } as const;
  })
  .answer(async (question, { analytics }, context) => {
    const { subject: keyId, start, end, level: granularity } = question;
    // Without tags, which are for the operator.
    const { total, valid, outcomes, creditsSpent, series } = JSON.parse(
      `{${await analytics.count(question, context)}}`,
    );
    return { keyId, start, end, granularity, total, valid, outcomes, creditsSpent, series };
  });
