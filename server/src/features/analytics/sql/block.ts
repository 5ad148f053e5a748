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
    counts.map(subjectOf),
    columnOf(counts, "identityId"),
    columnOf(counts, "outcome"),
    columnOf(counts, "time"),
    columnOf(counts, "apiId"),
    columnOf(counts, "count"),
    columnOf(counts, "amount"),
    columnOf(counts, "latencyUs"),
  ];
  return JSON.stringify(columns);
}

function subjectOf({ subject }: MinuteCount): string {
  return subject;
}

/** Without a closure, which V8 would collect with its code and compile again for the next block. */
function columnOf<Name extends keyof MinuteCount>(
  counts: readonly MinuteCount[],
  name: Name,
): Column<MinuteCount[Name]> {
  const first = counts[0]?.[name];
  const values: MinuteCount[Name][] = [];
  let isConstant = first !== undefined;
  for (const { [name]: value } of counts) {
    values.push(value);
    if (value !== first) isConstant = false;
  }
  return isConstant ? (first as MinuteCount[Name]) : values;
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
