import type { Clock, Milliseconds } from "../clock/clock.ts";

/** Questions that begin within this time of the first one under way end with it. */
const JOIN_TIME: Milliseconds = 50;
/** A question that takes longer does not keep others waiting. */
const TIME_MAX: Milliseconds = 400;
/** How long none is under way at least. */
const PAUSE: Milliseconds = 20;

/**
 * Lets questions of several clients, each of which asks again and again, pause at the same time. A program ends when nothing is under
 * way, so without it a program with two clients would not end before their pauses happened to meet, which can take minutes.
 */
export class CommonPauses {
  readonly #clock: Pick<Clock, "monotonic" | "schedule">;
  #underWay = 0;
  /** When the first of those that are under way began. */
  #since: Milliseconds = 0;
  #isPause = false;
  #waiting: (() => void)[] = [];

  constructor(clock: Pick<Clock, "monotonic" | "schedule">) {
    this.#clock = clock;
  }

  /** Asks, after a pause with the others if they have begun some time ago. It waits no longer than `TIME_MAX` and a pause. */
  async run<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
    const age = this.#clock.monotonic() - this.#since;
    if (this.#isPause) await this.#end(PAUSE);
    else if (this.#underWay > 0 && age > JOIN_TIME && age < TIME_MAX) await this.#end(TIME_MAX - age);
    if (this.#underWay++ === 0) this.#since = this.#clock.monotonic();
    try {
      return await ask();
    } finally {
      if (--this.#underWay === 0) this.#pause();
    }
  }

  /** The end of this pause or the next one, or of the longest wait. */
  #end(longest: Milliseconds): Promise<void> {
    return new Promise((resolve) => {
      const late = this.#clock.schedule(longest, resolve);
      this.#waiting.push(() => {
        late.cancel();
        resolve();
      });
    });
  }

  #pause(): void {
    if (this.#isPause) return;
    this.#isPause = true;
    this.#clock.schedule(PAUSE, () => {
      this.#isPause = false;
      const waiting = this.#waiting;
      this.#waiting = [];
      for (const goOn of waiting) goOn();
    });
  }
}
