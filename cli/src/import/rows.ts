import { closeSync, createReadStream, openSync, readSync, statSync } from "node:fs";
import { extname } from "node:path";
import { Readable } from "node:stream";
import { findRepeatedName, parseExactly } from "../../../engine/src/rules/json-text.ts";
import { decode } from "../decode.ts";
import { parseJson, readFile } from "../input.ts";
import { CommandError, UsageError } from "../output.ts";
import { parseYaml } from "../yaml.ts";
import { isDump } from "./dump/dump.ts";
import type { DumpedKey } from "./dump/rows.ts";
import { fieldName, isObject } from "./fields.ts";
import type { Source } from "./sources/source.ts";

/** One row of the input. */
export type InputRow = {
  /** From 1. The header of a CSV file is no row. */
  readonly number: number;
  /** How much of the file was read, from 0 to 1. */
  readonly progress: number;
} & (
  | { readonly fields: readonly (readonly [name: string, value: unknown])[] }
  /** `damage`: why the row cannot be read. */
  | { readonly fields: undefined; readonly damage: string }
);

export const inputFormats = ["csv", "json", "jsonl", "yaml", "sql"] as const;
export type InputFormat = (typeof inputFormats)[number];

/** The longest row, in bytes. */
const ROW_BYTES_MAX = 1024 * 1024;
/** Documents are read as a whole. YAML takes much more memory than its text. */
const JSON_BYTES_MAX = 256 * 1024 * 1024;
const YAML_BYTES_MAX = 8 * 1024 * 1024;

const formats: Readonly<Record<string, InputFormat>> = {
  ".csv": "csv",
  ".json": "json",
  ".jsonl": "jsonl",
  ".ndjson": "jsonl",
  ".yaml": "yaml",
  ".yml": "yaml",
  ".sql": "sql",
};

/** The format of a file, by its name, or by its beginning if it is a dump of a database. */
export function formatOfFile(file: string): InputFormat {
  const format = formats[extname(file).toLowerCase()];
  if (format !== undefined) return format;
  if (isDump(beginningOf(file))) return "sql";
  throw new UsageError(`${file}: the name does not say its format. Give --format ${inputFormats.join(", ")}.`);
}

/** The first bytes of a file, one character for each; empty if it cannot be read. */
function beginningOf(file: string): string {
  const bytes = Buffer.alloc(1_024);
  let source: number | undefined;
  try {
    source = openSync(file, "r");
    return bytes.toString("latin1", 0, readSync(source, bytes));
  } catch {
    return "";
  } finally {
    if (source !== undefined) closeSync(source);
  }
}

export interface InputFile {
  readonly file: string;
  readonly format: InputFormat;
  readonly source: Pick<Source, "unfold" | "listIn" | "dump">;
  /** The API of the other system whose keys are read. */
  readonly sourceApi: string | undefined;
}

/**
 * Reads a file whose rows are read one by one to its end, so that a fault in its text is found before a row is imported.
 *
 * @throws {CommandError} when it is not in an encoding that is read.
 */
export async function requireText({ file, format }: Pick<InputFile, "file" | "format">): Promise<void> {
  if (format !== "csv" && format !== "jsonl") return;
  for await (const _ of decode(createReadStream(file), file));
}

/** The rows of a file, in order. Everything but a document of JSON or YAML is read row by row. */
export async function* readRows({ file, format, source, sourceApi }: InputFile): AsyncGenerator<InputRow> {
  try {
    if (format === "csv") yield* csvRows(file);
    else if (format === "sql") yield* dumpedKeys(source.dump!(file, sourceApi));
    else yield* unfolded(format === "jsonl" ? jsonLines(file) : documentValues(file, format, source), source);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (error instanceof CommandError || code === undefined) throw error;
    if (code === "EISDIR") {
      throw new CommandError(
        `${file} is a folder. To convert a dump in the directory format of pg_dump: pg_restore --file=dump.sql ${file}.`,
      );
    }
    throw new CommandError(`${file} cannot be read: ${message}`, { cause: error });
  }
}

async function* csvRows(file: string): AsyncGenerator<InputRow> {
  const { parse } = await import("csv-parse");
  const bytes = statSync(file).size;
  const source = createReadStream(file);
  const parser = parse({ max_record_size: ROW_BYTES_MAX, relax_column_count: true, skip_empty_lines: true });
  const text = Readable.from(decode(source, file)).on("error", (error) => parser.destroy(error));
  let header: string[] | undefined;
  let number = 0;
  for await (const cells of text.pipe(parser) as AsyncIterable<string[]>) {
    if (header === undefined) {
      header = cells;
      const names = new Set<string>();
      for (const name of cells.map(fieldName)) {
        if (names.has(name)) throw new CommandError(`${file} has the column ${name} twice.`);
        names.add(name);
      }
      continue;
    }
    const progress = bytes === 0 ? 1 : source.bytesRead / bytes;
    number++;
    yield cells.length === header.length
      ? { number, fields: header.map((name, i) => [name, cells[i]] as const), progress }
      : {
          number,
          fields: undefined,
          damage: `has ${cells.length} columns, and the header has ${header.length}`,
          progress,
        };
  }
}

