/** How much cumulative numbers rose lately. `mark` is called at regular intervals; the oldest of the marks is the start. */
export class RecentRise {
  readonly #read: () => readonly number[];
  readonly #marksMax: number;
  readonly #marks: { at: number; values: readonly number[] }[];

  /**
   * @param read reads the numbers, always the same ones in the same order.
   * @param marksMax the number of intervals that are covered, plus the one in progress.
   */
  constructor(read: () => readonly number[], marksMax: number, now: number) {
    this.#read = read;
    this.#marksMax = marksMax;
    this.#marks = [{ at: now, values: read() }];
  }

  /** Ends an interval. */
  mark(now: number): void {
    this.#marks.push({ at: now, values: this.#read() });
    if (this.#marks.length > this.#marksMax) this.#marks.shift();
  }

  /** The rise of each number, and the time from which it is counted. */
  rise(): { since: number; values: number[] } {
    const { at, values } = this.#marks[0]!;
    return { since: at, values: this.#read().map((value, i) => value - values[i]!) };
  }
}
