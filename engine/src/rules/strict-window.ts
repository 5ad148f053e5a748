import { fits, type WindowCharge, type WindowDecision } from "./window.ts";

/**
 * The algorithm of strict limits: charges count whole until they have left the trailing `duration`.
 *
 * Time is divided into sub-windows of ⌈duration ÷ 16⌉ ms that are aligned to the Unix epoch. A charge counts for its
 * sub-window, and a sub-window counts until its last millisecond is a `duration` ago. So a charge counts for at least
 * `duration`, and for less than `duration` and a sub-window. No trailing `duration` ever has more than the limit, and
 * a rejected call would exceed the limit in the trailing `duration` and one sub-window less a millisecond.
 */

/**
 * How a limit counts. `standard`: windows are aligned, and the previous one counts in proportion to its overlap with the
 * last `duration` (`window.ts`). `strict`: no trailing `duration` has more than the limit.
 */
export type LimitMode = "standard" | "strict";

/** Sub-windows of a `duration`, if it has as many milliseconds. */
export const SUBWINDOWS = 16;

/**
 * The counts of a counter are in a ring: a sub-window has the place index modulo this number. At most 17 sub-windows count
 * at a time; an even number makes pairs, which the counters in memory store together.
 */
export const RING = 18;

/** The length of a sub-window in milliseconds. */
export function subWindow(duration: number): number {
  return Math.ceil(duration / SUBWINDOWS);
}

/** The time from which the charges of the sub-window `index` have no effect, in milliseconds since the epoch. */
export function releaseOf(index: number, duration: number): number {
  return (index + 1) * subWindow(duration) - 1 + duration;
}

/** A stored state. `counts[i]` are the charges of the sub-window `first` + i. */
export interface StrictState {
  readonly first: number;
  readonly counts: readonly number[];
}

/**
 * The state of one counter at one moment. The hot path reuses the object, so that a decision allocates nothing: `begin`,
 * then `add` for each stored sub-window, then `open`.
 */
export class StrictWindow {
  duration = 1;
  /** Index of the sub-window in which a charge counts. */
  current = 0;
  /** Charges that count. */
  used = 0;
  /**
   * By how many sub-windows the stored state was moved back, because it is too far in the future; a multiple of `RING`.
   * The moved state must then be stored.
   */
  moved = 0;
  /** Index of the oldest sub-window that counts. */
  #oldest = 0;
  #newest = -1;
  readonly #indexes = new Float64Array(RING);
  readonly #counts = new Float64Array(RING);

  /** Starts with a counter without charges. */
  begin(duration: number): void {
    this.duration = duration;
    this.#counts.fill(0);
    this.#newest = -1;
  }

  /** Adds the charges of a sub-window. Of two sub-windows with the same place, the newer one may count. */
  add(index: number, count: number): void {
    if (count === 0) return;
    const place = index % RING;
    if (this.#counts[place] !== 0 && this.#indexes[place]! > index) return;
    this.#indexes[place] = index;
    this.#counts[place] = count;
    if (index > this.#newest) this.#newest = index;
  }

  /**
   * Computes what counts at `now`.
   *
   * If the clock stepped back, the time of the counter stays at the start of its newest sub-window until the clock catches
   * up, for at most `RING` sub-windows. A state that is further in the future was stored with a wrong clock, and is moved
   * back by whole rings, to after the present sub-window: the time of the counter is then the start of its newest one, as it
   * was at least when that was charged. So each charge counts for its duration, however far the clock is set back, and no
   * counter stands still for much longer than its duration.
   */
  open(now: number): void {
    const length = subWindow(this.duration);
    const index = Math.floor(now / length);
    this.moved = 0;
    let time = now;
    let current = index;
    if (this.#newest > index) {
      // What did not count at the newest sub-window does not count after a move either.
      const oldest = this.#oldestAt(this.#newest * length);
      this.moved = Math.floor((this.#newest - index - 1) / RING) * RING;
      for (let place = 0; place < RING; place++) {
        if (this.#indexes[place]! < oldest) this.#counts[place] = 0;
        this.#indexes[place]! -= this.moved;
      }
      current = this.#newest - this.moved;
      if (current > index) time = current * length;
    }
    this.current = current;
    this.#oldest = this.#oldestAt(time);
    this.used = 0;
    for (let place = 0; place < RING; place++) {
      if (this.#indexes[place]! >= this.#oldest) this.used += this.#counts[place]!;
    }
  }

  #oldestAt(time: number): number {
    return Math.floor((time + 1 - this.duration) / subWindow(this.duration));
  }

  /** The stored charges of a sub-window. */
  at(index: number): number {
    const place = index % RING;
    return this.#indexes[place] === index ? this.#counts[place]! : 0;
  }

  /** When the oldest charge stops counting, or would if it were made now. */
  get reset(): number {
    let index = this.#oldest;
    while (index < this.current && this.at(index) === 0) index++;
    return releaseOf(index, this.duration);
  }

  /**
   * Milliseconds until `cost`, which does not fit now, fits without further charges. One millisecond earlier it is rejected.
   * `Infinity` if it never fits.
   */
  wait(limit: number, cost: number, now: number): number {
    if (limit === 0 || cost > limit) return Number.POSITIVE_INFINITY;
    let used = this.used;
    let index = this.#oldest;
    for (; index < this.current; index++) {
      used -= this.at(index);
      if (used + cost <= limit) break;
    }
    return releaseOf(index, this.duration) - now;
  }
}

/** Decides one charge against one stored state at `now`, without charging it. */
export function decideStrict(
  { first, counts }: StrictState,
  { limit, duration, cost }: WindowCharge,
  now: number,
): Omit<WindowDecision, "next"> {
  const window = new StrictWindow();
  window.begin(duration);
  for (const [i, count] of counts.entries()) window.add(first + i, count);
  window.open(now);
  const { used, reset } = window;
  if (fits(used, cost, limit)) return { allowed: true, remaining: limit - used, reset, retryAfter: 0 };
  const wait = window.wait(limit, cost, now);
  const retryAfter = wait === Number.POSITIVE_INFINITY ? undefined : wait;
  return { allowed: false, remaining: Math.max(0, limit - used), reset, retryAfter };
}
