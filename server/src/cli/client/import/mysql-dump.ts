import { createReadStream, statSync } from "node:fs";
import { CommandError } from "../../output.ts";

/** A row of a table, by the names of its columns. Values are texts, numbers as texts, or null. */
export interface DumpRow {
  readonly table: string;
  readonly values: ReadonlyMap<string, string | null>;
  /** How much of the file was read, from 0 to 1. */
  readonly progress: number;
}

/** The longest value, in characters. */
const TOKEN_MAX = 1024 * 1024;
/** MySQL allows 4,096 columns. */
const COLUMNS_MAX = 4_096;

type Token = { kind: "word" | "name" | "text" | "symbol"; text: string };

/**
 * The rows of some tables in a dump of MySQL or MariaDB (mysqldump, mariadb-dump, mydumper), in the order of the file.
 * The file is read as a stream, in chunks of `chunkBytes`; the rows of one chunk are in memory at a time.
 *
 * @throws {CommandError} when the file cannot be read, or is not SQL of this kind.
 */
export async function* dumpRows(
  file: string,
  tables: ReadonlySet<string>,
  chunkBytes = 64 * 1024,
): AsyncGenerator<DumpRow> {
  const bytes = statSync(file).size;
  const source = createReadStream(file, { highWaterMark: chunkBytes });
  const decoder = new TextDecoder();
  const statements = new Statements(file, tables);
  const tokens = new Tokens(file, (token) => statements.add(token));
  for await (const chunk of source as AsyncIterable<Buffer>) {
    tokens.add(decoder.decode(chunk, { stream: true }));
    const progress = source.bytesRead / bytes;
    for (const { table, values } of statements.take()) yield { table, values, progress };
  }
  tokens.end();
  statements.end();
  for (const { table, values } of statements.take()) yield { table, values, progress: 1 };
}

/** What an escaped character means in a text of MySQL; any other character means itself. */
const escapes: Readonly<Record<string, string>> = { "0": "\0", n: "\n", r: "\r", t: "\t", b: "\b", Z: "\u001a" };

/**
 * Divides SQL into tokens. It is always in one of these states: between tokens; in a word, until a character that is not
 * part of one; in a name or a text, until its quote, which is part of it where it is doubled; in a comment, until its end.
 */
class Tokens {
  readonly #file: string;
  readonly #emit: (token: Token) => void;
  /** What is not divided yet: the end of a chunk that may continue in the next one. */
  #rest = "";

  constructor(file: string, emit: (token: Token) => void) {
    this.#file = file;
    this.#emit = emit;
  }

  add(chunk: string): void {
    const text = this.#rest + chunk;
    const done = this.#divide(text, false);
    this.#rest = text.slice(done);
    if (this.#rest.length > TOKEN_MAX)
      throw new CommandError(`${this.#file} has a value longer than ${TOKEN_MAX} characters.`);
  }

  end(): void {
    if (this.#divide(this.#rest, true) < this.#rest.length) {
      throw new CommandError(`${this.#file} ends in the middle of a statement. Is the dump complete?`);
    }
  }

  /** Emits the complete tokens of a text, and returns where the first incomplete one begins. */
  #divide(text: string, isLast: boolean): number {
    let at = 0;
    while (at < text.length) {
      const character = text[at]!;
      if (character === " " || character === "\n" || character === "\t" || character === "\r") {
        at++;
        continue;
      }
      // The next two characters decide about comments and doubled quotes.
      if (at + 2 >= text.length && !isLast) return at;
      let next: number;
      if (character === "'" || character === '"' || character === "`") next = this.#quoted(text, at, isLast);
      else if (character === "#" || (character === "-" && text[at + 1] === "-")) next = after(text, "\n", at);
      else if (character === "/" && text[at + 1] === "*") next = after(text, "*/", at + 2);
      else if (isWordCharacter(text.charCodeAt(at))) next = this.#word(text, at, isLast);
      else {
        this.#emit({ kind: "symbol", text: character });
        next = at + 1;
      }
      // A comment to the end of the line may be the last thing in the file.
      if (next === -1) return isLast && (character === "-" || character === "#") ? text.length : at;
      at = next;
    }
    return at;
  }

