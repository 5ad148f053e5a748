import { CompiledQuery } from "kysely";
import type { CompletedQuery } from "./dialect.ts";
import type { Sql } from "./store.ts";

/** The rows of a query as lists, in the order of its columns: on SQLite in half of the time that objects take. */
export async function listsOf<Row extends readonly unknown[], Value>(
  { db, lists }: Sql,
  { text, parameters }: CompletedQuery<Value>,
  values: readonly Value[],
): Promise<Row[]> {
  const list = parameters(values);
  if (lists !== undefined) return lists(text, list) as unknown as Row[];
  const { rows } = await db.executeQuery(CompiledQuery.raw(text, [...list]));
  return rows.map((row) => Object.values(row as object) as unknown as Row);
}
