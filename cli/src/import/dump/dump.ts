import { createReadStream, statSync } from "node:fs";
import { CommandError } from "../../output.ts";
import { type DumpRow, type DumpTable, Statements } from "./statements.ts";
import { type Dialect, Tokens, VALUE_BYTES_MAX } from "./tokens.ts";

/** What decides about the kind of the dump, and what it ends with, in bytes. */
const HEAD_BYTES = 8 * 1024;
const TAIL_BYTES = 2 * 1024;

/**
 * The rows of some tables in a dump as SQL, in the order of the file: of PostgreSQL (pg_dump and pg_dumpall, with COPY or
 * with INSERT), MySQL or MariaDB (mysqldump, mariadb-dump, mydumper). The file is read as a stream, in chunks of
 * `chunkBytes`; the rows of one chunk are in memory at a time. `progress` is how much was read, from 0 to 1.
 *
 * @throws {CommandError} when the file cannot be read, is no such dump, or a table or column is missing.
 */
export async function* dumpRows(
  file: string,
  tables: readonly DumpTable[],
  chunkBytes = 64 * 1024,
): AsyncGenerator<DumpRow & { readonly progress: number }> {
  const bytes = statSync(file).size;
  const source = createReadStream(file, { highWaterMark: chunkBytes, encoding: "latin1" });
  let head = "";
  let reader: DumpReader | undefined;
  for await (const chunk of source as AsyncIterable<string>) {
    if (reader === undefined) {
      head += chunk;
      if (head.length < HEAD_BYTES && head.length < bytes) continue;
      reader = new DumpReader(file, head, tables);
      reader.add(head.replace(/^\xef\xbb\xbf/, ""));
    } else reader.add(chunk);
    const progress = source.bytesRead / bytes;
    for (const row of reader.take()) yield { ...row, progress };
  }
  reader ??= new DumpReader(file, head, tables);
  reader.end();
  for (const row of reader.take()) yield { ...row, progress: 1 };
}

/** Reads SQL, and between its statements the lines that are not SQL: rows of COPY, and stored procedures. */
class DumpReader {
  readonly #file: string;
  readonly #statements: Statements;
  readonly #tokens: Tokens;
  /** How a complete dump of its kind ends; undefined if it has not the comments of one. */
  readonly #ending: RegExp | undefined;
  #rest = "";
  #tail = "";
  #mode: "sql" | "copy" | "routines" = "sql";
  /** Whether the rest of a line is skipped. */
  #isInsideLine = false;

  constructor(file: string, head: string, tables: readonly DumpTable[]) {
    const dialect = dialectOf(file, head);
    this.#file = file;
    this.#statements = new Statements(file, dialect, tables);
    this.#tokens = new Tokens(dialect, this.#statements);
    if (/^-- PostgreSQL database (cluster )?dump/m.test(head))
      this.#ending = /^-- PostgreSQL database .*dump complete/m;
    else if (/^-- (MySQL|MariaDB) dump/m.test(head)) this.#ending = /^-- Dump completed/m;
  }

  take(): DumpRow[] {
    return this.#statements.take();
  }

  add(text: string): void {
    this.#tail = (this.#tail + text.slice(-TAIL_BYTES)).slice(-TAIL_BYTES);
    this.#read(text, false);
  }

  end(): void {
    this.#read("", true);
    const { copy } = this.#statements;
    if (copy !== undefined) {
      const rows = copy.table === undefined ? "rows" : `the rows of ${copy.table}`;
      throw new CommandError(
        `${this.#file} ends in the middle of ${rows}, which begin at line ${copy.line}. Is the dump complete?`,
      );
    }
    if (this.#mode === "routines") {
      throw new CommandError(`${this.#file} ends in the middle of stored procedures. Is the dump complete?`);
    }
    this.#statements.end(this.#tokens.line, this.#tokens.isIncomplete);
    if (this.#ending && !this.#ending.test(this.#tail)) {
      throw new CommandError(
        `${this.#file} has not the last line of a dump, "dump complete" or "Dump completed". Make the dump again.`,
      );
    }
  }

  #read(chunk: string, isLast: boolean): void {
    let text = this.#rest + chunk;
    for (let isSwitched = true; isSwitched; ) {
      const before = this.#mode;
      text = text.slice(this.#mode === "sql" ? this.#sql(text, isLast) : this.#lines(text, isLast));
      isSwitched = this.#mode !== before;
    }
    this.#rest = text;
  }