  #word(text: string, from: number, isLast: boolean): number {
    let end = from + 1;
    while (end < text.length && isWordCharacter(text.charCodeAt(end))) end++;
    if (end === text.length && !isLast) return -1;
    this.#emit({ kind: "word", text: text.slice(from, end) });
    return end;
  }

  #quoted(text: string, from: number, isLast: boolean): number {
    const quote = text[from]!;
    const isName = quote === "`";
    let value = "";
    let start = from + 1;
    for (let at = start; at < text.length; at++) {
      const character = text[at]!;
      if (character === "\\" && !isName) {
        if (at + 1 === text.length) return -1;
        const escaped = text[at + 1]!;
        value += text.slice(start, at) + (escapes[escaped] ?? escaped);
        at++;
        start = at + 1;
      } else if (character === quote) {
        if (at + 1 === text.length && !isLast) return -1;
        if (text[at + 1] === quote) {
          value += text.slice(start, at + 1);
          at++;
          start = at + 1;
        } else {
          this.#emit({ kind: isName ? "name" : "text", text: value + text.slice(start, at) });
          return at + 1;
        }
      }
    }
    return -1;
  }
}

/** The position after the next `end`; -1 if there is none. */
function after(text: string, end: string, from: number): number {
  const at = text.indexOf(end, from);
  return at === -1 ? -1 : at + end.length;
}

/** Letters, digits and the characters of numbers and names: `_ $ . + -` and everything above ASCII. */
function isWordCharacter(code: number): boolean {
  return (
    (code >= 48 && code <= 57) ||
    (code >= 65 && code <= 90) ||
    (code >= 97 && code <= 122) ||
    code === 95 ||
    code === 36 ||
    code === 43 ||
    code === 45 ||
    code === 46 ||
    code > 127
  );
}

/**
 * Reads CREATE TABLE for the columns, and INSERT for the rows. Everything else is skipped to its semicolon. Tokens of a
 * statement run through these states:
 *
 * - `start`: its words up to a table; `skip`: nothing in it matters;
 * - `columns`: the definitions in CREATE TABLE; `names`: the list of columns in INSERT;
 * - `values`: between rows of INSERT; `row`: in one.
 */
class Statements {
  readonly #file: string;
  readonly #tables: ReadonlySet<string>;
  readonly #columns = new Map<string, string[]>();
  #state: "start" | "skip" | "columns" | "names" | "values" | "row" = "start";
  #words: string[] = [];
  #table = "";
  #names: string[] = [];
  #row: (string | null)[] = [];
  #depth = 0;
  /** In CREATE TABLE: whether the next token begins a definition. */
  #isBeginning = false;
  #complete: { table: string; values: ReadonlyMap<string, string | null> }[] = [];

  constructor(file: string, tables: ReadonlySet<string>) {
    this.#file = file;
    this.#tables = tables;
  }

  /** The rows that are complete since the last call. */
  take() {
    const rows = this.#complete;
    this.#complete = [];
    return rows;
  }

  end(): void {
    if (this.#state !== "start" && this.#state !== "skip") {
      throw new CommandError(`${this.#file} ends in the middle of a statement. Is the dump complete?`);
    }
  }

