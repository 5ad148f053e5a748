import { z } from "zod";
import { ASTERISKS_MAX, asterisks } from "../../rules/override-patterns.ts";
import { DURATION_MAX, DURATION_MIN, integer, LIMIT_MAX, text } from "../schema.ts";

/** 30 days. */
const CALL_DURATION_MAX = 30 * 24 * 3_600_000;

/** Names of namespaces and identifiers are taken to the letter: blanks and control characters belong to them. */
export const Namespace = text(1, 512).describe("Name or id of the namespace.");

/** Exactly this text, or a pattern. */
export const OverrideIdentifier = text(1, 512).describe(
  "An identifier, or a pattern in which `*` stands for any run of characters except line feeds.",
);

/** The same, as it may be set. */
export const NewOverrideIdentifier = OverrideIdentifier.check((payload) => {
  const { value, issues } = payload;
  if (asterisks(value) <= ASTERISKS_MAX) return;
  const message = `may hold at most ${ASTERISKS_MAX} asterisks`;
  issues.push({ code: "invalid_format", format: "regex", input: value, message });
})
  .meta({ pattern: `^[^*\\u0000]*(?:\\*[^*\\u0000]*){0,${ASTERISKS_MAX}}$` })
  .describe(
    "An identifier, or a pattern in which `*` stands for any run of characters except line feeds. " +
      `A pattern has at most ${ASTERISKS_MAX} of them.`,
  );

export const OverrideLimit = integer(0, LIMIT_MAX).describe("Amount that passes in one window. 0 denies everything.");
export const OverrideDuration = integer(DURATION_MIN, DURATION_MAX).describe("Length of the window in milliseconds.");

/** One thing that is counted, and against which limit. */
export const LimitInput = z.strictObject({
  namespace: text(1, 512).describe("Name or id of the namespace. A name that is not there yet makes one."),
  identifier: text(1, 512).describe("Who or what is counted: a user's id, an address."),
  limit: integer(1, LIMIT_MAX).describe("Amount that passes in one window."),
  duration: integer(DURATION_MIN, CALL_DURATION_MAX).describe("Length of the window in milliseconds."),
  cost: integer(0, LIMIT_MAX).default(1).describe("How much this call takes. 0 only looks."),
});

/** What every limit result has. */
export const limitResult = {
  limit: z.int().describe("The limit that holds: the override's where there is one."),
  remaining: z.int().describe("What is left after this call; when it was denied, what is truly left."),
  reset: z.int().describe("Unix time in milliseconds at which the current window ends."),
  retryAfter: z
    .int()
    .optional()
    .describe("Milliseconds until this cost would pass if nobody else called; 0 when it passed. Absent: it never can."),
  overrideId: z.string().optional().describe("The override that holds, if one does."),
};
