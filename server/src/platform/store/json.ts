/** The value of a JSON column. PostgreSQL returns it parsed, SQLite as text. */
export function parsed<T>(column: T): T {
  return typeof column === "string" ? (JSON.parse(column) as T) : column;
}
