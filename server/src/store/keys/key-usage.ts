import { always, inputRows } from "../json.ts";
import type { Sql } from "../store.ts";

/** Stores when keys were last used. Unknown keys are ignored, and so is a time before the stored one. */
export async function recordKeyUses(
  connection: Sql,
  uses: readonly { readonly keyId: string; readonly at: number }[],
): Promise<void> {
  // Sorted, so that two nodes that write the same keys cannot deadlock.
  const rows = uses
    .map(({ keyId, at }) => ({ key_id: keyId, last_used_at: at }))
    .sort((a, b) => (a.key_id < b.key_id ? -1 : 1));
  const input = inputRows(connection, { key_id: "text", last_used_at: "bigint" }, rows);
  await connection.db
    .insertInto("key_usage")
    .columns(["key_id", "workspace_id", "last_used_at"])
    .expression((query) =>
      query
        .selectFrom(input)
        .innerJoin("keys", "keys.id", "input.key_id")
        .select(["input.key_id", "keys.workspace_id", "input.last_used_at"])
        .where(always),
    )
    .onConflict((conflict) =>
      conflict
        .column("key_id")
        .doUpdateSet(({ ref }) => ({ last_used_at: ref("excluded.last_used_at") }))
        .whereRef("excluded.last_used_at", ">", "key_usage.last_used_at"),
    )
    .execute();
}
