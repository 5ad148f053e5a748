/** The source of randomness for identifiers and jitter. A simulation seeds it. Secrets come from `crypto/`. */
export interface Random {
  /** A uniform integer from 0 to `bound` − 1; `bound` is 1 to 2^32. */
  below(bound: number): number;
}

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

const pairs = Array.from(alphabet, (first) => Array.from(alphabet, (second) => first + second)).flat();

/** Random letters and digits, uniformly distributed; two for each random number. */
export function alphanumeric(random: Random, length: number): string {
  let text = "";
  while (text.length < length) text += pairs[random.below(pairs.length)];
  return length % 2 === 0 ? text : text.slice(0, length);
}

/** The prefixes of identifiers, one for each kind. */
export type IdPrefix =
  | "api"
  | "bud"
  | "dkey"
  | "edge"
  | "key"
  | "node"
  | "ps"
  | "ses"
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
  | "hold"
  | "wh"
  | "mig"
  | "plan"
  | "rec"
  | "tok";

/** Creates an identifier such as `key_3kTq9…`: 16 characters, 95 bits, so collisions need no handling. */
export function newId(random: Random, prefix: IdPrefix): string {
  return `${prefix}_${alphanumeric(random, 16)}`;
}

/**
 * Creates identifiers for rows that are written together. They share the first half, so they are adjacent in every index
 * and the database writes a few pages for all of them instead of several pages for each.
 */
export function newIds(random: Random, prefix: IdPrefix, count: number): string[] {
  const shared = `${prefix}_${alphanumeric(random, 8)}`;
  const ids = new Set<string>();
  while (ids.size < count) ids.add(shared + alphanumeric(random, 8));
  return [...ids];
}

/** How many rows that are written one after the other are neighbours. */
const NEIGHBOURS = 256;

/** Creates identifiers for rows that are written one after the other, many in a second: of each few hundred as `newIds` does. */
export function neighbouringIds(random: Random, prefix: IdPrefix): () => string {
  const ids = (function* () {
    for (;;) yield* newIds(random, prefix, NEIGHBOURS);
  })();
  return () => ids.next().value;
}

/** How many request identifiers are made ahead. */
const REQUEST_IDS = 64;

/** Creates request identifiers as `newRequestId` does, many at a time: one of them, between other work, costs six times as much. */
export function requestIds(random: Random): () => string {
  let ids: string[] = [];
  return () => {
    if (ids.length === 0) ids = Array.from({ length: REQUEST_IDS }, () => newRequestId(random));
    return ids.pop() ?? newRequestId(random);
  };
}

/** Creates a request identifier: `req_` and 9 characters. */
export function newRequestId(random: Random): string {
  return `req_${alphanumeric(random, 9)}`;
}
