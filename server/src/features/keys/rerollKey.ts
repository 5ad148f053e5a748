import { z } from "zod";
import { HASH_VERSION, hashSecret } from "../../../../engine/src/crypto/hash.ts";
import { newId } from "../../../../engine/src/random/random.ts";
import { endAfterReroll } from "../../../../engine/src/rules/expiry.ts";
import { formatKey } from "../../../../engine/src/rules/key-string.ts";
import { mutation } from "../../platform/rpc/operation.ts";
import { exampleKey } from "../../platform/vocabulary/examples.ts";
import { asSecret, BYTE_LENGTH_DEFAULT, duration, EXPIRES_MAX, KeyId } from "../../platform/vocabulary/schema.ts";
import { policyOf } from "../apis/record.ts";
import { PlanWriter } from "../plans/statements/plans.ts";
import { RatelimitWriter } from "../ratelimits/statements/ratelimits.ts";
import { keyInEvents, lockKey } from "./lock-key.ts";
import { latestExpiry, successorPrefix, UNLIMITED_KEY } from "./policy.ts";
import { VAULT_MISSING } from "./record.ts";
import { KeyGrantWriter } from "./statements/key-grants.ts";
import { KeyPolicyReader } from "./statements/key-policy.ts";
import { KeyWriter } from "./statements/keys.ts";

export const rerollKey = mutation("keys.rerollKey", {
  summary: "Reroll a key",
  description:
    "Creates a key with a new key string and the settings of the old key. The old key expires after `expiration` " +
    "milliseconds, rounded up to a whole minute, and is deleted when the retention of deleted keys has passed since. With " +
    "0 it expires at once; with null its expiry does not change, and it is not deleted. All " +
    "keys of a reroll chain share one balance, one refill, the counters of their limits and the slots of their concurrency, so " +
    "a reroll adds neither credits nor calls. If the API has a `policy`, the new key obeys it: it expires at the latest when that " +
    "allows.",
  idempotent: true,
  issues: ({ keyId }) => keyId,
  permissions: ["apis.{apiId}.create_key", "apis.{apiId}.encrypt_key"],
  input: z.object({
    keyId: KeyId,
    expiration: duration(0, EXPIRES_MAX)
      .nullable()
      .describe("How long the old key stays valid, in milliseconds. Null: its expiry does not change."),
  }),
  output: z.strictObject({ keyId: z.string(), key: asSecret(z.string()).describe("The new key string.") }),
  problems: ["key_not_found", "precondition_failed"],
  examples: [
    {
      summary: "The old key stays valid for one hour",
      input: { keyId: exampleKey.keyId, expiration: 3_600_000 },
      output: { keyId: "key_QTIcZYvlHwCbY0lS", key: "prod_SDAXARq12cs83g35gHv6gL62LEDA" },
    },
  ],
}).handle(async ({ keyId, expiration }, context) => {
  const { store, vault, principal, random, secrets, now, invalidate, audit, fail } = context;
  const old = await lockKey(keyId, "create_key", context);
  if (old.recoverable === 1) {
    if (!vault.isOpen) return fail("precondition_failed", VAULT_MISSING);
    principal.authorize(`apis.${old.api_id}.encrypt_key`);
  }

  const policy = policyOf({ policy: old.api_policy });
  const latest = latestExpiry(policy, now);
  const expires =
    old.expires_at === null && latest === Number.POSITIVE_INFINITY ? null : Math.min(old.expires_at ?? latest, latest);

  const id = newId(random, "key");
  const { key, start } = formatKey(
    successorPrefix(policy, old.start, old.api_prefix),
    secrets(old.api_byte_length ?? BYTE_LENGTH_DEFAULT),
  );
  const hash = hashSecret(key);
  const keys = store.of(KeyWriter);
  await keys.insert({
    id,
    api_id: old.api_id,
    identity_id: old.identity_id,
    budget_id: old.budget_id,
    concurrency: old.concurrency,
    allowed_ips: old.allowed_ips,
    pool_id: old.pool_id,
    hash,
    hash_version: HASH_VERSION,
    start,
    name: old.name,
    meta: old.meta,
    enabled: old.enabled,
    recoverable: old.recoverable,
    expires_at: expires,
    created_at: now,
  });
  await store.of(KeyGrantWriter).copy(keyId, id);
  // Until then, no other change can take away the plan that it shares with the old key.
  if (policy.limitsRequired) await store.of(PlanWriter).lockPlanId(old.pool_id);
  const limits = old.ratelimits.map((limit) => ({
    ...limit,
    autoApply: limit.auto_apply === 1,
    shadow: limit.shadow === 1,
  }));
  await store.of(RatelimitWriter).replace({ key_id: id }, limits, random, now);
  if (policy.limitsRequired && (await store.of(KeyPolicyReader).unlimited([id])).length > 0) {
    return fail("precondition_failed", UNLIMITED_KEY);
  }
  if (old.recoverable === 1) await vault.save(id, key);

  const expiresAt = expiration === null ? old.expires_at : endAfterReroll(now, expiration, old.expires_at, EXPIRES_MAX);
  if (expiration !== null) {
    await keys.update(keyId, { expires_at: expiresAt, updated_at: now, deleted_once_expired: 1 });
  }

  invalidate.key(keyId);
  invalidate.keyHash(hash);
  const { name } = old;
  const settings = { ...(name !== null && { name }), ...(expires !== null && { expires }) };
  audit([keyId, id, old.api_id], { expiresAt, start }, [
    { type: "key.rerolled", objectId: keyId, data: { ...keyInEvents(old), newKeyId: id, expires: expiresAt } },
    {
      type: "key.created",
      objectId: id,
      data: { ...keyInEvents({ ...old, id }), ...settings, start, rerolledFrom: keyId },
    },
  ]);
  return { keyId: id, key };
});
