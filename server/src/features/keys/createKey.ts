import { z } from "zod";
import { HASH_VERSION, hashSecret } from "../../../../engine/src/crypto/hash.ts";
import { newId } from "../../../../engine/src/random/random.ts";
import { formatKey } from "../../../../engine/src/rules/key-string.ts";
import { mutation } from "../../platform/rpc/operation.ts";
import { jsonColumn } from "../../platform/vocabulary/columns.ts";
import { exampleKey, exampleKeyInput, exampleSecret } from "../../platform/vocabulary/examples.ts";
import {
  ApiId,
  asSecret,
  BYTE_LENGTH_DEFAULT,
  ByteLength,
  concurrency,
  Expires,
  ExternalId,
  KEY_META_BYTES_MAX,
  KeyAllowedIps,
  KeyName,
  meta,
  PERMISSIONS_PER_KEY_MAX,
  Prefix,
  ROLES_PER_KEY_MAX,
  ratelimits,
  slug,
  text,
} from "../../platform/vocabulary/schema.ts";
import { policyOf } from "../apis/record.ts";
import { ApiWriter } from "../apis/statements.ts";
import { assignBudgets } from "../budgets/assign.ts";
import { AssignedBudget } from "../budgets/record.ts";
import { CreditsCreate, OLDER_PROGRAMS, refillColumns, refillError } from "../credits/record.ts";
import { BalanceWriter } from "../credits/statements/balances.ts";
import { SlotWriter } from "../credits/statements/slots.ts";
import { acceptConcurrency, concurrencyColumn } from "../holds/concurrency.ts";
import { IdentityWriter } from "../identities/statements.ts";
import { idsOf } from "../permissions/ensure.ts";
import { PermissionWriter } from "../permissions/statements/permissions.ts";
import { choosePlan } from "../plans/assign.ts";
import { AssignedPlan } from "../plans/record.ts";
import { PlanWriter } from "../plans/statements/plans.ts";
import { acceptShadow } from "../ratelimits/shadow.ts";
import { RatelimitWriter } from "../ratelimits/statements/ratelimits.ts";
import { acceptAllowedIps } from "./allowed-ips.ts";
import { setRolesByNames } from "./permissions-and-roles.ts";
import { settleCredits } from "./plan-credits.ts";
import { expiryFault, expiryOfNew, LIMIT_MISSING, prefixFault, requireNone } from "./policy.ts";
import { VAULT_MISSING } from "./record.ts";
import { KeyGrantWriter } from "./statements/key-grants.ts";
import { KeyPolicyReader } from "./statements/key-policy.ts";
import { KeyWriter } from "./statements/keys.ts";

