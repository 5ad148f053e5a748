import { type Clock, type Instant, instantAt, type Milliseconds } from "../clock/clock.ts";

/** A difference between the wall clock and elapsed time that is larger is a step of the wall clock. */
const STEP_MIN: Milliseconds = 1_000;
/** How much the two may drift apart per millisecond, while a clock is disciplined without steps. */
const DRIFT = 1e-3;
/** How long a step has to last before it is followed. */
const STEP_DURATION_MIN: Milliseconds = 60_000;

/**
 * The time by which counters in memory choose their windows: the wall clock without its short errors.
 *
 * It agrees with the wall clock as long as that goes at the pace of the monotonic clock. When the wall clock steps, ahead
 * or back, time goes on at the pace of the monotonic clock. A step that is undone within 60 s has no effect; one that
 * lasts is followed then, and reported. So a clock that is a day ahead for one second moves no window.
 *
 * A step ahead ends windows early when it is followed: each counter may admit one limit more. After a step back counters
 * lie ahead; `rules/window.ts` says how they count.
 */
export class CountingClock {
  readonly #clock: Clock;
  readonly #onStep: (difference: Milliseconds) => void;
  #last: number;
  /** Both clocks were compared when they showed these times. */
  #comparedAt: { time: number; monotonic: Milliseconds };
  /** Until this time of the wall clock it is believed without a comparison. */
  #believedUntil: number;
  /** A step that is not followed yet. */
  #step: { since: Milliseconds; difference: Milliseconds } | undefined;

  constructor(clock: Clock, onStep: (difference: Milliseconds) => void) {
    this.#clock = clock;
    this.#onStep = onStep;
    this.#last = clock.now();
    this.#comparedAt = { time: this.#last, monotonic: clock.monotonic() };
    this.#believedUntil = this.#last + STEP_MIN;
  }

  now(): Instant {
    const wall = this.#clock.now();
    if (wall < this.#last || wall >= this.#believedUntil) return this.#compare(wall);
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
      this.#believedUntil = Number.NEGATIVE_INFINITY;
      this.#last = Math.max(this.#last, Math.floor(expected));
    }
    return instantAt(this.#last);
  }

  #agree(wall: number, monotonic: Milliseconds): void {
    this.#comparedAt = { time: wall, monotonic };
    this.#believedUntil = wall + STEP_MIN;
    this.#step = undefined;
  }
}
