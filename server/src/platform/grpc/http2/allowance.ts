import type { Clock, Milliseconds } from "../../../../../engine/src/clock/clock.ts";

/** How often a peer may do something: so often at once, and then so often per second. */
export class Allowance {
  readonly #clock: Clock;
  readonly #burst: number;
  readonly #perSecond: number;
  #left: number;
  #at: Milliseconds;

  constructor(clock: Clock, burst: number, perSecond: number) {
    this.#clock = clock;
    this.#burst = burst;
    this.#perSecond = perSecond;
    this.#left = burst;
    this.#at = clock.monotonic();
  }

  take(): boolean {
    const now = this.#clock.monotonic();
    this.#left = Math.min(this.#burst, this.#left + ((now - this.#at) * this.#perSecond) / 1_000);
    this.#at = now;
    if (this.#left < 1) return false;
    this.#left--;
    return true;
  }
}
