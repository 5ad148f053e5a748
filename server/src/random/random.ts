/**
 * The source of identifiers and jitter. A simulation seeds it; secrets never come from here but from `crypto/`.
 */
export interface Random {
  /** A whole number from 0 to `bound` − 1; `bound` is 1 to 2^32. */
  below(bound: number): number;
}

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** Letters and digits, evenly drawn. */
export function alphanumeric(random: Random, length: number): string {
  let text = "";
  for (let i = 0; i < length; i++) text += alphabet[random.below(62)];
  return text;
}

/** The kinds of identifiers, by their prefix. */
export type IdPrefix =
  | "api"
  | "key"
  | "node"
  | "ws"
  | "id"
  | "rl"
  | "rlns"
  | "rlor"
  | "perm"
  | "role"
  | "rk"
  | "pool"
  | "evt"
  | "mig"
  | "rec";

/** A fresh identifier such as `key_3kTq9…`: 16 characters, 95 bits, so that a collision is not a case to handle. */
export function newId(random: Random, prefix: IdPrefix): string {
  return `${prefix}_${alphanumeric(random, 16)}`;
}

/**
 * Fresh identifiers of rows that are written together. Only the second half differs, by which they come to lie side by
 * side in every index: a few pages are written for all of them, not some for each.
 */
export function newIds(random: Random, prefix: IdPrefix, count: number): string[] {
  const shared = `${prefix}_${alphanumeric(random, 8)}`;
  const ids = new Set<string>();
  while (ids.size < count) ids.add(shared + alphanumeric(random, 8));
  return [...ids];
}

/** A fresh request identifier: `req_` and 9 characters. */
export function newRequestId(random: Random): string {
  return `req_${alphanumeric(random, 9)}`;
}
