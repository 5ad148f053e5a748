import { sql as raw } from "kysely";
import type { Instant, Milliseconds } from "../../../../../engine/src/clock/clock.ts";
import type { Connection } from "../dialect.ts";
import { type MonthlyTable, monthlyTableNames, type PartitionState, type PartitionStep } from "../monthly-tables.ts";
import { onlyRow } from "../only-row.ts";
import { buildIndex, isIndexed } from "./build-index.ts";
import { postgresNow } from "./clock.ts";

const DAY: Milliseconds = 86_400_000;

/** Partitions reach at least this far ahead of the database's clock. */
const AHEAD: Milliseconds = 62 * DAY;
/** The month at which a table that has rows is divided begins at least so far ahead of its newest row. */
const MARGIN: Milliseconds = 95 * DAY;
/** A boundary that is nearer than this when the table could be divided is chosen again. */
const MARGIN_MIN: Milliseconds = 7 * DAY;
/** A table with a row further ahead of the database's clock than this is not divided. */
const NEWEST_MAX: Milliseconds = 400 * DAY;
/** The most rows that are moved from the default partition into a month, in some tenths of a second. */
const MOVED_MAX = 10_000;

/** How long a change of the layout waits for a lock. New statements on the table wait behind it. */
const LOCK_TIMEOUT: Milliseconds = 200;
const STATEMENT_TIMEOUT: Milliseconds = 5_000;

const CHECK_VIOLATION = "23514";

interface Division {
  /** The column that decides on the month, in epoch milliseconds. */
  time: string;
  /** The primary key, which contains this column. */
  key: readonly string[];
  /** Finds the time of the newest row by an index. */
  newest: string;
}

const newestAudit =
  "select max((select max(occurred_at) from audit_events where workspace_id = workspaces.id)) as at from workspaces";

const counts = (name: string): Division => ({
  time: "time",
  key: ["time", "subject", "part", "outcome"],
  newest: `select max(time) as at from ${name}`,
});

const usage = (name: string): Division => ({
  time: "time",
  key: ["time", "workspace_id", "key_id", "identity_id", "outcome"],
  newest: `select max(time) as at from ${name}`,
});

const divisions: Readonly<Record<MonthlyTable, Division>> = {
  audit_events: { time: "occurred_at", key: ["id", "occurred_at"], newest: newestAudit },
  audit_targets: {
    time: "occurred_at",
    key: ["workspace_id", "target", "occurred_at", "event_id"],
    newest: newestAudit,
  },
  analytics_minutes: counts("analytics_minutes"),
  analytics_hours: counts("analytics_hours"),
  analytics_days: counts("analytics_days"),
  analytics_usage_hours: usage("analytics_usage_hours"),
  analytics_usage_days: usage("analytics_usage_days"),
};

/** A partition, with rows from `from` on and before `until`; null without a bound. */
interface Partition {
  name: string;
  from: number | null;
  until: number | null;
  isDefault: boolean;
  /** As PostgreSQL estimates it; 0 if it has never looked. */
  rows: number;
}

/**
 * Changes the layout of a table by one step: drops one partition whose rows are all older than `before`, or makes one of
 * the next months, or brings a table that is not divided nearer to it. Null if there is nothing to do.
 *
 * It waits a fifth of a second for a lock and fails then. Nothing changes while `latchkey migrate-store` copies the
 * database: its triggers record deleted rows and not dropped partitions.
 */
export async function partitionStep(
  sql: Connection,
  table: MonthlyTable,
  before: Instant,
): Promise<PartitionStep | null> {
  await limitWaits(sql);
  const partitions = await findPartitions(sql, table);
  if (partitions === "missing") return null;
  if (partitions === "whole") return divide(sql, table);
  const old = partitions.find(({ isDefault, until }) => !isDefault && until !== null && until <= before);
  if (old !== undefined) return drop(sql, table, old);
  return makeMonth(sql, table, partitions);
}

/**
 * Does what takes long before a table can be divided, beside reads and writes: builds the index of its primary key, and
 * checks its rows. Not in a transaction. Repeating it, or running it twice at once, does no harm.
 */
export async function preparePartitions(sql: Connection, table: MonthlyTable): Promise<void> {
  const { db } = sql;
  const { key } = divisions[table];
  if (!(await hasKey(sql, table))) {
    const columns = raw.join(key.map((column) => raw.ref(column)));
    await buildIndex(sql, keyIndex(table), raw`on ${raw.table(table)} (${columns})`, true);
  }
  try {
    await raw`alter table ${raw.table(table)} validate constraint ${raw.ref(boundCheck(table))}`.execute(db);
  } catch (error) {
    // The table has a row at or after the boundary, so it must not go on to reject others.
    if ((error as { code?: string }).code === CHECK_VIOLATION) await removeBound(sql, table);
    throw error;
  }
}

