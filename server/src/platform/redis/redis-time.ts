import type { Milliseconds } from "../../../../engine/src/clock/clock.ts";

/** Maximum drift of two clocks per millisecond: the limit that NTP slews without a step. */
const DRIFT = 500e-6;

/**
 * Estimates the clock of Redis from its replies.
 *
 * A reply contains a time of Redis between sending and receiving, so the offset of the two clocks is in an interval. Each
 * reply narrows the interval; between replies it widens by the drift. A reply that contradicts it, because a clock was
 * set, replaces it.
 */
export class RedisTime {
  #low = Number.NEGATIVE_INFINITY;
  #high = Number.POSITIVE_INFINITY;
  #updatedAt: Milliseconds = 0;
  #isAssumed = false;

  /** Assumes the clock of this node until the first reply. */
  assume(at: Milliseconds, time: number): void {
    this.learn(at, at, time);
    this.#isAssumed = true;
  }

  /** Adds a reply: the monotonic times of sending and receiving, and its time in whole milliseconds. */
  learn(sentAt: Milliseconds, receivedAt: Milliseconds, time: number): void {
    const widening = (receivedAt - this.#updatedAt) * DRIFT;
    const low = Math.max(this.#low - widening, time - receivedAt);
    // Redis' time is truncated to milliseconds.
    const high = Math.min(this.#high + widening, time + 1 - sentAt);
    const isConsistent = low <= high && !this.#isAssumed;
    this.#isAssumed = false;
    this.#low = isConsistent ? low : time - receivedAt;
    this.#high = isConsistent ? high : time + 1 - sentAt;
    this.#updatedAt = receivedAt;
  }

  /** The earliest possible time of Redis' clock at a monotonic time, in ms since the epoch. */
  earliest(at: Milliseconds): number {
    return Math.floor(at + this.#low - Math.abs(at - this.#updatedAt) * DRIFT);
  }

  /** The latest possible time of Redis' clock at a monotonic time. */
  latest(at: Milliseconds): number {
    return Math.floor(at + this.#high + Math.abs(at - this.#updatedAt) * DRIFT);
  }
}
