import { sql as raw } from "kysely";
import type { Sql } from "../../../platform/store/store.ts";

/**
 * Runs reads that all see the same state of the embedded database: a merge moves counts between two of them. Other databases
 * have no runs, and read the rest in one statement.
 */
export async function inSnapshot<T>(sql: Sql, read: () => Promise<T>): Promise<T> {
  if (!sql.dialect.isEmbedded) return read();
  await raw`begin`.execute(sql.db);
  try {
    return await read();
  } finally {
    await raw`commit`.execute(sql.db);
  }
}