  add(token: Token): void {
    if (token.kind === "symbol" && token.text === ";") this.#begin();
    else if (this.#state === "start") this.#start(token);
    else if (this.#state === "columns") this.#column(token);
    else if (this.#state === "names") this.#name(token);
    else if (this.#state === "values") this.#between(token);
    else if (this.#state === "row") this.#value(token);
  }

  #begin(): void {
    if (this.#state === "row" || this.#state === "names") {
      throw new CommandError(`${this.#file} has an INSERT that cannot be read, in the table ${this.#table}.`);
    }
    this.#state = "start";
    this.#words = [];
    this.#table = "";
  }

  /** Words, and then a table: `INSERT INTO keys`, `CREATE TABLE IF NOT EXISTS keys`. */
  #start({ kind, text }: Token): void {
    const isTable =
      kind === "name" ||
      (kind === "word" && /^(into|table|exists)$/i.test(this.#words.at(-1) ?? "") && !/^if$/i.test(text));
    if (isTable) {
      const first = this.#words[0]?.toLowerCase();
      const isInsert = first === "insert" || first === "replace";
      const isCreate = first === "create" && this.#words.some((word) => /^table$/i.test(word));
      // Of `db`.`keys`, the second name is the table.
      this.#table = text;
      if ((isInsert || isCreate) && this.#tables.has(text)) {
        this.#names = [];
        this.#depth = 0;
        this.#state = isInsert ? "names" : "columns";
        if (isCreate) this.#columns.set(text, this.#names);
      }
      return;
    }
    // `db`.`keys`: the dot is part of no word here.
    if (this.#table !== "" && !(kind === "word" && text === ".")) this.#state = "skip";
    else if (kind === "word" && this.#words.length < 8) this.#words.push(text);
    else if (kind !== "word") this.#state = "skip";
  }

  #column({ kind, text }: Token): void {
    if (kind === "symbol" && text === "(") {
      this.#depth++;
      this.#isBeginning = this.#depth === 1;
    } else if (kind === "symbol" && text === ")") {
      this.#depth--;
      if (this.#depth === 0) this.#state = "skip";
    } else if (kind === "symbol" && text === "," && this.#depth === 1) {
      this.#isBeginning = true;
    } else if (this.#isBeginning) {
      this.#isBeginning = false;
      // Definitions of keys and constraints begin with a word.
      if (kind === "name") this.#addName(text);
    }
  }

  #name({ kind, text }: Token): void {
    if (kind === "name" || (kind === "word" && this.#depth === 1)) this.#addName(text);
    else if (kind === "symbol" && text === "(") this.#depth++;
    else if (kind === "symbol" && text === ")") this.#depth--;
    else if (kind === "word" && /^values?$/i.test(text)) {
      if (this.#names.length === 0) this.#names = this.#columns.get(this.#table) ?? [];
      if (this.#names.length === 0) {
        throw new CommandError(
          `${this.#file} has rows of ${this.#table} without the names of its columns. Make the dump with its CREATE TABLE statements.`,
        );
      }
      this.#state = "values";
    }
  }

  #addName(text: string): void {
    if (this.#names.length === COLUMNS_MAX)
      throw new CommandError(`${this.#file}: ${this.#table} has too many columns.`);
    this.#names.push(text);
  }

  #between({ kind, text }: Token): void {
    if (kind === "symbol" && text === "(") {
      this.#row = [];
      this.#state = "row";
    } else if (kind !== "symbol") this.#state = "skip"; // ON DUPLICATE KEY UPDATE
  }

  #value({ kind, text }: Token): void {
    if (kind === "text") this.#row.push(text);
    // A character set before a text, as in _binary 'a'.
    else if (kind === "word" && text.startsWith("_")) return;
    else if (kind === "word") this.#row.push(/^null$/i.test(text) ? null : text);
    else if (text === ")") {
      if (this.#row.length !== this.#names.length) {
        throw new CommandError(
          `${this.#file} has a row of ${this.#table} with ${this.#row.length} values for ${this.#names.length} columns.`,
        );
      }
      this.#complete.push({
        table: this.#table,
        values: new Map(this.#names.map((name, i) => [name, this.#row[i]!])),
      });
      this.#state = "values";
    } else if (text !== ",") {
      throw new CommandError(
        `${this.#file} has a row of ${this.#table} that cannot be read, at ${JSON.stringify(text)}.`,
      );
    }
    if (this.#row.length > this.#names.length) {
      throw new CommandError(`${this.#file} has a row of ${this.#table} with more values than columns.`);
    }
  }
}
