import { setImmediate } from "node:timers/promises";
import type { Clock, Milliseconds } from "../clock/clock.ts";

/** How long a stretch of work keeps the event loop. */
const STRETCH: Milliseconds = 2;
/** Steps between two looks at the clock. */
const STEPS_PER_LOOK = 16;
/** Steps of one stretch, however fast they are. */
const STEPS_MAX = 1_024;

/** Divides long work into stretches, between which the event loop does other things. */
export class Pace {
  readonly #clock: Clock;
  #steps = 0;
  #startedAt: Milliseconds;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#startedAt = clock.monotonic();
  }

  /** Notes a step; true when it is time for a `rest`. */
  isDue(): boolean {
    if (++this.#steps % STEPS_PER_LOOK !== 0) return false;
    return this.#steps >= STEPS_MAX || this.#clock.monotonic() - this.#startedAt > STRETCH;
  }

  async rest(): Promise<void> {
    await setImmediate();
    this.#steps = 0;
    this.#startedAt = this.#clock.monotonic();
  }
}
