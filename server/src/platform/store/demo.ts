import type { Schema } from "./schema.ts";
import type { Sql } from "./store.ts";

/** Rows of one table, all with the same columns. */
export interface DemoRows {
  table: keyof Schema;
  rows: readonly Readonly<Record<string, string | number | null>>[];
}

const ROWS_PER_STATEMENT = 100;

/** Inserts rows as they are. */
export async function insertDemoRows({ db }: Sql, { table, rows }: DemoRows): Promise<void> {
  for (let i = 0; i < rows.length; i += ROWS_PER_STATEMENT) {
    await db
      .insertInto(table)
      .values(rows.slice(i, i + ROWS_PER_STATEMENT) as never)
      .execute();
  }
}
