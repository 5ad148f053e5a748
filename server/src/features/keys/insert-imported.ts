import { z } from "zod";
import { newIds } from "../../../../engine/src/random/random.ts";
import type { MutationContext } from "../../platform/rpc/operation.ts";
import { fold } from "../../platform/store/search.ts";
import { jsonColumn } from "../../platform/vocabulary/columns.ts";
import {
  concurrency,
  Expires,
  KEY_META_BYTES_MAX,
  KeyAllowedIps,
  KeyName,
  meta,
  PERMISSIONS_PER_KEY_MAX,
  ROLES_PER_KEY_MAX,
  ratelimits,
  slug,
  text,
} from "../../platform/vocabulary/schema.ts";
import type { KeyPolicy } from "../apis/record.ts";
import { CreditsCreate, refillColumns } from "../credits/record.ts";
import { BalanceWriter } from "../credits/statements/balances.ts";
import { SlotWriter } from "../credits/statements/slots.ts";
import { concurrencyColumn } from "../holds/concurrency.ts";
import { IdentityWriter } from "../identities/statements.ts";
import { PermissionWriter } from "../permissions/statements/permissions.ts";
import { RoleWriter } from "../permissions/statements/roles.ts";
import { PlanReference } from "../plans/record.ts";
import { PlanWriter } from "../plans/statements/plans.ts";
import { RatelimitWriter } from "../ratelimits/statements/ratelimits.ts";
import { expiryOfNew } from "./policy.ts";
import { KeyGrantWriter } from "./statements/key-grants.ts";
import { KeyWriter } from "./statements/keys.ts";

/** The members of a key of another system that it keeps. */
export const importedMembers = {
  name: KeyName.optional(),
  externalId: text(1, 255).optional().describe("Your own identifier of the owner of the key."),
  meta: meta(KEY_META_BYTES_MAX).optional(),
  roles: z
    .array(text(1, 128))
    .max(ROLES_PER_KEY_MAX)
    .optional()
    .describe("Names. Roles that do not exist yet are created."),
  permissions: z
    .array(slug(1, 128))
    .max(PERMISSIONS_PER_KEY_MAX)
    .optional()
    .describe("Slugs. Permissions that do not exist yet are created."),
  expires: Expires.optional(),
  enabled: z.boolean().default(true),
  credits: CreditsCreate.optional().describe("A balance of credits. Omitted: unlimited."),
  ratelimits: ratelimits.optional(),
  concurrency: concurrency.optional(),
  allowedIps: KeyAllowedIps.optional(),
  plan: PlanReference.optional().describe("The name of its plan, or its id."),
};

const ImportedAttributes = z.strictObject(importedMembers);
export type ImportedAttributes = z.output<typeof ImportedAttributes>;

/** How the keys of one import are stored. */
export interface ImportPlan<Key> {
  apiId: string;
  /** That of the API, for keys without an expiry. */
  policy: KeyPolicy;
  hashVersion: number;
  migrationId: string | null;
  /** The beginning of the key string; empty if it is unknown. */
  startOf(key: Key): string;
  /** The id of the plan of a key, which the caller may assign; null: none. */
  planOf(key: Key): string | null;
  /** The budget of a key, which the caller may assign; null: none. */
  budgetOf(key: Key): string | null;
}

/**
 * Inserts keys of another system by their hashes, with what they need: identities, roles and permissions. Returns each key
 * with its id, or null if a key with its hash exists.
 */
export async function insertImported<Key extends ImportedAttributes>(
  keys: readonly { key: Key; hash: string }[],
  { apiId, policy, hashVersion, migrationId, startOf, planOf, budgetOf }: ImportPlan<Key>,
  { store, random, now }: Pick<MutationContext<never>, "store" | "random" | "now">,
): Promise<{ key: Key; keyId: string | null }[]> {
  // Identities, roles and permissions before keys, always in this order: otherwise two imports that create the same
  // ones could deadlock.
  const allOf = (field: (key: Key) => readonly string[] | undefined) => keys.flatMap(({ key }) => field(key) ?? []);
  const identityIds = await store.of(IdentityWriter).ensureAll(
    allOf(({ externalId }) => (externalId === undefined ? [] : [externalId])),
    random,
    now,
  );
  const roles = await store.of(RoleWriter).ensure(
    allOf((key) => key.roles),
    random,
    now,
  );
  const { permissions } = await store.of(PermissionWriter).ensure(
    allOf((key) => key.permissions),
    random,
    now,
  );
  const roleIds = new Map(roles.map(({ id, name_folded }) => [name_folded, id]));
  const permissionIds = new Map(permissions.map(({ id, slug }) => [fold(slug), id]));

  const keyIds = newIds(random, "key", keys.length);
  const poolIds = newIds(random, "pool", keys.length);
  const rows = keys.map(({ key, hash }, i) => ({
    key,
    row: {
      id: keyIds[i]!,
      api_id: apiId,
      identity_id: key.externalId === undefined ? null : identityIds.get(key.externalId)!,
      budget_id: budgetOf(key),
      concurrency: concurrencyColumn(key.concurrency),
      allowed_ips: jsonColumn(key.allowedIps),
      pool_id: poolIds[i]!,
      hash,
      hash_version: hashVersion,
      start: startOf(key),
      name: key.name ?? null,
      meta: jsonColumn(key.meta),
      enabled: key.enabled ? (1 as const) : (0 as const),
      recoverable: 0 as const,
      expires_at: expiryOfNew(policy, key.expires, now),
      created_at: now,
      migration_id: migrationId,
    },
  }));
  const sorted = rows.map(({ row }) => row).sort((a, b) => (a.hash < b.hash ? -1 : 1));
  const inserted = await store.of(KeyWriter).insertImported(sorted);
  // A concurrent import may have inserted some of the hashes first.
  const made = rows.filter(({ row }) => inserted.has(row.id));

  const ids = (names: readonly string[] | undefined, byName: ReadonlyMap<string, string>) => [
    ...new Set(names?.map((name) => byName.get(fold(name))!)),
  ];
  const keyGrants = store.of(KeyGrantWriter);
  await keyGrants.roles.insertAll(
    made.flatMap(({ key, row }) => ids(key.roles, roleIds).map((role_id) => ({ key_id: row.id, role_id }))),
  );
  await keyGrants.permissions.insertAll(
    made.flatMap(({ key, row }) =>
      ids(key.permissions, permissionIds).map((permission_id) => ({ key_id: row.id, permission_id })),
    ),
  );
  await store.of(RatelimitWriter).insertAll(
    made.flatMap(({ key, row }) => (key.ratelimits ?? []).map((limit) => ({ ...limit, keyId: row.id }))),
    random,
    now,
  );
  await store.of(PlanWriter).assignAll(
    made.flatMap(({ key, row: { pool_id: ownerId } }) => {
      const planId = planOf(key);
      return planId === null ? [] : [{ owner: "key" as const, ownerId, planId }];
    }),
  );
  const balances = store.of(BalanceWriter);
  await balances.insertAll(
    made.flatMap(({ key: { credits }, row: { pool_id } }) =>
      typeof credits?.remaining === "number"
        ? [{ pool_id, remaining: credits.remaining, ...refillColumns(credits.refill, now) }]
        : [],
    ),
  );
  await store
    .of(SlotWriter)
    .insertAll(
      made.flatMap(({ key: { concurrency }, row: { pool_id: id } }) =>
        concurrency ? [{ id, limits: concurrency }] : [],
      ),
    );
  return rows.map(({ key, row }) => ({ key, keyId: inserted.has(row.id) ? row.id : null }));
}