  #sql(text: string, isLast: boolean): number {
    const at = this.#tokens.read(text, isLast);
    if (this.#tokens.isStopped) {
      this.#mode = this.#statements.copy === undefined ? "routines" : "copy";
      this.#isInsideLine = true;
    }
    return at;
  }

  /** Reads lines that are not SQL, up to the one that ends them. Lines that nothing needs are not kept. */
  #lines(text: string, isLast: boolean): number {
    const isWanted = this.#statements.copy?.table !== undefined;
    let at = 0;
    while (at < text.length) {
      const newline = text.indexOf("\n", at);
      if (newline === -1 && !isLast) break;
      const end = newline === -1 ? text.length : newline;
      const { line } = this.#tokens;
      if (newline !== -1) this.#tokens.line++;
      if (this.#isInsideLine) this.#isInsideLine = false;
      else if (this.#isEnd(text, at, end)) {
        this.#mode = "sql";
        if (this.#statements.copy !== undefined) this.#statements.endCopy();
        this.#statements.hasRoutines = false;
        return Math.min(end + 1, text.length);
      } else if (isWanted) {
        // A line of COPY has no other carriage return at its end: pg_dump escapes those of values.
        this.#statements.addCopied(text.slice(at, text[end - 1] === "\r" ? end - 1 : end), line);
      }
      at = Math.min(end + 1, text.length);
    }
    const rest = text.length - at;
    if (this.#isInsideLine) return text.length;
    if (isWanted && rest > VALUE_BYTES_MAX) {
      throw this.#statements.error(`has a row longer than ${VALUE_BYTES_MAX / 2 ** 20} MiB`, this.#tokens.line);
    }
    if (isWanted || rest <= END_BYTES_MAX) return at;
    this.#isInsideLine = true;
    return text.length;
  }

  /** Whether a line ends the rows of COPY, or the stored procedures. */
  #isEnd(text: string, at: number, end: number): boolean {
    if (end - at > END_BYTES_MAX) return false;
    const line = text.slice(at, end);
    return this.#mode === "copy" ? /^\\\.\r?$/.test(line) : /^delimiter\s+;\s*$/i.test(line);
  }
}

/** The longest line that ends what is not SQL. */
const END_BYTES_MAX = 40;

const archives = [
  ["PGDMP", "is a dump in the custom format of pg_dump. Convert it: pg_restore --file=dump.sql FILE"],
  ["toc.dat", "is a dump in the tar format of pg_dump. Convert it: pg_restore --file=dump.sql FILE"],
  ["\x1f\x8b", "is compressed. Decompress it with gunzip"],
  ["(\xb5/\xfd", "is compressed. Decompress it with unzstd"],
  ["\xfd7zXZ", "is compressed. Decompress it with unxz"],
  ["BZh", "is compressed. Decompress it with bunzip2"],
  ["PK\x03\x04", "is compressed. Decompress it with unzip"],
  ["SQLite format 3\0", "is a database of SQLite. Export the table as CSV"],
  ["\xff\xfe", "is UTF-16. Let the dump be written by the option --file or --result-file, and not by >"],
  ["\xfe\xff", "is UTF-16. Let the dump be written by the option --file or --result-file, and not by >"],
] as const;

/** Whether a file that begins like this is a dump as SQL, or an archive that `dumpRows` says how to convert. */
export function isDump(head: string): boolean {
  return archives.some(([beginning]) => head.startsWith(beginning)) || HEADER.test(head);
}

const HEADER = /^-- (PostgreSQL database|MySQL dump|MariaDB dump)/m;

/** @throws {CommandError} if the file is no SQL. */
function dialectOf(file: string, head: string): Dialect {
  const archive = archives.find(([beginning]) => head.startsWith(beginning));
  if (archive) throw new CommandError(`${file} ${archive[1].replace("FILE", file)}.`);
  if (head.includes("\0")) throw new CommandError(`${file} is not SQL: it has bytes that are no text.`);
  if (/^-- PostgreSQL database |^SET standard_conforming_strings|^COPY .* FROM stdin;/m.test(head)) return "PostgreSQL";
  return /^-- (MySQL|MariaDB) dump|`/m.test(head) ? "MySQL" : "PostgreSQL";
}
