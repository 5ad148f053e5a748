import { systemClock } from "../../engine/src/clock/system.ts";
import { coloured } from "./colours.ts";
import { table } from "./output.ts";
import { jsonText, printable } from "./printable.ts";
import { fromNow, iso } from "./times.ts";
import { yamlText } from "./yaml.ts";

/** How a result is printed. */
export type Format = "table" | "json" | "yaml";

/** The longest text in a table on a terminal, in characters. Files and programs get every text in full. */
const CELL_LENGTH_MAX = 60;

type Json = Record<string, unknown>;

/** Prints the `data` of an answer. */
export async function printData(data: unknown, format: Format, columns = Columns.ofList(undefined)): Promise<void> {
  if (format === "json") console.log(jsonText(data));
  else if (format === "yaml") process.stdout.write(await yamlText(data));
  else for (const line of linesOf(data, columns)) console.log(line);
}

/**
 * Prints one member of the `data`, of a list one line for each entry. A text is printed as it is, other values as JSON, and a
 * member that is absent as an empty line.
 */
export function printMember(data: unknown, name: string): void {
  for (const entry of Array.isArray(data) ? data : [data]) {
    const value = isObject(entry) && Object.hasOwn(entry, name) ? entry[name] : "";
    console.log(typeof value === "string" ? printable(value) : jsonText(value, 0));
  }
}

function linesOf(data: unknown, columns: Columns): string[] {
  if (Array.isArray(data)) return data.every(isObject) ? tableOf(data, columns) : data.map((item) => cell(item));
  if (!isObject(data)) return [cell(data)];
  return Object.keys(data).length === 0 ? ["Done."] : recordLines(data);
}

/** One line for each member, and a table for each list of objects. */
function recordLines(record: Json): string[] {
  const members = flatten(record);
  const tables = members.filter(([, value]) => isTable(value));
  const rows = members
    .filter(([, value]) => !isTable(value))
    .map(([name, value]): [string, string] => [printable(name), recordCell(value, name)]);
  const width = Math.max(0, ...rows.map(([name]) => name.length));
  return [
    ...rows.map(([name, text]) => `${name.padEnd(width)}  ${text}`.trimEnd()),
    ...tables.flatMap(([name, value]) => ["", `${printable(name)}:`, ...tableOf(value as Json[], new Columns())]),
  ];
}

function isTable(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0 && value.every(isObject);
}

/** The members of nested objects, by their path. */
function flatten(record: Json, prefix = ""): [path: string, value: unknown][] {
  return Object.entries(record).flatMap(([name, value]): [string, unknown][] =>
    isObject(value) && Object.keys(value).length > 0 && prefix.length < CELL_LENGTH_MAX
      ? flatten(value, `${prefix}${name}.`)
      : [[prefix + name, value]],
  );
}

/** How many columns a list has, unless `--columns` names them. */
const COLUMNS_MAX = 6;

/** The columns of a list. Later pages keep those of the first one, with their widths. */
export class Columns {
  /** The names that `--columns` gives. */
  readonly #wanted: readonly string[] | undefined;
  readonly #max: number;
  names: string[] = [];
  /** Whether the first page has chosen them. */
  areChosen = false;
  widths: number[] = [];
  /** The members that have no column. */
  left: string[] = [];

  constructor({
    wanted,
    max = Number.POSITIVE_INFINITY,
  }: { wanted?: readonly string[] | undefined; max?: number } = {}) {
    this.#wanted = wanted;
    this.#max = max;
  }

  /** Columns of a list: those that are wanted, or the first ones that have short values and fit. */
  static ofList(wanted: readonly string[] | undefined): Columns {
    return new Columns({ wanted, max: COLUMNS_MAX });
  }

  /** Chooses the columns by the first page. */
  choose(items: readonly Json[]): void {
    this.areChosen = true;
    if (this.#wanted) {
      this.names = [...this.#wanted];
      return;
    }
    const all = [...new Set(items.flatMap((item) => Object.keys(item)))];
    const short = all.filter((name) => items.every((item) => !isLong(item[name])));
    this.names = this.#max === Number.POSITIVE_INFINITY ? all : (short.length > 0 ? short : all).slice(0, this.#max);
    this.left = all.filter((name) => !this.names.includes(name));
  }

  /** Leaves out the last columns while the table is wider than the terminal. */
  fit(widths: readonly number[]): void {
    const { isTTY, columns: width } = process.stdout;
    if (this.#wanted || this.#max === Number.POSITIVE_INFINITY || !isTTY || !width) return;
    const widthOf = (count: number) => widths.slice(0, count).reduce((sum, each) => sum + each + 2, -2);
    let count = this.names.length;
    while (count > 1 && widthOf(count) > width) count--;
    this.left.unshift(...this.names.splice(count));
  }
}

/** Whether a value takes more than a cell: an object, or a list of objects. */
function isLong(value: unknown): boolean {
  return Array.isArray(value) ? value.some((item) => typeof item === "object") : isObject(value);
}

/** A table of one page; the first page has the header. */
export function tableOf(items: readonly Json[], columns: Columns): string[] {
  const isFirst = !columns.areChosen;
  if (items.length === 0) return isFirst ? ["Nothing found."] : [];
  const rowsOf = (names: readonly string[]) =>
    items.map((item) => names.map((name) => shortened(cell(item[name], name))));
  if (isFirst) {
    columns.choose(items);
    const rows = rowsOf(columns.names);
    columns.widths = columns.names.map((name, i) => Math.max(name.length, ...rows.map((row) => row[i]?.length ?? 0)));
    columns.fit(columns.widths);
  }
  const { names } = columns;
  const header = names.map((name, i) => printable(name).padEnd(columns.widths[i] ?? 0));
  const [first = "", ...lines] = table(header, rowsOf(names));
  return isFirst ? [coloured("bold", first), ...lines] : lines;
}

function shortened(text: string): string {
  return process.stdout.isTTY && text.length > CELL_LENGTH_MAX ? `${text.slice(0, CELL_LENGTH_MAX - 1)}…` : text;
}

/** Members with a time in Unix milliseconds. */
const timeNames = /(At|^expires|^reset|^start|^end|^time)$/;
/** Times of a series, whose distance from now says less than their date. */
const isSeries = /^(start|end|time)$/;
/** 2001-09-09. Smaller numbers under these names are no times. */
const TIME_MIN = 1_000_000_000_000;
/** The largest time of a date. */
const TIME_MAX = 8_640_000_000_000_000;

function isTime(value: unknown, path: string): value is number {
  return (
    typeof value === "number" &&
    value >= TIME_MIN &&
    value <= TIME_MAX &&
    timeNames.test(path.slice(path.lastIndexOf(".") + 1))
  );
}

/** A value of a record. Times are dates there, and in words too. */
function recordCell(value: unknown, path: string): string {
  const text = cell(value, path);
  return isTime(value, path) && text !== iso(value) ? `${iso(value)}, ${text}` : text;
}

function cell(value: unknown, path = ""): string {
  if (value === undefined || value === null) return value === null ? "none" : "";
  if (isTime(value, path)) {
    return isSeries.test(path.slice(path.lastIndexOf(".") + 1)) ? iso(value) : fromNow(value, systemClock.now());
  }
  if (typeof value === "string") return printable(value);
  if (Array.isArray(value) && value.every((item) => typeof item !== "object"))
    return value.map((item) => printable(String(item))).join(", ");
  return printable(jsonText(value, 0));
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
