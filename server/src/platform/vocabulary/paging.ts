import type { Page } from "../rpc/operation.ts";
import { type Place, readCursor, writeCursor } from "../store/cursor.ts";
import { integer, text } from "./schema.ts";

/** The cursor of an order of texts has one of up to 255 characters. */
const CURSOR_MAX = 2_048;

/** The input fields of a paginated list; `list` is the name of the operation. */
export const pageInput = (list: string, limitDefault: number) => ({
  limit: integer(1, 100).default(limitDefault).describe("Maximum number of entries per page."),
  cursor: text(0, CURSOR_MAX)
    .check(({ value, issues }) => {
      if (value !== "" && readCursor(list, value) === undefined) {
        issues.push({
          code: "custom",
          input: value,
          message: `is not a cursor of ${list}`,
          params: { fix: "Send `pagination.cursor` of the previous page unchanged, or omit it for the first page." },
        });
      }
    })
    .optional()
    .describe("Where the page begins: `pagination.cursor` of the previous page. Omitted: the first page."),
});

/** The position that a validated cursor encodes; undefined for the first page. */
export function placeOf(list: string, cursor: string | undefined): Place | undefined {
  return cursor === undefined ? undefined : readCursor(list, cursor);
}

/** What is wrong if a place is that of a list in another order than that of creation. */
export const OTHER_ORDER = "`cursor` is that of a list in another order: send it with the `orderBy` of its page.";

/** Whether a page can begin at a place in this order. */
export function isInOrder(from: Place | undefined, orderBy: string): boolean {
  return from === undefined || (from.sorted?.by ?? "createdAt") === orderBy;
}

/** One page of items, and the place at which the next one begins; undefined after the last page. */
export function pageUntil<Item>(list: string, items: Item[], next: Place | undefined): Page<Item> {
  return { items, hasMore: next !== undefined, ...(next && { cursor: writeCursor(list, next) }) };
}

/** One page made from `limit + 1` rows. The extra row shows that there is another page, and is where that page begins. */
export function pageOf<Row extends { id: string; created_at: number }, Item>(
  list: string,
  rows: readonly Row[],
  limit: number,
  toItem: (row: Row) => Item,
): Page<Item> {
  const next = rows[limit];
  const items = rows.slice(0, limit).map((row) => toItem(row));
  return pageUntil(list, items, next && { at: next.created_at, id: next.id });
}
