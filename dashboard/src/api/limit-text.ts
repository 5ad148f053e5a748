import { duration, exactNumber } from "./format.ts";

/** A limit in words: `100 per minute`. */
export function limitText({ limit, duration: length }: { limit: number; duration: number }): string {
  return `${exactNumber(limit)} per ${duration(length).replace(/^1 /, "")}`;
}
