import { type CompiledQuery, type Kysely, type RawBuilder, sql as raw } from "kysely";
import type { Instant } from "../../../../../engine/src/clock/clock.ts";
import { digest } from "../../../../../engine/src/crypto/digest.ts";
import { holdLease, type Lease } from "../../../platform/store/lease.ts";
import { type MigrationPlan, migrate, schemaState } from "../../../platform/store/migrate.ts";
import { pruningTime } from "../../../platform/store/pruning-time.ts";
import type { Sql } from "../../../platform/store/store.ts";
import {
  type Batch,
  bounded,
  bucketOf,
  EDGE_RECORDER,
  minuteCounts,
  OVERFLOW,
  type Rollup,
  readBatch,
  rollUp,
  type Usage,
  type UsageLevel,
  usageLevels,
  usageOf,
} from "../batch.ts";
import { type Level, levelNames, levels, oldestKept, type Retention } from "../levels.ts";
import {
  type CountsQuery,
  type CountsRows,
  countsFrom,
  type DecisionQuery,
  type LogBounds,
  type Pruned,
  type StatsQuery,
  type StatsRows,
  type SubjectCounts,
  statsText,
  TOP_MAX,
  type TopQuery,
} from "../rollups.ts";
import { keptSum } from "../sums.ts";
import { compare } from "./compare.ts";
import { addDecisions, findDecisions, pruneDecisions } from "./decisions.ts";
import { type MergeOptions, MergePlan, mergeDefaults } from "./merge-plan.ts";
import { analyticsSteps, firstAnalyticsSteps } from "./migrations/index.ts";
import { rowsPerStatement } from "./rows-per-statement.ts";
import { RunMerge } from "./run-merge.ts";
import { addRun, countsInRuns, unpackRuns } from "./runs.ts";
import { type AnalyticsSchema, rollupTables, usageTables } from "./schema.ts";
import { addSegment, bucketStart, mergeSegments, unmergedRows } from "./segments.ts";
import { inSnapshot } from "./snapshot.ts";
import { addUsage, top as topUsage } from "./usage.ts";

/** The steps of the schema of analytics. */
export const analyticsPlan: MigrationPlan = {
  first: { steps: firstAnalyticsSteps, table: "analytics_migration" },
  steps: analyticsSteps,
  table: "analytics_schema_steps",
  lock: 7_262_837_123_004,
};

/** Rows per statement: some tenths of a millisecond of work, so that other statements do not wait long. */
const ROWS_PER_STATEMENT = 40;
/** Expired rows deleted per transaction. */
const ROWS_PER_PRUNING = 10_000;
/** A recorder without batches for this time is deleted: it has none waiting any more. */
const RECORDER_LIFE = 400 * levels.day;
/** The same of an edge, of which nothing is counted that is older than a day. Its time is that of a count, which can be a day before. */
const EDGE_RECORDER_LIFE = 3 * levels.day;

/** Buckets whose parts are cached, so that they are not read again each second. */
const BUCKETS_CACHED_MAX = 50_000;

/** Opens the procedures of the rollup tables. They run in the thread that owns the database connection. */
export function openRollupProcedures(merging: MergeOptions | null = null) {
  const options = merging ?? mergeDefaults;
  const plan = MergePlan.ofSegments(options);
  const runs = new RunMerge(options);
  // The cache may miss parts of other nodes. Then a bucket exceeds its maximum slightly.
  const cachedParts = new Map<string, Set<string>>();
  return {
    reading: {
      stats: (sql: Sql, query: StatsQuery) => stats(sql, query),
      longStats: (sql: Sql, query: StatsQuery) => stats(sql, query),
      counts: (sql: Sql, query: CountsQuery) => counts(sql, query),
      top: (sql: Sql, query: TopQuery) => topUsage(sql, query),
      decisions: (sql: Sql, query: DecisionQuery) => findDecisions(sql, query),
      schemaState: (sql: Sql, _: null) => schemaState(sql, analyticsPlan),
    },
    writing: {
      migrate: async (sql: Sql, _: null) => {
        const steps = await migrate(sql, analyticsPlan);
        if (!sql.dialect.isEmbedded) await unpackRuns(sql);
        return steps;
      },
      write: (sql: Sql, batches: readonly string[]) => write(sql, batches, cachedParts, options),
      /** An embedded database has segments of earlier releases, and those of another database that was moved to it. */
      merge: async (sql: Sql, { now }: { now: Instant }) =>
        (await mergeSegments(sql, now, plan, options)) || (sql.dialect.isEmbedded && (await runs.step(sql, now))),
      /** Adds rows that no recorder has counted. */
      addRollups: (sql: Sql, { level, rows }: { level: Level; rows: readonly Rollup[] }) =>
        add(sql, level, rows, new Map()),
      /** Adds usage that no recorder has counted. */
      addUsage: (sql: Sql, { level, rows }: { level: UsageLevel; rows: readonly Usage[] }) =>
        addUsage(sql, level, rows),
      prune: async (
        sql: Sql,
        {
          now,
          retention,
          log,
          lease,
        }: { now: Instant; retention: Retention; log: LogBounds; lease?: Lease | undefined },
      ) => {
        if (lease !== undefined) await holdLease(sql, lease, now);
        return prune(sql, await pruningTime(sql, now), retention, log);
      },
    },
  };
}

