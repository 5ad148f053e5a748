import type { CopiedColumn, CopiedTable, CopyDatabase, Value } from "./database.ts";

/** A table of one database. */
export interface FoundTable {
  readonly name: string;
  readonly columns: readonly CopiedColumn[];
  readonly primaryKey: readonly string[];
}

/** Tables that a move leaves out, each with the reason. A test compares the list with the schema of both databases. */
export const notCopied: Readonly<Record<string, string>> = {
  kysely_migration: "The target runs its own migrations.",
  schema_steps: "The same.",
  analytics_migration: "The same.",
  analytics_schema_steps: "The same.",
  changes: "It invalidates caches of nodes that run; a node that starts on the target has an empty cache.",
  claim: "It names the process that serves from the source.",
  transaction_markers: "They belong to open connections to a PostgreSQL.",
  leases: "They name processes that serve from the source.",
  moves: "It describes the move itself.",
};

/** The tables of a move, for as long as it lasts. */
const ownTable = /^move_/;

/** The tables that both databases have, without those that are not copied. */
export function tablesToCopy(source: readonly FoundTable[], target: readonly FoundTable[]): CopiedTable[] {
  const tables: CopiedTable[] = [];
  for (const { name, columns, primaryKey } of source) {
    const other = target.find((table) => table.name === name);
    if (!other || name in notCopied || ownTable.test(name)) continue;
    const shared = columns.filter((column) => other.columns.some((found) => found.name === column.name));
    const key = [...new Set([...primaryKey, ...other.primaryKey])];
    tables.push({ name, columns: shared, order: primaryKey, key });
  }
  return tables;
}

/** The tables of a database as its catalog describes them, in the order of names. Partitions belong to their table. */
export async function findTables(database: CopyDatabase): Promise<FoundTable[]> {
  const rows = await database.rows(database.dialect === "sqlite" ? SQLITE_COLUMNS : POSTGRES_COLUMNS);
  const tables = new Map<string, { columns: CopiedColumn[]; primaryKey: [at: number, name: string][] }>();
  for (const [table, column, type, keyAt] of rows as [string, string, string, Value][]) {
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
  select t.name, c.name, c.type, c.pk
  from sqlite_schema t join pragma_table_xinfo(t.name) c
  where t.type = 'table' and t.name not like 'sqlite\\_%' escape '\\' and c.hidden = 0
  order by t.name, c.name`;

const POSTGRES_COLUMNS = `
  select t.relname, a.attname, format_type(a.atttypid, null),
    coalesce(array_position(k.indkey::int2[], a.attnum) + 1, 0)
  from pg_class t
  join pg_attribute a on a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
  left join pg_index k on k.indrelid = t.oid and k.indisprimary
  where t.relnamespace = current_schema()::regnamespace and t.relkind in ('r', 'p') and not t.relispartition
  order by t.relname collate "C", a.attname collate "C"`;
