import { CompiledQuery, sql as raw } from "kysely";
import { jsonArrayFrom, jsonObjectFrom } from "kysely/helpers/sqlite";
import type { ColumnType, Dialect, Json, Locks, Partitions, SchemaOperations, Time, Values } from "../dialect.ts";
import { readSqliteChanges } from "./changes.ts";

/** SQLite has one writer, so a transaction that writes has locked everything. */
const locks: Locks = {
  locking: (query) => query,
  clause: () => raw``,
  skipping: raw``,
  lockRows: async () => false,
  lockAvailable: async (query) => ({ rows: await query.execute(), isPartial: false }),
  lockFirst: async (_, first, query) => ({
    rows: [...(await first.execute()), ...(await query.execute())],
    isPartial: false,
  }),
  async limitWait() {},
  async lockTable() {},
  async lockNumber() {},
  lockNumberWithin: async () => false,
  tryLockNumber: async () => true,
  async lockText() {},
  tryLockText: async () => true,
  tryLockTexts: async () => [],
};

const json: Json = {
  array: (subquery) => jsonArrayFrom(subquery as never) as never,
  object: (subquery) => jsonObjectFrom(subquery as never) as never,
  first: (array) => raw<string>`${array} ->> 0`,
  member: (object, name) => raw<string>`${object} ->> ${raw.lit(name)}`,
  elements: (array, alias) => raw<{ value: string }>`json_each(${array})`.as(alias),
  containsAll: (array, texts) =>
    raw<boolean>`(select count(*) from json_each(${array}) as had
        where had.value in (select value from json_each(${JSON.stringify(texts)}))) = ${texts.length}`,
};

const time: Time = {
  clock: raw<number>`cast(unixepoch('subsec') * 1000 as integer)`,
  isoClock: raw<string>`strftime('%Y-%m-%dT%H:%M:%fZ', 'now')`,
  common: (now) => raw<number>`${now}`,
  pruning: (now) => raw<number>`${now}`,
};

const values: Values = {
  isOneOf: (column, texts) => raw<boolean>`${raw.ref(column)} in ${list(texts)}`,
  isOneOfNumbers: (column, numbers) => raw<boolean>`${raw.ref(column)} in ${list(numbers)}`,
  completedByOneOf: (query) => ({
    text: `${query} in (select value from json_each(?))`,
    parameters: (texts) => [JSON.stringify(texts)],
  }),
  completedByPairs: (query, [first, second]) => ({
    text: `${query} (${first}, ${second}) in (select value ->> 0, value ->> 1 from json_each(?))`,
    parameters: (pairs) => [JSON.stringify(pairs)],
  }),
  list,
  rows<C extends string>(types: Readonly<Record<C, ColumnType>>, rows: readonly object[]) {
    const selected = Object.keys(types).map((column) => `json_extract(value, '$.${column}') as "${column}"`);
    // The binary form of a row is not parsed again for each of its columns.
    return raw<Record<C, never>>`(select ${raw.raw(selected.join(", "))} from jsonb_each(${JSON.stringify(rows)}))`.as(
      "input",
    );
  },
  /** One parameter per value: SQLite reads them faster than JSON. */
  insertion(head, types, rows, tail) {
    const row = `(${types.map(() => "?").join(", ")})`;
    return CompiledQuery.raw(`${head} values ${Array(rows.length).fill(row).join(", ")} ${tail}`, rows.flat());
  },
  lookUps: (table, column, numbers, { column: other, equal }) =>
    raw`json_each(${JSON.stringify(numbers)}) as b cross join ${raw.table(table)} as u
          on u.${raw.raw(column)} = b.value and u.${raw.raw(other)} = ${equal}`,
};

function list<T extends string | number>(values: readonly T[]) {
  return raw<T>`(select value from json_each(${JSON.stringify(values)}))`;
}

const schema: SchemaOperations = {
  types: { text: "text", integer: "integer" },
  async hasTable({ db }, table) {
    const { rows } = await raw`select 1 as found from sqlite_schema where type = 'table' and name = ${table}`.execute(
      db,
    );
    return rows.length > 0;
  },
  // This program alone has claimed it.
  hasOlderPrograms: async () => false,
  columns: `
  select t.name as "table", c.name as "column", c.type, c.pk
  from sqlite_schema t join pragma_table_xinfo(t.name) c
  where t.type = 'table' and t.name not like 'sqlite\\_%' escape '\\' and c.hidden = 0
  order by t.name, c.name`,
  parts: `select 'column ' || m.name || '.' || p.name as part
     from sqlite_schema m join pragma_table_info(m.name) p where m.type = 'table' and m.name not like 'sqlite_%'
     union all
     select 'index ' || name from sqlite_schema where type = 'index' and name not like 'sqlite_%'`,
  completeParts: (parts) => [...parts],
  foreignKeys: `select m.name || ' ' || f.id as id, m.name as "table", f."from" as "column", f."table" as parent, f."to" as "parentColumn"
     from sqlite_schema m join pragma_foreign_key_list(m.name) f where m.type = 'table' order by 2, 1, f.seq`,
  sequences: `select name as "table", 'rowid' as "column", name as sequence from sqlite_sequence order by name`,
  lastDrawn: (sequence) => raw<number>`(select seq from sqlite_sequence where name = ${sequence})`,
  async emptyTemporaryTable({ db }, table, types) {
    const columns = Object.keys(types).join(", ");
    await raw`create temp table if not exists ${raw.table(table)} (${raw.raw(columns)})`.execute(db);
    await raw`delete from ${raw.table(table)}`.execute(db);
  },
  // The migrations build all indexes: the only node does not serve meanwhile.
  async buildLateIndex() {},
};

const partitions: Partitions = {
  step: async () => null,
  async prepare() {},
  async removeBound() {},
  states: async () => [],
};

/** Embedded SQLite. */
export const sqliteDialect: Dialect = {
  name: "sqlite",
  isEmbedded: true,
  locks,
  json,
  time,
  values,
  schema,
  partitions,
  contains: (text, part) => raw<boolean>`instr(${text}, ${part}) > 0`,
  never: raw<boolean>`0`,
  hasWritingCtes: false,
  wasInserted: () => undefined,
  readChanges: readSqliteChanges,
  // A position belongs to this process, which has read all that it may ask for.
  readRecentChanges: async () => ({ server: "", rows: [] }),
  readEventHorizon: async () => undefined,
};