/** The thread of the embedded database opens the default export of its module. */
export default openRollupProcedures;

export type AnalyticsProcedures = ReturnType<typeof openRollupProcedures>;

function tablesOf({ db }: Sql): Kysely<AnalyticsSchema> {
  return db as unknown as Kysely<AnalyticsSchema>;
}

/** Adds the batches that are not repetitions, and returns their number. */
async function write(
  sql: Sql,
  texts: readonly string[],
  cachedParts: Map<string, Set<string>>,
  options: MergeOptions,
): Promise<number> {
  const fresh: Batch[] = [];
  for (const text of texts) {
    const batch = readBatch(text);
    if (await claim(sql, batch)) fresh.push(batch);
  }
  const counts = minuteCounts(fresh);
  const isLarge = counts.length >= options.segmentRowsMin;
  const rows = rollUp(fresh, isLarge ? [] : counts);
  for (const level of levelNames) await add(sql, level, rows[level], cachedParts);
  if (isLarge) {
    if (sql.dialect.isEmbedded) await addRun(sql, counts, options);
    else await addSegment(sql, counts);
  } else {
    const usage = usageOf(counts);
    for (const level of usageLevels) await addUsage(sql, level, usage[level]);
  }
  await addDecisions(sql, fresh);
  return fresh.length;
}

/** Whether the batch is new. Runs in the transaction that adds the batch, so that both are committed or neither. */
async function claim(
  sql: Sql,
  { recorder, sequence, keys, verifications, ratelimits, decisions }: Batch,
): Promise<boolean> {
  const seen_at = (keys[0] ?? verifications[0] ?? ratelimits[0] ?? decisions[0])?.[0] ?? 0;
  const claimed = await tablesOf(sql)
    .insertInto("analytics_recorders")
    .values({ id: recorder, sequence, seen_at })
    .onConflict((conflict) =>
      conflict.column("id").doUpdateSet({ sequence, seen_at }).where("analytics_recorders.sequence", "<", sequence),
    )
    .returning("id")
    .executeTakeFirst();
  return claimed !== undefined;
}

const columns = ["time", "subject", "part", "outcome", "label", "count", "amount", "latency_us"] as const;
const columnTypes = ["bigint", "text", "text", "text", "text", "bigint", "bigint", "bigint"] as const;

async function add(
  sql: Sql,
  level: Level,
  rows: readonly Rollup[],
  cachedParts: Map<string, Set<string>>,
): Promise<void> {
  const wanted = bounded(rows, await partsBefore(sql, level, rows, cachedParts));
  // All nodes write rows in the same order, so that no deadlock is possible.
  const sorted = wanted.toSorted(compareRows);
  const perStatement = rowsPerStatement(sql, ROWS_PER_STATEMENT);
  for (let i = 0; i < sorted.length; i += perStatement) {
    const some = sorted.slice(i, i + perStatement);
    await sql.db.executeQuery(insertion(sql, level, some));
  }
}

// Not a closure in each call, here and below, which V8 would collect with its code and compile again.
function compareRows(a: Rollup, b: Rollup): number {
  return a.time - b.time || compare(a.subject, b.subject) || compare(a.part, b.part) || compare(a.outcome, b.outcome);
}

/** Raw SQL, because these statements are most of the database load of the analytics. */
const insertInto = (level: Level) => `insert into ${rollupTables[level]} as t (${columns.join(", ")})`;
const addUp = `on conflict (time, subject, part, outcome) do update set
  count = ${keptSum("t.count + excluded.count")}, amount = ${keptSum("t.amount + excluded.amount")},
  latency_us = ${keptSum("t.latency_us + excluded.latency_us")}`;

function insertion({ dialect }: Sql, level: Level, rows: readonly Rollup[]): CompiledQuery {
  return dialect.values.insertion(insertInto(level), columnTypes, rows.map(valuesOf), addUp);
}

