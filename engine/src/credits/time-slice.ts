import { setImmediate } from "node:timers/promises";
import type { Clock, Milliseconds } from "../clock/clock.ts";

/** How long work may block the event loop before it yields. */
const BLOCK_MAX: Milliseconds = 2;
/** Steps between two readings of the clock. */
const STEPS_PER_READING = 16;
/** The most steps before work yields, however fast they are. */
const STEPS_MAX = 1_024;

/** The time after which long work must yield to the event loop. */
export class TimeSlice {
  readonly #clock: Clock;
  #steps = 0;
  #startedAt: Milliseconds;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#startedAt = clock.monotonic();
  }

  /** Counts a step; true when work must call `yield`. */
  isOver(): boolean {
    if (++this.#steps % STEPS_PER_READING !== 0) return false;
    return this.#steps >= STEPS_MAX || this.#clock.monotonic() - this.#startedAt > BLOCK_MAX;
  }

  async yield(): Promise<void> {
    await setImmediate();
    this.#steps = 0;
    this.#startedAt = this.#clock.monotonic();
  }
}
