/** How much cumulative numbers rose lately. `mark` is called at regular intervals. */
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

  /** The rise of each number in the last intervals and in the one in progress, and the time from which it is counted. */
  rise(intervals: number): { since: number; values: number[] } {
    const { at, values } = this.#marks.at(-intervals - 1) ?? this.#marks[0]!;
    return { since: at, values: difference(this.#read(), values) };
  }

  /** The rise of each number within each interval, with the time at which it began. The last one is in progress. */
  rises(): { since: number; values: number[] }[] {
    const ends = [...this.#marks.slice(1).map(({ values }) => values), this.#read()];
    return this.#marks.map(({ at, values }, i) => ({ since: at, values: difference(ends[i]!, values) }));
  }
}

function difference(later: readonly number[], earlier: readonly number[]): number[] {
  return later.map((value, i) => value - earlier[i]!);
}