function valuesOf({ time, subject, part, outcome, label, count, amount, latencyUs }: Rollup) {
  return [time, subject, part, outcome, label, count, amount, latencyUs];
}

/** Reads the existing parts of all buckets that the rows add parts to. */
async function partsBefore(
  sql: Sql,
  level: Level,
  rows: readonly Rollup[],
  cachedParts: Map<string, Set<string>>,
): Promise<Map<string, Set<string>>> {
  const has = new Map<string, Set<string>>();
  const uncached = new Map<string, { time: number; subject: string }>();
  for (const { time, subject, part } of rows) {
    if (part === "") continue;
    const bucket = bucketOf({ time, subject });
    if (has.has(bucket)) continue;
    const parts = cachedParts.get(`${level} ${bucket}`);
    has.set(bucket, parts ?? new Set());
    if (parts === undefined) uncached.set(bucket, { time, subject });
  }
  if (uncached.size === 0) return has;
  const found = await tablesOf(sql)
    .selectFrom(sql.dialect.values.rows({ time: "bigint", subject: "text" }, [...uncached.values()]))
    .innerJoin(`${rollupTables[level]} as r`, (join) =>
      join
        .onRef("r.time", "=", "input.time")
        .onRef("r.subject", "=", "input.subject")
        .on("r.part", ">", "")
        .on("r.part", "<", OVERFLOW),
    )
    .select(["r.time", "r.subject", "r.part"])
    .distinct()
    .execute();
  for (const { time, subject, part } of found) has.get(bucketOf({ time, subject }))!.add(part);
  if (cachedParts.size + uncached.size > BUCKETS_CACHED_MAX) cachedParts.clear();
  for (const bucket of uncached.keys()) cachedParts.set(`${level} ${bucket}`, has.get(bucket)!);
  return has;
}

/** Deletes some of the expired rows. */
async function prune(sql: Sql, now: number, retention: Retention, log: LogBounds): Promise<Pruned> {
  const db = tablesOf(sql);
  await db
    .deleteFrom("analytics_recorders")
    .where("seen_at", "<", now - RECORDER_LIFE)
    .execute();
  await db
    .deleteFrom("analytics_recorders")
    .where("id", ">", EDGE_RECORDER)
    .where("id", "<", `${EDGE_RECORDER}~`)
    .where("seen_at", "<", now - EDGE_RECORDER_LIFE)
    .execute();
  let deleted = await pruneDecisions(sql, now, log);
  const expiring = [
    ...levelNames.map((level) => [rollupTables[level], level] as const),
    ...usageLevels.map((level) => [usageTables[level], level] as const),
  ];
  for (const [table, level] of expiring) {
    const oldest = oldestKept(level, retention, now);
    // Whole buckets with about this number of rows.
    const { rows } = await raw<{ time: number | null }>`
      select max(time) as time from (
        select time from ${raw.table(table)} where time < ${oldest} order by time limit ${ROWS_PER_PRUNING}
      ) as old`.execute(sql.db);
    const last = rows[0]?.time ?? null;
    if (last === null) continue;
    const { numDeletedRows } = await db.deleteFrom(table).where("time", "<=", Number(last)).executeTakeFirst();
    deleted += Number(numDeletedRows);
  }
  return { rows: deleted, more: deleted > 0 };
}

async function stats(sql: Sql, query: StatsQuery): Promise<string> {
  return statsText(query, {
    series: await series(sql, query),
    top: await top(sql, query),
    overflow: await overflow(sql, query),
  });
}

/** The rows of a time range. Each time is listed, so that the primary key finds the rows of a subject. */
function rowsIn(sql: Sql, { level, start, end }: Pick<StatsQuery, "level" | "start" | "end">) {
  const times: number[] = [];
  for (let time = start; time < end; time += levels[level]) times.push(time);
  return tablesOf(sql)
    .selectFrom(`${rollupTables[level]} as r`)
    .where(sql.dialect.values.isOneOfNumbers("r.time", times));
}

/** The rows of the subject and time range. */
function rowsOf(sql: Sql, query: StatsQuery) {
  return rowsIn(sql, query).where("r.subject", "=", query.subject);
}

/**
 * Reads the counts of whole buckets, merged or not: `read` gets an expression with the columns `subject`, `time`, `outcome`,
 * `count` and `amount`. What the tables and segments have is read in one statement, because a merge moves rows between them.
 */
