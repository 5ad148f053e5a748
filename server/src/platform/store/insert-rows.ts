import type { InsertQueryBuilder, InsertResult, Kysely } from "kysely";
import { always } from "./always.ts";
import type { ColumnType } from "./dialect.ts";
import type { Schema } from "./schema.ts";
import type { Sql, SqlValue } from "./store.ts";

/**
 * An insert of rows that are one parameter, so that it has one text for any number of rows. `types` are those of the
 * columns; each row also gets the values of `common`. Rows that have the values of another one in the columns `unlessIn` of a
 * unique index are left out.
 */
export function insertRows<T extends keyof Schema & string, C extends keyof Schema[T] & string>(
  { db, dialect }: { db: Pick<Sql["db"], "insertInto">; dialect: Sql["dialect"] },
  table: T,
  types: Readonly<Record<C, ColumnType>>,
  rows: readonly Readonly<Record<NoInfer<C>, SqlValue>>[],
  common: { readonly workspace_id?: string } = {},
  unlessIn?: readonly string[],
): InsertQueryBuilder<Schema, T, InsertResult> {
  const columns = Object.keys(types);
  // The types of any table and its columns are the caller's.
  const insert = (db as unknown as Kysely<Record<string, Record<string, unknown>>>)
    .insertInto<string>(table)
    .columns([...columns, ...Object.keys(common)])
    .expression((query) =>
      query
        .selectFrom(dialect.values.rows<string>(types, rows))
        .select(columns)
        .select(({ val }) => Object.entries(common).map(([column, value]) => val(value).as(column)))
        .where(always),
    );
  const checked = unlessIn ? insert.onConflict((conflict) => conflict.columns(unlessIn).doNothing()) : insert;
  return checked as unknown as InsertQueryBuilder<Schema, T, InsertResult>;
}

/**
 * Inserts rows, and returns how many: all, except those that have the values of a row in the columns `unlessIn` of a unique
 * index. In one statement for all where a statement is a message, and with one for each row otherwise.
 */
export async function insertAll<T extends keyof Schema & string, C extends keyof Schema[T] & string>(
  sql: Sql,
  table: T,
  types: Readonly<Record<C, ColumnType>>,
  rows: readonly Readonly<Record<NoInfer<C>, SqlValue>>[],
  unlessIn?: readonly NoInfer<C>[],
): Promise<number> {
  if (rows.length === 0) return 0;
  if (sql.each) {
    const columns = Object.keys(types) as C[];
    const conflict = unlessIn ? ` on conflict (${unlessIn.join(", ")}) do nothing` : "";
    const statement = insertOfOne(table, columns) + conflict;
    const values = rows.map((row) => columns.map((column) => row[column]));
    return sql.each({ statement, table, inserts: true }, values);
  }
  const insert = insertRows(sql, table, types, rows, {}, unlessIn);
  const { numInsertedOrUpdatedRows } = await insert.executeTakeFirstOrThrow();
  return Number(numInsertedOrUpdatedRows);
}

/** The statement that inserts one row, whose values are its parameters. */
export function insertOfOne(table: string, columns: readonly string[]): string {
  return `insert into ${table} (${columns.join(", ")}) values (${columns.map((_, i) => `?${i + 1}`).join(", ")})`;
}
