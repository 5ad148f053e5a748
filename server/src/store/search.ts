import { type Expression, type ExpressionBuilder, sql } from "kysely";
import type { Sql } from "./store.ts";

/** Text in the form in which it is compared without regard to case. */
export function fold(text: string): string {
  return text.toLowerCase();
}

/** Whether a text contains another one, every character of which stands for itself: no pattern, no wildcard. */
export function contains(connection: Sql, text: Expression<string>, part: string) {
  return connection.dialect === "postgres"
    ? sql<boolean>`strpos(${text}, ${part}) > 0`
    : sql<boolean>`instr(${text}, ${part}) > 0`;
}

/** Identifiers are ASCII, which both databases fold alike whatever their locale. */
export function folded(text: Expression<string>) {
  return sql<string>`lower(${text})`;
}

/** Whether the name or the id of a row contains a text, whatever its case. */
export function isNamed<T extends "apis" | "root_keys" | "workspaces">(connection: Sql, part: string) {
  return ({ or, ref }: ExpressionBuilder<Schema, T>) =>
    or([
      contains(connection, ref("name_folded" as never), fold(part)),
      contains(connection, folded(ref("id" as never)), fold(part)),
    ]);
}
