import type { MinuteCount } from "../batch.ts";

/** A column of a block: a value for each row, or the one that all rows have. */
type Column<Value> = Value | readonly Value[];

/**
 * Counts of one workspace in the order of their subjects, as a block of a run has them. In columns, which are a third of the
 * bytes of rows, and of which most have one value. The first one tells the number of rows.
 */
type BlockColumns = readonly [
  subjects: readonly string[],
  identityIds: Column<string>,
  outcomes: Column<string>,
  times: Column<number>,
  apiIds: Column<string>,
  counts: Column<number>,
  amounts: Column<number>,
  latenciesUs: Column<number>,
];

/** The text of a block with these counts. */
export function blockText(counts: readonly MinuteCount[]): string {
  const columns: BlockColumns = [
    counts.map(({ subject }) => subject),
    packed(counts.map(({ identityId }) => identityId)),
    packed(counts.map(({ outcome }) => outcome)),
    packed(counts.map(({ time }) => time)),
    packed(counts.map(({ apiId }) => apiId)),
    packed(counts.map(({ count }) => count)),
    packed(counts.map(({ amount }) => amount)),
    packed(counts.map(({ latencyUs }) => latencyUs)),
  ];
  return JSON.stringify(columns);
}

function packed<Value>(values: readonly Value[]): Column<Value> {
  const [first] = values;
  return first !== undefined && values.every((value) => value === first) ? first : values;
}

/** A block that was read. */
export class Block {
  readonly workspaceId: string;
  readonly subjects: readonly string[];
  readonly #columns: BlockColumns;

  constructor(workspaceId: string, text: string) {
    this.workspaceId = workspaceId;
    this.#columns = JSON.parse(text) as BlockColumns;
    this.subjects = this.#columns[0];
  }

  count(row: number): MinuteCount {
    const [subjects, identityIds, outcomes, times, apiIds, counts, amounts, latenciesUs] = this.#columns;
    return {
      time: numberAt(times, row),
      workspaceId: this.workspaceId,
      subject: textAt(subjects, row),
      apiId: textAt(apiIds, row),
      identityId: textAt(identityIds, row),
      outcome: textAt(outcomes, row),
      count: numberAt(counts, row),
      amount: numberAt(amounts, row),
      latencyUs: numberAt(latenciesUs, row),
    };
  }
}

function textAt(column: Column<string>, row: number): string {
  return typeof column === "string" ? column : (column[row] ?? "");
}

function numberAt(column: Column<number>, row: number): number {
  return typeof column === "number" ? column : (column[row] ?? 0);
}
