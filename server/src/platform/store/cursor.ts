import { crc32 } from "node:zlib";

/** The start of a page: the time and the id of its first entry. */
export interface Place {
  /** Epoch milliseconds. */
  readonly at: number;
  readonly id: string;
}

/**
 * The cursor of a place in a list. Callers send it back unchanged. The checksum covers the name of the list, so a cursor
 * of another list or with a typing error is detected. A cursor is neither secret nor a permission.
 */
export function writeCursor(list: string, { at, id }: Place): string {
  return `${Buffer.from(`${at} ${id}`).toString("base64url")}.${checksum(list, at, id)}`;
}

/** The place of a cursor of this list; undefined if the cursor is invalid. */
export function readCursor(list: string, cursor: string): Place | undefined {
  const [encoded, sum] = cursor.split(".");
  const [, time, id] = /^(\d{1,15}) (\w+)$/.exec(Buffer.from(encoded ?? "", "base64url").toString()) ?? [];
  if (time === undefined || id === undefined) return undefined;
  const place = { at: Number(time), id };
  return sum !== undefined && writeCursor(list, place) === cursor ? place : undefined;
}

function checksum(list: string, at: number, id: string): string {
  return crc32(`${list} ${at} ${id}`).toString(36);
}
