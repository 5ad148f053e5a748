import { type Place, readCursor, writeCursor } from "../rules/cursor.ts";
import { integer, text } from "./schema.ts";

/** The input of a list by pages; `list` is the operation's name. */
export const pageInput = (list: string, limitDefault: number) => ({
  limit: integer(1, 100).default(limitDefault).describe("Entries on a page."),
  cursor: text(0, 1_024)
    .check(({ value, issues }) => {
      if (value !== "" && readCursor(list, value) === undefined) {
        issues.push({
          code: "custom",
          input: value,
          message: `is not a cursor of ${list}`,
          params: { fix: "Send `pagination.cursor` of the page before as it is, or leave it out for the first page." },
        });
      }
    })
    .optional()
    .describe("Where to go on: `pagination.cursor` of the page before."),
});

/** The place that a validated cursor stands for; undefined: the beginning. */
export function placeOf(list: string, cursor: string | undefined): Place | undefined {
  return cursor === undefined ? undefined : readCursor(list, cursor);
}

/** One page of a list, made from up to `limit + 1` rows: the last row says where the next page begins. */
export function pageOf<Row extends { id: string; created_at: number }, Item>(
  list: string,
  rows: readonly Row[],
  limit: number,
  itemOf: (row: Row) => Item,
): { items: Item[]; hasMore: boolean; cursor?: string } {
  const next = rows[limit];
  return {
    items: rows.slice(0, limit).map((row) => itemOf(row)),
    hasMore: next !== undefined,
    ...(next && { cursor: writeCursor(list, { at: next.created_at, id: next.id }) }),
  };
}
