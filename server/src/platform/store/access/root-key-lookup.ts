import { ADMINISTRATOR } from "../../../../../engine/src/rules/grants.ts";
import type { RootKeyRow, SqlBoolean } from "../schema.ts";
import type { Sql } from "../store.ts";

/** A root key with the settings of its workspace that apply to its calls. */
export interface StoredRootKey extends RootKeyRow {
  workspace_enabled: SqlBoolean;
  workspace_requests_per_minute: number | null;
}

/** Root keys of any workspace that are not deleted; the directory loads its records with this. */
export function findRootKeysByHashes(sql: Sql, hashes: readonly string[]): Promise<StoredRootKey[]> {
  return selectStored(sql).where(sql.dialect.values.isOneOf("root_keys.hash", hashes)).execute();
}

/** Root keys of any workspace that are not deleted. */
export function findRootKeys(sql: Sql, ids: readonly string[]): Promise<StoredRootKey[]> {
  return selectStored(sql).where(sql.dialect.values.isOneOf("root_keys.id", ids)).execute();
}

/** A root key that is not deleted, as this transaction sees it. */
export function findRootKey(sql: Sql, rootKeyId: string): Promise<StoredRootKey | undefined> {
  return selectStored(sql).where("root_keys.id", "=", rootKeyId).executeTakeFirst();
}

function selectStored(sql: Sql) {
  return sql.db
    .selectFrom("root_keys")
    .innerJoin("workspaces", "workspaces.id", "root_keys.workspace_id")
    .selectAll("root_keys")
    .select("workspaces.enabled as workspace_enabled")
    .select("workspaces.requests_per_minute as workspace_requests_per_minute")
    .where("root_keys.deleted_at", "is", null);
}

/** Whether the root key has every permission and no expiry. */
export function isAdministrator({
  grants,
  enabled,
  expires_at,
}: Pick<RootKeyRow, "grants" | "enabled" | "expires_at">): boolean {
  return enabled === 1 && expires_at === null && grantsOf({ grants }).includes(ADMINISTRATOR);
}

/** The grants of a root key, in canonical form. */
export function grantsOf({ grants }: Pick<RootKeyRow, "grants">): string[] {
  return JSON.parse(grants);
}
