/** What happened to some rows, for one reason. */
export interface Reason {
  readonly outcome: "rejected" | "skipped" | "imported";
  /** The field that a note on an imported row is about. */
  readonly field?: string;
  readonly text: string;
  rows: number;
  /** The number of the first of the rows, and its name. */
  readonly first: number;
  readonly name?: string;
}

/** Maximum number of different reasons that are counted. Reasons with values from rows could be as many as rows. */
const REASONS_MAX = 100;

/** Counts rows by reason. Further reasons than the maximum are in the report only. */
export class Tally {
  readonly reasons: Reason[];
  readonly #byText = new Map<string, Reason>();

  /** Continues a list of reasons. */
  constructor(reasons: Reason[]) {
    this.reasons = reasons;
    for (const reason of reasons) this.#byText.set(keyOf(reason), reason);
  }

  add(reason: Omit<Reason, "rows">): void {
    const known = this.#byText.get(keyOf(reason));
    if (known) known.rows++;
    else if (this.reasons.length < REASONS_MAX) {
      const counted = { ...reason, rows: 1 };
      this.reasons.push(counted);
      this.#byText.set(keyOf(reason), counted);
    }
  }
}

function keyOf({ outcome, field, text }: Pick<Reason, "outcome" | "field" | "text">): string {
  return JSON.stringify([outcome, field, text]);
}
