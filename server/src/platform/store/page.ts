import { type Expression, type SelectQueryBuilder, sql } from "kysely";
import type { Place } from "./cursor.ts";
import { fold, folded } from "./search.ts";
import type { Sql } from "./store.ts";

/** One page of a list, ordered by creation time and then by id. */
export interface PageOptions {
  /** Only rows with this text in one of the searched columns, ignoring case; empty: all rows. */
  search?: string;
  /** The first place of the page; undefined: the first page. */
  from?: Place | undefined;
  limit: number;
}

/** Limits a query to one page. `table` qualifies the columns `created_at` and `id` in a join. */
export function onePage<DB, TB extends keyof DB, O>(
  query: SelectQueryBuilder<DB, TB, O>,
  { from, limit }: Pick<PageOptions, "from" | "limit">,
  table?: string,
): SelectQueryBuilder<DB, TB, O> {
  const column = (name: string): Expression<unknown> => sql.ref(table === undefined ? name : `${table}.${name}`);
  const [createdAt, id] = [column("created_at"), column("id")];
  const page = query.orderBy(createdAt).orderBy(id).limit(limit);
  // A row value, so that the index on the same columns finds the first row.
  return from === undefined ? page : page.where(sql<boolean>`(${createdAt}, ${id}) >= (${from.at}, ${from.id})`);
}

/** Limits a query to one page of the rows that have the searched text in their id or in one of the folded columns. */
export function searchPage<DB, TB extends keyof DB, O>(
  connection: Sql,
  query: SelectQueryBuilder<DB, TB, O>,
  { search, ...place }: PageOptions,
  columns?: readonly Expression<string | null>[],
): SelectQueryBuilder<DB, TB, O> {
  return searched(connection, onePage(query, place), search, columns);
}

/** Limits a query to the rows that have a text in their id or in one of the folded columns. */
export function searched<DB, TB extends keyof DB, O>(
  connection: Sql,
  query: SelectQueryBuilder<DB, TB, O>,
  search = "",
  columns: readonly Expression<string | null>[] = [sql.ref("name_folded")],
): SelectQueryBuilder<DB, TB, O> {
  if (search === "") return query;
  const part = fold(search);
  const found = [...columns, folded(sql.ref<string>("id"))].map((column) => connection.dialect.contains(column, part));
  return query.where(sql<boolean>`(${sql.join(found, sql` or `)})`);
}
