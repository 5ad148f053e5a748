import { type Instant, instantAt } from "../clock/clock.ts";

/** The schedule and the amount of a refill. `refillDay` is a day of the month, 1 to 31. */
export type Refill = { interval: "daily"; amount: number } | { interval: "monthly"; amount: number; refillDay: number };

const dayMs = 86_400_000;

/** The last instant, up to and including `now`, at which the refill was due. */
export function lastDue(refill: Refill, now: Instant): Instant {
  if (refill.interval === "daily") return instantAt(Math.floor(now / dayMs) * dayMs);
  const due = dueInMonth(refill.refillDay, now, 0);
  return due <= now ? due : dueInMonth(refill.refillDay, now, -1);
}

/** The first instant after `now` at which the refill is due. */
export function nextDue(refill: Refill, now: Instant): Instant {
  if (refill.interval === "daily") return instantAt((Math.floor(now / dayMs) + 1) * dayMs);
  const due = dueInMonth(refill.refillDay, now, 0);
  return due > now ? due : dueInMonth(refill.refillDay, now, 1);
}

/** Midnight UTC of the refill day in the month of `now` or an adjacent one; of the last day if the month is shorter. */
function dueInMonth(refillDay: number, now: Instant, offset: -1 | 0 | 1): Instant {
  const date = new Date(now);
  const year = date.getUTCFullYear();
  // Date.UTC normalizes a month below 0 or above 11, and day 0 is the last day of the previous month.
  const month = date.getUTCMonth() + offset;
  const lastDay = new Date(Date.UTC(year, month + 1, 0)).getUTCDate();
  return instantAt(Date.UTC(year, month, Math.min(refillDay, lastDay)));
}
