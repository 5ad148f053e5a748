import type { InsertQueryBuilder, InsertResult, Kysely } from "kysely";
import { always } from "./always.ts";
import type { ColumnType } from "./dialect.ts";
import type { Schema } from "./schema.ts";
import type { Sql } from "./store.ts";

/**
 * An insert of rows that are one parameter, so that it has one text for any number of rows. `types` are those of the
 * columns; each row also gets the values of `common`.
 */
export function insertRows<T extends keyof Schema & string, C extends keyof Schema[T] & string>(
  { db, dialect }: { db: Pick<Sql["db"], "insertInto">; dialect: Sql["dialect"] },
  table: T,
  types: Readonly<Record<C, ColumnType>>,
  rows: readonly Readonly<Record<NoInfer<C>, string | number | null>>[],
  common: { readonly workspace_id?: string } = {},
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
  return insert as unknown as InsertQueryBuilder<Schema, T, InsertResult>;
}
