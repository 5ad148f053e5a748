import { sql } from "kysely";

/** The value of a JSON column. PostgreSQL returns it parsed, SQLite as text. */
export function parsed<T>(column: T): T {
  return typeof column === "string" ? (JSON.parse(column) as T) : column;
}

/** A condition that is always true. SQLite needs a `where` before `on conflict`, or it parses `on` as a join condition. */
export const always = sql<boolean>`true`;
