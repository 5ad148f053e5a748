import { type Expression, sql } from "kysely";
import type { Place } from "../rules/cursor.ts";
import type { Sql } from "./store.ts";

/**
 * Text in the form in which it is compared without regard to case. A part of a text folds into a part of the folded
 * text: the one letter whose small form depends on its place, the Greek sigma, has one form here.
 */
export function fold(text: string): string {
  return text.toLowerCase().replaceAll("ς", "σ");
}

/** Whether a text contains another one, every character of which stands for itself: no pattern, no wildcard. */
export function contains(connection: Sql, text: Expression<string | null>, part: string) {
  return connection.dialect === "postgres"
    ? sql<boolean>`strpos(${text}, ${part}) > 0`
    : sql<boolean>`instr(${text}, ${part}) > 0`;
}

/** Identifiers are ASCII, which both databases fold alike whatever their locale. */
export function folded(text: Expression<string>) {
  return sql<string>`lower(${text})`;
}

/** One page of a list in the order of creation, and of ids within a millisecond. */
export interface PageOptions {
  /** Only those in which the list's search finds this text, whatever its case; empty: all. */
  search: string;
  /** The first place of the page; undefined: the beginning. */
  from?: Place | undefined;
  limit: number;
}

/** Whether a row stands at a place or behind it. The index on the same columns finds the first one. */
export function isFrom(
  { at, id }: Place,
  createdAt: Expression<unknown> = sql.ref("created_at"),
  own: Expression<unknown> = sql.ref("id"),
) {
  return sql<boolean>`(${createdAt}, ${own}) >= (${at}, ${id})`;
}

/** Whether the columns `name_folded` and `id` of a row contain a text, whatever its case. */
export function isNamed(connection: Sql, part: string) {
  const inName = contains(connection, sql.ref<string>("name_folded"), fold(part));
  return sql<boolean>`(${inName} or ${contains(connection, folded(sql.ref<string>("id")), fold(part))})`;
}