/** Removes the boundary of a table that is not divided. Without one nothing happens. */
export async function removeBound(sql: Connection, table: MonthlyTable): Promise<void> {
  if ((await findBound(sql, table)) === undefined) return;
  await limitWaits(sql);
  await raw`alter table ${raw.table(table)} drop constraint if exists ${raw.ref(boundCheck(table))}`.execute(sql.db);
}

/** How the tables that exist are stored. */
export async function findPartitionStates(sql: Connection): Promise<PartitionState[]> {
  const states: PartitionState[] = [];
  for (const table of monthlyTableNames) {
    const partitions = await findPartitions(sql, table);
    if (partitions === "missing") continue;
    if (partitions === "whole") {
      const reason = await findObstacle(sql, table);
      states.push({ table, isDivided: false, partitions: [], until: null, strays: 0, reason: reason ?? null });
      continue;
    }
    const stray = partitions.find(({ isDefault }) => isDefault);
    const bounded = partitions.filter(({ isDefault }) => !isDefault);
    states.push({
      table,
      isDivided: true,
      partitions: partitions.map(({ name }) => name),
      reason: null,
      until: Math.max(...bounded.map(({ until }) => until ?? 0)),
      strays: stray === undefined ? 0 : await countRows(sql, stray.name),
    });
  }
  return states;
}

/** The start of the month that contains `time` plus some months, in UTC. */
export function monthStart(time: number, months = 0): number {
  const date = new Date(time);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + months, 1);
}

/** `2026_08` */
function monthName(time: number): string {
  return new Date(time).toISOString().slice(0, 7).replace("-", "_");
}

const keyIndex = (table: MonthlyTable) => `${table}_month_key`;
const boundCheck = (table: MonthlyTable) => `${table}_month_check`;
const defaultPartition = (table: MonthlyTable) => `${table}_default`;

/** Bounds how long the statements of this transaction wait and run. */
async function limitWaits({ db }: Connection): Promise<void> {
  await raw`select set_config('lock_timeout', ${`${LOCK_TIMEOUT}ms`}, true),
    set_config('statement_timeout', ${`${STATEMENT_TIMEOUT}ms`}, true)`.execute(db);
}

async function findPartitions({ db }: Connection, table: MonthlyTable): Promise<Partition[] | "whole" | "missing"> {
  const { rows } = await raw<{ kind: string; name: string | null; bound: string; rows: number }>`
    select t.relkind as kind, p.relname as name, pg_get_expr(p.relpartbound, p.oid) as bound, p.reltuples as rows
    from pg_class t
    left join pg_inherits i on i.inhparent = t.oid and t.relkind = 'p'
    left join pg_class p on p.oid = i.inhrelid
    where t.oid = to_regclass(${table}) and t.relkind in ('r', 'p')`.execute(db);
  const [first] = rows;
  if (first === undefined) return "missing";
  if (first.kind === "r") return "whole";
  const found = rows.flatMap(({ name, bound, rows }): Partition[] => {
    if (name === null) return [];
    const [, from, until] = /FROM \('?(\w+)'?\) TO \('?(\w+)'?\)/.exec(bound) ?? [];
    const edge = (text: string | undefined) => (text === undefined || !/^\d+$/.test(text) ? null : Number(text));
    return [
      {
        name,
        from: edge(from),
        until: edge(until),
        isDefault: bound === "DEFAULT",
        rows: Math.max(0, Number(rows)),
      },
    ];
  });
  return found.sort((a, b) => (a.until ?? Number.MAX_VALUE) - (b.until ?? Number.MAX_VALUE));
}

async function drop({ db }: Connection, table: MonthlyTable, { name, rows }: Partition): Promise<PartitionStep | null> {
  await raw`lock table ${raw.table(table)} in access exclusive mode`.execute(db);
  if (await isMoving({ db })) return null;
  await raw`drop table ${raw.table(name)}`.execute(db);
  return { step: "dropped", partition: name, rows };
}

/** Makes the first month that is missing. Rows of it that are in the default partition go with it, unless they are many. */
async function makeMonth(
  sql: Connection,
  table: MonthlyTable,
  partitions: readonly Partition[],
): Promise<PartitionStep | null> {
  const now = await databaseTime(sql);
  for (let from = monthStart(now); from < now + AHEAD; from = monthStart(from, 1)) {
    const until = monthStart(from, 1);
    const isCovered = partitions.some(
      (other) => !other.isDefault && (other.from ?? 0) < until && (other.until ?? Number.MAX_VALUE) > from,
    );
    if (isCovered) continue;
    const partition = `${table}_${monthName(from)}`;
    if (await attachMonth(sql, table, partition, { from, until })) return { step: "made", partition };
  }
  return null;
}