export const createKey = mutation("keys.createKey", {
  summary: "Create a key",
  description:
    "Only this response contains the key string: the service stores a hash of it. " +
    "Permissions and an identity that do not exist yet are created. Roles must exist. The key must obey the `policy` of its API.",
  idempotent: true,
  issues: ({ keyId }) => keyId,
  permissions: [
    "apis.{apiId}.create_key",
    "apis.{apiId}.encrypt_key",
    "budgets.{budgetId}.assign_budget",
    "plans.{planId}.assign_plan",
  ],
  input: z.strictObject({
    apiId: ApiId,
    prefix: Prefix.optional(),
    name: KeyName.optional(),
    byteLength: ByteLength.optional(),
    externalId: ExternalId.optional(),
    meta: meta(KEY_META_BYTES_MAX).optional(),
    roles: z.array(text(1, 100)).max(ROLES_PER_KEY_MAX).optional().describe("Names of existing roles."),
    permissions: z
      .array(slug(1, 100))
      .max(PERMISSIONS_PER_KEY_MAX)
      .optional()
      .describe("Slugs. `documents.*` grants every permission that begins with `documents.`."),
    expires: Expires.optional(),
    credits: CreditsCreate.optional().describe("A balance of credits. Omitted: unlimited."),
    budgetId: AssignedBudget.optional(),
    plan: AssignedPlan.optional(),
    ratelimits: ratelimits.optional(),
    concurrency: concurrency.optional(),
    allowedIps: KeyAllowedIps.optional(),
    enabled: z.boolean().default(true),
    recoverable: z
      .boolean()
      .default(false)
      .describe("Whether `keys.getKey` can return the key string. It is then stored encrypted."),
  }),
  output: z.strictObject({
    keyId: z.string(),
    key: asSecret(z.string()).describe("The key string. Give it to your user and do not store it."),
  }),
  problems: ["api_not_found", "budget_not_found", "plan_not_found", "role_not_found", "precondition_failed"],
  examples: [
    {
      summary: "Create a key with all fields",
      input: exampleKeyInput,
      output: { keyId: exampleKey.keyId, key: exampleSecret },
    },
    {
      summary: "Create a key",
      input: { apiId: exampleKey.apiId },
      output: { keyId: "key_IXIyFsB89IXl4uYc", key: "3kAqEg4u4qMxCGFAVMuGsb3cijGp" },
    },
    {
      summary: "A role that does not exist",
      input: { apiId: exampleKey.apiId, roles: ["reader"] },
      problem: "role_not_found",
      detail: "Role 'reader' was not found.",
    },
    {
      summary: "A refill without a balance",
      input: { apiId: exampleKey.apiId, credits: { remaining: null, refill: { interval: "daily", amount: 100 } } },
      problem: "invalid_input",
      detail: "A refill needs a balance: set credits.remaining to a number, or leave credits.refill out.",
    },
  ],
}).handle(async (input, context) => {
  const { store, vault, principal, random, secrets, now, invalidate, audit, fail } = context;
  // Without the permission the answer is the same as for an API that does not exist.
  const api = await store.of(ApiWriter).find(input.apiId);
  const notFound = () => fail("api_not_found", "The specified API was not found.");
  if (!api || !principal.may(`apis.${input.apiId}.create_key`)) return notFound();
  if (input.recoverable) {
    if (!vault.isOpen) return fail("precondition_failed", VAULT_MISSING);
    if (!principal.may(`apis.${input.apiId}.encrypt_key`)) return notFound();
  }
  const invalid = refillError(input.credits?.refill, input.credits?.remaining === null);
  if (invalid) return fail("invalid_input", invalid);

  const policy = policyOf(api);
  const expiresAt = expiryOfNew(policy, input.expires, now);
  requireNone(expiryFault(policy, expiresAt, now) ?? prefixFault(policy, input.prefix, api.prefix));

  const budgetId = input.budgetId ?? null;
  await assignBudgets([{ former: null, next: budgetId }], context);
  const plan = await choosePlan("key", null, input.plan ?? null, context);
  await acceptConcurrency(input.concurrency, context);
  await acceptShadow(input.ratelimits, context);
  await acceptAllowedIps(input.allowedIps, context);

  const id = newId(random, "key");
  const poolId = newId(random, "pool");
  const bytes = secrets(input.byteLength ?? api.byte_length ?? BYTE_LENGTH_DEFAULT);
  const { key, start } = formatKey(input.prefix ?? api.prefix, bytes);
  const hash = hashSecret(key);

  const identities = store.of(IdentityWriter);
  await store.of(KeyWriter).insert({
    id,
    api_id: api.id,
    identity_id: input.externalId === undefined ? null : await identities.ensure(input.externalId, random, now),
    budget_id: budgetId,
    concurrency: concurrencyColumn(input.concurrency),
    allowed_ips: jsonColumn(input.allowedIps),
    pool_id: poolId,
    hash,
    hash_version: HASH_VERSION,
    start,
    name: input.name ?? null,
    meta: jsonColumn(input.meta),
    enabled: input.enabled ? 1 : 0,
    recoverable: input.recoverable ? 1 : 0,
    expires_at: expiresAt,
    created_at: now,
  });
  if (plan) await store.of(PlanWriter).assign("key", poolId, plan.id);
  if (input.recoverable) await vault.save(id, key);
  if (input.roles) await setRolesByNames(store, id, input.roles, fail);
  if (input.permissions) {
    const { permissions } = await store.of(PermissionWriter).ensure(input.permissions, random, now);
    await store.of(KeyGrantWriter).permissions.set(id, idsOf(permissions));
  }
  if (input.ratelimits) await store.of(RatelimitWriter).replace({ key_id: id }, input.ratelimits, random, now);
  if (policy.limitsRequired && (await store.of(KeyPolicyReader).unlimited([id])).length > 0) {
    return fail("invalid_input", LIMIT_MISSING);
  }
  if (input.concurrency) await store.of(SlotWriter).insertAll([{ id: poolId, limits: input.concurrency }]);
  if (typeof input.credits?.remaining === "number") {
    const balances = store.of(BalanceWriter);
    if (!(await balances.accepts([input.credits.refill]))) return fail("precondition_failed", OLDER_PROGRAMS);
    await balances.put({
      pool_id: poolId,
      remaining: input.credits.remaining,
      ...refillColumns(input.credits.refill, now),
    });
  }
  const hasOwn = typeof input.credits?.remaining === "number";
  const granted = plan && !hasOwn ? await settleCredits(poolId, undefined, { planId: plan.id }, context) : undefined;
  invalidate.keyHash(hash);
  const { name, externalId, allowedIps } = input;
  const expires = expiresAt ?? undefined;
  audit(
    [id, api.id],
    {
      name,
      start,
      budgetId: input.budgetId,
      plan: plan?.name,
      ...(granted && { granted }),
      allowedIps,
      ...(input.credits?.remaining != null && { credits: input.credits }),
    },
    [{ type: "key.created", objectId: id, data: { keyId: id, apiId: api.id, externalId, name, start, expires } }],
  );
  return { keyId: id, key };
});
