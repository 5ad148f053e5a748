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

/** The columns of a packed key, in their order. */
export const packedColumns = [
  "id",
  "workspace_id",
  "api_id",
  "pool_id",
  "identity_id",
  "budget_id",
  "hash",
  "hash_version",
  "migration_id",
  "name",
  "meta",
  "enabled",
  "expires_at",
  "deleted_at",
  "allowed_ips",
  "concurrency",
  "is_unused",
  "api_deleted_at",
  "api_allowed_ips",
  "api_own_key_access",
  "api_own_key_derivation",
  "workspace_enabled",
  "balance",
  "identity",
  "plan",
  "ratelimits",
  "roles",
  "permissions",
] as const satisfies readonly (keyof DirectoryKeyRow)[];

type ValuesOf<Columns extends readonly (keyof DirectoryKeyRow)[]> = {
  readonly [I in keyof Columns]: DirectoryKeyRow[Columns[I]];
};

/**
 * A row as a list, from the thread of the database to that of the directory: the names of columns would take longer to copy
 * than their values, and so would the values of JSON. After the columns there are the budgets of the key and of its identity, if
 * it has some.
 */
export type PackedKey = readonly [...ValuesOf<typeof packedColumns>, budgets?: readonly DirectoryBudget[]];

/** The budgets of a key and of its identity: without their ancestors. */
export function ownBudgets([, , , , , budgetId, , , , , , , , , , , , , , , , , , identity]: PackedKey): string[] {
  const ofIdentity = identity === null ? null : parsed(identity).budget_id;
  return [budgetId, ofIdentity].filter((id) => id !== null);
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
  identity_id,
  ,
  hash,
  hash_version,
  migration_id,
  name,
  meta,
  enabled,
  expires_at,
  deleted_at,
  allowed_ips,
  concurrency,
  is_unused,
  api_deleted_at,
  api_allowed_ips,
  api_own_key_access,
  api_own_key_derivation,
  workspace_enabled,
  balance,
  identityColumn,
  plan,
  ratelimits,
  roles,
  permissions,
  budgets = NOTHING,
]: PackedKey): DirectoryKey | DeletedKey {
  if (deleted_at !== null || api_deleted_at !== null)
    return { id, workspace_id, api_id, identity_id, hash, migration_id, deleted: true };
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
    budgets,
    identity: identity && { ...identity, ratelimits: parsed(identity.ratelimits), plan: parsed(identity.plan) },
    plan: parsed(plan),
    ratelimits: parsed(ratelimits) ?? NOTHING,
    roles: parsed(roles)?.map(({ name }) => name) ?? NOTHING,
    permissions: parsed(permissions)?.map(({ slug }) => slug) ?? NOTHING,
  };
}
