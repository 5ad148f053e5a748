import { CompiledQuery } from "kysely";
import type { KeyPlace } from "./keys.ts";
import type { Sql } from "./store.ts";

/** The SQL function that hears of every place of a key, by its hash and its workspace, before the transaction ends. */
export const NOTE_KEY_PLACE = "note_key_place";

/** From now on this connection tells `NOTE_KEY_PLACE` where it puts a key, whichever statement does it. SQLite only. */
export async function watchKeyPlaces({ db }: Sql): Promise<void> {
  for (const [name, event] of [
    ["key_made", "insert"],
    ["key_moved", "update of hash"],
  ]) {
    await db.executeQuery(
      CompiledQuery.raw(
        `create temp trigger if not exists ${name} after ${event} on main.keys ` +
          `begin select ${NOTE_KEY_PLACE}(new.hash, new.workspace_id); end`,
      ),
    );
  }
}

/** The places of so many keys, deleted ones too, in the order of their ids: those behind `cursor`. */
export function keyPlacesAfter({ db }: Sql, cursor: string, limit: number): Promise<(KeyPlace & { id: string })[]> {
  return db
    .selectFrom("keys")
    .select(["id", "hash", "workspace_id"])
    .where("id", ">", cursor)
    .orderBy("id")
    .limit(limit)
    .execute();
}
