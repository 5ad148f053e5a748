import { closeSync, createReadStream, openSync, readSync, statSync } from "node:fs";
import { extname } from "node:path";
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
  const parser = parse({ bom: true, max_record_size: ROW_BYTES_MAX, relax_column_count: true, skip_empty_lines: true });
  source.on("error", (error) => parser.destroy(error));
  let header: string[] | undefined;
  let number = 0;
  for await (const cells of source.pipe(parser) as AsyncIterable<string[]>) {
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
  readonly progress: number;
}

async function* unfolded(values: AsyncIterable<JsonValue>, { unfold }: InputFile["source"]): AsyncGenerator<InputRow> {
  let number = 0;
  for await (const { value, progress } of values) {
    if (!isObject(value)) yield { number: ++number, fields: undefined, damage: "is not a JSON object", progress };
    else
      for (const row of unfold?.(value) ?? [value]) yield { number: ++number, fields: Object.entries(row), progress };
  }
}

async function* documentValues(
  file: string,
  format: "json" | "yaml",
  { listIn }: InputFile["source"],
): AsyncGenerator<JsonValue> {
  const text = (await readFile(file, format === "json" ? JSON_BYTES_MAX : YAML_BYTES_MAX)).replace(/^\uFEFF/, "");
  const document =
    format === "json" ? parseJson(text, file) : await parseYaml(text, file, { aliasesMax: 0, isPublic: false });
  const rows = listIn?.(document) ?? anyListIn(document);
  if (!rows) {
    throw new CommandError(
      `${file} has no list of keys. Give a list, or an object with the list under ${listNames.join(", ")}.`,
    );
  }
  for (const [i, value] of rows.entries()) yield { value, progress: (i + 1) / rows.length };
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
  let read = 0;
  for await (const line of lines(createReadStream(file))) {
    read += line.length + 1;
    if (line.every((byte) => byte === 0x20 || byte === 0x09 || byte === 0x0d)) continue;
    let value: unknown;
    try {
      value = JSON.parse(line.toString("utf8"));
    } catch {
      value = undefined;
    }
    yield { value, progress: read / bytes };
  }
}

/** The lines of a stream, without their ends. */
async function* lines(stream: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of stream) {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    for (let end = rest.indexOf(10); end !== -1; end = rest.indexOf(10)) {
      yield rest.subarray(0, end);
      rest = rest.subarray(end + 1);
    }
    if (rest.length > ROW_BYTES_MAX) throw new CommandError(`A line is longer than ${ROW_BYTES_MAX} bytes.`);
  }
  if (rest.length > 0) yield rest;
}
