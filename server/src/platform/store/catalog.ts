import type { Dialect } from "./dialect.ts";

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
  const rows = await database.rows(database.dialect.schema.columns);
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
