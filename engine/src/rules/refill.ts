import { type Instant, instantAt } from "../clock/clock.ts";
import { hasBooks, refillBooks, type StoredBooks } from "./books.ts";
import { startOfDay } from "./time-zone.ts";

export const refillIntervals = ["hourly", "daily", "weekly", "monthly", "yearly"] as const;

export type RefillInterval = (typeof refillIntervals)[number];

/** The schedule and the amount of a refill. Except for `hourly`, it is due at the start of a day. */
export interface Refill {
  readonly interval: RefillInterval;
  readonly amount: number;
  /** `weekly`: 1, Monday, to 7. `monthly` and `yearly`: 1 to 31; in a shorter month, the last day. Absent: 1. */
  readonly refillDay?: number;
  /** `yearly`: 1 to 12. Absent: 1. */
  readonly refillMonth?: number;
  /** In which days start, as a name of the IANA database. Absent: UTC. */
  readonly timeZone?: string;
  /** The most of the former balance to which the amount is added. Absent: the amount replaces the balance. */
  readonly rollover?: number;
}

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
/** 1970-01-01 was a Thursday: day -3 is the Monday before. */
const FIRST_MONDAY = -3;

/** The last instant, up to and including `now`, at which the refill was due. */
export function lastDue(refill: Refill, now: Instant): Instant {
  return dueAt(refill, lastPeriod(refill, now));
}

/** The first instant after `now` at which the refill is due. */
export function nextDue(refill: Refill, now: Instant): Instant {
  let period = lastPeriod(refill, now) + 1;
  // In a zone that skipped a day, two periods are due at one instant.
  while (dueAt(refill, period) <= now) period++;
  return dueAt(refill, period);
}

/** The number of the last period that was due up to and including `now`. Periods of a schedule are numbered in order. */
function lastPeriod(refill: Refill, now: Instant): number {
  // Local dates are at most one day from those of UTC, so the period of the next day is none before it.
  let period = periodOf(refill, now + dayMs);
  while (dueAt(refill, period) > now) period--;
  return period;
}

/** The period that contains a time, as a date in UTC, or the one after it. */
function periodOf({ interval, refillDay = 1 }: Refill, time: number): number {
  const date = new Date(time);
  if (interval === "hourly") return Math.floor(time / hourMs);
  if (interval === "daily") return Math.floor(time / dayMs);
  if (interval === "weekly") return Math.floor((Math.floor(time / dayMs) - FIRST_MONDAY - refillDay + 1) / 7);
  if (interval === "monthly") return date.getUTCFullYear() * 12 + date.getUTCMonth();
  return date.getUTCFullYear();
}

function dueAt({ interval, refillDay = 1, refillMonth = 1, timeZone }: Refill, period: number): Instant {
  switch (interval) {
    case "hourly":
      return instantAt(period * hourMs);
    case "daily":
      return startOfDay(period, timeZone);
    case "weekly":
      return startOfDay(FIRST_MONDAY + 7 * period + refillDay - 1, timeZone);
    case "monthly":
      return startOfDay(dayInMonth(period, refillDay), timeZone);
    case "yearly":
      return startOfDay(dayInMonth(period * 12 + refillMonth - 1, refillDay), timeZone);
  }
}

/** A day of a month, as days since 1970-01-01; its last day if the month is shorter. Months count from the year 0. */
function dayInMonth(month: number, day: number): number {
  const year = Math.floor(month / 12);
  // Day 0 is the last day of the previous month.
  const lastDay = new Date(Date.UTC(year, (month % 12) + 1, 0)).getUTCDate();
  return Date.UTC(year, month % 12, Math.min(day, lastDay)) / dayMs;
}

/** A balance as it is stored. */
export interface StoredBalance extends StoredBooks {
  remaining: number;
  refill_interval: RefillInterval | null;
  refill_amount: number | null;
  refill_day: number | null;
  refill_month: number | null;
  refill_zone: string | null;
  refill_rollover: number | null;
  /** The first refill not yet applied, in epoch milliseconds. */
  refill_due_at: number | null;
  /**
   * Before `refill_due_at`: the first of the missed refills that the last one replaced. After it: a refill that a clock
   * that ran ahead has applied already. Null: neither.
   */
  refill_mark: number | null;
}

/** The refill of a balance; undefined when it has none. */
export function refillOf(
  balance: Omit<StoredBalance, "remaining" | "refill_due_at" | "refill_mark">,
): Refill | undefined {
  const { refill_interval: interval, refill_amount: amount, refill_day: day, refill_month: month } = balance;
  const { refill_zone: timeZone, refill_rollover: rollover } = balance;
  if (interval === null || amount === null) return undefined;
  return {
    interval,
    amount,
    ...(hasDay(interval) && { refillDay: day ?? 1 }),
    ...(interval === "yearly" && { refillMonth: month ?? 1 }),
    ...(timeZone !== null && { timeZone }),
    ...(rollover !== null && { rollover }),
  };
}

/** Whether the schedule of an interval depends on a day. */
export function hasDay(interval: RefillInterval): boolean {
  return interval === "weekly" || interval === "monthly" || interval === "yearly";
}

/**
 * The current balance: a refill takes effect when it falls due, before it is written. Of several missed refills only the
 * last counts; with `rollover` each does. None is applied twice.
 *
 * A clock that ran ahead and was corrected leaves a due time too far in the future. If the last refill replaced others that
 * it missed, the due time is corrected to the first of these that is in the future.
 */
export function withDueRefill<B extends StoredBalance>(balance: B, now: Instant): B {
  const { refill_due_at: due, refill_mark: mark } = balance;
  // Calls come here often, and the calendar takes longer than this.
  if (due === null || (now < due && mark === null)) return balance;
  const refill = refillOf(balance);
  if (!refill) return balance;
  if (now < due) {
    if (mark === null || mark >= due) return balance;
    const applied = lastDue(refill, instantAt(due - 1));
    const next = Math.max(nextDue(refill, now), mark);
    return next < applied ? { ...balance, refill_due_at: next, refill_mark: applied } : balance;
  }
  const last = lastDue(refill, now);
  const next = nextDue(refill, now);
  const changed = { ...balance, refill_due_at: next };
  // Another node, whose time zones are older or newer, expected this refill at `due`. Here it is due later: it is left out then.
  if (last < due) changed.refill_mark = next;
  else if (mark === null || mark <= now) {
    // The first one that this refill replaces, after one that was applied ahead of its time.
    const first = mark !== null && mark >= due ? nextDue(refill, instantAt(mark)) : due;
    changed.refill_mark = first < last && mark !== last && refill.rollover === undefined ? first : null;
  }
  if (mark === last) return changed;
  const remaining = refilled(balance.remaining, refill, due, now);
  if (hasBooks(changed)) return refillBooks(changed, remaining, refill.amount);
  return { ...changed, remaining, period: (changed.period ?? 0) + 1 };
}

/** A balance after the refills from `due` to `now`. */
function refilled(remaining: number, refill: Refill, due: number, now: Instant): number {
  const { amount, rollover } = refill;
  if (rollover === undefined) return amount;
  let periods = 1;
  // More periods than fill the balance do not change it.
  for (let period = lastPeriod(refill, now); (periods - 1) * amount < rollover; period--) {
    const at = dueAt(refill, period);
    if (at <= due) break;
    if (at !== dueAt(refill, period - 1)) periods++;
  }
  return Math.min(Math.max(0, remaining) + (periods - 1) * amount, rollover) + amount;
}
