import { type Instant, instantAt, type Milliseconds } from "../clock/clock.ts";

const MINUTE = 60_000;

/**
 * When a rerolled credential expires: after `grace`, rounded up to a whole minute, or at once if `grace` is 0. Never later
 * than its own expiry (`own`; null: none), because a reroll extends nothing, and never later than `latest`.
 */
export function endAfterReroll(now: Instant, grace: Milliseconds, own: number | null, latest: number): Instant {
  const end = grace === 0 ? now : Math.ceil((now + grace) / MINUTE) * MINUTE;
  return instantAt(Math.min(end, own ?? latest, latest));
}
