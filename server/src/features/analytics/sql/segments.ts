import { type Kysely, type RawBuilder, sql as raw } from "kysely";
import type { Sql } from "../../../platform/store/store.ts";
import { type MinuteCount, usageLevels } from "../batch.ts";
import { type Level, levels } from "../levels.ts";
import type { StatsQuery, TopQuery } from "../rollups.ts";
import { keptSum } from "../sums.ts";
import { inKeyOrder } from "./key-order.ts";
import type { MergeOptions, MergePlan } from "./merge-plan.ts";
import { placeOf, START } from "./place.ts";
import { rowsPerStatement } from "./rows-per-statement.ts";
import { type AnalyticsSchema, rollupTables, usageTables } from "./schema.ts";

/** Rows per statement: some tenths of a millisecond of work, so that other threads of the core do not wait long. */
const ROWS_PER_STATEMENT = 100;

/** The name of the lock that only one merge at a time has. */
const LOCK = "latchkey merges analytics";

/** The rows of one step of a merge by hour, in a table of the connection: grouped or bound once for four tables. */
export const GROUPED = "analytics_grouped_rows";
export const groupedTypes = {
  time: "bigint",
  workspace_id: "text",
  subject: "text",
  identity_id: "text",
  outcome: "text",
  api_id: "text",
  count: "bigint",
  amount: "bigint",
  latency_us: "bigint",
} as const;

const columns = [
  ...(["segment", "workspace_id", "subject", "identity_id", "outcome", "time"] as const),
  ...(["api_id", "count", "amount", "latency_us"] as const),
];
const columnTypes = [
  ...(["bigint", "text", "text", "text", "text", "bigint"] as const),
  ...(["text", "bigint", "bigint", "bigint"] as const),
];
const insertInto = `insert into analytics_segment_rows (${columns.join(", ")})`;

/** Adds the counts of one write as a segment: one sorted run of new rows, where an update would be a page for each row. */
export async function addSegment(sql: Sql, counts: readonly MinuteCount[]): Promise<void> {
  const id = await addWriteTo(sql, "analytics_segments", counts);
  const sorted = inKeyOrder(counts);
  const perStatement = rowsPerStatement(sql, ROWS_PER_STATEMENT);
  for (let i = 0; i < sorted.length; i += perStatement) {
    const values = sorted
      .slice(i, i + perStatement)
      .map((one) => [
        id,
        one.workspaceId,
        one.subject,
        one.identityId,
        one.outcome,
        one.time,
        one.apiId,
        one.count,
        one.amount,
        one.latencyUs,
      ]);
    await sql.db.executeQuery(sql.dialect.values.insertion(insertInto, columnTypes, values, ""));
  }
}

/** Adds a write to the list of those that wait for a merge, and returns its id. */
export async function addWriteTo(
  sql: Sql,
  table: "analytics_segments" | "analytics_runs",
  counts: readonly MinuteCount[],
): Promise<number> {
  let [first_minute, last_minute] = [Number.POSITIVE_INFINITY, 0];
  for (const { time } of counts) {
    first_minute = Math.min(first_minute, time);
    last_minute = Math.max(last_minute, time);
  }
  const { id } = await tablesOf(sql)
    .insertInto(table)
    .values({ first_minute, last_minute, rows: counts.length, merged_to: null })
    .returning("id")
    .executeTakeFirstOrThrow();
  return Number(id);
}

/** The rows `r` of a workspace in a range that are not merged yet, for a `from` clause. The last condition is open. */
export function unmergedRows({
  workspaceId,
  start,
  end,
}: Pick<StatsQuery | TopQuery, "workspaceId" | "start" | "end">): RawBuilder<unknown> {
  return raw`analytics_segments as s join analytics_segment_rows as r
    on r.segment = s.id and r.workspace_id = ${workspaceId} and r.time >= ${start} and r.time < ${end}
    where s.last_minute >= ${start} and s.first_minute < ${end}`;
}

/** The start of the bucket of a row `r`. */
export function bucketStart(level: Level): RawBuilder<number> {
  return raw<number>`r.time - r.time % ${raw.lit(levels[level])}`;
}

/**
 * Moves some rows of the segments into the tables of counts, in the order of their subjects: many rows of a page at a time.
 * Returns whether there are more. A row is in a segment or in the tables, in every snapshot of the database.
 */