async function attachMonth(
  { db }: Connection,
  table: MonthlyTable,
  partition: string,
  { from, until }: { from: number; until: number },
): Promise<boolean> {
  // Inserts into other partitions go on.
  await raw`lock table only ${raw.table(table)} in share update exclusive mode`.execute(db);
  if (await isMoving({ db })) return false;
  const time = raw.ref(divisions[table].time);
  const ofMonth = raw`${time} >= ${raw.lit(from)} and ${time} < ${raw.lit(until)}`;
  await raw`create table if not exists ${raw.table(defaultPartition(table))}
    partition of ${raw.table(table)} default`.execute(db);
  const stray = raw.table(defaultPartition(table));
  await raw`lock table ${stray} in access exclusive mode`.execute(db);
  const counted = await raw<{ count: number }>`
    select count(*) as count from (select 1 from ${stray} where ${ofMonth} limit ${MOVED_MAX + 1}) as strays`.execute(
    db,
  );
  const strays = Number(onlyRow(counted).count);
  if (strays > MOVED_MAX) return false;
  await raw`create table ${raw.table(partition)} (like ${raw.table(table)} including defaults)`.execute(db);
  if (strays > 0) {
    await raw`with moved as (delete from ${stray} where ${ofMonth} returning *)
      insert into ${raw.table(partition)} select * from moved`.execute(db);
  }
  await raw`alter table ${raw.table(table)} attach partition ${raw.table(partition)}
    for values from (${raw.lit(from)}) to (${raw.lit(until)})`.execute(db);
  return true;
}

/** Brings a table that is not divided one step nearer to it. */
async function divide(sql: Connection, table: MonthlyTable): Promise<PartitionStep | null> {
  const reason = await findObstacle(sql, table);
  if (reason !== undefined) return { step: "kept", reason };
  const { db } = sql;
  const now = await databaseTime(sql);
  const bound = await findBound(sql, table);
  if (bound === undefined) {
    const newest = Math.max(now, await findNewest(sql, table));
    const until = monthStart(newest + MARGIN, 1);
    if (await isMoving(sql)) return null;
    await raw`alter table ${raw.table(table)} add constraint ${raw.ref(boundCheck(table))}
      check (${raw.ref(divisions[table].time)} < ${raw.lit(until)}) not valid`.execute(db);
    return { step: "bounded" };
  }
  if (bound.until < now + MARGIN_MIN) {
    await removeBound(sql, table);
    return { step: "bounded" };
  }
  if (!bound.isValid || !((await hasKey(sql, table)) || (await isIndexed(sql, keyIndex(table)))))
    return { step: "unprepared" };
  return swap(sql, table, bound.until);
}

/** Puts the table into a new one of the same name, as the partition of everything before `until`. */
async function swap(sql: Connection, table: MonthlyTable, until: number): Promise<PartitionStep | null> {
  const { db } = sql;
  await raw`lock table ${raw.table(table)} in access exclusive mode`.execute(db);
  if ((await findPartitions(sql, table)) !== "whole" || (await isMoving(sql))) return null;
  const suffix = `until_${monthName(until)}`;
  const first = `${table}_${suffix}`;
  const { time, key } = divisions[table];
  const keyColumns = raw.join(key.map((column) => raw.ref(column)));
  const { rows: indexes } = await raw<{ name: string; definition: string; constraint: string | null }>`
    select i.relname as name, pg_get_indexdef(i.oid) as definition, c.conname as constraint
    from pg_index x join pg_class i on i.oid = x.indexrelid
    left join pg_constraint c on c.conindid = i.oid and c.contype = 'p'
    where x.indrelid = ${table}::regclass`.execute(db);
  const { rows: grants } = await raw<{ statement: string }>`
    select format('grant %s on %I to %s%s', a.privilege_type, c.relname,
      case a.grantee when 0 then 'public' else a.grantee::regrole::text end,
      case when a.is_grantable then ' with grant option' else '' end) as statement
    from pg_class c cross join aclexplode(c.relacl) as a where c.oid = ${table}::regclass
    union all
    select format('alter table %I owner to %s', c.relname, c.relowner::regrole) from pg_class c
    where c.oid = ${table}::regclass and c.relowner <> current_user::regrole`.execute(db);

  const primary = indexes.find(({ constraint }) => constraint !== null)!;
  if (await hasKey(sql, table)) {
    await raw`alter index ${raw.ref(primary.name)} rename to ${raw.ref(`${first}_pkey`)}`.execute(db);
  } else {
    await raw`alter table ${raw.table(table)} drop constraint ${raw.ref(primary.constraint!)},
      add constraint ${raw.ref(`${first}_pkey`)} primary key using index ${raw.ref(keyIndex(table))}`.execute(db);
  }
  const others = indexes.filter(({ name }) => name !== primary.name && name !== keyIndex(table));
  for (const { name } of others) {
    await raw`alter index ${raw.ref(name)} rename to ${raw.ref(`${name}_${suffix}`)}`.execute(db);
  }
  await raw`alter table ${raw.table(table)} rename to ${raw.ref(first)}`.execute(db);
  await raw`create table ${raw.table(table)} (like ${raw.table(first)} including defaults,
    constraint ${raw.ref(primary.constraint!)} primary key (${keyColumns})) partition by range (${raw.ref(time)})`.execute(
    db,
  );
  for (const { definition } of others) await raw.raw(definition).execute(db);
  // The constraint proves the bound, so no row is read; indexes that are equal become those of the partition.
  await raw`alter table ${raw.table(table)} attach partition ${raw.table(first)}
    for values from (minvalue) to (${raw.lit(until)})`.execute(db);
  await raw`alter table ${raw.table(first)} drop constraint ${raw.ref(boundCheck(table))}`.execute(db);
  await raw`create table ${raw.table(defaultPartition(table))} partition of ${raw.table(table)} default`.execute(db);
  for (const { statement } of grants) await raw.raw(statement).execute(db);
  return { step: "divided" };
}

