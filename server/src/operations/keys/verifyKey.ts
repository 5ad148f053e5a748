import { z } from "zod";
import { then } from "../../clock/then.ts";
import { hashSecret } from "../../crypto/hash.ts";
import { metered } from "../../rpc/operation.ts";
import { DURATION_MAX, LIMIT_MAX } from "../../rules/window.ts";
import { verificationCodes } from "../../verification/request.ts";
import { exampleRatelimit, exampleReset, exampleSecret, exampleVerification } from "../examples.ts";
import {
  ApiId,
  asSecret,
  DURATION_MIN,
  integer,
  RATELIMITS_PER_KEY_MAX,
  RatelimitOutput,
  rejectRepeatedNames,
  text,
} from "../schema.ts";
import { IdentityOutput } from "./record.ts";

const namedLimits = z
  .array(
    z.object({
      name: text(1, 255),
      cost: integer(0, LIMIT_MAX).default(1).describe("Cost of this call. 0: check the limit without charging it."),
      limit: integer(0, LIMIT_MAX)
        .optional()
        .describe("With `duration`: a limit for this call only, instead of a stored one."),
      duration: integer(DURATION_MIN, DURATION_MAX)
        .optional()
        .describe("With `limit`: the length of its window in milliseconds."),
    }),
  )
  .max(RATELIMITS_PER_KEY_MAX)
  .check(({ value, issues }) => rejectRepeatedNames(value, issues));

const KEYSPACES_MAX = 100;

const problemOf = {
  query_unreadable: "permissions_query_syntax_error",
  token_unreadable: "invalid_input",
  limit_unknown: "precondition_failed",
  replay_mismatched: "idempotency_mismatch",
  replay_running: "idempotency_in_progress",
} as const;

/** Whether a verification uses fields that require a root key: an address, a migration, or a limit of its own. */
function needsRootKey(input: {
  clientIp?: string | undefined;
  migrationId?: string | undefined;
  ratelimits?: z.output<typeof namedLimits> | undefined;
}) {
  return (
    input.clientIp !== undefined ||
    input.migrationId !== undefined ||
    input.ratelimits?.some(({ limit, duration }) => limit !== undefined || duration !== undefined)
  );
}

const output = z.strictObject({
  valid: z.boolean(),
  code: z.enum(verificationCodes),
  keyId: z.string().optional(),
  apiId: z.string().optional(),
  enabled: z.boolean().optional(),
  name: z.string().optional(),
  meta: z.record(z.string(), z.unknown()).optional(),
  expires: z.int().optional(),
  permissions: z.array(z.string()).optional(),
  roles: z.array(z.string()).optional(),
  credits: z.int().optional().describe("The balance after this verification. Absent: unlimited."),
  identity: IdentityOutput.optional(),
  ratelimits: z
    .array(
      RatelimitOutput.extend({
        exceeded: z.boolean(),
        remaining: z.int().describe("What remains in the window after this call. A denied call charges nothing."),
        reset: z.int().describe("End of the current window, Unix time in milliseconds."),
        retryAfter: z
          .int()
          .optional()
          .describe("Milliseconds until this cost would pass. 0 if it passed. Absent: it can never pass."),
      }),
    )
    .optional()
    .describe("Every limit that was checked."),
  retryAfter: z
    .int()
    .optional()
    .describe(
      "With RATE_LIMITED: milliseconds until the call would pass without other calls. Absent: it can never pass.",
    ),
});

/** The `data` of an answer. */
export type VerifyKeyAnswer = z.output<typeof output>;

export const verifyKey = metered("keys.verifyKey", {
  summary: "Verify a key",
  description:
    "Checks whether a key is valid. The status is 200 for an invalid key too: `valid` is then false and `code` gives the " +
    "reason. Without a root key, if the service allows it, only keys of the default workspace are found, and the " +
    "response omits the fields that end users must not see: `name`, `roles` and `permissions`.",
  idempotent: true,
  permissions: ["apis.{apiId}.verify_key"],
  anonymousCaller: ({ key }) => hashSecret(key),
  input: z.strictObject({
    key: asSecret(text(1, 512)).describe("The key string from the request of your user."),
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
    tags: z.array(text(1, 128)).max(10).optional().describe("Tags of this verification in the analytics."),
    credits: z
      .strictObject({ cost: integer(0, LIMIT_MAX) })
      .optional()
      .describe(
        "Credits that this verification costs if the key has a balance. Omitted: 1. 0: check without charging.",
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
  }),
  output,
  problems: ["permissions_query_syntax_error", "precondition_failed"],
  examples: [
    {
      summary: "A valid key",
      input: { key: exampleSecret, permissions: "documents.read", tags: ["path=/documents"] },
      output: {
        valid: true,
        code: "VALID",
        ...exampleVerification,
        credits: 9_999,
        ratelimits: [{ ...exampleRatelimit, exceeded: false, remaining: 99, reset: exampleReset, retryAfter: 0 }],
      },
    },
    {
      summary: "A key with too few credits",
      input: { key: exampleSecret, credits: { cost: 20_000 } },
      output: {
        valid: false,
        code: "USAGE_EXCEEDED",
        ...exampleVerification,
        ratelimits: [{ ...exampleRatelimit, exceeded: false, remaining: 100, reset: exampleReset, retryAfter: 0 }],
      },
    },
    {
      summary: "A key that lacks a permission",
      input: { key: exampleSecret, permissions: "documents.read AND billing.write" },
      output: { valid: false, code: "INSUFFICIENT_PERMISSIONS", ...exampleVerification },
    },
    {
      summary: "A key that does not exist",
      input: { key: "3kAqEg4u4qMxCGFAVMuGsb3cijGp" },
      output: { valid: false, code: "NOT_FOUND" },
    },
    {
      summary: "An invalid permission query",
      input: { key: exampleSecret, permissions: "documents.read AND" },
      problem: "permissions_query_syntax_error",
      detail: "Unexpected end at position 18 of the permission query: add the permission that is missing there.",
    },
  ],
}).handle((input, { verification, principal, workspaceId, address, idempotent, now, startedAt, fail }) => {
  if (principal === null && needsRootKey(input)) fail("authentication_missing");
  const answer = verification.verify({
    key: input.key,
    apiId: input.apiId,
    keyspaces: input.keyspaces,
    migrationId: input.migrationId,
    permissions: input.permissions,
    ratelimits: input.ratelimits,
    credits: input.credits,
    idempotent,
    workspaceId,
    principal,
    address: input.clientIp ?? address,
    tags: input.tags,
    now,
    startedAt,
  });
  const settle = (settled: Awaited<typeof answer>) =>
    typeof settled === "string" ? settled : fail(problemOf[settled.kind], settled.message);
  return then(answer, settle);
});
