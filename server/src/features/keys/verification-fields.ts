/** What `keys.verifyKey` and its explanation share. */
import { z } from "zod";
import { HOLD_LIMIT_NAMES_MAX, HOLD_LIMITS_MAX } from "../../../../engine/src/credits/hold.ts";
import { DURATION_MAX, LIMIT_MAX } from "../../../../engine/src/rules/window.ts";
import {
  ApiId,
  asSecret,
  DURATION_MIN,
  duration,
  integer,
  KEY_LENGTH_MAX,
  Mode,
  RATELIMITS_PER_KEY_MAX,
  rejectRepeatedNames,
  Shadow,
  Tags,
  text,
} from "../../platform/vocabulary/schema.ts";
import { HoldInput } from "../holds/record.ts";

const KEYSPACES_MAX = 100;

/** Limits that a call names. */
export const namedLimits = z
  .array(
    z.object({
      name: text(1, 255),
      cost: integer(0, LIMIT_MAX).default(1).describe("Cost of this call. 0: check the limit without charging it."),
      limit: integer(0, LIMIT_MAX)
        .optional()
        .describe("With `duration`: a limit for this call only, instead of a stored one."),
      duration: duration(DURATION_MIN, DURATION_MAX)
        .optional()
        .describe("With `limit`: the length of its window in milliseconds."),
      mode: Mode.optional().describe("With `limit` and `duration`: how the limit counts. Omitted: `standard`."),
      shadow: Shadow.optional().describe(
        "With `limit` and `duration`: whether the limit only counts, and never denies. Omitted: `false`.",
      ),
    }),
  )
  .max(RATELIMITS_PER_KEY_MAX)
  .check(({ value, issues }) => rejectRepeatedNames(value, issues));

/** The string of a key that somebody presented. */
export const KeyString = asSecret(text(1, KEY_LENGTH_MAX)).describe("The key string from the request of your user.");

/** The members of a verification besides the key. */
export const verificationFields = {
  apiId: ApiId.optional().describe("Accept only a key of this API."),
  keyspaces: z
    .array(ApiId)
    .min(1)
    .max(KEYSPACES_MAX)
    .optional()
    .describe("Accept only a key of one of these APIs. Combines with `apiId`: the key must satisfy both."),
  permissions: text(1, 1_000)
    .optional()
    .describe("A permission query that the key must satisfy, such as `documents.read AND (admin OR billing.write)`."),
  tags: Tags.optional().describe("Tags of this verification in the analytics."),
  credits: z
    .strictObject({ cost: integer(0, LIMIT_MAX) })
    .optional()
    .describe("Credits that this verification costs if the key has a balance. Omitted: 1. 0: check without charging."),
  hold: HoldInput.optional().describe(
    "Holds the cost instead of spending it, for work whose cost is known afterwards: `holds.settleHold` charges what it " +
      `really was. The call can then charge up to ${HOLD_LIMITS_MAX} limits, whose names have up to ` +
      `${HOLD_LIMIT_NAMES_MAX} characters together. Requires a root key.`,
  ),
  ratelimits: namedLimits
    .optional()
    .describe(
      "Limits to charge, by name. Limits with `autoApply` that are not in the list are then checked but not charged. " +
        "Omitted or empty: each limit with `autoApply` is charged 1.",
    ),
  migrationId: text(0, 256)
    .optional()
    .describe(
      "The migration that imported the key, for keys that need it: see `keys.migrateKeys`. Requires a root key.",
    ),
  clientIp: z
    .union([z.ipv4(), z.ipv6()], { error: "must be an IPv4 or an IPv6 address" })
    .optional()
    .describe("The address of your user, for the allow-list of the API. Requires a root key."),
};
