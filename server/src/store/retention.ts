import { sql as raw } from "kysely";
import type { Instant, Milliseconds } from "../clock/clock.ts";
import { CHANGES_RETENTION } from "../directory/changes.ts";
import { IDEMPOTENCY_RETENTION } from "../rules/idempotency.ts";
import { oldestAudit, pruneAudit } from "./administration/audit-retention.ts";
import { SESSION_IDLE_MAX } from "./administration/sessions.ts";
import { oldestBytes, pruneBytes } from "./administration/workspace-bytes.ts";
import { MARKERS_RETENTION, pruneChanges, pruneMarkers } from "./changes.ts";
import { deletedRows } from "./deleted-rows.ts";
import { oldestEvent, pruneEvents } from "./events/retention.ts";
import {
  markEndedKeys,
  markKeysOfDeletedApis,
  markPurged,
  oldestDeletedApi,
  oldestDeletedKey,
  oldestEndedKey,
  purgeKeys,
} from "./keys/key-retention.ts";
import { holdLease, type Lease } from "./lease.ts";
import { type MonthlyTable, type PartitionStep, partitionStep, removeBound } from "./postgres/partitions.ts";
import type { Schema } from "./schema.ts";
import type { Sql } from "./store.ts";
import { pruningTime } from "./time.ts";
import { oldestDelivery, pruneDeliveries } from "./webhooks/retention.ts";

/** How long rows stay that the configuration decides on. */
export interface RetentionTimes {
  audit: Milliseconds;
  events: Milliseconds;
  deleted: Milliseconds;
}

/** Deletes what is too old from one table. */
interface RetentionTask {
  /** How long its rows stay. */
  keep(times: RetentionTimes): Milliseconds;
  /** The time of the oldest row that is older than `before`; null if there is none. */
  oldest(sql: Sql, before: Instant): Promise<number | null>;
  /** Deletes at most `limit` rows that are older than `before`; returns their number. */
  step(sql: Sql, before: Instant, limit: number): Promise<number>;
  /** The most rows of one transaction, so that it lasts some milliseconds. */
  limit: number;
  /** Only PostgreSQL has the table. */
  isPostgres?: boolean;
}

/** Every table that loses old rows, by the name under which logs and metrics report it. */
export const retentionTasks = {
  idempotency_records: {
    keep: () => IDEMPOTENCY_RETENTION,
    ...byTime("idempotency_records", "sequence", "created_at"),
    limit: 1_000,
  },
  changes: {
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
  },
  transaction_markers: {
    keep: () => MARKERS_RETENTION,
    oldest: oldestBy("transaction_markers", "used_at"),
    step: pruneMarkers,
    limit: 5_000,
    isPostgres: true,
  },
  sessions: {
    keep: () => SESSION_IDLE_MAX,
    ...byTime("sessions", "id", "last_used_at"),
    limit: 500,
  },
  portal_sessions: {
    keep: () => 0,
    ...byTime("portal_sessions", "id", "expires_at"),
    limit: 500,
  },
  sign_in_links: {
    keep: () => 0,
    ...byTime("sign_in_links", "hash", "expires_at"),
    limit: 500,
  },
  audit_events: { keep: ({ audit }) => audit, oldest: oldestAudit, step: pruneAudit, limit: 300 },
  events: { keep: ({ events }) => events, oldest: oldestEvent, step: pruneEvents, limit: 1_000 },
  webhook_deliveries: { keep: ({ events }) => events, oldest: oldestDelivery, step: pruneDeliveries, limit: 300 },
  bytes_of_audit: {
    keep: ({ audit }) => audit,
    oldest: (sql, before) => oldestBytes(sql, "audit", before),
    step: (sql, before, limit) => pruneBytes(sql, "audit", before, limit),
    limit: 100,
  },
  bytes_of_events: {
    keep: ({ events }) => events,
    oldest: (sql, before) => oldestBytes(sql, "events", before),
    step: (sql, before, limit) => pruneBytes(sql, "events", before, limit),
    limit: 100,
  },
  // The keys of a deleted API count as deleted with it.
  keys_of_apis: {
    keep: ({ deleted }) => deleted,
    oldest: oldestDeletedApi,
    step: markKeysOfDeletedApis,
    limit: 200,
  },
  // Keys that were replaced, or that their owner made, count as deleted when they expired.
  ended_keys: { keep: ({ deleted }) => deleted, oldest: oldestEndedKey, step: markEndedKeys, limit: 200 },
  purged_keys: {
    keep: ({ deleted }) => deleted,
    oldest: (sql, before) => oldestDeletedKey(sql, before, "unmarked"),
    step: markPurged,
    limit: 300,
  },
  keys: {
    keep: ({ deleted }) => deleted,
    oldest: (sql, before) => oldestDeletedKey(sql, before, "marked"),
    step: purgeKeys,
    limit: 100,
  },
  // After the keys, which refer to identities.
  identities: { keep: ({ deleted }) => deleted, ...deletedRows("identities"), limit: 200 },
  ratelimit_namespaces: { keep: ({ deleted }) => deleted, ...deletedRows("ratelimit_namespaces"), limit: 200 },
  root_keys: { keep: ({ deleted }) => deleted, ...deletedRows("root_keys"), limit: 200 },
  // After their deliveries.
  webhooks: { keep: ({ deleted }) => deleted, ...deletedRows("webhooks"), limit: 200 },
} as const satisfies Record<string, RetentionTask>;

