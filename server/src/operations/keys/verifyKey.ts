import { z } from "zod";
import { metered } from "../../rpc/operation.ts";
import { exampleRatelimit, exampleSecret, exampleVerification } from "../examples.ts";
import {
  ApiId,
  DURATION_MAX,
  DURATION_MIN,
  integer,
  LIMIT_MAX,
  RATELIMITS_PER_KEY_MAX,
  RatelimitOutput,
  refuseRepeatedNames,
  text,
} from "../schema.ts";
import { IdentityOutput } from "./record.ts";

/** Most that one verification may cost. */
const COST_MAX = 1_000_000_000_000;

const namedLimits = z
  .array(
    z.object({
      name: text(1, 255),
      cost: integer(0, LIMIT_MAX).default(1).describe("0 only looks."),
      limit: integer(0, LIMIT_MAX).optional().describe("With `duration`: a limit made up for this call."),
      duration: integer(DURATION_MIN, DURATION_MAX).optional().describe("With `limit`: its window in milliseconds."),
    }),
  )
  .max(RATELIMITS_PER_KEY_MAX)
  .check(({ value, issues }) => refuseRepeatedNames(value, issues));

/** APIs that one verification may name. */
const KEYSPACES_MAX = 100;

const mistakes = {
  query_unreadable: "permissions_query_syntax_error",
  token_unreadable: "invalid_input",
  limit_unknown: "precondition_failed",
  replay_mismatched: "idempotency_mismatch",
  replay_running: "idempotency_in_progress",
} as const;

/** What only a caller may do who is known: say whose address it is, name a migration, and make limits up. */
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

export const verifyKey = metered("keys.verifyKey", {
  summary: "Verify a key",
  description:
    "Says whether a key may pass, and if not, why: a refusal is an answer with status 200, `valid` false and a `code`. " +
    "Without a root key (where the service allows that) only keys of the default workspace are found, and the answer " +
    "leaves out what end users are not to see: `name`, `roles`, `permissions`.",
  idempotent: true,
  permissions: ["apis.{apiId}.verify_key"],
  anonymous: true,
  input: z.strictObject({
    key: text(1, 512).describe("The key string that somebody presented."),
    apiId: ApiId.optional().describe("Only a key of this API will do."),
    keyspaces: z
      .array(ApiId)
      .min(1)
      .max(KEYSPACES_MAX)
      .optional()
      .describe("Only a key of one of these APIs will do. Together with `apiId`, both hold."),
    permissions: text(1, 1_000)
      .optional()
      .describe("A query such as `documents.read AND (admin OR billing.write)` that the key must satisfy."),
    tags: z.array(text(1, 128)).max(10).optional().describe("Labels for the analytics of this verification."),
    credits: z
      .strictObject({ cost: integer(0, COST_MAX) })
      .optional()
      .describe("What this verification costs where the key has a balance: 1 when omitted, 0 only looks."),
    ratelimits: namedLimits
      .optional()
      .describe(
        "Limits to charge by name. Others that apply by themselves are then checked and charged nothing. Omitted or " +
          "empty: those that apply by themselves are charged 1.",
      ),
    migrationId: text(0, 256)
      .optional()
      .describe(
        "The migration through which the key came, if it is not found by itself: see migrateKeys. Needs a root key.",
      ),
    clientIp: z
      .union([z.ipv4(), z.ipv6()], { error: "must be an IPv4 or an IPv6 address" })
      .optional()
      .describe("The end user's address, for the API's allow-list. Needs a root key."),
  }),
  output: z.strictObject({
    valid: z.boolean(),
    code: z.enum([
      "VALID",
      "NOT_FOUND",
      "FORBIDDEN",
      "INSUFFICIENT_PERMISSIONS",
      "USAGE_EXCEEDED",
      "RATE_LIMITED",
      "DISABLED",
      "EXPIRED",
    ]),
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
          remaining: z.int().describe("What is left after this call; what is truly left when it was refused."),
          reset: z.int().describe("End of the current window, Unix time in milliseconds."),
          retryAfter: z.int().optional().describe("Milliseconds until this cost would pass. Absent: it never can."),
        }),
      )
      .optional()
      .describe("Every limit that was looked at."),
    retryAfter: z
      .int()
      .optional()
      .describe(
        "With RATE_LIMITED: milliseconds until the call would pass if nobody else called. Absent: it never can.",
      ),
  }),
  problems: ["permissions_query_syntax_error", "precondition_failed"],
  examples: [
    {
      summary: "A key that may pass",
      input: { key: exampleSecret, permissions: "documents.read", tags: ["path=/documents"] },
      output: {
        valid: true,
        code: "VALID",
        ...exampleVerification,
        credits: 9_999,
        ratelimits: [{ ...exampleRatelimit, exceeded: false, remaining: 99, reset: 1_768_478_460_000, retryAfter: 0 }],
      },
    },
    {
      summary: "A key with too few credits",
      input: { key: exampleSecret, credits: { cost: 20_000 } },
      output: {
        valid: false,
        code: "USAGE_EXCEEDED",
        ...exampleVerification,
        ratelimits: [{ ...exampleRatelimit, exceeded: false, remaining: 100, reset: 1_768_478_460_000, retryAfter: 0 }],
      },
    },
    {
      summary: "A key that lacks a permission",
      input: { key: exampleSecret, permissions: "documents.read AND billing.write" },
      output: { valid: false, code: "INSUFFICIENT_PERMISSIONS", ...exampleVerification },
    },
    {
      summary: "A key that nobody has",
      input: { key: "3kAqEg4u4qMxCGFAVMuGsb3cijGp" },
      output: { valid: false, code: "NOT_FOUND" },
    },
    {
      summary: "A permission query that cannot be read",
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
    typeof settled === "string" ? settled : fail(mistakes[settled.kind], settled.message);
  return answer instanceof Promise ? answer.then(settle) : settle(answer);
});
