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

/**
 * Up to `limit` locations of keys after this one, deleted keys included, in their order. They are read from the index of
 * locations alone.
 */
export function keyLocationsAfter(
  { db }: Sql,
  { hash, workspace_id }: KeyLocation,
  limit: number,
): Promise<KeyLocation[]> {
  return db
    .selectFrom("keys")
    .select(["hash", "workspace_id"])
    .where(({ eb, refTuple, tuple }) => eb(refTuple("hash", "workspace_id"), ">", tuple(hash, workspace_id)))
    .orderBy("hash")
    .orderBy("workspace_id")
    .limit(limit)
    .execute();
}
