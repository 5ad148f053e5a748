import { type AliasableExpression, type Expression, type RawBuilder, sql } from "kysely";
import { jsonArrayFrom as jsonArrayPostgres, jsonObjectFrom as jsonObjectPostgres } from "kysely/helpers/postgres";
import { jsonArrayFrom as jsonArraySqlite, jsonObjectFrom as jsonObjectSqlite } from "kysely/helpers/sqlite";
import type { Sql } from "./store.ts";

type Subquery<O> = Expression<O> & AliasableExpression<O>;

/** A subquery's rows as one JSON column; read it with `parsed`. */
export function jsonArray<O>(connection: Sql, subquery: Subquery<O>): RawBuilder<O[]> {
  return (connection.dialect === "postgres" ? jsonArrayPostgres : jsonArraySqlite)(subquery as never) as never;
}

/** A subquery's only row, or null, as one JSON column; read it with `parsed`. */
export function jsonObject<O>(connection: Sql, subquery: Subquery<O>): RawBuilder<O | null> {
  return (connection.dialect === "postgres" ? jsonObjectPostgres : jsonObjectSqlite)(subquery as never) as never;
}

/** The value of a JSON column. PostgreSQL returns it parsed, SQLite as text. */
export function parsed<T>(column: T): T {
  return typeof column === "string" ? (JSON.parse(column) as T) : column;
}

/**
 * A table expression named `input` with the columns of `types`. The rows are one JSON parameter, so that the statement
 * has the same text for any number of rows and stays prepared.
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

/** A condition that is always true. SQLite needs a `where` before `on conflict`, or it parses `on` as a join condition. */
export const always = sql<boolean>`true`;

/**
 * Whether a column has one of these values, which are one parameter. PostgreSQL plans it as index look-ups independent of
 * its table statistics, which are outdated after an import.
 */
export function isOneOf(connection: Sql, column: string, values: readonly string[]) {
  return connection.dialect === "postgres"
    ? sql<boolean>`${sql.ref(column)} = any(${values}::text[])`
    : sql<boolean>`${sql.ref(column)} in ${inputList(connection, values)}`;
}

/** A list of values as one parameter, for `where column in …`. */
export function inputList(connection: Sql, values: readonly string[]) {
  const json = JSON.stringify(values);
  return connection.dialect === "postgres"
    ? sql<string>`(select jsonb_array_elements_text(${json}::jsonb))`
    : sql<string>`(select value from json_each(${json}))`;
}
