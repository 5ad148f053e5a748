/**
 * The algorithm of the limiter: a sliding window counter over windows that are aligned to the Unix epoch.
 *
 *     used = current + floor(previous × rest ÷ duration)
 *
 * `current` and `previous` are the charges of this window and of the one before; `rest` is the remaining time of this
 * window. All numbers are integers and every result is exact. Without further charges `used` never grows: at the start of
 * a window it equals the previous `current`. So the time at which a cost fits is unique.
 */

/** The largest `limit`, and the largest `cost` of one charge. A count never exceeds it. */
export const LIMIT_MAX = 1_000_000_000_000;

/** The longest `duration` in milliseconds: 366 days. */
export const DURATION_MAX = 366 * 24 * 60 * 60 * 1000;

/**
 * The stored state of one counter. `end` is the time in milliseconds from which the state has no effect: two durations
 * after the start of its window. So it also identifies the window of `current`.
 */
export interface WindowState {
  readonly end: number;
  readonly current: number;
  readonly previous: number;
}

/** A counter without charges. */
export const unused: WindowState = { end: 0, current: 0, previous: 0 };

/** A stored state at one moment. The hot path reuses the object, so that a decision allocates nothing. */
export class Window {
  /** Start of this window, in milliseconds. */
  start = 0;
  /** Remaining time of this window: 1 to `duration`. */
  rest = 0;
  /** How far the clock is before `start`: 0 unless it stepped back. */
  behind = 0;
  /** Whether the state was too far in the future and was moved to this window. It must then be stored. */
  isMoved = false;
  current = 0;
  previous = 0;
}

/**
 * Computes the state of a counter at `now` into `window`.
 *
 * If the clock stepped back into an earlier window, the time of this counter stays at the start of its newest window
 * until the clock catches up, for at most one duration. A state that is further in the future was stored with a wrong
 * clock. It is moved: its counts become those of the present window and the one before. So no charge is lost, and no
 * counter stands still for longer than its window.
 */
export function openWindow(
  window: Window,
  end: number,
  current: number,
  previous: number,
  duration: number,
  now: number,
): void {
  let start = Math.floor(now / duration) * duration;
  const windowsAgo = start + 2 * duration - end;
  let rest = start + duration - now;
  window.behind = 0;
  window.isMoved = false;
  if (windowsAgo === 0) {
    window.current = current;
    window.previous = previous;
  } else if (windowsAgo === duration) {
    window.current = 0;
    window.previous = current;
  } else if (windowsAgo > 0) {
    window.current = 0;
    window.previous = 0;
  } else {
    window.current = current;
    window.previous = previous;
    const behind = end - 2 * duration - now;
    if (behind > duration) window.isMoved = true;
    else {
      start = end - 2 * duration;
      rest = duration;
      window.behind = behind;
    }
  }
  window.start = start;
  window.rest = rest;
}

/** The usage in an opened window. */
export function usedIn(window: Window, duration: number): number {
  return window.previous === 0
    ? window.current
    : window.current + multiplyDivide(window.previous, window.rest, duration, 0);
}

/** Whether `cost` fits. A limit of 0 rejects everything, including a cost of 0. */
export function fits(used: number, cost: number, limit: number): boolean {
  return limit > 0 && used + cost <= limit;
}

/**
 * Milliseconds until `cost`, which does not fit now, fits without further charges. One millisecond earlier it is rejected.
 * `Infinity` if it never fits.
 */
export function waitIn(window: Window, duration: number, limit: number, cost: number): number {
  if (limit === 0 || cost > limit) return Number.POSITIVE_INFINITY;
  const untilNext = window.behind + window.rest;
  const room = limit - cost - window.current;
  // floor(previous × rest ÷ duration) ≤ room holds for every rest up to floor(((room + 1) × duration − 1) ÷ previous).
  if (room >= 0) return untilNext - multiplyDivide(room + 1, duration, window.previous, -1);
  // The charges of this window exceed the limit. They must become the previous ones first.
  return untilNext + duration - multiplyDivide(limit - cost + 1, duration, window.current, -1);
}

/**
 * floor((count × by + addend) ÷ divisor), exact, for count < 2^48 and by, divisor ≤ 2^40.
 *
 * The product may exceed 2^53, where doubles are not exact. Long division with digits of 12 bits keeps each step below
 * 2^53: the remainder and `by` are below 2^40, so each product is below 2^52. Digits of 16 bits would be too large,
 * because a divisor can be a count of 10^12. Lua uses doubles too, so the script in Redis does the same.
 */
export function multiplyDivide(count: number, by: number, divisor: number, addend: 0 | -1): number {
  const product = count * by;
  if (product < 2 ** 53) return Math.floor((product + addend) / divisor);
  let quotient = 0;
  let remainder = 0;
  for (let unit = 2 ** 36; unit >= 1; unit /= 4096) {
    const part = Math.floor(count / unit) % 4096;
    const dividend = remainder * 4096 + part * by + (unit === 1 ? addend : 0);
    const digit = Math.floor(dividend / divisor);
    remainder = dividend - digit * divisor;
    quotient = quotient * 4096 + digit;
  }
  return quotient;
}

/** A limit and a cost. Integers: limit and cost 0 to 10^12, duration 1 ms to 366 days. */
export interface WindowCharge {
  readonly limit: number;
  readonly duration: number;
  readonly cost: number;
}

/** The decision on one charge. */
export interface WindowDecision {
  readonly allowed: boolean;
  /** What remains after this charge; on denial without it. Never negative. */
  readonly remaining: number;
  /** The end of the current window, in milliseconds since the epoch. */
  readonly reset: number;
  /** Milliseconds until this cost fits without further charges; 0 if it fits, undefined if it never does. */
  readonly retryAfter: number | undefined;
  /** The state to store. The same object if nothing was charged and the state was not moved. */
  readonly next: WindowState;
}

/** Decides one charge against one counter at `now`. */
export function decide(state: WindowState, charge: WindowCharge, now: number): WindowDecision {
  const { limit, duration, cost } = charge;
  const window = new Window();
  openWindow(window, state.end, state.current, state.previous, duration, now);
  const used = usedIn(window, duration);
  const reset = window.start + duration;
  const after = (taken: number): WindowState =>
    taken === 0 && !window.isMoved
      ? state
      : { end: window.start + 2 * duration, current: window.current + taken, previous: window.previous };
  if (!fits(used, cost, limit)) {
    const wait = waitIn(window, duration, limit, cost);
    const retryAfter = wait === Number.POSITIVE_INFINITY ? undefined : wait;
    return { allowed: false, remaining: Math.max(0, limit - used), reset, retryAfter, next: after(0) };
  }
  const next = after(cost);
  return { allowed: true, remaining: limit - used - cost, reset, retryAfter: 0, next };
}
