import { crc32 } from "node:zlib";

/** Where a page of a list begins: the time and the id of its first entry. */
export interface Place {
  /** Epoch milliseconds. */
  readonly at: number;
  readonly id: string;
}

/**
 * A place in a list as text for callers, who send it back as it is. The checksum covers the list's name, so that a
 * cursor of another list, of another service or with a typing error is recognised. It is no secret and no permission.
 */
export function writeCursor(list: string, { at, id }: Place): string {
  return `${Buffer.from(`${at} ${id}`).toString("base64url")}.${checksum(list, at, id)}`;
}

/** The place that a cursor of this list stands for; undefined when it is none. */
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
