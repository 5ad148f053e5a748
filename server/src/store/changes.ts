import { sql as raw } from "kysely";
import type { Instant, Milliseconds } from "../clock/clock.ts";
import { CHANGES_CHANNEL } from "./postgres/channel.ts";
import type { Sql } from "./store.ts";

/** Changes older than this are deleted; who has not read for that long must forget everything instead. */
export const CHANGES_RETENTION: Milliseconds = 24 * 3_600_000;

/** How far a reader has read. Opaque: it means something to the database that gave it. */
export type ChangesCursor = string;

export interface Changes {
  cursor: ChangesCursor;
  rows: { sequence: number; tags: string[] }[];
}

/** Announces what changed to every node, in the transaction of the change; gives the row's sequence number. */
export async function announceChange(sql: Sql, tags: readonly string[], at: Instant): Promise<number> {
  const { sequence } = await sql.db
    .insertInto("changes")
    .values({ tags: JSON.stringify(tags), created_at: at })
    .returning("sequence")
    .executeTakeFirstOrThrow();
  if (sql.dialect === "postgres") await raw`select pg_notify(${CHANGES_CHANNEL}, '')`.execute(sql.db);
  return sequence;
}

/**
 * What was committed since `cursor`; without one, only where now is. A row may come twice, none is ever missed.
 *
 * On PostgreSQL the cursor is the oldest transaction that was still running at the last read: rows become visible in
 * the order of their commits, which is not that of their numbers.
 */
export async function readChanges(sql: Sql, cursor: ChangesCursor | undefined): Promise<Changes> {
  if (sql.dialect === "postgres") {
    // One statement, one snapshot: the horizon belongs to exactly the rows that were seen.
    const result = await raw<{ horizon: string; sequence: number | null; tags: string | null }>`
      select pg_snapshot_xmin(pg_current_snapshot())::text as horizon, c.sequence, c.tags
      from (select 1) one
      left join changes c on c.transaction_id >= ${cursor ?? null}::text::xid8
      order by c.sequence`.execute(sql.db);
    return {
      cursor: result.rows[0]!.horizon,
      rows: result.rows.flatMap(({ sequence, tags }) =>
        sequence === null ? [] : [{ sequence, tags: JSON.parse(tags!) as string[] }],
      ),
    };
  }
  if (cursor === undefined) {
    const { last } = await sql.db
      .selectFrom("changes")
      .select((query) => query.fn.max("sequence").as("last"))
      .executeTakeFirstOrThrow();
    return { cursor: String(last ?? 0), rows: [] };
  }
  const rows = await sql.db
    .selectFrom("changes")
    .select(["sequence", "tags"])
    .where("sequence", ">", Number(cursor))
    .orderBy("sequence")
    .execute();
  return {
    cursor: String(rows.at(-1)?.sequence ?? cursor),
    rows: rows.map(({ sequence, tags }) => ({ sequence, tags: JSON.parse(tags) as string[] })),
  };
}

/** Deletes what every node has long read. */
export async function pruneChanges(sql: Sql, now: Instant): Promise<void> {
  await sql.db
    .deleteFrom("changes")
    .where("created_at", "<", now - CHANGES_RETENTION)
    .execute();
}
