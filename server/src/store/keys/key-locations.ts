import { CompiledQuery } from "kysely";
import type { Sql } from "../store.ts";
import type { KeyLocation } from "./lookup.ts";

/** The SQL function that a trigger calls with the hash and the workspace of each inserted or moved key. */
export const RECORD_KEY_LOCATION = "record_key_location";

/** Creates triggers on this connection that call `RECORD_KEY_LOCATION` for each key it inserts or moves. SQLite only. */
export async function watchKeyLocations({ db }: Sql): Promise<void> {
  for (const [name, event] of [
    ["key_made", "insert"],
    ["key_moved", "update of hash"],
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
