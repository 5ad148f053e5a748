import type { DeletedKey, KeyPlace } from "../../../../../engine/src/directory/stored.ts";
import type { Sql } from "../../../platform/store/store.ts";
import { asStoredKey, type StoredKey, selectKeys } from "./stored-key.ts";

/**
 * All keys at these locations; the directory loads its records with this.
 *
 * A cheap query first checks which hashes exist. Invented keys end there, and so do keys of other workspaces, which must
 * take the same time. This query is raw SQL because building it would cost more than running it.
 */
export async function findKeysAt(connection: Sql, locations: readonly KeyPlace[]): Promise<(StoredKey | DeletedKey)[]> {
  const { db, dialect } = connection;
  const wanted = new Set(locations.map(({ hash, workspace_id }) => `${hash} ${workspace_id}`));
  const candidates = [...new Set(locations.map(({ hash }) => hash))];
  const existing = await db.executeQuery<KeyPlace>(
    dialect.values.completedByOneOf("select hash, workspace_id from keys where hash", candidates),
  );
  const hashes = new Set(
    existing.rows.filter(({ hash, workspace_id }) => wanted.has(`${hash} ${workspace_id}`)).map(({ hash }) => hash),
  );
  if (hashes.size === 0) return [];

  const rows = await selectKeys(connection)
    .where(connection.dialect.values.isOneOf("keys.hash", [...hashes]))
    .execute();
  const active = rows.map(asStoredKey);
  if (active.length === existing.rows.filter(({ hash }) => hashes.has(hash)).length) return active;
  const deleted = await db
    .selectFrom("keys")
    .innerJoin("apis", "apis.id", "keys.api_id")
    .select(["keys.id", "keys.workspace_id", "keys.api_id", "keys.identity_id", "keys.hash", "keys.migration_id"])
    .where(connection.dialect.values.isOneOf("keys.hash", [...hashes]))
    .where(({ or, eb }) => or([eb("keys.deleted_at", "is not", null), eb("apis.deleted_at", "is not", null)]))
    .execute();
  return [...active, ...deleted.map((key) => ({ ...key, deleted: true as const }))];
}
