import { always } from "../always.ts";
import type { Sql } from "../store.ts";

/** A use of a root key, in epoch milliseconds. */
export interface RootKeyUse {
  readonly rootKeyId: string;
  readonly at: number;
}

/** Stores when root keys were last used. Unknown root keys are ignored, and so is a time before the stored one. */
export async function recordRootKeyUses(connection: Sql, uses: readonly RootKeyUse[]): Promise<void> {
  // Sorted, so that two nodes that write the same root keys cannot deadlock.
  const rows = uses
    .map(({ rootKeyId, at }) => ({ root_key_id: rootKeyId, last_used_at: at }))
    .sort((a, b) => (a.root_key_id < b.root_key_id ? -1 : 1));
  const input = connection.dialect.values.rows({ root_key_id: "text", last_used_at: "bigint" }, rows);
  await connection.db
    .insertInto("root_key_usage")
    .columns(["root_key_id", "last_used_at"])
    .expression((query) =>
      query
        .selectFrom(input)
        .innerJoin("root_keys", "root_keys.id", "input.root_key_id")
        .select(["input.root_key_id", "input.last_used_at"])
        .where(always),
    )
    .onConflict((conflict) =>
      conflict
        .column("root_key_id")
        .doUpdateSet(({ ref }) => ({ last_used_at: ref("excluded.last_used_at") }))
        .whereRef("excluded.last_used_at", ">", "root_key_usage.last_used_at"),
    )
    .execute();
}
