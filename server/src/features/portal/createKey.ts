import { z } from "zod";
import type { MutationContext } from "../../platform/rpc/operation.ts";
import { asSecret, duration, EXPIRES_MAX, KeyName, Prefix, text } from "../../platform/vocabulary/schema.ts";
import { type KeyPolicy, policyOf } from "../apis/record.ts";
import { ApiWriter } from "../apis/statements.ts";
import type { DatabaseServices } from "../database-services.ts";
import { IdentityWriter } from "../identities/statements.ts";
import { createKey as create } from "../keys/createKey.ts";
import { KeyPolicyReader } from "../keys/statements/key-policy.ts";
import { limitedMutation } from "../services.ts";
import { admitOwnersKey, callerWith, countForOwner, countOwnKeys } from "./caller.ts";
import { PORTAL } from "./portal-caller.ts";

const MINUTE = 60_000;

export const createKey = limitedMutation("portal.createKey", {
  audience: PORTAL,
  summary: "Create a key of the owner",
  description: "",
  permissions: ["apis.{apiId}.create_key"],
  input: z.strictObject({
    name: KeyName.optional(),
    prefix: Prefix.optional().describe("One of the prefixes of the session. Omitted: the first, or that of the API."),
    expiresIn: duration(MINUTE, EXPIRES_MAX)
      .optional()
      .describe("Life of the key in milliseconds. Omitted: the longest that the session allows."),
    roles: z.array(text(1, 100)).max(20).optional().describe("Some roles of the session. Omitted: all of them."),
  }),
  output: z.strictObject({ keyId: z.string(), key: asSecret(z.string()) }),
  problems: ["api_not_found", "role_not_found", "precondition_failed", "maximum_reached"],
  examples: [],
})
  .admit(admitOwnersKey)
  .handle(async ({ name, prefix, expiresIn, roles }, context, services: DatabaseServices) => {
    const { store, principal, now, fail } = context;
    const caller = callerWith("create", principal);
    const { apiId, identityId, externalId, terms } = caller;
    const { max, prefixes, expiresInMax, roles: allowed } = terms.keys;
    if (prefix !== undefined && prefixes?.includes(prefix) !== true) {
      return fail("invalid_input", "`prefix` is not one of the prefixes of this session.");
    }
    if (expiresInMax !== null && expiresIn !== undefined && expiresIn > expiresInMax) {
      return fail("invalid_input", `\`expiresIn\` is longer than the ${expiresInMax} milliseconds of this session.`);
    }
    if (roles?.some((role) => !allowed.includes(role))) {
      return fail("invalid_input", "`roles` has a role that this session does not allow.");
    }
    // Locks the owner, so that calls at the same time cannot exceed the maximum.
    await store.of(IdentityWriter).lock(identityId);
    if ((await countOwnKeys(caller, store, now)) >= max) {
      return fail("maximum_reached", `There are ${max} keys already, which is the maximum. Delete one first.`);
    }
    const policy = policyOf(await store.of(ApiWriter).find(apiId));
    if (policy.limitsRequired && !(await store.of(KeyPolicyReader).identityHasLimit("id", identityId))) {
      return fail(
        "precondition_failed",
        "Keys of this API need a limit, and none is set for you. Ask its operator for one.",
      );
    }
    const longest = policy.expiry?.max ?? Number.POSITIVE_INFINITY;
    if (expiresIn !== undefined && expiresIn > longest) {
      return fail("invalid_input", `\`expiresIn\` is longer than the ${longest} milliseconds that this API allows.`);
    }
    const life = expiresIn ?? usualLife(expiresInMax, policy);
    const input = {
      apiId,
      externalId,
      name,
      enabled: true,
      recoverable: false,
      prefix: prefix ?? (policy.prefixFixed ? undefined : prefixes?.[0]),
      roles: [...(roles ?? allowed)],
      ...(life !== null && { expires: Math.min(now + life, EXPIRES_MAX) }),
    };
    // It fails for reasons of its own, which this operation declares too as far as an owner can meet them.
    const inner: MutationContext<never> = context;
    const made = (await create.handle(input, inner)) as { keyId: string; key: string };
    await countForOwner(made.keyId, caller, context, services);
    return made;
  });

/** The life of a key for which the owner names none: the longest that the session and the policy of the API allow. */
function usualLife(longestOfSession: number | null, { expiry }: KeyPolicy): number | null {
  if (longestOfSession === null) return expiry?.default ?? expiry?.max ?? null;
  return Math.min(longestOfSession, expiry?.max ?? longestOfSession);
}
