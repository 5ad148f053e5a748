import { z } from "zod";
import { exampleEmptyStats, exampleKey, exampleRange, exampleStats } from "../../platform/vocabulary/examples.ts";
import { KeyId } from "../../platform/vocabulary/schema.ts";
import { KeyReader } from "../keys/statements/keys.ts";
import { rejectMissing } from "../keys/statements/missing-key.ts";
import { analysis } from "../services.ts";
import { answerCounts, type Counted } from "./counts.ts";
import { bucketsOf, rangeInput, rangeOutput, tagSetOf, tagsInput, verificationStats } from "./range.ts";

export const getKeyStats = analysis("analytics.getKeyStats", {
  summary: "Get the verification statistics of a key",
  description:
    "Counts the verifications of a key by outcome and time. Counts are about one second old, and a few seconds under " +
    "load. Verifications of a deleted key count as NOT_FOUND. The statistics of a deleted key remain available.",
  permissions: ["apis.{apiId}.read_analytics"],
  input: z.strictObject({ keyId: KeyId, ...rangeInput, ...tagsInput }),
  output: z.strictObject({ keyId: z.string(), ...rangeOutput, ...verificationStats }),
  problems: ["key_not_found"],
  examples: [
    {
      summary: "Two minutes of a key",
      input: { keyId: exampleKey.keyId, ...exampleRange },
      output: { keyId: exampleKey.keyId, ...exampleRange, granularity: "minute", ...exampleStats },
    },
    {
      summary: "Verifications with a tag",
      input: { keyId: exampleKey.keyId, ...exampleRange, tags: ["path=/invoices"] },
      output: {
        keyId: exampleKey.keyId,
        ...exampleRange,
        granularity: "minute",
        ...exampleEmptyStats,
      },
    },
    {
      summary: "A range with its end before its start",
      input: { keyId: exampleKey.keyId, start: exampleRange.end, end: exampleRange.start },
      problem: "invalid_input",
      detail: "`start` must lie before `end`.",
    },
  ],
})
  .authorize(async ({ keyId, tags, ...range }, { store, principal, fail }): Promise<Counted> => {
    const key = await store.of(KeyReader).findOwner(keyId);
    if (!key) return rejectMissing(keyId, "read_analytics", { store, principal, fail });
    principal.authorize(`apis.${key.api_id}.read_analytics`);
    const { level, start, end } = bucketsOf(range, fail);
    return {
      members: { keyId, start, end, granularity: level },
      query: { about: "verifications", subject: keyId, level, start, end, tags: tagSetOf(tags) },
    };
  })
  .answer(answerCounts);
