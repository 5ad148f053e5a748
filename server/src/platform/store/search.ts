import { type Expression, sql } from "kysely";

/**
 * Text in the form in which it is compared without regard to case. A part of a text folds to a part of the folded
 * text. For that, the Greek sigma, the one letter whose lower case depends on its position, has one form here.
 */
export function fold(text: string): string {
  return text.toLowerCase().replaceAll("ς", "σ");
}

/** Folds an identifier in the database. Identifiers are ASCII, which both databases fold alike in every locale. */
export function folded(text: Expression<string>) {
  return sql<string>`lower(${text})`;
}
