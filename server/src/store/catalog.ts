import type { Dialect } from "./store.ts";

/** A table as the catalog of its database describes it. */
export interface FoundTable {
  readonly name: string;
  /** In the order of names. */
  readonly columns: readonly FoundColumn[];
  readonly primaryKey: readonly string[];
}

export interface FoundColumn {
  readonly name: string;
  readonly type: "text" | "bigint";
}

/** A database whose catalog can be read. */
interface Cataloged {
  readonly dialect: Dialect;
  /** Runs a statement and returns the values of each row, in the order of its columns. */
  rows(statement: string): Promise<(string | number | null)[][]>;
}

/** All tables of a database, in the order of names. Partitions belong to their table. */
export async function findTables(database: Cataloged): Promise<FoundTable[]> {
  const rows = await database.rows(database.dialect === "sqlite" ? SQLITE_COLUMNS : POSTGRES_COLUMNS);
  const tables = new Map<string, { columns: FoundColumn[]; primaryKey: [at: number, name: string][] }>();
  for (const [table, column, type, keyAt] of rows as [string, string, string, string | number][]) {
    const found = tables.get(table) ?? { columns: [], primaryKey: [] };
    tables.set(table, found);
    found.columns.push({ name: column, type: /^(bigint|integer)$/i.test(type) ? "bigint" : "text" });
    if (Number(keyAt) > 0) found.primaryKey.push([Number(keyAt), column]);
  }
  return [...tables].map(([name, { columns, primaryKey }]) => ({
    name,
    columns,
    primaryKey: primaryKey.sort(([a], [b]) => a - b).map(([, column]) => column),
  }));
}

const SQLITE_COLUMNS = `
  select t.name as "table", c.name as "column", c.type, c.pk
  from sqlite_schema t join pragma_table_xinfo(t.name) c
  where t.type = 'table' and t.name not like 'sqlite\\_%' escape '\\' and c.hidden = 0
  order by t.name, c.name`;

const POSTGRES_COLUMNS = `
  select t.relname, a.attname, format_type(a.atttypid, null) as type,
    coalesce(array_position(k.indkey::int2[], a.attnum) + 1, 0) as pk
  from pg_class t
  join pg_attribute a on a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
  left join pg_index k on k.indrelid = t.oid and k.indisprimary
  where t.relnamespace = current_schema()::regnamespace and t.relkind in ('r', 'p') and not t.relispartition
  order by t.relname collate "C", a.attname collate "C"`;
