import { type Expression, sql } from "kysely";
import type { Sql } from "./store.ts";

/**
 * Text in the form in which it is compared without regard to case. A part of a text folds to a part of the folded
 * text. For that, the Greek sigma, the one letter whose lower case depends on its position, has one form here.
 */
export function fold(text: string): string {
  return text.toLowerCase().replaceAll("ς", "σ");
}

/** Whether a text contains another one, character by character: there are no wildcards. */
export function contains(connection: Sql, text: Expression<string | null>, part: string) {
  return connection.dialect === "postgres"
    ? sql<boolean>`strpos(${text}, ${part}) > 0`
    : sql<boolean>`instr(${text}, ${part}) > 0`;
}

/** Folds an identifier in the database. Identifiers are ASCII, which both databases fold alike in every locale. */
export function folded(text: Expression<string>) {
  return sql<string>`lower(${text})`;
}
