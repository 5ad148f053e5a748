import { CompiledQuery } from "kysely";
import type { KeyLocation } from "../../../../../engine/src/directory/stored.ts";
import type { Sql } from "../../../platform/store/store.ts";

/** The SQL function that triggers call with the hash and the workspace of each new key, and of each key with a new hash. */
export const RECORD_KEY_LOCATION = "record_key_location";

/**
 * Creates temporary triggers that call `RECORD_KEY_LOCATION` for the writes of this connection, which keep the Bloom
 * filter of keys complete. SQLite only.
 */
export async function watchKeyLocations({ db }: Sql): Promise<void> {
  for (const [name, event] of [
    ["key_created", "insert"],
    ["key_hash_updated", "update of hash"],
  ]) {
    await db.executeQuery(
      CompiledQuery.raw(
        `create temp trigger if not exists ${name} after ${event} on main.keys ` +
          `begin select ${RECORD_KEY_LOCATION}(new.hash, new.workspace_id); end`,
      ),
    );
  }
}

/** The locations of up to `limit` keys with ids after `cursor`, deleted keys included, in the order of ids. */
export function keyLocationsAfter(
  { db }: Sql,
  cursor: string,
  limit: number,
): Promise<(KeyLocation & { id: string })[]> {
  return db
    .selectFrom("keys")
    .select(["id", "hash", "workspace_id"])
    .where("id", ">", cursor)
    .orderBy("id")
    .limit(limit)
    .execute();
}
