import { CompiledQuery } from "kysely";
import { isOneOf } from "../json.ts";
import type { KeyRow } from "../schema.ts";
import type { Sql } from "../store.ts";
import { asStoredKey, type StoredKey, selectKeys } from "./stored-key.ts";

/** What is still known of a key that is deleted, or whose API is: whom its verifications are counted for. */
export interface DeletedKey
  extends Pick<KeyRow, "id" | "workspace_id" | "api_id" | "identity_id" | "hash" | "migration_id"> {
  deleted: true;
}

/** Where a key is looked for. */
export type KeyLocation = Pick<KeyRow, "hash" | "workspace_id">;

/**
 * All keys at one of these places: what the directory fills itself from.
 *
 * Whether there is any is asked first, by a query that costs a fraction of the one that reads a key, and is written out
 * because building it would cost more than running it: invented keys end there, and so do those of other workspaces,
 * which must take as much work as keys that never were.
 */
export async function findKeysAt(connection: Sql, places: readonly KeyLocation[]): Promise<(StoredKey | DeletedKey)[]> {
  const { db, dialect } = connection;
  const wanted = new Set(places.map(({ hash, workspace_id }) => `${hash} ${workspace_id}`));
  const asked = [...new Set(places.map(({ hash }) => hash))];
  const present = await db.executeQuery<KeyLocation>(
    dialect === "postgres"
      ? CompiledQuery.raw("select hash, workspace_id from keys where hash = any($1::text[])", [asked])
      : CompiledQuery.raw("select hash, workspace_id from keys where hash in (select value from json_each(?))", [
          JSON.stringify(asked),
        ]),
  );
  const hashes = new Set(
    present.rows.filter(({ hash, workspace_id }) => wanted.has(`${hash} ${workspace_id}`)).map(({ hash }) => hash),
  );
  if (hashes.size === 0) return [];

  const rows = await selectKeys(connection)
    .where(isOneOf(connection, "keys.hash", [...hashes]))
    .execute();
  const living = rows.map(asStoredKey);
  if (living.length === present.rows.filter(({ hash }) => hashes.has(hash)).length) return living;
  const deleted = await db
    .selectFrom("keys")
    .innerJoin("apis", "apis.id", "keys.api_id")
    .select(["keys.id", "keys.workspace_id", "keys.api_id", "keys.identity_id", "keys.hash", "keys.migration_id"])
    .where(isOneOf(connection, "keys.hash", [...hashes]))
    .where(({ or, eb }) => or([eb("keys.deleted_at", "is not", null), eb("apis.deleted_at", "is not", null)]))
    .execute();
  return [...living, ...deleted.map((key) => ({ ...key, deleted: true as const }))];
}
