import { digest } from "../crypto/digest.ts";

/** How many slots a pool of them has: more than any limit. A limit says how many of them may be in use at once. */
export const SLOTS = 1_000_000_000;

/** The most that a limit of concurrency can be. */
export const CONCURRENCY_MAX = 1_000_000;

/** A limit of concurrency of a key or of an identity. */
export interface ConcurrencyLimit {
  readonly name: string;
  /** How many holds may be open at once. */
  readonly limit: number;
}

/**
 * The id of the slots of a limit. Keys of one pool that have a limit of the same name share them, and all keys of an identity
 * those of its limits.
 *
 * @param ownerId the pool of the key, or the identity.
 */
export function slotsId(ownerId: string, name: string): string {
  return `slots_${digest(JSON.stringify([ownerId, name]))}`;
}

/** The limits of such a column. */
export function concurrencyOf(column: string | null): ConcurrencyLimit[] {
  return column === null ? [] : JSON.parse(column);
}
