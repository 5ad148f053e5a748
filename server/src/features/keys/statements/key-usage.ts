import type { RawBuilder } from "kysely";
import type { Instant } from "../../../../../engine/src/clock/clock.ts";
import { newId, type Random } from "../../../../../engine/src/random/random.ts";
import { always } from "../../../platform/store/always.ts";
import { insertEvents } from "../../../platform/store/events/events.ts";
import { keysInEvents } from "../../../platform/store/events/keys.ts";
import type { Sql } from "../../../platform/store/store.ts";

/** A key, and when it was last used. */
export interface KeyUse {
  readonly keyId: string;
  readonly at: number;
}

/** Uses per statement in SQLite: some tenths of a millisecond of work, so that other threads of the core do not wait long. */
const USES_PER_STATEMENT = 100;

type WrittenUse = Readonly<{ key_id: string; last_used_at: number }>;

/**
 * Stores when keys were last used, and records the event of each key that was never used before. Unknown keys are ignored,
 * and so is a time before the stored one.
 */
export async function recordKeyUses(connection: Sql, uses: readonly KeyUse[], random: Random): Promise<void> {
  // Sorted, so that two nodes that write the same keys cannot deadlock.
  const rows = uses
    .map(({ keyId, at }) => ({ key_id: keyId, last_used_at: at }))
    .sort((a, b) => (a.key_id < b.key_id ? -1 : 1));
  const isFirst = connection.dialect.wasInserted("key_usage");
  const firstUses = isFirst ? await upsertUses(connection, rows, isFirst) : await storeUses(connection, rows);
  if (firstUses.length === 0) return;
  const usedAt = new Map(firstUses.map(({ key_id, last_used_at }) => [key_id, last_used_at]));
  const keys = await keysInEvents(connection, [...usedAt.keys()]);
  await insertEvents(
    connection,
    keys.map(({ workspaceId, about }) => {
      const at = usedAt.get(about.keyId) as Instant;
      const data = { ...about, usedAt: at };
      return { id: newId(random, "evt"), workspaceId, type: "key.first_used", objectId: about.keyId, at, data };
    }),
  );
}

/** One statement. Returns the first uses of keys. */
async function upsertUses(
  connection: Sql,
  rows: readonly WrittenUse[],
  isFirst: RawBuilder<boolean>,
): Promise<WrittenUse[]> {
  const written = await insertUses(connection, rows)
    .onConflict((conflict) =>
      conflict
        .column("key_id")
        .doUpdateSet(({ ref }) => ({ last_used_at: ref("excluded.last_used_at") }))
        .whereRef("excluded.last_used_at", ">", "key_usage.last_used_at"),
    )
    .returning(["key_id", "last_used_at"])
    .returning(isFirst.as("is_first"))
    .execute();
  return written.filter(({ is_first }) => is_first);
}

/** Updates the uses of keys that were used before, which does not read the keys; then inserts the others, which it returns. */
async function storeUses(connection: Sql, rows: readonly WrittenUse[]): Promise<WrittenUse[]> {
  const firstUses: WrittenUse[] = [];
  for (let i = 0; i < rows.length; i += USES_PER_STATEMENT) {
    const some = rows.slice(i, i + USES_PER_STATEMENT);
    const updated = await connection.db
      .updateTable("key_usage")
      .from(inputUses(connection, some))
      .set(({ ref }) => ({ last_used_at: ref("input.last_used_at") }))
      .whereRef("key_usage.key_id", "=", "input.key_id")
      .whereRef("key_usage.last_used_at", "<", "input.last_used_at")
      .returning("key_usage.key_id")
      .execute();
    if (updated.length === some.length) continue;
    const known = new Set(updated.map(({ key_id }) => key_id));
    const inserted = await insertUses(
      connection,
      some.filter(({ key_id }) => !known.has(key_id)),
    )
      // A row with a later use.
      .onConflict((conflict) => conflict.column("key_id").doNothing())
      .returning(["key_id", "last_used_at"])
      .execute();
    firstUses.push(...inserted);
  }
  return firstUses;
}

function inputUses(connection: Sql, rows: readonly WrittenUse[]) {
  return connection.dialect.values.rows({ key_id: "text", last_used_at: "bigint" }, rows);
}

function insertUses(connection: Sql, rows: readonly WrittenUse[]) {
  return connection.db
    .insertInto("key_usage")
    .columns(["key_id", "workspace_id", "last_used_at"])
    .expression((query) =>
      query
        .selectFrom(inputUses(connection, rows))
        .innerJoin("keys", "keys.id", "input.key_id")
        .select(["input.key_id", "keys.workspace_id", "input.last_used_at"])
        .where(always),
    );
}
