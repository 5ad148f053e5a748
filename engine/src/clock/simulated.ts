import { type Clock, type Instant, instantAt, type Milliseconds, type Timer } from "./clock.ts";

/** A clock that moves only by `advance` and `step`. Timers run in the order of their due times. */
export class SimulatedClock implements Clock {
  #now: number;
  #monotonic = 0;
  #timers: { due: number; order: number; task: () => void }[] = [];
  #order = 0;

  constructor(start: number) {
    this.#now = start;
  }

  now(): Instant {
    return instantAt(this.#now);
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
      this.#pass(Math.max(0, next.due - this.#monotonic));
      next.task();
    }
    this.#pass(end - this.#monotonic);
  }

  /** Steps the wall clock without elapsed time, as an operator or NTP does. */
  step(difference: Milliseconds): void {
    this.#now += difference;
  }

  #pass(length: number): void {
    this.#monotonic += length;
    this.#now += length;
  }
}
