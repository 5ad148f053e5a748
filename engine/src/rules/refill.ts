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

/** A balance as it is stored. */
export interface StoredBalance {
  remaining: number;
  refill_interval: "daily" | "monthly" | null;
  refill_amount: number | null;
  /** Day of the month, 1 to 31; null: the first. */
  refill_day: number | null;
  /** Epoch milliseconds. */
  refill_due_at: number | null;
}

/** The refill of a balance; undefined when it has none. */
export function refillOf(
  balance: Pick<StoredBalance, "refill_interval" | "refill_amount" | "refill_day">,
): Refill | undefined {
  const { refill_interval: interval, refill_amount: amount, refill_day: refillDay } = balance;
  if (interval === null || amount === null) return undefined;
  return interval === "daily" ? { interval, amount } : { interval, amount, refillDay: refillDay ?? 1 };
}

/**
 * The current balance: a refill takes effect when it falls due, before it is written. Of several missed refills only the
 * last counts.
 *
 * A clock that ran ahead and was corrected leaves a due time too far in the future. The due time is corrected if it is
 * late by more than one period. With a smaller tolerance, a correction around midnight would apply one refill twice.
 */
export function withDueRefill<B extends StoredBalance>(balance: B, now: Instant): B {
  const refill = refillOf(balance);
  const dueAt = balance.refill_due_at;
  if (!refill || dueAt === null) return balance;
  const next = nextDue(refill, now);
  if (now >= dueAt) return { ...balance, remaining: refill.amount, refill_due_at: next };
  return dueAt > nextDue(refill, next) ? { ...balance, refill_due_at: next } : balance;
}
