import { CompiledQuery, type RawBuilder, sql as raw, type SelectQueryBuilder } from "kysely";
import { jsonArrayFrom, jsonObjectFrom } from "kysely/helpers/postgres";
import type { Milliseconds } from "../../../../../engine/src/clock/clock.ts";
import type {
  ColumnType,
  Connection,
  Dialect,
  Json,
  Locks,
  RowLock,
  SchemaOperations,
  Time,
  Values,
} from "../dialect.ts";
import { onlyRow } from "../only-row.ts";
import { buildIndex } from "./build-index.ts";
import { readPostgresChanges, readRecentPostgresChanges } from "./changes.ts";
import { postgresNow } from "./clock.ts";
import { readEventHorizon } from "./horizon.ts";
import { findPartitionStates, partitionStep, preparePartitions, removeBound } from "./partitions.ts";

function locking<DB, TB extends keyof DB, O>(query: SelectQueryBuilder<DB, TB, O>, lock: RowLock, of?: TB & string) {
  switch (lock) {
    case "update":
      return query.forUpdate(of);
    case "no key update":
      return query.forNoKeyUpdate(of);
    case "share":
      return query.forShare(of);
    case "key share":
      return query.forKeyShare(of);
  }
}

const locks: Locks = {
  locking,
  clause: (lock, of) => raw.raw(of === undefined ? `for ${lock}` : `for ${lock} of ${of}`),
  skipping: raw`for update skip locked`,
  async lockRows(query, lock) {
    await locking(query, lock).execute();
    return true;
  },
  lockAvailable: async (query) => ({ rows: await query.forUpdate().skipLocked().execute(), isPartial: true }),
  async lockFirst<DB, TB extends keyof DB, O>(
    { db }: Connection,
    first: SelectQueryBuilder<DB, TB, O>,
    query: SelectQueryBuilder<DB, TB, O>,
    timeout: Milliseconds,
  ) {
    // The count is read before the first row of `available`, so nothing is locked while the statement waits.
    const available = query.where(raw<boolean>`(select count(*) from first) >= 0`);
    const { rows } = await raw<O>`
      with first as materialized ${first.forUpdate()}, available as materialized ${available.forUpdate().skipLocked()}
      select *, set_config('lock_timeout', ${String(timeout)}, true) from first
      union all select *, null from available`.execute(db);
    return { rows, isPartial: true };
  },
  async limitWait({ db }, timeout) {
    await raw`select set_config('lock_timeout', ${String(timeout)}, true)`.execute(db);
  },
  async lockTable({ db }, table) {
    await raw`lock table ${raw.table(table)} in access exclusive mode`.execute(db);
  },
  async lockNumber({ db }, number) {
    await raw`select pg_advisory_xact_lock(${number})`.execute(db);
  },
  async lockNumberWithin({ db }, number, timeout, later) {
    const tried = await raw<{ has_waited: boolean }>`
      with tried as materialized (
        select pg_try_advisory_xact_lock(${number}) as is_locked, set_config('lock_timeout', ${String(timeout)}, true)
      ), locked as materialized (
        select not is_locked as has_waited, case when not is_locked then pg_advisory_xact_lock(${number})::text end
        from tried
      )
      select *, set_config('lock_timeout', ${String(later)}, true) from locked`.execute(db);
    return onlyRow(tried).has_waited;
  },
  async tryLockNumber({ db }, number, mode) {
    const lock = raw.ref(mode === "shared" ? "pg_try_advisory_xact_lock_shared" : "pg_try_advisory_xact_lock");
    const tried = await raw<{ locked: boolean }>`select ${lock}(${number}) as locked`.execute(db);
    return onlyRow(tried).locked;
  },
  async lockText({ db }, lockClass, text, mode) {
    const lock = raw.ref(mode === "shared" ? "pg_advisory_xact_lock_shared" : "pg_advisory_xact_lock");
    await raw`select ${lock}(${lockClass}::integer, hashtext(${text}))`.execute(db);
  },
  async tryLockText({ db }, text) {
    const tried = await raw<{ claimed: boolean }>`
    select pg_try_advisory_xact_lock(hashtextextended(${text}, 0)) as claimed`.execute(db);
    return onlyRow(tried).claimed;
  },
  async tryLockTexts({ db }, texts) {
    if (texts.length === 0) return [];
    const { rows } = await raw<{ scope: string }>`
    select scope from unnest(${texts}::text[]) as scope
    where not pg_try_advisory_xact_lock(hashtextextended(scope, 0))`.execute(db);
    return rows.map(({ scope }) => scope);
  },
};

