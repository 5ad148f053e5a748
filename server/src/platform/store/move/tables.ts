import type { FoundTable } from "../catalog.ts";
import type { CopiedTable } from "./database.ts";

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
