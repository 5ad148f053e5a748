import { sql as raw } from "kysely";
import type { Instant, Milliseconds } from "../../../../engine/src/clock/clock.ts";
import { holdLease, type Lease } from "./lease.ts";
import type { MonthlyTable, PartitionStep } from "./monthly-tables.ts";
import type { Schema } from "./schema.ts";
import type { Sql } from "./store.ts";

/** How long rows stay that the configuration decides on. */
export interface RetentionTimes {
  audit: Milliseconds;
  events: Milliseconds;
  deleted: Milliseconds;
}

/** Deletes what is too old from one table. */
export interface RetentionTask {
  /** How long its rows stay. */
  keep(times: RetentionTimes): Milliseconds;
  /** The time of the oldest row that is older than `before`; null if there is none. */
  oldest(sql: Sql, before: Instant): Promise<number | null>;
  /** Deletes at most `limit` rows that are older than `before`; returns their number. */
  step(sql: Sql, before: Instant, limit: number): Promise<number>;
  /** The most rows of one transaction, so that it lasts some milliseconds. */
  limit: number;
  /** Whether its old rows are found only by reading much of a table. It is then looked at less often. */
  isCostly?: boolean;
  /** The index by which its old rows are found, if a service builds it. */
  index?: RetentionIndex;
  /** Only a database that is not embedded has the table. */
  isOfServer?: boolean;
}

/** An index that services of PostgreSQL build beside reads and writes, because a migration would block a large table. */
export interface RetentionIndex {
  name: string;
  /** The table, the columns in parentheses, and the condition of rows. */
  on: string;
}

/** When a step runs, and how long rows stay. */
export interface RetentionStep {
  times: RetentionTimes;
  now: Instant;
}

/** For how long the oldest row is overdue, in milliseconds; null if no row is. */
export async function retentionLag(
  sql: Sql,
  task: RetentionTask,
  { times, now }: RetentionStep,
): Promise<Milliseconds | null> {
  if (task.isOfServer && sql.dialect.isEmbedded) return null;
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
  task: RetentionTask,
  { times, now, lease }: RetentionStep & { lease: Lease },
): Promise<number> {
  await holdLease(sql, lease, now);
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
 * Changes the layout of a table that is divided by month, by one step; null if there is nothing to do.
 *
 * @throws {LeaseLost} when another node does this work.
 */
export async function changeLayout(sql: Sql, { table, keep, now, lease }: LayoutStep): Promise<PartitionStep | null> {
  await holdLease(sql, lease, now);
  return sql.dialect.partitions.step(sql, table, await threshold(sql, keep, now));
}

/** Removes the boundary of a table that was to be divided and is not. */
export async function undoDivision(
  sql: Sql,
  { table, lease, now }: { table: MonthlyTable; lease: Lease; now: Instant },
): Promise<void> {
  await holdLease(sql, lease, now);
  await sql.dialect.partitions.removeBound(sql, table);
}

/** Rows before this time are too old. A node whose clock is ahead deletes nothing that others need. */
async function threshold(sql: Sql, keep: Milliseconds, now: Instant): Promise<Instant> {
  const { rows } = await raw<{ time: number }>`select ${sql.dialect.time.pruning(now)} as time`.execute(sql.db);
  return (Number(rows[0]!.time) - keep) as Instant;
}

/** Finds and deletes the rows of a table with the primary key `key` by the column of their time, which has an index. */
export function byTime(table: keyof Schema, key: string, time: string): Pick<RetentionTask, "oldest" | "step"> {
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

/** Finds the time of the oldest row of a table. */
export function oldestBy(table: string, column: string): RetentionTask["oldest"] {
  return async ({ db }, before) => {
    const { rows } = await raw<{ at: number | null }>`
      select min(${raw.ref(column)}) as at from ${raw.table(table)} where ${raw.ref(column)} < ${before}`.execute(db);
    return rows[0]!.at === null ? null : Number(rows[0]!.at);
  };
}