export type RetentionTable = keyof typeof retentionTasks;

export const retentionTables = Object.keys(retentionTasks) as readonly RetentionTable[];

/** What one step works on. */
export interface RetentionStep {
  table: RetentionTable;
  times: RetentionTimes;
  now: Instant;
}

/** For how long the oldest row is overdue, in milliseconds; null if no row is. */
export async function retentionLag(sql: Sql, { table, times, now }: RetentionStep): Promise<Milliseconds | null> {
  const task: RetentionTask = retentionTasks[table];
  if (task.isPostgres && sql.dialect !== "postgres") return null;
  const before = await threshold(sql, task.keep(times), now);
  const oldest = await task.oldest(sql, before);
  return oldest === null ? null : Math.max(0, before - oldest);
}

/**
 * Deletes some of the rows that are too old; returns their number.
 *
 * @throws {LeaseLost} when another node does this work.
 */
export async function retain(
  sql: Sql,
  { table, times, now, lease }: RetentionStep & { lease: Lease },
): Promise<number> {
  await holdLease(sql, lease, now);
  const task: RetentionTask = retentionTasks[table];
  return task.step(sql, await threshold(sql, task.keep(times), now), task.limit);
}

/** What one step on the layout of a table works on. */
export interface LayoutStep {
  table: MonthlyTable;
  /** How long its rows stay. */
  keep: Milliseconds;
  now: Instant;
  lease: Lease;
}

/**
 * Changes the layout of a table that PostgreSQL divides by month, by one step; null if there is nothing to do.
 *
 * @throws {LeaseLost} when another node does this work.
 */
export async function changeLayout(sql: Sql, { table, keep, now, lease }: LayoutStep): Promise<PartitionStep | null> {
  if (sql.dialect !== "postgres") return null;
  await holdLease(sql, lease, now);
  return partitionStep(sql, table, await threshold(sql, keep, now));
}

/** Removes the boundary of a table that was to be divided and is not. */
export async function undoDivision(
  sql: Sql,
  { table, lease, now }: { table: MonthlyTable; lease: Lease; now: Instant },
): Promise<void> {
  await holdLease(sql, lease, now);
  await removeBound(sql, table);
}

/** Rows before this time are too old. On PostgreSQL, a node whose clock is ahead deletes nothing that others need. */
async function threshold(sql: Sql, keep: Milliseconds, now: Instant): Promise<Instant> {
  const { rows } = await raw<{ time: number }>`select ${pruningTime(sql, now)} as time`.execute(sql.db);
  return (Number(rows[0]!.time) - keep) as Instant;
}

/** Finds and deletes the rows of a table with the primary key `key` by the column of their time, which has an index. */
function byTime(table: keyof Schema, key: string, time: string): Pick<RetentionTask, "oldest" | "step"> {
  const column = raw.ref(time);
  return {
    oldest: oldestBy(table, time),
    async step({ db }, before, limit) {
      const { numAffectedRows = 0n } = await raw`
        delete from ${raw.table(table)} where ${raw.ref(key)} in (
          select ${raw.ref(key)} from ${raw.table(table)} where ${column} < ${before} order by ${column} limit ${limit}
        )`.execute(db);
      return Number(numAffectedRows);
    },
  };
}

function oldestBy(table: string, column: string) {
  return async ({ db }: Sql, before: Instant): Promise<number | null> => {
    const { rows } = await raw<{ at: number | null }>`
      select min(${raw.ref(column)}) as at from ${raw.table(table)} where ${raw.ref(column)} < ${before}`.execute(db);
    return rows[0]!.at === null ? null : Number(rows[0]!.at);
  };
}
