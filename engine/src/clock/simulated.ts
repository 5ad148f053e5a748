import { type Clock, type Instant, instantAt, type Milliseconds, type Timer } from "./clock.ts";

/** A clock that moves only by `advance` and `step`. Timers run in the order of their due times. */
export class SimulatedClock implements Clock {
  /** The wall clock when the monotonic clock was 0, as steps have set it. */
  #start: number;
  #monotonic = 0;
  #timers: { due: number; order: number; task: () => void }[] = [];
  #order = 0;

  constructor(start: number) {
    this.#start = start;
  }

  /** Whole milliseconds, as of the system's clock, also at a timer of random length. */
  now(): Instant {
    return instantAt(Math.floor(this.#start + this.#monotonic));
  }

  monotonic(): Milliseconds {
    return this.#monotonic;
  }

  schedule(delay: Milliseconds, task: () => void): Timer {
    const timer = { due: this.#monotonic + delay, order: this.#order++, task };
    this.#timers.push(timer);
    return {
      cancel: () => {
        this.#timers = this.#timers.filter((other) => other !== timer);
      },
    };
  }

  /** Advances by `length`. Each timer runs at its own due time, not at the end. */
  advance(length: Milliseconds): void {
    const end = this.#monotonic + length;
    for (;;) {
      const next = this.#timers
        .filter((timer) => timer.due <= end)
        .sort((a, b) => a.due - b.due || a.order - b.order)[0];
      if (!next) break;
      this.#timers.splice(this.#timers.indexOf(next), 1);
      this.#monotonic = Math.max(this.#monotonic, next.due);
      next.task();
    }
    this.#monotonic = Math.max(this.#monotonic, end);
  }

  /** Steps the wall clock without elapsed time, as an operator or NTP does. */
  step(difference: Milliseconds): void {
    this.#start += difference;
  }
}
