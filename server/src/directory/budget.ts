import type { Clock } from "../clock/clock.ts";

/** The budget for unknown keys is used up: whoever asks for another one has to come back. */
export class LookupsExhausted extends Error {
  constructor() {
    super("Too many unknown keys are being looked up at the moment");
    this.name = "LookupsExhausted";
  }
}

/**
 * What look-ups of unknown names may cost: so many a second that find nothing. Those that find something are free, so
 * a node that has just started fills itself as fast as it can. Known names never come here.
 */
export class LookupBudget {
  readonly #clock: Clock;
  readonly #perSecond: number;
  #left: number;
  #filledAt: number;
  /** Look-ups that were refused. */
  refused = 0;

  constructor(clock: Clock, perSecond: number) {
    this.#clock = clock;
    this.#perSecond = perSecond;
    this.#left = perSecond;
    this.#filledAt = clock.monotonic();
  }

  /** Runs a look-up. @throws {LookupsExhausted} */
  async spend<R>(lookup: () => Promise<R | null>): Promise<R | null> {
    const now = this.#clock.monotonic();
    this.#left = Math.min(this.#perSecond, this.#left + ((now - this.#filledAt) / 1_000) * this.#perSecond);
    this.#filledAt = now;
    if (this.#left < 1) {
      this.refused++;
      throw new LookupsExhausted();
    }
    // Taken before it is known what is found, or a thousand at once would slip through.
    this.#left--;
    const found = await lookup();
    if (found !== null) this.#left++;
    return found;
  }
}