/** What speaks against dividing a table: what refers to it by its identity would go on with the first partition alone. */
async function findObstacle(sql: Connection, table: MonthlyTable): Promise<string | undefined> {
  const { rows } = await raw<{ reason: string }>`
    with t as (select * from pg_class where oid = ${table}::regclass)
    select 'a view or a rule depends on it' as reason from t, pg_depend d
      where d.classid = 'pg_rewrite'::regclass and d.refclassid = 'pg_class'::regclass and d.refobjid = t.oid
    union all select 'it has triggers' from t, pg_trigger g
      where g.tgrelid = t.oid and not g.tgisinternal and g.tgname not like 'move\\_%'
    union all select 'foreign keys refer to it' from t, pg_constraint c where c.confrelid = t.oid
    union all select 'a publication names it' from t, pg_publication_rel p where p.prrelid = t.oid
    union all select 'it has row security policies' from t where t.relrowsecurity
    union all select 'it inherits from another table' from t, pg_inherits i where t.oid in (i.inhparent, i.inhrelid)`.execute(
    sql.db,
  );
  if (rows[0]) return rows[0].reason;
  const newest = await findNewest(sql, table);
  if (newest <= (await databaseTime(sql)) + NEWEST_MAX) return undefined;
  return `it has rows of ${new Date(newest).toISOString().slice(0, 10)}: a clock was wrong`;
}

async function findNewest({ db }: Connection, table: MonthlyTable): Promise<number> {
  return Number(onlyRow(await raw<{ at: number | null }>`${raw.raw(divisions[table].newest)}`.execute(db)).at ?? 0);
}

/** The boundary that was chosen for a table, and whether all rows are known to be before it. */
async function findBound(
  { db }: Connection,
  table: MonthlyTable,
): Promise<{ until: number; isValid: boolean } | undefined> {
  const { rows } = await raw<{ definition: string; valid: boolean }>`
    select pg_get_constraintdef(oid) as definition, convalidated as valid from pg_constraint
    where conrelid = to_regclass(${table}) and conname = ${boundCheck(table)}`.execute(db);
  return rows[0] && { until: Number(/\d{10,}/.exec(rows[0].definition)![0]), isValid: rows[0].valid };
}

/** Whether the primary key of a table that is not divided contains its time. */
async function hasKey({ db }: Connection, table: MonthlyTable): Promise<boolean> {
  const { rows } = await raw`
    select 1 from pg_index x join pg_attribute a on a.attrelid = x.indrelid and a.attnum = any(x.indkey)
    where x.indrelid = ${table}::regclass and x.indisprimary and a.attname = ${divisions[table].time}`.execute(db);
  return rows.length > 0;
}

/** Whether a move copies from this database or to it, or has ended here. */
async function isMoving({ db }: Connection): Promise<boolean> {
  const { rows } = await raw`select 1 from moves where role = 'source' or ended_at is null`.execute(db);
  return rows.length > 0;
}

async function countRows({ db }: Connection, partition: string): Promise<number> {
  const counted = await raw<{ count: number }>`
    select count(*) as count from (select 1 from ${raw.table(partition)} limit ${MOVED_MAX + 1}) as counted`.execute(
    db,
  );
  return Number(onlyRow(counted).count);
}

async function databaseTime({ db }: Connection): Promise<number> {
  return Number(onlyRow(await raw<{ now: number }>`select ${postgresNow} as now`.execute(db)).now);
}
