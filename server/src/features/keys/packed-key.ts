import type { DeletedKey, DirectoryBudget, DirectoryKey } from "../../../../engine/src/directory/stored.ts";
import { parsed } from "../../platform/store/json.ts";

/** A key of the directory as its query returns it: related rows are JSON, and null where there are none. */
export type DirectoryKeyRow = Omit<DirectoryKey, "budgets" | "ratelimits" | "roles" | "permissions"> & {
  budget_id: string | null;
  identity_id: string | null;
  ratelimits: DirectoryKey["ratelimits"] | null;
  roles: readonly { name: string }[] | null;
  permissions: readonly { slug: string }[] | null;
  deleted_at: number | null;
  api_deleted_at: number | null;
};

/**
 * A row as a list, from the thread of the database to that of the directory. The names of its columns would take longer to copy
 * than their values, and so would the values of JSON.
 */
export type PackedKey = ReturnType<typeof packKey>;

export function packKey(row: DirectoryKeyRow, budgets: readonly DirectoryBudget[] | null) {
  return [
    row.id,
    row.workspace_id,
    row.api_id,
    row.pool_id,
    row.hash,
    row.hash_version,
    row.is_unused,
    row.name,
    row.meta,
    row.enabled,
    row.expires_at,
    row.migration_id,
    row.allowed_ips,
    row.concurrency,
    row.api_allowed_ips,
    row.api_own_key_access,
    row.api_own_key_derivation,
    row.workspace_enabled,
    row.balance,
    row.identity_id,
    row.identity,
    row.plan,
    row.ratelimits,
    row.roles,
    row.permissions,
    budgets,
    row.deleted_at !== null || row.api_deleted_at !== null,
  ] as const;
}

const NOTHING: readonly never[] = [];

/** @throws if the key is deleted: `unpackAnyKey` returns those. */
export function unpackKey(packed: PackedKey): DirectoryKey {
  const key = unpackAnyKey(packed);
  if ("deleted" in key) throw new Error(`The key ${key.id} is deleted`);
  return key;
}

export function unpackAnyKey([
  id,
  workspace_id,
  api_id,
  pool_id,
  hash,
  hash_version,
  is_unused,
  name,
  meta,
  enabled,
  expires_at,
  migration_id,
  allowed_ips,
  concurrency,
  api_allowed_ips,
  api_own_key_access,
  api_own_key_derivation,
  workspace_enabled,
  balance,
  identity_id,
  identityColumn,
  plan,
  ratelimits,
  roles,
  permissions,
  budgets,
  isDeleted,
]: PackedKey): DirectoryKey | DeletedKey {
  if (isDeleted) return { id, workspace_id, api_id, identity_id, hash, migration_id, deleted: true };
  const identity = parsed(identityColumn);
  return {
    id,
    workspace_id,
    api_id,
    pool_id,
    hash,
    hash_version,
    is_unused,
    name,
    meta,
    enabled,
    expires_at,
    migration_id,
    allowed_ips,
    concurrency,
    api_allowed_ips,
    api_own_key_access,
    api_own_key_derivation,
    workspace_enabled,
    balance: parsed(balance),
    budgets: budgets ?? NOTHING,
    identity: identity && { ...identity, ratelimits: parsed(identity.ratelimits), plan: parsed(identity.plan) },
    plan: parsed(plan),
    ratelimits: parsed(ratelimits) ?? NOTHING,
    roles: parsed(roles)?.map(({ name }) => name) ?? NOTHING,
    permissions: parsed(permissions)?.map(({ slug }) => slug) ?? NOTHING,
  };
}
