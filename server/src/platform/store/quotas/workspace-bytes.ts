import type { Instant, Milliseconds } from "../../../../../engine/src/clock/clock.ts";
import type { RetentionTask } from "../retention.ts";
import type { Sql } from "../store.ts";

/**
 * What a row takes beside its texts: its other columns, and its entries in indexes. For an update of a key this says 1.5 kB;
 * SQLite takes 1.1 kB and PostgreSQL 1.7 kB.
 */
export const ROW_BYTES = { audit: 400, target: 200, event: 500, delivery: 400 } as const;

/**
 * The bytes of a change. `audit` stay as long as the audit log, and with them the metadata that the change added; `events` as
 * long as events, and with them their deliveries.
 */
export interface WrittenBytes {
  audit: number;
  events: number;
}

export const NOTHING_WRITTEN: WrittenBytes = { audit: 0, events: 0 };

/** How long the bytes of each kind stay. */
export type BytesRetention = Readonly<Record<keyof WrittenBytes, Milliseconds>>;

const DAY: Milliseconds = 86_400_000;
const kinds = ["audit", "events"] as const;

/** Adds what a transaction wrote to the bytes of a workspace. Locks them until the transaction ends. */
export async function addBytes({ db }: Sql, workspaceId: string, written: WrittenBytes, now: Instant): Promise<void> {
  const rows = kinds
    .filter((kind) => written[kind] > 0)
    .map((kind) => ({ workspace_id: workspaceId, kind, day: Math.floor(now / DAY), bytes: written[kind] }));
  if (rows.length === 0) return;
  await db
    .insertInto("workspace_bytes")
    .values(rows)
    .onConflict((conflict) =>
      conflict
        .columns(["workspace_id", "kind", "day"])
        .doUpdateSet(({ eb, ref }) => ({ bytes: eb("workspace_bytes.bytes", "+", ref("excluded.bytes")) })),
    )
    .execute();
}

/** Adds what was written without regard to the quota of the workspace. */
export async function addBytesAnyway(
  sql: Sql,
  workspaceId: string,
  written: WrittenBytes,
  now: Instant,
): Promise<void> {
  await addBytes(sql, workspaceId, written, now);
  await sql.db
    .updateTable("workspace_usage")
    .set(({ eb }) => ({ total: eb("total", "+", written.audit + written.events) }))
    .where("workspace_id", "=", workspaceId)
    .where("quota", "=", "bytes")
    .execute();
}

/** The time of the oldest day whose retention is over; null if there is none. */
async function oldestBytes({ db }: Sql, kind: keyof WrittenBytes, before: Instant): Promise<number | null> {
  const row = await db
    .selectFrom("workspace_bytes")
    .select("day")
    .where("kind", "=", kind)
    .where("day", "<", Math.floor(before / DAY))
    .orderBy("day")
    .limit(1)
    .executeTakeFirst();
  return row === undefined ? null : (Number(row.day) + 1) * DAY;
}

/** The bytes of a workspace whose retention is not over. Reads one row for each day. */
export async function sumBytes(
  { db }: Sql,
  workspaceId: string,
  retention: BytesRetention,
  now: Instant,
): Promise<number> {
  let sum = 0;
  for (const kind of kinds) {
    const { bytes } = await db
      .selectFrom("workspace_bytes")
      .select(({ fn }) => fn.sum<number | string | null>("bytes").as("bytes"))
      .where("workspace_id", "=", workspaceId)
      .where("kind", "=", kind)
      .where("day", ">=", Math.floor((now - retention[kind]) / DAY))
      .executeTakeFirstOrThrow();
    sum += Number(bytes ?? 0);
  }
  return sum;
}

/** Deletes at most `limit` sums of days whose retention is over. */
async function pruneBytes({ db }: Sql, kind: keyof WrittenBytes, before: Instant, limit: number): Promise<number> {
  const old = await db
    .selectFrom("workspace_bytes")
    .select(["workspace_id", "day"])
    .where("kind", "=", kind)
    .where("day", "<", Math.floor(before / DAY))
    .orderBy("day")
    .limit(limit)
    .execute();
  for (const { workspace_id, day } of old) {
    await db
      .deleteFrom("workspace_bytes")
      .where("workspace_id", "=", workspace_id)
      .where("kind", "=", kind)
      .where("day", "=", day)
      .execute();
  }
  return old.length;
}

/** Deletes the sums of days whose rows are deleted. */
export function bytesRetention(kind: keyof WrittenBytes): RetentionTask {
  return {
    keep: (times) => times[kind],
    oldest: (sql, before) => oldestBytes(sql, kind, before),
    step: (sql, before, limit) => pruneBytes(sql, kind, before, limit),
    limit: 100,
  };
}