const json: Json = {
  array: (subquery) => jsonArrayFrom(subquery as never) as never,
  object: (subquery) => jsonObjectFrom(subquery as never) as never,
  first: (array) => raw<string>`${array}::jsonb ->> 0`,
  member: (object, name) => raw<string>`${object}::jsonb ->> ${raw.lit(name)}`,
  elements: (array, alias) =>
    raw<{ value: string }>`jsonb_array_elements_text(${array}::jsonb)`.as<typeof alias>(raw.raw(`${alias}(value)`)),
  containsAll: (array, texts) => raw<boolean>`${array}::jsonb @> ${JSON.stringify(texts)}::jsonb`,
};

const time: Time = {
  clock: postgresNow,
  isoClock: raw<string>`to_char(clock_timestamp() at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`,
  common: () => postgresNow,
  pruning: (now) => raw<number>`least(${now}::bigint, ${postgresNow})`,
};

const values: Values = {
  isOneOf: (column, texts) => raw<boolean>`${raw.ref(column)} = any(${texts}::text[])`,
  isOneOfNumbers: (column, numbers) => raw<boolean>`${raw.ref(column)} = any(${arrayOf(numbers)}::bigint[])`,
  completedByOneOf: (query) => ({ text: `${query} = any($1::text[])`, parameters: (texts) => [texts] }),
  // The first condition finds the rows by an index, whatever the planner thinks of the second one.
  completedByPairs: (query, [first, second]) => ({
    text: `${query} ${first} = any($1::text[])
       and (${first}, ${second}) in (select * from unnest($1::text[], $2::text[]))`,
    parameters: (pairs) => [pairs.map(([text]) => text), pairs.map(([, text]) => text)],
  }),
  list: (texts) => raw<string>`(select jsonb_array_elements_text(${JSON.stringify(texts)}::jsonb))`,
  rows<C extends string>(types: Readonly<Record<C, ColumnType>>, rows: readonly object[]) {
    const columns = Object.keys(types) as C[];
    const declared = columns.map((column) => `"${column}" ${types[column]}`).join(", ");
    return raw<
      Record<C, never>
    >`(select * from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as r(${raw.raw(declared)}))`.as("input");
  },
  /** One array for each column. */
  insertion(head, types, rows, tail) {
    const arrays = types.map((type, i) => `$${i + 1}::${type}[]`).join(", ");
    const columns = types.map((_, i) => arrayText(rows.map((row) => row[i])));
    return CompiledQuery.raw(`${head} select * from unnest(${arrays}) ${tail}`, columns);
  },
  lookUps: (table, column, numbers, { column: other, equal }, limit) =>
    raw`unnest(${arrayOf(numbers)}::bigint[]) as b(value) cross join lateral (
          select * from ${raw.table(table)} where ${raw.raw(column)} = b.value and ${raw.raw(other)} = ${equal} limit ${limit}) as u`,
};

/** Values as the text of an array. `pg` would look at each of them several times. */
function arrayText(values: readonly (string | number | undefined)[]): string {
  if (values.length === 0) return "{}";
  if (!/["\\]/.test(values.join(" "))) return `{"${values.join('","')}"}`;
  return `{${values.map((value) => `"${String(value).replace(/["\\]/g, "\\$&")}"`).join(",")}}`;
}

function arrayOf(numbers: readonly number[]): string {
  return `{${numbers.join(",")}}`;
}

