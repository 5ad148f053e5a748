import { sql as raw } from "kysely";
import type { Instant, Milliseconds } from "../../../../engine/src/clock/clock.ts";
import { CHANGES_RETENTION } from "../../../../engine/src/directory/changes.ts";
import { oldestBy, type RetentionTask } from "./retention.ts";
import type { Sql } from "./store.ts";

/**
 * Publishes changed tags to every node, in the transaction of the change; returns the row's sequence number.
 *
 * @param workspaceId whose records it concerns, so that edges of other workspaces do not hear of it; null: of any.
 */
export async function insertChange(
  sql: Sql,
  tags: readonly string[],
  at: Instant,
  workspaceId: string | null,
): Promise<number> {
  const { sequence } = await sql.db
    .insertInto("changes")
    // The clocks of nodes may differ, so a common one decides when a row is old.
    .values({ tags: JSON.stringify(tags), created_at: sql.dialect.time.common(at), workspace_id: workspaceId })
    .returning("sequence")
    .executeTakeFirstOrThrow();
  return sequence;
}

/**
 * Deletes at most `limit` of the oldest changes that are older than `before`, except the newest one; returns their number.
 * They are looked for from the lowest number, because numbers rise with time and times have no index.
 */
export async function pruneChanges({ db }: Sql, before: Instant, limit: number): Promise<number> {
  const { numAffectedRows = 0n } = await raw`
    delete from changes where created_at < ${before} and sequence in (
      select sequence from changes where sequence < (select max(sequence) from changes) order by sequence limit ${limit}
    )`.execute(db);
  return Number(numAffectedRows);
}

/** Deletes changes that every node has read. */
export const changesRetention: RetentionTask = {
  keep: () => CHANGES_RETENTION,
  // A reader recognizes the table by its newest row.
  oldest: async ({ db }, before) => {
    const { rows } = await raw<{ at: number }>`
      select created_at as at from changes where sequence < (select max(sequence) from changes)
      order by sequence limit 1`.execute(db);
    return rows[0] !== undefined && Number(rows[0].at) < before ? Number(rows[0].at) : null;
  },
  step: pruneChanges,
  limit: 2_000,
};

/** Longer than the outcome of a COMMIT can be unknown, because a missing marker means that the transaction was rolled back. */
const MARKERS_RETENTION: Milliseconds = 7 * 24 * 3_600_000;

/** Deletes at most `limit` transaction markers of connections that ended before; returns their number. */
async function pruneMarkers({ db }: Sql, before: Instant, limit: number): Promise<number> {
  const { numAffectedRows = 0n } = await raw`
    delete from transaction_markers where id in (
      select id from transaction_markers where used_at < ${before} limit ${limit}
    )`.execute(db);
  return Number(numAffectedRows);
}

/** Deletes the transaction markers of connections that ended long ago. */
export const markersRetention: RetentionTask = {
  keep: () => MARKERS_RETENTION,
  oldest: oldestBy("transaction_markers", "used_at"),
  step: pruneMarkers,
  limit: 5_000,
  isOfServer: true,
  isCostly: true,
};
