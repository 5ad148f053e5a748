/**
 * The law of the limiter: a sliding count over windows that are aligned to the Unix epoch.
 *
 *     used = current + floor(previous × rest ÷ duration)
 *
 * `current` and `previous` are what was charged in this window and in the one before; `rest` is what remains of this
 * window. Everything is a whole number and every answer is exact. While nobody charges, `used` never grows (at a
 * window's first millisecond it is exactly what was `current` before), so "when would this pass" has one answer.
 */

/** The largest `limit`, and the largest `cost` of one charge. A count never exceeds it. */
export const LIMIT_MAX = 1_000_000_000_000;

/** The longest `duration` in milliseconds: 366 days. */
export const DURATION_MAX = 366 * 24 * 60 * 60 * 1000;

/**
 * What is remembered of one counter. `end` is the moment in milliseconds from which it has no effect any more, two
 * durations after its window began, and so it also says which window `current` belongs to.
 */
export interface WindowState {
  readonly end: number;
  readonly current: number;
  readonly previous: number;
}

/** A counter that nobody has charged. */
export const unused: WindowState = { end: 0, current: 0, previous: 0 };

/** A remembered state as it looks at one moment. Reused by the hot path, which allocates nothing to decide. */
export class Window {
  /** When this window began, in milliseconds. */
  start = 0;
  /** What remains of it: 1 to `duration`. */
  rest = 0;
  /** How far the clock stands before `start`: 0 unless it was stepped back. */
  behind = 0;
  /** Whether the state lay so far ahead that it was moved to this window, where it has to be remembered. */
  isMoved = false;
  current = 0;
  previous = 0;
}

/**
 * Writes into `window` how a remembered state looks at `now`.
 *
 * A clock that stepped back into an earlier window counts as the beginning of the newest one that was charged: time
 * then stands still for this counter until the clock has caught up. It does so for one duration at most. A state that
 * lies further ahead, since the clock was wrong when it was made, is moved: its counts are those of the present window
 * and the one before. So nothing that was charged is forgotten, and no counter stands still for longer than its window.
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

/** What counts against the limit in an opened window. */
export function usedIn(window: Window, duration: number): number {
  return window.previous === 0
    ? window.current
    : window.current + multiplyDivide(window.previous, window.rest, duration, 0);
}

/** Whether `cost` fits. A limit of 0 refuses everything, a cost of 0 included. */
export function fits(used: number, cost: number, limit: number): boolean {
  return limit > 0 && used + cost <= limit;
}

/**
 * How many milliseconds from now `cost`, which does not fit in the opened window, would fit if nobody else charged:
 * it is refused one millisecond earlier. `Infinity` when it never can.
 */
export function waitIn(window: Window, duration: number, limit: number, cost: number): number {
  if (limit === 0 || cost > limit) return Number.POSITIVE_INFINITY;
  const untilNext = window.behind + window.rest;
  const room = limit - cost - window.current;
  // floor(previous × rest ÷ duration) ≤ room holds for every rest up to floor(((room + 1) × duration − 1) ÷ previous).
  if (room >= 0) return untilNext - multiplyDivide(room + 1, duration, window.previous, -1);
  // This window's own charges are too many: they have to become the previous ones first.
  return untilNext + duration - multiplyDivide(limit - cost + 1, duration, window.current, -1);
}

/**
 * floor((count × by + addend) ÷ divisor), exact, for count < 2^48 and by, divisor ≤ 2^40.
 *
 * The product may pass 2^53, where doubles lose whole numbers. Long division in pieces of 12 bits keeps each step
 * below 2^53: a remainder is below 2^40, and so is `by`, hence 2^52 each. Pieces of 16 bits would not do, because a
 * divisor can be a count of 10^12. Lua computes in the same doubles, so that the script in Redis can do the same.
 */
export function multiplyDivide(count: number, by: number, divisor: number, addend: 0 | -1): number {
  const product = count * by;
  if (product < 2 ** 53) return Math.floor((product + addend) / divisor);
  let quotient = 0;
  let remainder = 0;
  for (let unit = 2 ** 36; unit >= 1; unit /= 4096) {
    const piece = Math.floor(count / unit) % 4096;
    const dividend = remainder * 4096 + piece * by + (unit === 1 ? addend : 0);
    const digit = Math.floor(dividend / divisor);
    remainder = dividend - digit * divisor;
    quotient = quotient * 4096 + digit;
  }
  return quotient;
}

/** What a charge meets, and what it costs. Whole numbers: limit and cost 0 to 10^12, duration 1 ms to 366 days. */
export interface WindowCharge {
  readonly limit: number;
  readonly duration: number;
  readonly cost: number;
}

/** The decision about one charge, as a value. */
export interface WindowDecision {
  readonly allowed: boolean;
  /** What is left after this charge; on denial what is truly left. Never negative. */
  readonly remaining: number;
  /** The end of the current window, in milliseconds since the epoch. */
  readonly reset: number;
  /** Milliseconds until this cost would pass if nobody else charged; 0 when it passed, undefined when it never can. */
  readonly retryAfter: number | undefined;
  /** What to remember. The very state that came in when nothing was charged and it was not moved. */
  readonly next: WindowState;
}

/** Decides one charge against one counter at `now`, and says what to remember. */
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
