import { z } from "zod";
import { ASTERISKS_MAX, asterisks } from "../../../../engine/src/rules/override-patterns.ts";
import { DURATION_MAX, LIMIT_MAX } from "../../../../engine/src/rules/window.ts";
import {
  DURATION_MIN,
  duration,
  integer,
  Mode,
  Reset,
  Shadow,
  ShadowOutput,
  text,
} from "../../platform/vocabulary/schema.ts";

/** 30 days. */
const CALL_DURATION_MAX = 30 * 24 * 3_600_000;

/** Names of namespaces and identifiers are compared exactly, with blanks and control characters. */
export const Namespace = text(1, 512).describe("Name or id of the namespace.");

/** The identifier or pattern of an override. */
export const OverrideIdentifier = text(1, 512).describe(
  "An identifier, or a pattern. In a pattern `*` matches any characters except line feeds.",
);

/** The identifier or pattern of a new override. */
export const NewOverrideIdentifier = OverrideIdentifier.check((payload) => {
  const { value, issues } = payload;
  if (asterisks(value) <= ASTERISKS_MAX) return;
  const message = `may hold at most ${ASTERISKS_MAX} asterisks`;
  issues.push({ code: "invalid_format", format: "regex", input: value, message });
})
  .meta({ pattern: `^[^*\\u0000]*(?:\\*[^*\\u0000]*){0,${ASTERISKS_MAX}}$` })
  .describe(
    "An identifier, or a pattern. In a pattern `*` matches any characters except line feeds. " +
      `A pattern has at most ${ASTERISKS_MAX} asterisks.`,
  );

export const OverrideLimit = integer(0, LIMIT_MAX).describe("Maximum cost per window. 0 denies every call.");
export const OverrideDuration = duration(DURATION_MIN, DURATION_MAX).describe("Length of the window in milliseconds.");

export const OverrideMode = Mode.describe("How the limit counts. Omitted: as the call says.");

export const OverrideShadow = Shadow.describe(
  "Whether the limit is in shadow mode: counted and reported, and never denying. Omitted: as the call says.",
);

/** What to count, and the limit to count against. */
export const LimitInput = z.strictObject({
  namespace: text(1, 512).describe("Name or id of the namespace. A new name creates a namespace."),
  identifier: text(1, 512).describe("The identifier to count, such as a user id or an address."),
  limit: integer(1, LIMIT_MAX).describe("Maximum cost per window."),
  duration: duration(DURATION_MIN, CALL_DURATION_MAX).describe("Length of the window in milliseconds."),
  mode: Mode.default("standard"),
  shadow: Shadow.default(false),
  cost: integer(0, LIMIT_MAX).default(1).describe("Cost of this call. 0: check the limit without charging it."),
});

/** The fields of every limit result. */
export const limitResult = {
  limit: z.int().describe("The limit that applies: that of the override, if there is one."),
  remaining: z.int().describe("What remains in the window after this call. A denied call charges nothing."),
  reset: Reset,
  retryAfter: z
    .int()
    .optional()
    .describe(
      "Milliseconds until this cost would pass without other calls. 0 if it passed. Absent: it can never pass.",
    ),
  overrideId: z.string().optional().describe("The override that applies, if there is one."),
  shadow: ShadowOutput.optional(),
  exceeded: z.boolean().optional().describe("With `shadow`: whether the limit would have denied the call."),
};
