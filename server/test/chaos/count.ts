/** One promise: how much was compared, and how much of it is wrong. */
export interface Book {
  title: string;
  /** How many comparisons could have shown a fault. */
  compared: number;
  /** What was compared. */
  unit: string;
  /** With fewer comparisons the book is not right, but unknown. */
  floor: number;
  /** The calls of clients whose answers these comparisons used. */
  calls: number;
  wrong: number;
  /** The first of what is wrong. */
  findings: string[];
  /** Comparisons that are not counted, because the machine was too slow at that time. */
  excused?: number;
}

/** How many comparisons miss a fault that hits one of a hundred in at most one run of a hundred. */
export const FLOOR = Math.ceil(Math.log(0.01) / Math.log(0.99));
/** The first findings are enough for a person. */
const FINDINGS_MAX = 8;

/** A book that is being filled. */
export class Count implements Book {
  compared = 0;
  calls = 0;
  wrong = 0;
  readonly findings: string[] = [];
  readonly title: string;
  readonly unit: string;
  readonly floor: number;
  /** How many were excused because the machine was too slow. */
  excused = 0;

  constructor(title: string, unit: string, floor = FLOOR) {
    this.title = title;
    this.unit = unit;
    this.floor = floor;
  }

  /** Counts comparisons, and the calls whose answers they use. */
  add(compared: number, calls = compared): void {
    this.compared += compared;
    this.calls += calls;
  }

  /** Records what is wrong, if it is. */
  expect(isRight: boolean, finding: () => string, amount = 1): void {
    if (isRight) return;
    this.wrong += amount;
    if (this.findings.length < FINDINGS_MAX) this.findings.push(finding());
  }
}
