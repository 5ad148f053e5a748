import { crc32 } from "node:zlib";
import { type Instant, instantAt } from "../../../../engine/src/clock/clock.ts";

/** The start of a page: what its first entry is in order by, and the id of the entry. */
export interface Place {
  /** A time in epoch milliseconds; 0 if the order is that of a text. */
  readonly at: number;
  readonly id: string;
  /** In another order than that of creation: the name of the order, and the text that it compares, if it compares texts. */
  readonly sorted?: { readonly by: string; readonly text: string } | undefined;
  /** When the first page was read, in epoch milliseconds, if that decides on later pages. Only in the order of creation. */
  readonly begunAt?: Instant | undefined;
}

/**
 * The cursor of a place in a list. Callers send it back unchanged. The checksum covers the name of the list, so a cursor
 * of another list or with a typing error is detected. A cursor is neither secret nor a permission.
 */
export function writeCursor(list: string, place: Place): string {
  const content = contentOf(place);
  return `${Buffer.from(content).toString("base64url")}.${crc32(`${list} ${content}`).toString(36)}`;
}

/** The place of a cursor of this list; undefined if the cursor is invalid. */
export function readCursor(list: string, cursor: string): Place | undefined {
  const [encoded, sum] = cursor.split(".");
  const content = Buffer.from(encoded ?? "", "base64url").toString();
  const [, time, id, begunAt, by, text] = /^(\d{1,15}) (\w+)(?: since (\d{1,15})| (\w+) (.*))?$/s.exec(content) ?? [];
  // No database compares a text with U+0000, and no list has written one.
  if (time === undefined || id === undefined || text?.includes("\0")) return undefined;
  const place: Place = {
    at: Number(time),
    id,
    ...(begunAt !== undefined && { begunAt: instantAt(Number(begunAt)) }),
    ...(by !== undefined && { sorted: { by, text: text ?? "" } }),
  };
  return sum !== undefined && writeCursor(list, place) === cursor ? place : undefined;
}

function contentOf({ at, id, sorted, begunAt }: Place): string {
  if (begunAt !== undefined) return `${at} ${id} since ${begunAt}`;
  return sorted === undefined ? `${at} ${id}` : `${at} ${id} ${sorted.by} ${sorted.text}`;
}
