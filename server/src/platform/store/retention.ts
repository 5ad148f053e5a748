import { sql as raw } from "kysely";
import type { Instant, Milliseconds } from "../../../../engine/src/clock/clock.ts";
import { holdLease, type Lease } from "./lease.ts";
import type { MonthlyTable, PartitionStep } from "./monthly-tables.ts";
import { onlyRow } from "./only-row.ts";
import { pruningTime } from "./pruning-time.ts";
import type { Schema } from "./schema.ts";
import type { Sql } from "./store.ts";

/** How long rows stay that the configuration decides on. */
export interface RetentionTimes {
  audit: Milliseconds;
  events: Milliseconds;
  deleted: Milliseconds;
  holds: Milliseconds;
  expiredHolds: Milliseconds;
}

/** A place in the order in which a task looks through rows. */
export interface RetentionPlace {
  readonly at: number;
  readonly id: string;
}

const START: RetentionPlace = { at: 0, id: "" };

/** What a step did. `end`: up to where it has looked through rows, if the next one is to continue there. */
export interface Retained {
  readonly deleted: number;
  readonly end: RetentionPlace | null;
}

/**
 * Deletes what is too old from one table. A task whose old rows lie among others that stay looks through them all, some in
 * each step: `after` is the place where the last step ended.
 */
export interface RetentionTask {
  /** How long its rows stay. */
  keep(times: RetentionTimes): Milliseconds;
  /** The time of the oldest row that is older than `before`; null if there is none, or no row to look at. */
  oldest(sql: Sql, before: Instant, after: RetentionPlace): Promise<number | null>;
  /** Deletes at most `limit` rows that are older than `before`; returns their number, and where it ended. */
  step(sql: Sql, before: Instant, limit: number, after: RetentionPlace): Promise<number | Retained>;
  /** The most rows of one transaction, so that it lasts some milliseconds. */
  limit: number;
  /** Whether its old rows are found only by reading much of a table. It is then looked at less often. */
  isCostly?: boolean;
  /** The index by which its old rows are found, if a service builds it. */
  index?: LateIndex;
  /** Only a database that is not embedded has the table. */
  isOfServer?: boolean;
}

/** An index that services of PostgreSQL build beside reads and writes, because a migration would block a large table. */
export interface LateIndex {
  name: string;
  /** The table, the columns in parentheses, and the condition of rows. */
  on: string;
}

/** When a step runs, how long rows stay, and where the last step ended. */
export interface RetentionStep {
  times: RetentionTimes;
  now: Instant;
  after?: RetentionPlace | undefined;
}

/** For how long the oldest row is overdue, in milliseconds; null if no row is. */
export async function retentionLag(
  sql: Sql,
  task: RetentionTask,
  { times, now, after = START }: RetentionStep,
): Promise<Milliseconds | null> {
  if (task.isOfServer && sql.dialect.isEmbedded) return null;
  const before = await threshold(sql, task.keep(times), now);
  const oldest = await task.oldest(sql, before, after);
  return oldest === null ? null : Math.max(0, before - oldest);
}

/**
 * Deletes some of the rows that are too old.
 *
 * @throws {LeaseLost} when another node does this work.
 */
export async function retain(
  sql: Sql,
  task: RetentionTask,
  { times, now, after = START, lease }: RetentionStep & { lease: Lease },
): Promise<Retained> {
  await holdLease(sql, lease, now);
  const done = await task.step(sql, await threshold(sql, task.keep(times), now), task.limit, after);
  return typeof done === "number" ? { deleted: done, end: null } : done;
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

/** Rows before this time are too old. */
async function threshold(sql: Sql, keep: Milliseconds, now: Instant): Promise<Instant> {
  return ((await pruningTime(sql, now)) - keep) as Instant;
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
    const found = await raw<{ at: number | null }>`
      select min(${raw.ref(column)}) as at from ${raw.table(table)} where ${raw.ref(column)} < ${before}`.execute(db);
    const { at } = onlyRow(found);
    return at === null ? null : Number(at);
  };
}
