import { z } from "zod";
import type { KeyRecord } from "../../../../engine/src/directory/records.ts";
import { holds, type Permissions } from "../../../../engine/src/rules/permissions.ts";
import type { MeteredContext } from "../../platform/rpc/operation.ts";
import { admitCall } from "../../platform/rpc/workspace-limit.ts";
import { asSecret, KEY_LENGTH_MAX, text } from "../../platform/vocabulary/schema.ts";
import { metered, type Services } from "../services.ts";

/** Tokens of one key per minute. */
export const TOKENS_PER_KEY = 60;
/** Tokens of all keys of a workspace per minute: each takes a signature. */
export const TOKENS_PER_WORKSPACE = 6_000;

/** Proxies read the headers of a request into buffers of 4 to 16 KiB, and the scope is in one. */
export const SCOPE_LENGTH_MAX = 2_048;

/** Of RFC 6749, section 5.2, and RFC 8707, section 2. */
export type TokenError = "invalid_client" | "unauthorized_client" | "invalid_scope" | "invalid_target";

const tokenInput = z.strictObject({
  workspaceId: z.string(),
  keyId: text(1),
  key: asSecret(text(1)),
  scope: text(1).optional(),
  resources: z.array(text(1)),
});

const output = z.union([
  z.strictObject({
    access_token: z.string(),
    token_type: z.literal("Bearer"),
    expires_in: z.int(),
    scope: z.string().optional(),
  }),
  z.strictObject({
    error: z.enum(["invalid_client", "unauthorized_client", "invalid_scope", "invalid_target"]),
    error_description: z.string(),
  }),
]);

/** `POST /oauth/token`: an access token for a key, by the grant of client credentials. */
export const issueToken = metered("oauth.issueToken", {
  summary: "Issue an access token",
  description: "Issues an access token for a key.",
  permissions: [],
  isPublic: true,
  input: tokenInput,
  output,
  problems: [],
  examples: [],
}).handle(issue);

async function issue(
  input: z.output<typeof tokenInput>,
  services: Services,
  context: MeteredContext<never>,
): Promise<string> {
  const { verification, oauth, limiter, clock } = services;
  const { address, requestId, now, startedAt, fail } = context;
  const { tokens } = oauth;
  // Without it there is no route that leads here.
  if (tokens === undefined) return fail("invalid_input", "This service issues no access tokens.");
  const { workspaceId, keyId, key: secret, scope, resources } = input;
  const asked = { key: secret, workspaceId, principal: null, address, requestId, now, startedAt, credits: { cost: 0 } };
  const key = secret.length <= KEY_LENGTH_MAX ? await verification.inspect(asked, { keyId }) : null;
  if (key === null || isAboutToExpire(key, now)) return rejection("invalid_client", "The key is not valid.");
  const isCurrent = verification.watch(key, asked);
  await admitTokens(key, limiter);
  const audience = audienceOf(resources, await oauth.resources({ workspaceId, apiId: key.apiId }));
  if ("error" in audience) return rejection(audience.error, audience.detail);
  const granted = grantedScope(scope, key.permissions);
  if (granted === undefined) {
    const detail = scope === undefined ? "The key has too many permissions for a token: name a scope." : BEYOND;
    return rejection("invalid_scope", detail);
  }
  const text = granted.length > 0 ? granted.join(" ") : undefined;
  const issued = await oauth.issuing.run(workspaceId, async () =>
    isCurrent(clock.now()) ? tokens.issue(key, { audience: audience.resources, scope: text }, now) : undefined,
  );
  // The key changed during one of the waits. Each attempt counts against its limit of tokens.
  if (issued === undefined) {
    return issue(input, services, { ...context, now: clock.now(), startedAt: clock.monotonic() });
  }
  return JSON.stringify({
    access_token: issued.token,
    token_type: "Bearer",
    expires_in: issued.expiresIn,
    scope: text,
  });
}

const BEYOND = "The scope is not within the permissions of the key.";

/** Whether a token of this key would have ended already: its times are in seconds. */
function isAboutToExpire({ expiresAt }: KeyRecord, now: number): boolean {
  return expiresAt !== null && Math.floor(expiresAt / 1_000) <= Math.floor(now / 1_000);
}

/** Tokens of derived keys count for the key at the top. */
async function admitTokens(
  { top: { keyId }, workspaceId: owner }: KeyRecord,
  limiter: Services["limiter"],
): Promise<void> {
  const ofKey = { counter: `t\0${keyId}`, limit: TOKENS_PER_KEY, owner };
  const advice = `A key gets ${TOKENS_PER_KEY} access tokens per minute. Use one until it expires.`;
  await admitCall(ofKey, "key-tokens", advice, limiter);
  const ofAll = { counter: `t\0${owner}`, limit: TOKENS_PER_WORKSPACE, owner };
  await admitCall(ofAll, "tokens", `A workspace gets ${TOKENS_PER_WORKSPACE} access tokens per minute.`, limiter);
}

/** The audience of a token: RFC 8707, section 2, and RFC 9068, section 3. */
function audienceOf(
  asked: readonly string[],
  allowed: readonly string[],
): { resources: readonly string[] } | { error: TokenError; detail: string } {
  if (allowed.length === 0) {
    return {
      error: "unauthorized_client",
      detail: "The API of the key has no `resources`, so its keys get no tokens.",
    };
  }
  if (asked.some((one) => !allowed.includes(one))) {
    return { error: "invalid_target", detail: "The API of the key does not have this resource." };
  }
  if (asked.length > 0) return { resources: [...new Set(asked)] };
  if (allowed.length === 1) return { resources: allowed };
  return { error: "invalid_target", detail: "The API of the key has several resources: name one with `resource`." };
}

/** The scope that a token gets; undefined if the key does not have it, or it is too long. */
function grantedScope(asked: string | undefined, permissions: Permissions): readonly string[] | undefined {
  const scope = asked === undefined ? [...permissions.slugs] : [...new Set(asked.split(" "))];
  const length = scope.reduce((sum, one) => sum + one.length + 1, 0);
  if (length > SCOPE_LENGTH_MAX || !scope.every((one) => holds(permissions, one))) return undefined;
  return scope;
}

function rejection(error: TokenError, detail: string): string {
  return JSON.stringify({ error, error_description: detail });
}
