import { z } from "zod";
import type { KeyRecord } from "../../../../engine/src/directory/records.ts";
import { holds } from "../../../../engine/src/rules/permissions.ts";
import { readUntilCurrent } from "../../../../engine/src/verification/read-again.ts";
import type { VerificationRequest } from "../../../../engine/src/verification/request.ts";
import { Problem } from "../../platform/rpc/problems.ts";
import { asSecret, KEY_LENGTH_MAX, text } from "../../platform/vocabulary/schema.ts";
import { metered, type Services } from "../services.ts";

/** Access tokens are shorter. */
export const TOKEN_LENGTH_MAX = 8_192;
const INACTIVE = '{"active":false}';

/** What RFC 7662, section 2.2, says about a token, with ours in one member. */
const output = z.union([
  z.strictObject({ active: z.literal(false) }),
  z.looseObject({
    active: z.literal(true),
    sub: z.string(),
    client_id: z.string(),
    scope: z.string().optional(),
    exp: z.int().optional(),
    iat: z.int().optional(),
    latchkey: z.looseObject({ keyId: z.string(), apiId: z.string() }),
  }),
]);

/**
 * `POST /oauth/introspect`: whether a key, or an access token of it, could be verified now. What the caller may not verify is
 * inactive, as is everything else that is not valid, with the same answer.
 */
export const introspect = metered("oauth.introspect", {
  summary: "Introspect a token",
  description: "Says whether a key or an access token is active.",
  repeatable: true,
  permissions: ["apis.{apiId}.verify_key"],
  input: z.strictObject({
    token: asSecret(text(1)),
    clientId: z.string().optional().describe("The id of the root key, from a client that sends one."),
    clientIp: z
      .union([z.ipv4(), z.ipv6()], { error: "must be an IPv4 or an IPv6 address" })
      .optional()
      .describe("The address of the end user, for lists of allowed addresses."),
  }),
  output,
  problems: [],
  examples: [],
}).handle(async ({ token, clientId, clientIp }, services, { principal, workspaceId, fail, ...context }) => {
  if (principal === null) return fail("authentication_missing");
  if (clientId !== undefined && clientId !== principal.rootKeyId) {
    throw new Problem(
      "authentication_failed",
      "The client id is not the id of this root key, which begins with `rk_`.",
    );
  }
  const { verification, oauth } = services;
  const { address, requestId, now, startedAt } = context;
  const asked = {
    address: clientIp ?? address,
    requestId,
    now,
    startedAt,
    workspaceId,
    principal,
    credits: { cost: 0 },
  };
  const claims = token.length <= TOKEN_LENGTH_MAX ? await oauth.tokens?.read(workspaceId, token, now) : null;
  if (claims === null) return INACTIVE;
  if (claims !== undefined) {
    const { sub: keyId, scope, aud, iss, jti, iat, exp } = claims;
    const place = await oauth.facts.place(workspaceId, keyId);
    const key = place && (await verification.inspect({ ...asked, key: keyId }, { place, keyId }));
    if (!key) return INACTIVE;
    const held = scope?.split(" ").filter((one) => holds(key.permissions, one));
    return JSON.stringify({
      ...activeKey(key, held ?? []),
      exp,
      iat,
      iss,
      aud,
      jti,
      token_type: "Bearer",
      ...ofKey(key),
    });
  }
  if (token.length > KEY_LENGTH_MAX) return INACTIVE;
  return introspectKey({ ...asked, key: token }, services);
});

function introspectKey(
  asked: VerificationRequest,
  { verification, oauth, clock }: Pick<Services, "verification" | "oauth" | "clock">,
): Promise<string> {
  return readUntilCurrent(clock, asked, async (request) => {
    const key = await verification.inspect(request);
    if (key === null) return INACTIVE;
    const isCurrent = verification.watch(key, request);
    const createdAt = await oauth.facts.createdAt(key);
    if (!isCurrent(clock.now())) return undefined;
    return JSON.stringify({
      ...activeKey(key, [...key.permissions.slugs]),
      exp: key.expiresAt === null ? undefined : Math.floor(key.expiresAt / 1_000),
      iat: createdAt === undefined ? undefined : Math.floor(createdAt / 1_000),
      ...ofKey(key),
    });
  });
}

function activeKey({ keyId }: KeyRecord, scope: readonly string[]) {
  return { active: true, sub: keyId, client_id: keyId, ...(scope.length > 0 && { scope: scope.join(" ") }) };
}

/** The member that is ours: what a verification answers about the key. */
function ofKey(key: KeyRecord) {
  return { latchkey: JSON.parse(`{${key.members}}`) as object };
}
