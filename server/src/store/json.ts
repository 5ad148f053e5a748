import { type AliasableExpression, type Expression, type RawBuilder, sql } from "kysely";
import { jsonArrayFrom as jsonArrayPostgres, jsonObjectFrom as jsonObjectPostgres } from "kysely/helpers/postgres";
import { jsonArrayFrom as jsonArraySqlite, jsonObjectFrom as jsonObjectSqlite } from "kysely/helpers/sqlite";
import type { Sql } from "./store.ts";

type Subquery<O> = Expression<O> & AliasableExpression<O>;

/** A subquery's rows as one column; read it with `parsed`. */
export function jsonArray<O>(connection: Sql, subquery: Subquery<O>): RawBuilder<O[]> {
  return (connection.dialect === "postgres" ? jsonArrayPostgres : jsonArraySqlite)(subquery as never) as never;
}

/** A subquery's only row, or null, as one column; read it with `parsed`. */
export function jsonObject<O>(connection: Sql, subquery: Subquery<O>): RawBuilder<O | null> {
  return (connection.dialect === "postgres" ? jsonObjectPostgres : jsonObjectSqlite)(subquery as never) as never;
}

/** PostgreSQL answers JSON as values, SQLite as text. */
export function parsed<T>(column: T): T {
  return typeof column === "string" ? (JSON.parse(column) as T) : column;
}

/**
 * Rows given as one parameter, so that a thousand of them are one short statement which stays prepared:
 * a table expression named `input` with the columns of `types`.
 */
export function inputRows<C extends string>(
  connection: Sql,
  types: Readonly<Record<C, "text" | "bigint">>,
  rows: readonly Readonly<Record<C, string | number | null>>[],
) {
  const json = JSON.stringify(rows);
  const columns = Object.keys(types) as C[];
  if (connection.dialect === "postgres") {
    const declared = columns.map((column) => `"${column}" ${types[column]}`).join(", ");
    return sql<Record<C, never>>`(select * from jsonb_to_recordset(${json}::jsonb) as r(${sql.raw(declared)}))`.as(
      "input",
    );
  }
  const selected = columns.map((column) => `json_extract(value, '$.${column}') as "${column}"`).join(", ");
  return sql<Record<C, never>>`(select ${sql.raw(selected)} from json_each(${json}))`.as("input");
}

/** Always holds. Before an `on conflict` SQLite's parser needs a `where`, or it reads the `on` as a join's condition. */
export const always = sql<boolean>`true`;

/**
 * Whether a column holds one of these, given as one parameter. PostgreSQL plans it as look-ups in an index whatever it
 * believes about the tables, which right after an import is wrong.
 */
export function isOneOf(connection: Sql, column: string, values: readonly string[]) {
  return connection.dialect === "postgres"
    ? sql<boolean>`${sql.ref(column)} = any(${values}::text[])`
    : sql<boolean>`${sql.ref(column)} in ${inputList(connection, values)}`;
}

/** A list given as one parameter, for `where column in …`. */
export function inputList(connection: Sql, values: readonly string[]) {
  const json = JSON.stringify(values);
  return connection.dialect === "postgres"
    ? sql<string>`(select jsonb_array_elements_text(${json}::jsonb))`
    : sql<string>`(select value from json_each(${json}))`;
}
