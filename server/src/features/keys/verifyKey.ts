import { z } from "zod";
import { then } from "../../../../engine/src/clock/then.ts";
import { hashSecret } from "../../../../engine/src/crypto/hash.ts";
import { verificationCodes } from "../../../../engine/src/verification/request.ts";
import {
  exampleHold,
  exampleHoldInput,
  exampleRatelimit,
  exampleReset,
  exampleSecret,
  exampleVerification,
  exampleVerifiedHold,
} from "../../platform/vocabulary/examples.ts";
import { RatelimitOutput, Reset } from "../../platform/vocabulary/schema.ts";
import { ConcurrencyState, VerifiedHold } from "../holds/record.ts";
import { metered } from "../services.ts";
import { mistakeProblems } from "./mistakes.ts";
import { IdentityOutput } from "./record.ts";
import { KeyString, type namedLimits, verificationFields } from "./verification-fields.ts";

/** Whether a verification uses fields that require a root key: an address, a migration, a hold, or a limit of its own. */
function needsRootKey(input: {
  clientIp?: string | undefined;
  migrationId?: string | undefined;
  ratelimits?: z.output<typeof namedLimits> | undefined;
  hold?: object | undefined;
}) {
  return (
    input.clientIp !== undefined ||
    input.migrationId !== undefined ||
    input.hold !== undefined ||
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
  plan: z.string().optional().describe("The name of the plan of the key, with a root key."),
  credits: z.int().optional().describe("The balance after this verification. Absent: unlimited."),
  budgets: z
    .array(
      z.strictObject({
        budgetId: z.string(),
        name: z.string(),
        remaining: z.int().describe("Its credits after this verification."),
        held: z.int().describe("What open holds have taken from it, with this one."),
        exceeded: z.boolean().describe("Whether it does not cover the call."),
        retryAfter: z
          .int()
          .optional()
          .describe("If it is exceeded: milliseconds until its next refill. Absent: it has none."),
      }),
    )
    .optional()
    .describe("The budgets that the call is charged to, with a root key."),
  hold: VerifiedHold.optional().describe(
    "The hold that this verification made. Present if it is valid and asked for one.",
  ),
  identity: IdentityOutput.optional(),
  derived: z
    .strictObject({
      parentKeyId: z.string().describe("The key, or the derived key, that it was derived from."),
      meta: z.record(z.string(), z.unknown()).describe("Its own. The holder of a key may have chosen it."),
    })
    .optional()
    .describe("Present if it is a derived key. Then `name`, `meta` and `identity` are those of the key at the top."),
  concurrency: z
    .array(ConcurrencyState)
    .optional()
    .describe("Every limit of concurrency, with `hold`. Absent if the key has none, or if the call failed before."),
  ratelimits: z
    .array(
      RatelimitOutput.extend({
        from: z
          .literal("identity")
          .optional()
          .describe("Present if it is a limit of the identity, which all its keys share."),
        exceeded: z.boolean(),
        remaining: z.int().describe("What remains in the window after this call. A denied call charges nothing."),
        reset: Reset,
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
      "With RATE_LIMITED: milliseconds until the call would pass without other calls. Absent: it can never pass. Where slots " +
        "of `concurrency` are lacking, one can be free sooner, or still be taken then if its hold was extended.",
    ),
});

/** The `data` of an answer. */
export type VerifyKeyAnswer = z.output<typeof output>;

export const verifyKey = metered("keys.verifyKey", {
  summary: "Verify a key",
  description:
    "Checks whether a key is valid. The status is 200 for an invalid key too: `valid` is then false and `code` gives the " +
    "reason. Without a root key, if the service allows it, only keys of the default workspace are found, and the " +
    "response omits the fields that end users must not see: `name`, `roles`, `permissions` and `plan`.",
  idempotent: true,
  permissions: ["apis.{apiId}.verify_key"],
  anonymousCaller: ({ key }) => hashSecret(key),
  input: z.strictObject({
    key: KeyString,
    ...verificationFields,
  }),
  output,
  problems: ["permissions_query_syntax_error", "hold_required", "precondition_failed"],
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
      summary: "A hold for work whose cost is known afterwards",
      input: { key: exampleSecret, credits: { cost: exampleHold.credits }, hold: exampleHoldInput },
      output: {
        valid: true,
        code: "VALID",
        ...exampleVerification,
        credits: exampleVerification.credits - exampleHold.credits,
        hold: exampleVerifiedHold,
        ratelimits: [{ ...exampleRatelimit, exceeded: false, remaining: 99, reset: exampleReset, retryAfter: 0 }],
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
}).handle(
  (input, { verification }, { principal, workspaceId, address, requestId, idempotent, now, startedAt, fail }) => {
    if (principal === null && needsRootKey(input)) fail("authentication_missing");
    const answer = verification.verify({
      key: input.key,
      apiId: input.apiId,
      keyspaces: input.keyspaces,
      migrationId: input.migrationId,
      permissions: input.permissions,
      ratelimits: input.ratelimits,
      credits: input.credits,
      hold: input.hold,
      idempotent,
      workspaceId,
      principal,
      address: input.clientIp ?? address,
      requestId,
      tags: input.tags,
      now,
      startedAt,
    });
    const settle = (settled: Awaited<typeof answer>) =>
      typeof settled === "string" ? settled : fail(mistakeProblems[settled.kind], settled.message);
    return then(answer, settle);
  },
);