function readWholes<T>(sql: Sql, query: CountsQuery, read: (wholes: RawBuilder<unknown>) => Promise<T>): Promise<T> {
  const isWanted = sql.dialect.values.isOneOf("r.subject", query.subjects);
  const merged = rowsIn(sql, query)
    .where(isWanted)
    .where("r.part", "=", "")
    .select(["r.subject", "r.time", "r.outcome", "r.count", "r.amount"]);
  return inSnapshot(sql, async () => {
    const inRuns = sql.dialect.isEmbedded ? await countsInRuns(sql, query) : [];
    const ofRuns = raw`
      union all select subject, time, outcome, count, amount from ${sql.dialect.values.rows(bucketCountTypes, inRuns)}`;
    return read(raw`(
      select subject, time, outcome, count, amount from ${merged} as merged
      union all
      select r.subject, ${bucketStart(query.level)} as time, r.outcome, r.count, r.amount
      from ${unmergedRows(query)} and ${isWanted} ${inRuns.length > 0 ? ofRuns : raw``})`);
  });
}

const bucketCountTypes = {
  subject: "text",
  time: "bigint",
  outcome: "text",
  count: "bigint",
  amount: "bigint",
} as const;

async function counts(sql: Sql, query: CountsQuery): Promise<SubjectCounts[]> {
  const rows = await readWholes(sql, query, async (wholes) => {
    const { rows } = await raw<CountsRows[number]>`
      select subject, time, ${kept("count")} as total, ${kept("case when outcome = 'VALID' then count else 0 end")} as valid
      from ${wholes} as counted group by subject, time`.execute(sql.db);
    return rows;
  });
  return countsFrom(rows);
}

/** The sum of a column or an expression, or the largest one that is kept. */
function kept(values: string) {
  return raw.raw<number>(keptSum(`sum(${values})`));
}

/** The same of the counts with an outcome. */
function countOf(outcome: "DENIED" | "VALID") {
  return kept(`case when r.outcome = '${outcome}' then r.count else 0 end`);
}

/** The tag set of a row. */
const label = raw`r.label`;

async function series(sql: Sql, query: StatsQuery): Promise<StatsRows["series"]> {
  let rows = rowsOf(sql, query);
  if (query.tags.length > 0) {
    rows = rows
      .where("r.part", ">", "")
      .where("r.part", "<", OVERFLOW)
      .where(sql.dialect.json.containsAll(label, query.tags));
  } else if (query.identifier !== undefined) {
    rows = rows.where("r.part", "=", digest(query.identifier));
  } else {
    return wholeSeries(sql, query);
  }
  return rows
    .select(["r.time", "r.outcome", kept("r.count").as("counts"), kept("r.amount").as("amounts")])
    .groupBy(["r.time", "r.outcome"])
    .execute();
}

function wholeSeries(sql: Sql, query: StatsQuery): Promise<StatsRows["series"]> {
  return readWholes(sql, { ...query, subjects: [query.subject] }, async (wholes) => {
    const { rows } = await raw<StatsRows["series"][number]>`
      select time, outcome, ${kept("count")} as counts, ${kept("amount")} as amounts
      from ${wholes} as counted group by time, outcome`.execute(sql.db);
    return rows;
  });
}

async function top(sql: Sql, query: StatsQuery): Promise<StatsRows["top"]> {
  const parts = rowsOf(sql, query).where("r.part", ">", "").where("r.part", "<", OVERFLOW);
  const all = kept("r.count");
  if (query.about === "ratelimits") {
    const denied = countOf("DENIED");
    let named = parts;
    if (query.identifier !== undefined) named = named.where("r.part", "=", digest(query.identifier));
    return named
      .select(["r.label as name", all.as("total"), denied.as("good")])
      .groupBy("r.label")
      .having(denied, ">", 0)
      .orderBy(denied, "desc")
      .orderBy("r.label")
      .limit(TOP_MAX)
      .execute();
  }
  const each = sql.dialect.json.elements(label, "tag");
  let tagged = parts;
  if (query.tags.length > 0) tagged = tagged.where(sql.dialect.json.containsAll(label, query.tags));
  return tagged
    .innerJoin(each, (join) => join.onTrue())
    .select(["tag.value as name", all.as("total"), countOf("VALID").as("good")])
    .groupBy("tag.value")
    .orderBy(all, "desc")
    .orderBy("tag.value")
    .limit(TOP_MAX)
    .execute();
}

async function overflow(sql: Sql, query: StatsQuery): Promise<StatsRows["overflow"]> {
  const found = await rowsOf(sql, query)
    .where("r.part", "=", OVERFLOW)
    .select(kept("r.count").as("counts"))
    .executeTakeFirst();
  return found?.counts ?? null;
}
