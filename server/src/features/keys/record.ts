import { z } from "zod";
import { identityRecord, ratelimitRecord } from "../../../../engine/src/directory/records.ts";
import type { DirectoryIdentity } from "../../../../engine/src/directory/stored.ts";
import type { StoredBalance } from "../../../../engine/src/rules/refill.ts";
import { type ConcurrencyLimit, concurrencyOf, slotsId } from "../../../../engine/src/rules/slots.ts";
import type { IdentityRow } from "../../platform/store/schema.ts";
import { asSecret, ConcurrencyOutput, RatelimitOutput } from "../../platform/vocabulary/schema.ts";
import { CreditsOutput, CreditsState, toCreditsOutput } from "../credits/record.ts";
import type { SlotOwner, SlotsInUse } from "../credits/statements/slots.ts";
import type { StoredKey } from "./statements/stored-key.ts";

export const IdentityOutput = z
  .strictObject({
    id: z.string(),
    externalId: z.string().describe("Your own identifier."),
    meta: z.record(z.string(), z.unknown()),
    ratelimits: z.array(RatelimitOutput).describe("Limits that all keys of the identity share."),
    concurrency: z
      .array(ConcurrencyOutput)
      .optional()
      .describe("How many calls of all its keys together may run at once. Absent: any number."),
    budgetId: z.string().optional().describe("The budget that verifications of all its keys spend from too."),
    plan: z.string().optional().describe("The name of its plan, whose limits and budget all its keys share."),
    budget: CreditsState.extend({ budgetId: z.string(), held: z.int() })
      .optional()
      .describe("Only of `identities.getIdentity`: what is left of the budget that its plan gives it."),
  })
  .meta({ id: "Identity", description: "An owner of keys, such as a user or an organization." });

/** A key as `keys.getKey`, `keys.whoami` and `apis.listKeys` return it. */
export const KeyOutput = z
  .strictObject({
    keyId: z.string(),
    apiId: z.string(),
    start: z
      .string()
      .describe("The readable beginning of the key string. Empty for an imported key until its first verification."),
    enabled: z.boolean(),
    createdAt: z.int().describe("Unix time in milliseconds."),
    updatedAt: z.int().optional(),
    lastUsedAt: z.int().optional().describe("Time of a recent verification, Unix time in milliseconds."),
    leakedAt: z
      .int()
      .optional()
      .describe("When the key was first reported as leaked, Unix time in milliseconds. Absent: never."),
    deletedAt: z
      .int()
      .optional()
      .describe(
        "When the key was deleted, Unix time in milliseconds. Only `keys.getKey` and `apis.listKeys` with `deleted` return such keys.",
      ),
    name: z.string().optional(),
    meta: z.record(z.string(), z.unknown()).optional(),
    expires: z.int().optional().describe("Unix time in milliseconds. Absent: never."),
    permissions: z
      .array(z.string())
      .optional()
      .describe("Direct permissions and those of its roles, without duplicates."),
    roles: z.array(z.string()).optional(),
    credits: CreditsOutput.optional().describe("Absent: unlimited."),
    budgetId: z.string().optional().describe("The budget that its verifications spend from too."),
    plan: z.string().optional().describe("The name of its plan: see `plans.getPlan` for what that gives it."),
    identity: IdentityOutput.optional(),
    ratelimits: z.array(RatelimitOutput).optional().describe("The key's own limits."),
    concurrency: z
      .array(ConcurrencyOutput)
      .optional()
      .describe("How many calls of the key may run at once. Absent: any number."),
    allowedIps: z
      .array(z.string())
      .optional()
      .describe("Addresses and CIDRs that may use it. Absent: every address that its API allows."),
    plaintext: asSecret(z.string())
      .optional()
      .describe("The key string. Present if the key is recoverable and `decrypt` is true."),
  })
  .meta({ id: "Key", description: "A key. Fields without a value are omitted." });

/** An identity as the API returns it. `slots`: those in use, if the answer says how many are. */
export function toIdentityOutput(
  identity: DirectoryIdentity & Pick<IdentityRow, "budget_id">,
  slots?: SlotsInUse,
): z.input<typeof IdentityOutput> {
  const { id, budget_id: budgetId } = identity;
  const { concurrency, ...record } = identityRecord(identity);
  return {
    ...record,
    ...(concurrency && { concurrency: withUse(concurrency, id, slots) }),
    ...(budgetId !== null && { budgetId }),
  };
}

/** The slots of an identity. */
export function slotsOfIdentity({ id, concurrency }: Pick<IdentityRow, "id" | "concurrency">): SlotOwner {
  return { id, limits: concurrencyOf(concurrency) };
}

/** The slots that calls of a key take: of its pool, and of its identity. */
export function slotsOfKey({ pool_id, concurrency, identity }: StoredKey): SlotOwner[] {
  return [
    { id: pool_id, limits: concurrencyOf(concurrency) },
    ...(identity === null ? [] : [slotsOfIdentity(identity)]),
  ];
}

function withUse(
  limits: readonly ConcurrencyLimit[],
  ownerId: string,
  slots: SlotsInUse | undefined,
): z.input<typeof ConcurrencyOutput>[] {
  return limits.map(({ name, limit }) => ({
    name,
    limit,
    ...(slots && { inUse: slots.get(slotsId(ownerId, name)) ?? 0 }),
  }));
}

/** The error detail of a call that needs the vault when the service has no master key. */
export const VAULT_MISSING = "Vault hasn't been set up: give the service a master key with LATCHKEY_VAULT_KEY.";

/** What is known of a key besides its rows. */
interface MoreOfKey {
  /** Those of `KeyReader.creditsOf`. */
  readonly credits: StoredBalance | undefined;
  readonly plaintext?: string | undefined;
  /** The slots in use, if the answer says how many are. */
  readonly slots?: SlotsInUse;
}

export function toKeyOutput(key: StoredKey, { credits, plaintext, slots }: MoreOfKey): z.input<typeof KeyOutput> {
  const concurrency = concurrencyOf(key.concurrency);
  const meta = key.meta === null ? {} : (JSON.parse(key.meta) as Record<string, unknown>);
  return {
    keyId: key.id,
    apiId: key.api_id,
    start: key.start,
    enabled: key.enabled === 1,
    createdAt: key.created_at,
    ...(key.updated_at !== null && { updatedAt: key.updated_at }),
    ...(key.last_used_at !== null && { lastUsedAt: key.last_used_at }),
    ...(key.leaked_at !== null && { leakedAt: key.leaked_at }),
    ...(key.deleted_at !== null && { deletedAt: key.deleted_at }),
    ...(key.name !== null && { name: key.name }),
    ...(Object.keys(meta).length > 0 && { meta }),
    ...(key.expires_at !== null && { expires: key.expires_at }),
    ...(key.permissions.length > 0 && { permissions: key.permissions }),
    ...(key.roles.length > 0 && { roles: key.roles }),
    ...(credits && { credits: toCreditsOutput(credits) }),
    ...(key.budget_id !== null && { budgetId: key.budget_id }),
    ...(key.plan && { plan: key.plan.name }),
    ...(key.identity && { identity: toIdentityOutput(key.identity, slots) }),
    ...(key.ratelimits.length > 0 && { ratelimits: key.ratelimits.map(ratelimitRecord) }),
    ...(concurrency.length > 0 && { concurrency: withUse(concurrency, key.pool_id, slots) }),
    ...(key.allowed_ips !== null && { allowedIps: JSON.parse(key.allowed_ips) as string[] }),
    ...(plaintext !== undefined && { plaintext }),
  };
}