async function* dumpedKeys(keys: AsyncIterable<DumpedKey>): AsyncGenerator<InputRow> {
  let number = 0;
  for await (const { fields, progress } of keys) {
    number++;
    yield { number, fields: Object.entries(fields), progress };
  }
}

/** A value in which rows are expected; undefined if it is no JSON. */
interface JsonValue {
  readonly value: unknown;
  /** Why no row is taken from it although it is JSON. */
  readonly damage?: string | undefined;
  readonly progress: number;
}

async function* unfolded(values: AsyncIterable<JsonValue>, { unfold }: InputFile["source"]): AsyncGenerator<InputRow> {
  let number = 0;
  for await (const { value, damage, progress } of values) {
    if (damage !== undefined) yield { number: ++number, fields: undefined, damage, progress };
    else if (!isObject(value)) yield { number: ++number, fields: undefined, damage: "is not a JSON object", progress };
    else
      for (const row of unfold?.(value) ?? [value]) yield { number: ++number, fields: Object.entries(row), progress };
  }
}

async function* documentValues(
  file: string,
  format: "json" | "yaml",
  { listIn }: InputFile["source"],
): AsyncGenerator<JsonValue> {
  const text = await readFile(file, format === "json" ? JSON_BYTES_MAX : YAML_BYTES_MAX);
  const document =
    format === "json"
      ? parseDocument(text, file)
      : await parseYaml(text, file, { aliasesMax: 0, isPublic: false, longNumbers: "text" });
  const rows = listIn?.(document) ?? anyListIn(document);
  if (!rows) {
    throw new CommandError(
      `${file} has no list of keys. Give a list, or an object with the list under ${listNames.join(", ")}.`,
    );
  }
  for (const [i, value] of rows.entries()) yield { value, progress: (i + 1) / rows.length };
}

/**
 * A document of JSON, whose numbers are exact.
 *
 * @throws {CommandError} when it is not JSON, or has a member twice in one object.
 */
export function parseDocument(text: string, file: string): unknown {
  const document = parseJson(text, file, { parse: parseExactly });
  const repeated = findRepeatedName(text, document);
  if (repeated === undefined) return document;
  const line = text.slice(0, repeated.position).split("\n").length;
  throw new CommandError(`${file} ${repetitionOf(repeated.name)} in one object, at line ${line}.`);
}

/** Longer names are cut off in messages. */
const NAME_LENGTH_MAX = 100;

/** What is wrong with a row or a document that has a member twice. */
export function repetitionOf(name: string): string {
  return `has the member ${JSON.stringify(name.slice(0, NAME_LENGTH_MAX))} twice`;
}

/** The members under which exports have their list. */
const listNames = ["keys", "data", "items", "apiKeys", "rows", "consumers"];

function anyListIn(document: unknown): unknown[] | undefined {
  if (Array.isArray(document)) return document;
  if (typeof document !== "object" || document === null) return undefined;
  const lists = listNames.map((name) => (document as Record<string, unknown>)[name]);
  return lists.find((list) => Array.isArray(list));
}

async function* jsonLines(file: string): AsyncGenerator<JsonValue> {
  const bytes = statSync(file).size;
  const source = createReadStream(file);
  for await (const line of lines(decode(source, file))) {
    if (/^[ \t\r]*$/.test(line)) continue;
    let value: unknown;
    let damage: string | undefined;
    try {
      value = parseExactly(line);
      const repeated = findRepeatedName(line, value);
      damage = repeated && repetitionOf(repeated.name);
    } catch {
      value = undefined;
    }
    yield { value, damage, progress: source.bytesRead / bytes };
  }
}

/** The lines of a text, without their ends. */
async function* lines(text: AsyncIterable<string>): AsyncGenerator<string> {
  let rest = "";
  for await (const part of text) {
    // Only the new part can have the end of a line.
    let begin = 0;
    for (let end = part.indexOf("\n"); end !== -1; end = part.indexOf("\n", begin)) {
      yield rest + part.slice(begin, end);
      rest = "";
      begin = end + 1;
    }
    rest += part.slice(begin);
    if (rest.length > ROW_BYTES_MAX) throw new CommandError(`A line is longer than ${ROW_BYTES_MAX} bytes.`);
  }
  if (rest !== "") yield rest;
}
