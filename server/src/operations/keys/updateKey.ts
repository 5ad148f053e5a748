import { z } from "zod";
import { mutation } from "../../rpc/operation.ts";
import { exampleKey } from "../examples.ts";
import { idsOf } from "../permissions/ensure.ts";
import {
  Empty,
  Expires,
  ExternalId,
  KEY_META_BYTES_MAX,
  KeyId,
  meta,
  Name,
  PERMISSIONS_PER_KEY_MAX,
  ROLES_PER_KEY_MAX,
  ratelimits,
  slug,
  text,
} from "../schema.ts";
import { assignRoles } from "./assign.ts";
import { CreditsUpdate, refillColumns, refillMistake } from "./credits.ts";

export const updateKey = mutation("keys.updateKey", {
  summary: "Change a key",
  description:
    "What is omitted stays as it is; what is null is removed; lists and `meta` are replaced as a whole. " +
    "The next verification sees the change.",
  permissions: ["apis.{apiId}.update_key"],
  input: z.strictObject({
    keyId: KeyId,
    name: Name.nullish(),
    externalId: ExternalId.nullish().describe("Null unlinks the key from its identity, which stays."),
    meta: meta(KEY_META_BYTES_MAX).nullish(),
    expires: Expires.nullish().describe("Null makes the key permanent."),
    credits: CreditsUpdate.nullish().describe("Null makes usage unlimited."),
    ratelimits: ratelimits.nullish().describe("All limits of the key. A name that was there keeps its id."),
    enabled: z.boolean().optional(),
    roles: z.array(text(1, 100)).max(ROLES_PER_KEY_MAX).optional(),
    permissions: z.array(slug(3, 100)).max(PERMISSIONS_PER_KEY_MAX).optional(),
  }),
  output: Empty,
  problems: ["key_not_found", "role_not_found"],
  examples: [
    { summary: "Disable a key", input: { keyId: exampleKey.keyId, enabled: false }, output: {} },
    {
      summary: "Make a key permanent and unlimited, and rename it",
      input: { keyId: exampleKey.keyId, name: "Acme, staging", expires: null, credits: null },
      output: {},
    },
    { summary: "A key that is not there", input: { keyId: "key_IXIyFsB89IXl4uYc" }, problem: "key_not_found" },
  ],
}).handle(async (input, { store, principal, random, now, invalidate, audit, fail }) => {
  const { keyId, credits } = input;
  const key = await store.keys.findForUpdate(keyId);
  if (!key) return fail("key_not_found");
  principal.authorize(`apis.${key.api_id}.update_key`);
  const balance = credits === undefined ? undefined : await store.balances.findForUpdate(key.pool_id, random, now);
  const unlimited = credits?.remaining === null || (credits?.remaining === undefined && !balance);
  const mistake = refillMistake(credits?.refill, unlimited);
  if (mistake) return fail("invalid_input", mistake);

  const { keyId: _, ...given } = input;
  const changed = Object.keys(given);
  if (changed.length === 0) return {};

  await store.keys.update(keyId, {
    updated_at: now,
    ...(input.name !== undefined && { name: input.name }),
    ...(input.meta !== undefined && { meta: input.meta && JSON.stringify(input.meta) }),
    ...(input.expires !== undefined && { expires_at: input.expires }),
    ...(input.enabled !== undefined && { enabled: input.enabled ? 1 : 0 }),
    ...(input.externalId !== undefined && {
      identity_id: input.externalId && (await store.identities.ensure(input.externalId, random, now)),
    }),
  });
  if (input.roles) await assignRoles(store, keyId, input.roles, fail);
  if (input.permissions) {
    const { permissions } = await store.permissions.ensure(input.permissions, random, now);
    await store.keyGrants.setPermissions(keyId, idsOf(permissions));
  }
  if (input.ratelimits !== undefined) {
    await store.ratelimits.replace({ key_id: keyId }, input.ratelimits ?? [], random, now);
  }
  if (credits === null || credits?.remaining === null) await store.balances.remove(key.pool_id);
  else if (credits && (credits.remaining !== undefined || (balance && credits.refill !== undefined))) {
    await store.balances.put({
      ...refillColumns(null, now),
      ...balance,
      pool_id: key.pool_id,
      // Without a balance one is given; that there is no refill to remove from an unlimited key is no mistake.
      remaining: credits.remaining ?? balance!.remaining,
      ...(credits.refill !== undefined && refillColumns(credits.refill, now)),
    });
  }
  // Keys that this one was rerolled from or into share the balance.
  invalidate.key(keyId);
  invalidate.pool(key.pool_id);
  audit([keyId, key.api_id], { changed });
  return {};
});