export async function mergeSegments(
  sql: Sql,
  now: number,
  plan: MergePlan,
  { rowsPerStep }: MergeOptions,
): Promise<boolean> {
  if (!(await sql.dialect.locks.tryLockText(sql, LOCK))) return false;
  const db = tablesOf(sql);
  const all = await db.selectFrom("analytics_segments").selectAll().execute();
  const begun = all.filter(({ merged_to }) => merged_to !== null);
  if (begun.length === 0 && (all.length === 0 || !plan.isDue(all, now))) return false;
  // The segments of a merge are chosen at its beginning, so that it ends although new ones are added.
  const ids = (begun.length === 0 ? all : begun).map(({ id }) => Number(id));
  const from = placeOf(begun[0]?.merged_to ?? START);
  const merged = raw`r.segment in (${raw.join(ids)})`;
  const perSegment = Math.max(1, Math.floor(rowsPerStep / ids.length));
  const next = await raw<{ place: string | null }>`
    select min(place) as place from (
      select (
        select r.workspace_id || ' ' || r.subject from analytics_segment_rows as r
        where r.segment = s.id and (r.workspace_id, r.subject) > (${from[0]}, ${from[1]})
        order by r.workspace_id, r.subject limit 1 offset ${perSegment}
      ) as place
      from analytics_segments as s where ${sql.dialect.values.isOneOfNumbers("s.id", ids)}
    ) as places`.execute(sql.db);
  const place = next.rows[0]?.place ?? null;
  const until = placeOf(place ?? START);
  const isBefore = place === null ? raw`` : raw`and (r.workspace_id, r.subject) <= (${until[0]}, ${until[1]})`;
  const rows = raw`analytics_segment_rows as r
    where ${merged} and (r.workspace_id, r.subject) > (${from[0]}, ${from[1]}) ${isBefore}`;
  await addRollups(sql, "minute", rows, false);
  await sql.dialect.schema.emptyTemporaryTable(sql, GROUPED, groupedTypes);
  await raw`
    insert into ${raw.table(GROUPED)} (${raw.raw(Object.keys(groupedTypes).join(", "))})
    select ${bucketStart("hour")} as bucket, r.workspace_id, r.subject, r.identity_id, r.outcome, min(r.api_id),
      ${sumsOf("r.count", "r.amount", "r.latency_us")}
    from ${rows} group by r.subject, r.outcome, bucket, r.identity_id, r.workspace_id`.execute(sql.db);
  plan.add(await addGrouped(sql));
  await raw`delete from ${rows}`.execute(sql.db);
  if (place !== null) {
    await db.updateTable("analytics_segments").set({ merged_to: place }).where("id", "in", ids).execute();
    return true;
  }
  await db.deleteFrom("analytics_segments").where("id", "in", ids).execute();
  plan.end();
  return false;
}

/** Adds the rows of the temporary table to the counts by hour and day. Returns the number of rows by hour. */
export async function addGrouped(sql: Sql): Promise<number> {
  const grouped = raw`${raw.table(GROUPED)} as r where true`;
  const hours = await addRollups(sql, "hour", grouped, addsEach(sql));
  await addRollups(sql, "day", grouped, addsEach(sql));
  const [usage, ofUsage] = addsEach(sql)
    ? [raw`r.api_id, r.count, r.amount`, raw``]
    : [
        raw`min(r.api_id), ${sumsOf("r.count", "r.amount")}`,
        raw`group by r.subject, r.outcome, bucket, r.identity_id, r.workspace_id`,
      ];
  for (const level of usageLevels) {
    await raw`
      insert into ${raw.table(usageTables[level])} as t
        (time, workspace_id, key_id, identity_id, outcome, api_id, count, credits_spent)
      select ${bucketStart(level)} as bucket, r.workspace_id, r.subject, r.identity_id, r.outcome, ${usage}
      from ${grouped} and r.api_id <> '' ${ofUsage}
      ${inOrder(sql, "bucket, r.workspace_id, r.subject, r.identity_id, r.outcome")}
      on conflict (time, workspace_id, key_id, identity_id, outcome) do update set
        count = ${added("count")}, credits_spent = ${added("credits_spent")}`.execute(sql.db);
  }
  return hours;
}

/**
 * Whether each row is added, although some are about the same bucket: less work than to add them up before, if they are few.
 * PostgreSQL rejects an insert with two rows of one key.
 */
function addsEach({ dialect }: Sql): boolean {
  return dialect.isEmbedded;
}

/**
 * The order of the primary key, in which all nodes write, so that no deadlock is possible. The embedded database has one
 * writer: there, rows are written in the order of their subjects, in which they are grouped without another sort.
 */
function inOrder({ dialect }: Sql, order: string): RawBuilder<unknown> {
  return dialect.isEmbedded ? raw`` : raw`order by ${raw.raw(order)}`;
}

/**
 * Adds the counts of rows `r` of whole buckets, in the order of the primary key. Returns the number of changed rows.
 *
 * @param isEach whether each is added, or their sums.
 */
async function addRollups(sql: Sql, level: Level, rows: RawBuilder<unknown>, isEach: boolean): Promise<number> {
  const [sums, grouping] = isEach
    ? [raw`r.count, r.amount, r.latency_us`, raw``]
    : [sumsOf("r.count", "r.amount", "r.latency_us"), raw`group by r.subject, r.outcome, bucket`];
  const { numAffectedRows = 0 } = await raw`
    insert into ${raw.table(rollupTables[level])} as t
      (time, subject, part, outcome, label, count, amount, latency_us)
    select ${bucketStart(level)} as bucket, r.subject, '', r.outcome, '', ${sums}
    from ${rows} ${grouping} ${inOrder(sql, "bucket, r.subject, r.outcome")}
    on conflict (time, subject, part, outcome) do update set count = ${added("count")},
      amount = ${added("amount")}, latency_us = ${added("latency_us")}`.execute(sql.db);
  return Number(numAffectedRows);
}

/** Sums of columns of rows. */
function sumsOf(...columns: string[]): RawBuilder<unknown> {
  return raw.raw(columns.map((column) => keptSum(`sum(${column})`)).join(", "));
}

/** The sum of a column of a row that exists and of one that is inserted. */
function added(column: string): RawBuilder<unknown> {
  return raw.raw(keptSum(`t.${column} + excluded.${column}`));
}

function tablesOf({ db }: Sql): Kysely<AnalyticsSchema> {
  return db as unknown as Kysely<AnalyticsSchema>;
}
