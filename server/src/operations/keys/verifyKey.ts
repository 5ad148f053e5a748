import { z } from "zod";
import { metered } from "../../rpc/operation.ts";
import { ApiId, text } from "../schema.ts";
import { IdentityOutput } from "./record.ts";

export const verifyKey = metered("keys.verifyKey", {
  summary: "Verify a key",
  description:
    "Says whether a key may pass, and if not, why: a refusal is an answer with status 200, `valid` false and a `code`. " +
    "Without a root key (where the service allows that) only keys of the default workspace are found, and the answer " +
    "leaves out what end users are not to see: `name`, `roles`, `permissions`.",
  permissions: ["apis.{apiId}.verify_key"],
  anonymous: true,
  input: z.strictObject({
    key: text(1, 512).describe("The key string that somebody presented."),
    apiId: ApiId.optional().describe("Only a key of this API will do."),
    permissions: text(1, 1_000)
      .optional()
      .describe("A query such as `documents.read AND (admin OR billing.write)` that the key must satisfy."),
    tags: z.array(text(1, 128)).max(10).optional().describe("Labels for the analytics of this verification."),
    clientIp: z
      .union([z.ipv4(), z.ipv6()])
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
  }),
  problems: ["permissions_query_syntax_error"],
}).handle((input, { verification, principal, workspaceId, address, now, fail }) => {
  if (input.clientIp !== undefined && principal === null) fail("authentication_missing");
  const answer = verification.verify({
    key: input.key,
    apiId: input.apiId,
    permissions: input.permissions,
    workspaceId,
    principal,
    address: input.clientIp ?? address,
    now,
  });
  const settle = (settled: Awaited<typeof answer>) =>
    typeof settled === "string" ? settled : fail("permissions_query_syntax_error", settled.message);
  return answer instanceof Promise ? answer.then(settle) : settle(answer);
});
