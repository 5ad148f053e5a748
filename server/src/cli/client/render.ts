import { table, UsageError } from "../output.ts";
import { jsonText, printable } from "./printable.ts";
import { yamlText } from "./yaml.ts";

/** How a result is printed. */
export type Format = "table" | "json" | "yaml";

/** The longest text in a table on a terminal, in characters. Files and programs get every text in full. */
const CELL_LENGTH_MAX = 60;

type Json = Record<string, unknown>;

/** Prints the `data` of an answer. */
export async function printData(data: unknown, format: Format): Promise<void> {
  if (format === "json") console.log(jsonText(data));
  else if (format === "yaml") process.stdout.write(await yamlText(data));
  else for (const line of linesOf(data)) console.log(line);
}

/**
 * Prints one member of the `data`, of a list one line for each entry. A text is printed as it is, other values as JSON.
 *
 * @throws {UsageError} if the `data` or an entry has no such member. It names the members that there are.
 */
export function printMember(data: unknown, name: string): void {
  for (const entry of Array.isArray(data) ? data : [data]) {
    if (!isObject(entry) || !Object.hasOwn(entry, name)) {
      const names = isObject(entry) ? Object.keys(entry).map(printable).join(", ") : "";
      throw new UsageError(`--only ${printable(name)}: the result has ${names ? `only ${names}` : "no members"}.`);
    }
    const value = entry[name];
    console.log(typeof value === "string" ? printable(value) : jsonText(value, 0));
  }
}

function linesOf(data: unknown): string[] {
  if (Array.isArray(data)) return data.every(isObject) ? tableOf(data, new Columns()) : data.map((item) => cell(item));
  if (!isObject(data)) return [cell(data)];
  return Object.keys(data).length === 0 ? ["Done."] : recordLines(data);
}

/** One line for each member, and a table for each list of objects. */
function recordLines(record: Json): string[] {
  const members = flatten(record);
  const tables = members.filter(([, value]) => isTable(value));
  const rows = members
    .filter(([, value]) => !isTable(value))
    .map(([name, value]) => [printable(name), cell(value, name)]);
  const width = Math.max(0, ...rows.map(([name]) => name!.length));
  return [
    ...rows.map(([name, text]) => `${name!.padEnd(width)}  ${text}`.trimEnd()),
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

/** The columns of a list. Later pages keep those of the first one, with their widths. */
export class Columns {
  names: string[] | undefined;
  widths: number[] = [];
}

/** A table of one page; the first page has the header. */
export function tableOf(items: readonly Json[], columns: Columns): string[] {
  const isFirst = columns.names === undefined;
  if (items.length === 0) return isFirst ? ["Nothing found."] : [];
  columns.names ??= [...new Set(items.flatMap((item) => Object.keys(item)))];
  const { names } = columns;
  const rows = items.map((item) => names.map((name) => shortened(cell(item[name], name))));
  const lines = table(
    names.map((name, i) => printable(name).padEnd(columns.widths[i] ?? 0)),
    rows,
  );
  if (isFirst) columns.widths = names.map((name, i) => Math.max(name.length, ...rows.map((row) => row[i]!.length)));
  return isFirst ? lines : lines.slice(1);
}

function shortened(text: string): string {
  return process.stdout.isTTY && text.length > CELL_LENGTH_MAX ? `${text.slice(0, CELL_LENGTH_MAX - 1)}…` : text;
}

/** Members with a time in Unix milliseconds. */
const timeNames = /(At|^expires|^reset|^start|^end|^time)$/;
/** 2001-09-09. Smaller numbers under these names are no times. */
const TIME_MIN = 1_000_000_000_000;
/** The largest time of a date. */
const TIME_MAX = 8_640_000_000_000_000;

function cell(value: unknown, path = ""): string {
  if (value === undefined || value === null) return value === null ? "none" : "";
  if (
    typeof value === "number" &&
    value >= TIME_MIN &&
    value <= TIME_MAX &&
    timeNames.test(path.slice(path.lastIndexOf(".") + 1))
  ) {
    return new Date(value).toISOString();
  }
  if (typeof value === "string") return printable(value);
  if (Array.isArray(value) && value.every((item) => typeof item !== "object"))
    return value.map((item) => printable(String(item))).join(", ");
  return printable(jsonText(value, 0));
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
