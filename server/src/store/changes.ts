import { sql as raw } from "kysely";
import type { Instant, Milliseconds } from "../clock/clock.ts";
import { readPostgresChanges } from "./postgres/changes.ts";
import type { Sql } from "./store.ts";
import { postgresNow } from "./time.ts";

/** Changes older than this are deleted, all but the newest. A reader that comes later has to invalidate everything. */
export const CHANGES_RETENTION: Milliseconds = 24 * 3_600_000;

/** Rows of one read at most, so that a reader that was away does not stall its event loop. */
export const CHANGES_PER_READ = 5_000;

/** How far a reader has read. Opaque: it means something to the database that gave it. */
export type ChangesCursor = string;

export interface Changes {
  cursor: ChangesCursor;
  rows: { sequence: number; tags: string[] }[];
  /** There may be more rows already: read on with the new cursor. */
  hasMore: boolean;
  /**
   * The old cursor belongs to another server, or to another past of this one: anything may have changed. The new cursor
   * begins at the end.
   */
  isLost: boolean;
}

/** Announces what changed to every node, in the transaction of the change; gives the row's sequence number. */
export async function insertChange(sql: Sql, tags: readonly string[], at: Instant): Promise<number> {
  const { sequence } = await sql.db
    .insertInto("changes")
    // Nodes' clocks may differ; PostgreSQL's own decides when a row is old.
    .values({ tags: JSON.stringify(tags), created_at: sql.dialect === "postgres" ? postgresNow : at })
    .returning("sequence")
    .executeTakeFirstOrThrow();
  return sequence;
}

/**
 * What was committed since `cursor`; without one, only where now is. A row may come twice, none is ever missed.
 */
export function readChanges(sql: Sql, cursor: ChangesCursor | undefined): Promise<Changes> {
  return sql.dialect === "postgres" ? readPostgresChanges(sql, cursor) : readSqliteChanges(sql, cursor);
}

async function readSqliteChanges(sql: Sql, cursor: ChangesCursor | undefined): Promise<Changes> {
  if (cursor === undefined) {
    const { last } = await sql.db
      .selectFrom("changes")
      .select((query) => query.fn.max("sequence").as("last"))
      .executeTakeFirstOrThrow();
    return { cursor: String(last ?? 0), rows: [], hasMore: false, isLost: false };
  }
  const rows = await sql.db
    .selectFrom("changes")
    .select(["sequence", "tags"])
    .where("sequence", ">", Number(cursor))
    .orderBy("sequence")
    .limit(CHANGES_PER_READ)
    .execute();
  return {
    cursor: String(rows.at(-1)?.sequence ?? cursor),
    rows: rows.map(({ sequence, tags }) => ({ sequence, tags: JSON.parse(tags) as string[] })),
    hasMore: rows.length === CHANGES_PER_READ,
    isLost: false,
  };
}

/** Deletes what every node has long read, and markers of connections that ended long ago. */
export async function pruneChanges(sql: Sql, now: Instant): Promise<void> {
  const isPostgres = sql.dialect === "postgres";
  if (isPostgres) await pruneMarkers(sql);
  await sql.db
    .deleteFrom("changes")
    .where("created_at", "<", isPostgres ? raw<number>`${postgresNow} - ${CHANGES_RETENTION}` : now - CHANGES_RETENTION)
    // By the newest row a reader recognises the table.
    .where("sequence", "<", (query) => query.selectFrom("changes").select(({ fn }) => fn.max("sequence").as("newest")))
    .execute();
}

/** Longer than a COMMIT stays in doubt: a marker that is gone says that its transaction was not kept. */
const MARKERS_RETENTION: Milliseconds = 7 * 24 * 3_600_000;

async function pruneMarkers({ db }: Sql): Promise<void> {
  await raw`delete from transaction_markers where used_at < ${postgresNow} - ${MARKERS_RETENTION}`.execute(db);
}
