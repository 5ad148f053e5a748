import type { Instant, Milliseconds } from "../../../../engine/src/clock/clock.ts";

/** For how long a message is tried. Its last attempt is at the end of this time. */
export const RETRY_WINDOW: Milliseconds = 3 * 86_400_000;

const FIRST_DELAY: Milliseconds = 5_000;
const FACTOR = 3;
const DELAY_MAX: Milliseconds = 4 * 3_600_000;
/** A delay is shorter or longer by up to this part, so that messages that failed together are not sent together. */
const JITTER = 0.2;

/**
 * The time of the next attempt after `attempts` failed ones: 5 s, 15 s, 45 s and so on up to 4 h, each with jitter. Null
 * after the attempt at `deadline`, which was the last one.
 *
 * @param chance uniform, from 0 up to but not including 1.
 */
export function nextAttempt(attempts: number, now: Instant, deadline: number, chance: number): number | null {
  if (now >= deadline) return null;
  const delay = Math.min(DELAY_MAX, FIRST_DELAY * FACTOR ** (attempts - 1));
  return Math.min(deadline, Math.round(now + delay * (1 + JITTER * (2 * chance - 1))));
}
