import type { Milliseconds } from "../clock/clock.ts";

/** How much two clocks may drift apart per millisecond: what NTP corrects at most without a step. */
const DRIFT = 500e-6;

/**
 * What time it is in Redis, as far as its replies tell.
 *
 * A reply says that Redis' clock showed some time between sending and receiving, so the distance of the two clocks lies
 * in an interval. Each reply narrows it; between replies it widens with drift. A reply that contradicts it (one clock was
 * set) replaces it.
 */
export class RedisTime {
  #low = Number.NEGATIVE_INFINITY;
  #high = Number.POSITIVE_INFINITY;
  #learntAt: Milliseconds = 0;
  #isAssumed = false;

  /** Takes this node's own clock for that of Redis until a reply tells. */
  assume(at: Milliseconds, time: number): void {
    this.learn(at, at, time);
    this.#isAssumed = true;
  }

  /** Takes note of a reply: the monotonic times of sending and receiving, and the whole milliseconds it told. */
  learn(sentAt: Milliseconds, receivedAt: Milliseconds, time: number): void {
    const widening = (receivedAt - this.#learntAt) * DRIFT;
    const low = Math.max(this.#low - widening, time - receivedAt);
    // Redis' time was cut off to whole milliseconds.
    const high = Math.min(this.#high + widening, time + 1 - sentAt);
    const isConsistent = low <= high && !this.#isAssumed;
    this.#isAssumed = false;
    this.#low = isConsistent ? low : time - receivedAt;
    this.#high = isConsistent ? high : time + 1 - sentAt;
    this.#learntAt = receivedAt;
  }

  /** The earliest time in ms since the epoch that Redis' clock can show at a monotonic time. */
  earliest(at: Milliseconds): number {
    return Math.floor(at + this.#low - Math.abs(at - this.#learntAt) * DRIFT);
  }

  /** The latest time that Redis' clock can show. */
  latest(at: Milliseconds): number {
    return Math.floor(at + this.#high + Math.abs(at - this.#learntAt) * DRIFT);
  }
}
