import { type Clock, type Instant, instantAt, type Milliseconds } from "../clock/clock.ts";

/** A larger difference between the wall clock and the elapsed time is a step of the wall clock. */
const STEP_MIN: Milliseconds = 1_000;
/** Drift per millisecond that is tolerated while NTP slews the clock. */
const DRIFT = 1e-3;
/** How long a step must last before this clock follows it. */
const STEP_DURATION_MIN: Milliseconds = 60_000;

/**
 * The clock of the counters in memory: the wall clock without its short errors.
 *
 * It equals the wall clock while that runs at the rate of the monotonic clock. When the wall clock steps, forwards or
 * backwards, this clock continues at the rate of the monotonic clock. A step that is undone within 60 s has no effect. A
 * step that lasts is followed after 60 s, and reported. So a clock that is a day ahead for one second moves no window.
 *
 * Following a step forwards ends windows early: each counter may then admit one additional limit. After a step backwards
 * counters are ahead of the clock; `rules/window.ts` describes how they count.
 */
export class CountingClock {
  readonly #clock: Clock;
  readonly #onStep: (difference: Milliseconds) => void;
  #last: number;
  /** The times of both clocks at their last comparison. */
  #comparedAt: { time: number; monotonic: Milliseconds };
  /** The next comparison is due when the wall clock shows this time. */
  #compareAt: number;
  /** A step that this clock does not follow yet. */
  #step: { since: Milliseconds; difference: Milliseconds } | undefined;

  constructor(clock: Clock, onStep: (difference: Milliseconds) => void) {
    this.#clock = clock;
    this.#onStep = onStep;
    this.#last = clock.now();
    this.#comparedAt = { time: this.#last, monotonic: clock.monotonic() };
    this.#compareAt = this.#last + STEP_MIN;
  }

  now(): Instant {
    const wall = this.#clock.now();
    if (wall < this.#last || wall >= this.#compareAt) return this.#compare(wall);
    this.#last = wall;
    return wall;
  }

  #compare(wall: Instant): Instant {
    const monotonic = this.#clock.monotonic();
    const elapsed = monotonic - this.#comparedAt.monotonic;
    const expected = this.#comparedAt.time + elapsed;
    const difference = wall - expected;
    if (Math.abs(difference) <= STEP_MIN + elapsed * DRIFT) {
      this.#agree(wall, monotonic);
      this.#last = Math.max(this.#last, wall);
      return instantAt(this.#last);
    }
    if (this.#step === undefined || Math.abs(this.#step.difference - difference) > STEP_MIN) {
      this.#step = { since: monotonic, difference };
    }
    if (monotonic - this.#step.since >= STEP_DURATION_MIN) {
      this.#agree(wall, monotonic);
      this.#last = wall;
      this.#onStep(Math.round(difference));
    } else {
      this.#compareAt = Number.NEGATIVE_INFINITY;
      this.#last = Math.max(this.#last, Math.floor(expected));
    }
    return instantAt(this.#last);
  }

  #agree(wall: number, monotonic: Milliseconds): void {
    this.#comparedAt = { time: wall, monotonic };
    this.#compareAt = wall + STEP_MIN;
    this.#step = undefined;
  }
}
