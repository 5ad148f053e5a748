import { type KyselyPlugin, type OperationNode, type QueryId, type RootOperationNode, TableNode } from "kysely";
import type { Sql } from "./store.ts";

/** The number of rows that were inserted less those deleted, by table. */
export type RowChanges = ReadonlyMap<string, number>;

/** Raw statements that write. Identifiers and values stand as `?`. */
const WRITING_TEXT = /\b(?:insert\s+into|update\s+\S+\s+set|delete\s+from|merge\s+into)\b/i;

/**
 * The same connection or transaction, with the names of the tables in which its statements changed at least one row, and
 * the number of rows that they inserted less those that they deleted. A raw statement that may write is listed as `raw SQL`.
 */
export function watchWrites(sql: Sql): { sql: Sql; written: ReadonlySet<string>; rowChanges: RowChanges } {
  const written = new Set<string>();
  const rowChanges = new Map<string, number>();
  const tables = new WeakMap<QueryId, string>();
  const signs = new WeakMap<QueryId, 1 | -1>();
  const record = (table: string, changedRows: number, sign: 1 | -1 | undefined) => {
    if (changedRows > 0 || table === RAW_SQL) written.add(table);
    if (sign !== undefined) rowChanges.set(table, (rowChanges.get(table) ?? 0) + sign * changedRows);
  };
  const plugin: KyselyPlugin = {
    transformQuery({ queryId, node }) {
      const table = writtenTable(node);
      if (table !== undefined) tables.set(queryId, table);
      if (node.kind === "InsertQueryNode") signs.set(queryId, 1);
      if (node.kind === "DeleteQueryNode") signs.set(queryId, -1);
      return node;
    },
    async transformResult({ queryId, result }) {
      const table = tables.get(queryId);
      if (table === undefined) return result;
      record(table, Number(result.numAffectedRows ?? result.rows.length), signs.get(queryId));
      return result;
    },
  };
  // Its statements do not go through the plugin.
  const run = sql.each;
  const each: Sql["each"] =
    run &&
    ((write, rows) => {
      const changedRows = run(write, rows);
      record(write.table, changedRows, write.inserts ? 1 : undefined);
      return changedRows;
    });
  return { sql: { ...sql, db: sql.db.withPlugin(plugin), each }, written, rowChanges };
}

const RAW_SQL = "raw SQL";

function writtenTable(node: RootOperationNode): string | undefined {
  switch (node.kind) {
    case "InsertQueryNode":
    case "MergeQueryNode":
      return nameOf(node.into);
    case "UpdateQueryNode":
      return nameOf(node.table);
    case "DeleteQueryNode":
      return nameOf(node.from.froms[0]);
    case "RawNode":
      return WRITING_TEXT.test(node.sqlFragments.join("?")) ? RAW_SQL : undefined;
    default:
      return undefined;
  }
}

function nameOf(node: OperationNode | undefined): string {
  return node && TableNode.is(node) ? node.table.identifier.name : "a table";
}
