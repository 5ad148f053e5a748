import { type Instant, instantAt, type Milliseconds } from "../clock/clock.ts";

const MINUTE = 60_000;

/**
 * When a credential that was replaced ends: after `grace`, rounded up to a whole minute of the clock, or now when that
 * is 0. Never later than it would have ended by itself (`own`; null: never), for rotating prolongs nothing, nor than
 * `latest`.
 */
export function endAfterReroll(now: Instant, grace: Milliseconds, own: number | null, latest: number): Instant {
  const end = grace === 0 ? now : Math.ceil((now + grace) / MINUTE) * MINUTE;
  return instantAt(Math.min(end, own ?? latest, latest));
}
