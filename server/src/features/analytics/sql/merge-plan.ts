import type { Milliseconds } from "../../../../../engine/src/clock/clock.ts";
import { levels } from "../levels.ts";

/** Age of the oldest count at which segments or runs are merged, however few they are. */
const AGE_MAX: Milliseconds = 10 * levels.minute;

/** How much is merged, and when. */
export interface MergeOptions {
  /** Counts of one write from which on they become a segment or a run. */
  readonly segmentRowsMin: number;
  /** Rows in all segments that start a merge, and the same of runs. */
  readonly mergedRowsMin: { readonly segments: number; readonly runs: number };
  /** Rows of one step: a few milliseconds of work for each statement. */
  readonly rowsPerStep: number;
  /** Rows of a block: few, because the counts of one subject are read with all that are in its block. */
  readonly rowsPerBlock: number;
}

export const mergeDefaults: MergeOptions = {
  segmentRowsMin: 4_000,
  mergedRowsMin: { segments: 200_000, runs: 500_000 },
  rowsPerStep: 5_000,
  rowsPerBlock: 100,
};

/** What waits for a merge. */
interface Waiting {
  /** Each of them is one look-up for every statistic, of some microseconds. */
  readonly writesMax: number;
  /** They are merged when they have this many rows for each subject of the last merge. */
  readonly rowsPerSubject: number;
  readonly rowsMin: number;
}

/** When what waits is merged: more rows at a time if the last merge found many subjects. */
export class MergePlan {
  readonly #waiting: Waiting;
  /** Subjects of the merge in progress, by hour. */
  #subjects = 0;
  #dueRows: number;

  static ofSegments({ mergedRowsMin }: MergeOptions): MergePlan {
    return new MergePlan({ writesMax: 256, rowsPerSubject: 4, rowsMin: mergedRowsMin.segments });
  }

  /** A look-up reads a block, which takes longer than a row; many rows in blocks take a third of the disk. */
  static ofRuns({ mergedRowsMin }: MergeOptions): MergePlan {
    return new MergePlan({ writesMax: 128, rowsPerSubject: 8, rowsMin: mergedRowsMin.runs });
  }

  private constructor(waiting: Waiting) {
    this.#waiting = waiting;
    this.#dueRows = waiting.rowsMin;
  }

  isDue(writes: readonly { rows: number; first_minute: number }[], now: number): boolean {
    let rows = 0;
    let oldest = Number.POSITIVE_INFINITY;
    for (const write of writes) {
      rows += Number(write.rows);
      oldest = Math.min(oldest, Number(write.first_minute));
    }
    return rows >= this.#dueRows || writes.length >= this.#waiting.writesMax || oldest <= now - AGE_MAX;
  }

  add(subjects: number): void {
    this.#subjects += subjects;
  }

  end(): void {
    this.#dueRows = Math.max(this.#waiting.rowsMin, this.#waiting.rowsPerSubject * this.#subjects);
    this.#subjects = 0;
  }
}
