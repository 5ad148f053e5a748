/** The source of randomness for identifiers and jitter. A simulation seeds it. Secrets come from `crypto/`. */
export interface Random {
  /** A uniform integer from 0 to `bound` − 1; `bound` is 1 to 2^32. */
  below(bound: number): number;
}

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** Letters that one random number gives: the most that 32 bits have room for. */
const LETTERS = 5;
const letterGroups = alphabet.length ** LETTERS;

/** Random letters and digits, uniformly distributed. */
export function alphanumeric(random: Random, length: number): string {
  let text = "";
  while (text.length < length) text += letters(random);
  return text.length === length ? text : text.slice(0, length);
}

function letters(random: Random): string {
  const group = random.below(letterGroups);
  return String.fromCharCode(
    letterOf(group),
    letterOf(group / 62),
    letterOf(group / 3_844),
    letterOf(group / 238_328),
    letterOf(group / 14_776_336),
  );
}

/** The code of the letter for the last digit of a number to the base 62. Its fraction is ignored. */
function letterOf(digits: number): number {
  return alphabet.charCodeAt(Math.floor(digits) % 62);
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

/** Letters of a time: milliseconds since 1970, up to the year 2081. */
const TIME_LETTERS = 7;

/**
 * Creates an identifier such as `hold_0VYQkGZ…`: 7 characters of the time in milliseconds, and 9 random ones, 53 bits. For rows
 * of which many are written one after the other: new ones are the last of an index, so the database writes few pages for all.
 */
export function newTimedId(random: Random, prefix: IdPrefix, at: number): string {
  let rest = Math.floor(at);
  let time = "";
  for (let i = 0; i < TIME_LETTERS; i++) {
    time = alphabet.charAt(rest % 62) + time;
    rest = Math.floor(rest / 62);
  }
  return `${prefix}_${time}${alphanumeric(random, 16 - TIME_LETTERS)}`;
}

/** Creates a request identifier: `req_` and 9 characters. Each call needs one, so it is made as one text, not put together. */
export function newRequestId(random: Random): string {
  const [first, last] = [random.below(letterGroups), random.below(letterGroups)];
  return String.fromCharCode(
    114, // r
    101, // e
    113, // q
    95, // _
    letterOf(first),
    letterOf(first / 62),
    letterOf(first / 3_844),
    letterOf(first / 238_328),
    letterOf(first / 14_776_336),
    letterOf(last),
    letterOf(last / 62),
    letterOf(last / 3_844),
    letterOf(last / 238_328),
  );
}
