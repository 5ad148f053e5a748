import { createReadStream, statSync } from "node:fs";
import { extname } from "node:path";
import { CommandError, UsageError } from "../../output.ts";
import { parseJson, readFile } from "../input.ts";

/** One row of the input. */
export interface InputRow {
  /** From 1. The header of a CSV file is no row. */
  readonly number: number;
  /** The fields by their normalized name, as in `fieldName`; undefined for a row that cannot be read. */
  readonly fields: ReadonlyMap<string, unknown> | undefined;
  /** Why the row cannot be read. */
  readonly damage?: string;
  /** How much of the file was read, from 0 to 1. */
  readonly progress: number;
}

export const inputFormats = ["csv", "json", "jsonl"] as const;
export type InputFormat = (typeof inputFormats)[number];

/** The longest row, in bytes. */
const ROW_BYTES_MAX = 1024 * 1024;
/** A JSON document is read as a whole. */
const JSON_BYTES_MAX = 256 * 1024 * 1024;

/** A name without case and separators: `expires_at` and `expiresAt` are the same. Dots and the names in `meta.` stay. */
export function fieldName(name: string): string {
  const trimmed = name.trim();
  return trimmed.startsWith("meta.") ? trimmed : trimmed.toLowerCase().replaceAll(/[\s_-]/g, "");
}

/** The format of a file, by its name. */
export function formatOfFile(file: string): InputFormat {
  const format = { ".csv": "csv", ".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl" }[extname(file).toLowerCase()];
  if (format !== undefined) return format as InputFormat;
  throw new UsageError(`${file}: the name does not say its format. Give --format csv, json or jsonl.`);
}

/** The rows of a file, in order. CSV and JSON Lines are read row by row. */
export async function* readRows(file: string, format: InputFormat): AsyncGenerator<InputRow> {
  try {
    yield* format === "csv" ? csvRows(file) : format === "json" ? jsonRows(file) : jsonLines(file);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (error instanceof CommandError || code === undefined) throw error;
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
      header = cells.map(fieldName);
      const repeated = header.find((name, i) => header!.indexOf(name) !== i);
      if (repeated !== undefined) throw new CommandError(`${file} has the column ${repeated} twice.`);
      continue;
    }
    const progress = bytes === 0 ? 1 : source.bytesRead / bytes;
    number++;
    yield cells.length === header.length
      ? { number, fields: new Map(header.map((name, i) => [name, cells[i]])), progress }
      : {
          number,
          fields: undefined,
          damage: `has ${cells.length} columns, and the header has ${header.length}`,
          progress,
        };
  }
}

async function* jsonRows(file: string): AsyncGenerator<InputRow> {
  const text = await readFile(file, JSON_BYTES_MAX);
  const document = parseJson(text.startsWith("\uFEFF") ? text.slice(1) : text, file);
  const rows = listIn(document);
  if (!rows) {
    throw new CommandError(
      `${file} has no list of keys. Give a list, or an object with the list under ${listNames.join(", ")}.`,
    );
  }
  for (const [i, row] of rows.entries()) yield rowOf(row, i + 1, (i + 1) / rows.length);
}

/** The members under which exports have their list. */
const listNames = ["keys", "data", "items", "apiKeys", "rows"];

function listIn(document: unknown): unknown[] | undefined {
  if (Array.isArray(document)) return document;
  if (typeof document !== "object" || document === null) return undefined;
  const lists = listNames.map((name) => (document as Record<string, unknown>)[name]);
  return lists.find((list) => Array.isArray(list));
}

async function* jsonLines(file: string): AsyncGenerator<InputRow> {
  const bytes = statSync(file).size;
  let number = 0;
  let read = 0;
  for await (const line of lines(createReadStream(file))) {
    read += line.length + 1;
    if (line.every((byte) => byte === 0x20 || byte === 0x09 || byte === 0x0d)) continue;
    number++;
    let value: unknown;
    try {
      value = JSON.parse(line.toString("utf8"));
    } catch {
      value = undefined;
    }
    yield rowOf(value, number, read / bytes);
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

function rowOf(value: unknown, number: number, progress: number): InputRow {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return { number, fields: undefined, damage: "is not a JSON object", progress };
  }
  return {
    number,
    fields: new Map(Object.entries(value).map(([name, member]) => [fieldName(name), member])),
    progress,
  };
}