const schema: SchemaOperations = {
  types: { text: 'text collate "C"', integer: "bigint" },
  async hasTable({ db }, table) {
    const { rows } = await raw`select 1 as found where to_regclass(${table}) is not null`.execute(db);
    return rows.length > 0;
  },
  async hasOlderPrograms({ db }, version) {
    // The names of `ConnectionPool`; without a number those of programs below 34.
    const { rows } = await raw`
      select 1 as found from pg_stat_activity where datname = current_database()
        and application_name ~ '^latchkey-([0-9]+-)?[a-z]+$'
        and coalesce(substring(application_name from '^latchkey-([0-9]+)-')::integer, 0) < ${version} limit 1`.execute(
      db,
    );
    return rows.length > 0;
  },
  columns: `
  select t.relname, a.attname, format_type(a.atttypid, null) as type,
    coalesce(array_position(k.indkey::int2[], a.attnum) + 1, 0) as pk
  from pg_class t
  join pg_attribute a on a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
  left join pg_index k on k.indrelid = t.oid and k.indisprimary
  where t.relnamespace = current_schema()::regnamespace and t.relkind in ('r', 'p') and not t.relispartition
  order by t.relname collate "C", a.attname collate "C"`,
  parts: `select 'column ' || table_name || '.' || column_name as part
     from information_schema.columns where table_schema = current_schema()
     union all
     select 'index ' || c.relname from pg_class c join pg_index i on i.indexrelid = c.oid
     where c.relnamespace = current_schema()::regnamespace and i.indisvalid
     union all
     select 'trigger ' || t.tgname from pg_trigger t join pg_class c on c.oid = t.tgrelid
     where c.relnamespace = current_schema()::regnamespace and t.tgenabled <> 'D'`,
  completeParts(parts, late) {
    const built = new Set(late.map((index) => `index ${index}`));
    return [...parts.filter((part) => !built.has(part)), "trigger announce_changes", "trigger announce_events"];
  },
  foreignKeys: `select k.conname as id, k.conrelid::regclass::text as table, a.attname as column, k.confrelid::regclass::text as parent,
       b.attname as "parentColumn"
     from pg_constraint k
     cross join unnest(k.conkey, k.confkey) as pair(child, parent)
     join pg_attribute a on a.attrelid = k.conrelid and a.attnum = pair.child
     join pg_attribute b on b.attrelid = k.confrelid and b.attnum = pair.parent
     where k.contype = 'f' and k.connamespace = current_schema()::regnamespace and k.conparentid = 0
     order by 2, 1`,
  sequences: `select table_name as table, column_name as column,
       pg_get_serial_sequence(quote_ident(table_name), column_name) as sequence
     from information_schema.columns where table_schema = current_schema() and is_identity = 'YES' order by 1`,
  lastDrawn: (sequence) =>
    raw<number>`(select case when is_called then last_value else last_value - 1 end from ${raw.raw(sequence)})`,
  async emptyTemporaryTable({ db }, table, types) {
    const columns = Object.entries(types).map(
      ([name, type]) => `${name} ${type === "text" ? 'text collate "C"' : type}`,
    );
    await raw`create temp table if not exists ${raw.table(table)} (${raw.raw(columns.join(", "))}) on commit delete rows`.execute(
      db,
    );
  },
  buildLateIndex: (connection, index, definition) => buildIndex(connection, index, definition),
};

/** PostgreSQL 14 or newer. */
export const postgresDialect: Dialect = {
  name: "postgres",
  isEmbedded: false,
  locks,
  json,
  time,
  values,
  schema,
  partitions: { step: partitionStep, prepare: preparePartitions, removeBound, states: findPartitionStates },
  contains: (text, part) => raw<boolean>`strpos(${text}, ${part}) > 0`,
  never: raw<boolean>`false`,
  hasWritingCtes: true,
  // A row that was inserted, and not updated, has no former transaction.
  wasInserted: (table): RawBuilder<boolean> => raw<boolean>`${raw.raw(table)}.xmax = 0`,
  readChanges: readPostgresChanges,
  readRecentChanges: readRecentPostgresChanges,
  readEventHorizon,
};
