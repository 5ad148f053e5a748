import { sql as raw } from "kysely";
import type { Instant } from "../../../../engine/src/clock/clock.ts";
import type { LateIndex, RetentionTask } from "./retention.ts";
import type { Schema } from "./schema.ts";
import type { Sql } from "./store.ts";

/** The index by which the deleted rows of a table are found. */
export function deletedRowsIndex(table: keyof Schema): LateIndex {
  return { name: `${table}_deleted`, on: `${table} (deleted_at) where deleted_at is not null` };
}

/**
 * Builds indexes where they are missing. On PostgreSQL they are built beside reads and writes; a build that was interrupted
 * starts again. Not in a transaction. On SQLite, the migrations build them.
 */
export async function buildLateIndexes(sql: Sql, indexes: readonly LateIndex[]): Promise<void> {
  for (const { name, on } of indexes) await sql.dialect.schema.buildLateIndex(sql, name, raw`on ${raw.raw(on)}`);
}

/**
 * Finds and deletes the deleted rows of a table to which nothing refers, the oldest first. `references` selects what still
 * refers to a row. `beforeDelete` runs in the same transaction.
 */
export function deletedRows(
  table: keyof Schema,
  {
    references,
    beforeDelete,
  }: { references: string; beforeDelete?: (sql: Sql, ids: readonly string[]) => Promise<void> },
): RetentionTask {
  const old = (before: Instant) => raw`deleted_at is not null and deleted_at < ${before}
    and not exists (${raw.raw(references)})`;
  return {
    keep: ({ deleted }) => deleted,
    index: deletedRowsIndex(table),
    limit: 200,
    async oldest({ db }, before) {
      const { rows } = await raw<{ at: number }>`
        select deleted_at as at from ${raw.table(table)} where ${old(before)} order by deleted_at limit 1`.execute(db);
      return rows[0] === undefined ? null : Number(rows[0].at);
    },
    async step(sql, before, limit) {
      const { rows } = await raw<{ id: string }>`
        select id from ${raw.table(table)} where ${old(before)} order by deleted_at limit ${limit}`.execute(sql.db);
      const ids = rows.map(({ id }) => id);
      if (ids.length === 0) return 0;
      await beforeDelete?.(sql, ids);
      await raw`delete from ${raw.table(table)} where ${sql.dialect.values.isOneOf("id", ids)}`.execute(sql.db);
      return ids.length;
    },
  };
}
