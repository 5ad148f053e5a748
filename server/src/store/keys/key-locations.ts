import { CompiledQuery } from "kysely";
import type { Sql } from "../store.ts";
import type { KeyLocation } from "./lookup.ts";

/** The SQL function that hears of every place of a key, by its hash and its workspace, before the transaction ends. */
export const RECORD_KEY_LOCATION = "record_key_location";

/** From now on this connection tells `RECORD_KEY_LOCATION` where it puts a key, whichever statement does it. SQLite only. */
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

/** The places of so many keys, deleted ones too, in the order of their ids: those behind `cursor`. */
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
