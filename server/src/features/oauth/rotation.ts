import { type Instant, instantAt, type Milliseconds } from "../../../../engine/src/clock/clock.ts";
import type { SigningAlgorithm } from "../../platform/store/schema.ts";

/** How long a key is published before it signs. Resource servers may cache the keys of an issuer for as long. */
export const PUBLISHED_BEFORE: Milliseconds = 3_600_000;

/** How much longer than a token lives a key stays published after its last signature, for clocks that differ. */
const CLOCKS_DIFFER: Milliseconds = 5 * 60_000;

/** When signing keys change. */
export interface Rotation {
  /** The algorithm of new keys. */
  readonly algorithm: SigningAlgorithm;
  /** For how long each of them signs. */
  readonly every: Milliseconds;
  /** How long tokens live. */
  readonly tokenLife: Milliseconds;
}

/** A signing key as its rotation sees it. */
export interface RotatedKey {
  readonly algorithm: SigningAlgorithm;
  readonly activeFrom: number;
}

/** The time from which a new key would sign; undefined while none is needed. `keys`: in the order in which they sign. */
export function nextActiveFrom(keys: readonly RotatedKey[], rotation: Rotation, now: Instant): Instant | undefined {
  const newest = keys.at(-1);
  if (newest === undefined) return now;
  if (newest.activeFrom > now) return undefined;
  // Published before its use, however late the rotation is.
  const soonest = instantAt(now + PUBLISHED_BEFORE);
  if (newest.algorithm !== rotation.algorithm) return soonest;
  const due = newest.activeFrom + rotation.every;
  return due > soonest ? undefined : soonest;
}

/** The key that signs now. The first one does before its time too: its node has a clock that is ahead. */
export function signingKeyAt<K extends RotatedKey>(keys: readonly K[], now: Instant): K | undefined {
  return keys.findLast(({ activeFrom }) => activeFrom <= now) ?? keys[0];
}

/** The keys that verify tokens now: the one that signs, the next one, and former ones as long as their tokens live. */
export function publishedKeysAt<K extends RotatedKey>(
  keys: readonly K[],
  { tokenLife }: Pick<Rotation, "tokenLife">,
  now: Instant,
): K[] {
  return keys.filter((_, i) => {
    const next = keys[i + 1];
    return next === undefined || next.activeFrom + tokenLife + CLOCKS_DIFFER > now;
  });
}
