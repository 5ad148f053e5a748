import { sql as raw } from "kysely";
import type { Instant } from "../../clock/clock.ts";
import { newId, type Random } from "../../random/random.ts";
import { insertEvents } from "../events/events.ts";
import { keysInEvents } from "../events/keys.ts";
import { always, inputRows, isOneOf } from "../json.ts";
import type { Sql } from "../store.ts";

/** A key, and when it was last used. */
export interface KeyUse {
  readonly keyId: string;
  readonly at: number;
}

/**
 * Stores when keys were last used, and records the event of each key that was never used before. Unknown keys are ignored,
 * and so is a time before the stored one.
 */
export async function recordKeyUses(connection: Sql, uses: readonly KeyUse[], random: Random): Promise<void> {
  // Sorted, so that two nodes that write the same keys cannot deadlock.
  const rows = uses
    .map(({ keyId, at }) => ({ key_id: keyId, last_used_at: at }))
    .sort((a, b) => (a.key_id < b.key_id ? -1 : 1));
  const input = inputRows(connection, { key_id: "text", last_used_at: "bigint" }, rows);
  const isSqlite = connection.dialect === "sqlite";
  const usedBefore = isSqlite ? await findUsed(connection, rows) : new Set<string>();
  const written = await connection.db
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
    .returning(["key_id", "last_used_at"])
    // PostgreSQL: a row that was inserted, and not updated, has no former transaction.
    .returning(isSqlite ? raw<boolean>`true`.as("is_new") : raw<boolean>`key_usage.xmax = 0`.as("is_new"))
    .execute();
  const firstUses = written.filter(({ key_id, is_new }) => is_new && !usedBefore.has(key_id));
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

async function findUsed(connection: Sql, rows: readonly { key_id: string }[]): Promise<Set<string>> {
  const ids = rows.map(({ key_id }) => key_id);
  const found = await connection.db
    .selectFrom("key_usage")
    .select("key_id")
    .where(isOneOf(connection, "key_id", ids))
    .execute();
  return new Set(found.map(({ key_id }) => key_id));
}
