import { type Clock, type Instant, instantAt, type Milliseconds } from "../../../../engine/src/clock/clock.ts";
import { CountingClock } from "../../../../engine/src/limits/counting-clock.ts";
import { SharedNumbers } from "./shared-numbers.ts";

/** What the main thread knows and the others need for each call. Times by the monotonic clock are those of the main thread. */
export interface MainState {
  /** The start of the last read of `changes`, by both clocks. */
  readAt: { monotonic: Milliseconds; wall: number };
  databaseReachable: boolean;
  /** Until when counters in memory may decide, by the monotonic clock. */
  countUntil: Milliseconds;
  /** The time of the counters at a time of the monotonic clock. */
  counting: { time: number; monotonic: Milliseconds };
}

/** A larger difference to the counting clock of the main thread means that a thread has not followed a step yet. */
const DIFFERENCE_MAX: Milliseconds = 1_000;

/** The state of the main thread in shared memory. */
export class SharedMainState {
  readonly #numbers: SharedNumbers;

  constructor(numbers = SharedNumbers.of(6)) {
    this.#numbers = numbers;
  }

  get buffer(): SharedArrayBuffer {
    return this.#numbers.buffer;
  }

  write({ readAt, databaseReachable, countUntil, counting }: MainState): void {
    this.#numbers.write([
      readAt.monotonic,
      readAt.wall,
      Number(databaseReachable),
      countUntil,
      counting.time,
      counting.monotonic,
    ]);
  }

  get readAtMonotonic(): Milliseconds {
    return this.#numbers.read()[0]!;
  }

  get readAtWall(): number {
    return this.#numbers.read()[1]!;
  }

  get databaseReachable(): boolean {
    return this.#numbers.read()[2] === 1;
  }

  get countUntil(): Milliseconds {
    return this.#numbers.read()[3]!;
  }

  /** The time of the counters of the main thread, at a time of the monotonic clock. */
  countingTime(monotonic: Milliseconds): number {
    const numbers = this.#numbers.read();
    return numbers[4]! + monotonic - numbers[5]!;
  }
}

/**
 * The counting clock of a thread beside the main one. After a step of the wall clock the main thread decides when windows
 * follow it; otherwise both threads read the same wall clock.
 */
export class FollowingClock {
  readonly #clock: Clock;
  readonly #own: CountingClock;
  readonly #state: SharedMainState;

  constructor(clock: Clock, state: SharedMainState) {
    this.#clock = clock;
    this.#own = new CountingClock(clock, () => {});
    this.#state = state;
  }

  now(): Instant {
    const own = this.#own.now();
    const main = this.#state.countingTime(this.#clock.monotonic());
    return Math.abs(own - main) > DIFFERENCE_MAX ? instantAt(Math.floor(main)) : own;
  }
}
