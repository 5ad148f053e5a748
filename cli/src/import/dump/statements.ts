import { CommandError } from "../../output.ts";
import { fieldName } from "../fields.ts";
import { type Dialect, NOT_UTF8, type Token, type TokenReader, utf8 } from "./tokens.ts";

/** A table to read. */
export interface DumpTable {
  readonly name: string;
  /** The columns without which its rows mean nothing. */
  readonly columns: readonly string[];
  /** Whether a dump without the table is an error. */
  readonly isRequired?: true;
}

/** A row of a table, by the names of its columns. Values are texts, as the database writes them, or null. */
export interface DumpRow {
  /** The name of the `DumpTable`. */
  readonly table: string;
  readonly values: ReadonlyMap<string, string | null>;
}

/** MySQL allows 4,096 columns, PostgreSQL 1,600. */
const COLUMNS_MAX = 4_096;
/** Maximum number of words before the name of a table, and of parts of that name. */
const WORDS_MAX = 8;
/** Maximum number of names that an error lists, and of tables that are remembered for it. */
const SHOWN_MAX = 20;
const TABLES_MAX = 10_000;

/** Rows that follow a COPY statement. */
export interface CopyBlock {
  readonly line: number;
  /** Undefined if the rows are skipped. */
  readonly table: string | undefined;
}

/**
 * Reads CREATE TABLE for the columns, INSERT and COPY for the rows, and SET, USE and `\connect` for where they are.
 * Everything else is skipped to its semicolon. Tokens of a statement run through these states:
 *
 * - `start`: its first words; `path`: the name of a table; `skip`: nothing in it matters;
 * - `columns`: the definitions in CREATE TABLE; `names`: the list of columns in INSERT or COPY;
 * - `values`: between rows of INSERT; `row`: in one; `setting`: the value in SET or USE.
 */
export class Statements implements TokenReader {
  /** The rows of the last COPY statement, until they are read. */
  copy: CopyBlock | undefined;
  /** Whether stored procedures of MySQL follow, which have semicolons in their statements. */
  hasRoutines = false;
  hasBackslashes: boolean;
  readonly #file: string;
  readonly #dialect: Dialect;
  readonly #tables: ReadonlyMap<string, DumpTable>;
  readonly #columns = new Map<string, string[]>();
  /** The names of the tables of the dump. */
  readonly #seen = new Set<string>();
  /** Where the rows of each table are, with database and schema. */
  readonly #places = new Map<string, string>();
  #hasRows = false;
  #database = "";
  #schema = "";
  #state: "start" | "path" | "skip" | "columns" | "names" | "values" | "row" | "setting" = "start";
  #verb: "insert" | "create" | "copy" = "insert";
  #words: string[] = [];
  #path: string[] = [];
  #isAfterDot = false;
  #table: DumpTable | undefined;
  #names: string[] = [];
  /** In a list of names or in CREATE TABLE: the open parentheses. */
  #depth = 0;
  /** In CREATE TABLE: whether the next token begins a definition. */
  #isBeginning = false;
  #row: (string | null)[] = [];
  /** The tokens of one value. */
  #cell: Token[] = [];
  #complete: DumpRow[] = [];

  constructor(file: string, dialect: Dialect, tables: readonly DumpTable[]) {
    this.#file = file;
    this.#dialect = dialect;
    this.hasBackslashes = dialect === "MySQL";
    this.#tables = new Map(tables.map((table) => [table.name.toLowerCase(), table]));
  }

  get isWanted(): boolean {
    return this.#state !== "skip";
  }

  /** The rows that are complete since the last call. */
  take(): DumpRow[] {
    const rows = this.#complete;
    this.#complete = [];
    return rows;
  }

  error(problem: string, line: number): CommandError {
    const subject = this.#table === undefined ? "the dump" : `the table ${this.#table.name}`;
    return new CommandError(`${this.#file}, line ${line}: ${subject} ${problem}${problem.endsWith("?") ? "" : "."}`);
  }

  /** @throws {CommandError} when the dump ends too early, or has not what is required. */
  end(line: number, isIncomplete: boolean): void {
    if (isIncomplete || (this.#state !== "start" && this.#state !== "skip")) {
      throw this.error("ends in the middle of a statement. Is the dump complete?", line);
    }
    const missing = [...this.#tables.values()].find(({ name, isRequired }) => isRequired && !this.#seen.has(name));
    if (missing) {
      const names = [...this.#seen];
      throw new CommandError(
        names.length === 0
          ? `${this.#file} has no tables. Give a dump as SQL, by pg_dump or mysqldump.`
          : `${this.#file} has no table ${missing.name}. It has ${listOf(names)}.`,
      );
    }
    if (!this.#hasRows) {
      throw new CommandError(`${this.#file} has tables and no rows. Was it made with --schema-only or --no-data?`);
    }
  }

  add(token: Token): boolean {
    if (token.kind === "symbol" && token.text === ";") return this.#endStatement(token);
    if (token.kind === "meta") this.#command(token.text);
    else if (this.#state === "start") this.#start(token);
    else if (this.#state === "path") this.#addToPath(token);
    else if (this.#state === "columns") this.#column(token);
    else if (this.#state === "names") this.#name(token);
    else if (this.#state === "values") this.#between(token);
    else if (this.#state === "row") this.#value(token);
    else if (this.#state === "setting") this.#setting(token);
    return this.hasRoutines;
  }

  #endStatement({ line }: Token): boolean {
    const isCopy = this.#verb === "copy" && this.#state === "names";
    if (this.#state === "row" || (this.#state === "names" && !isCopy)) {
      throw this.error("has an INSERT that cannot be read", line);
    }
    if (isCopy) this.#beginCopy(line);
    this.#state = "start";
    this.#words = [];
    if (!isCopy) this.#table = undefined;
    return this.copy !== undefined;
  }

  #command(text: string): void {
    const [name, ...rest] = text.split(/\s+/);
    if (name === "connect" || name === "c") this.#database = rest.join(" ");
  }

  #start({ kind, text }: Token): void {
    const word = kind === "word" ? text.toLowerCase() : "";
    this.#words.push(word);
    const [first] = this.#words;
    const isFirst = this.#words.length === 1;
    const isOption = ["create", "global", "local", "temporary", "temp", "unlogged"].includes(word);
    if (first === "insert" || first === "replace") {
      if (word === "into") this.#expectPath("insert");
    } else if (first === "create") {
      if (word === "table") this.#expectPath("create");
      else if (!isOption) this.#state = "skip";
    } else if (first === "copy") this.#expectPath("copy");
    else if (isFirst && first === "delimiter" && this.#dialect === "MySQL") {
      this.#words = [];
      this.hasRoutines = true;
    } else if (isFirst && (first === "set" || first === "use")) this.#state = "setting";
    else this.#state = "skip";
    if (this.#words.length > WORDS_MAX) this.#state = "skip";
  }

  #expectPath(verb: "insert" | "create" | "copy"): void {
    this.#verb = verb;
    this.#state = "path";
    this.#path = [];
    this.#isAfterDot = false;
  }

  /** Takes `keys`, `"public"."keys"` or `IF NOT EXISTS keys`. */
  #addToPath(token: Token): void {
    const { kind, text } = token;
    const isName = kind === "name" || kind === "word";
    if (kind === "word" && this.#path.length === 0 && /^(if|not|exists|only)$/i.test(text)) return;
    if (kind === "symbol" && text === ".") this.#isAfterDot = true;
    else if (isName && (this.#path.length === 0 || this.#isAfterDot) && this.#path.length < WORDS_MAX) {
      this.#path.push(text);
      this.#isAfterDot = false;
    } else {
      this.#endPath();
      if (this.isWanted) this.add(token);
    }
  }

  #endPath(): void {
    const name = this.#path.at(-1) ?? "";
    const table = this.#tables.get(name.toLowerCase());
    if (this.#seen.size < TABLES_MAX || table) this.#seen.add(table?.name ?? name);
    if (this.#verb !== "create") this.#hasRows = true;
    this.#table = table;
    this.#depth = 0;
    this.#isBeginning = false;
    this.#names = [];
    this.#words = [];
    if (this.#verb === "copy") this.#state = "names";
    else if (table === undefined) this.#state = "skip";
    else if (this.#verb === "insert") this.#state = "names";
    else {
      this.#columns.set(table.name, this.#names);
      this.#state = "columns";
    }
  }

  #column({ kind, text, line }: Token): void {
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
      // Constraints begin with a word. Columns of MySQL have quotes; those of PostgreSQL only if the word is reserved.
      const isColumn = kind === "name" || (this.#dialect === "PostgreSQL" && !CONSTRAINT.test(text));
      if (isColumn) this.#addName(text, line);
    }
  }

  /** The columns in INSERT or COPY, and what follows them. */
  #name({ kind, text, line }: Token): void {
    if (kind === "symbol" && text === "(") this.#depth++;
    else if (kind === "symbol" && text === ")") this.#depth--;
    else if (this.#depth > 0) {
      if (this.#table !== undefined && (kind === "name" || kind === "word")) this.#addName(text, line);
    } else if (this.#verb === "copy") {
      if (this.#words.length < WORDS_MAX) this.#words.push(kind === "word" ? text.toLowerCase() : "");
    } else if (kind === "word" && (this.#dialect === "MySQL" ? /^values?$/i : /^values$/i).test(text)) {
      this.#checkColumns(line);
      this.#state = "values";
    } else if (kind === "word" && /^select$/i.test(text)) this.#state = "skip";
  }

  #addName(text: string, line: number): void {
    if (this.#names.length === COLUMNS_MAX) throw this.error("has too many columns", line);
    this.#names.push(text);
  }

  #beginCopy(line: number): void {
    const [from, stdin, ...options] = this.#words;
    if (from !== "from" || stdin !== "stdin") return;
    if (this.#table !== undefined) {
      if (options.length > 0) throw this.error("has a COPY with options. Make the dump with pg_dump", line);
      this.#checkColumns(line);
    }
    this.copy = { line, table: this.#table?.name };
  }

  /** Finds the names of the columns, and compares the table with the others of its name. */
  #checkColumns(line: number): void {
    const table = this.#table!;
    if (this.#names.length === 0) this.#names = this.#columns.get(table.name) ?? [];
    if (this.#names.length === 0) {
      throw this.error(
        "has rows without the names of its columns. Make the dump with its CREATE TABLE statements, or with --column-inserts",
        line,
      );
    }
    const names = this.#names.map(fieldName);
    const missing = table.columns.find((column) => !names.includes(fieldName(column)));
    if (missing !== undefined) {
      throw this.error(`has no column ${missing}. It has ${listOf(this.#names)}`, line);
    }
  }

  /** Adds a row of COPY: values between tabs, with escapes. */
  addCopied(row: string, line: number): void {
    const cells = row.split("\t");
    if (cells.length !== this.#names.length) throw this.#lengthError(cells.length, line);
    const copied = (cell: string) => {
      const text = utf8(unescaped(cell));
      if (text === undefined) throw this.error(NOT_UTF8, line);
      return text;
    };
    this.#addRow(
      cells.map((cell) => (cell === "\\N" ? null : copied(cell))),
      line,
    );
  }

  endCopy(): void {
    this.copy = undefined;
    this.#table = undefined;
  }

  #between({ kind, text }: Token): void {
    if (kind === "symbol" && text === "(") {
      this.#row = [];
      this.#cell = [];
      this.#state = "row";
    } else if (kind !== "symbol") this.#state = "skip"; // ON CONFLICT, ON DUPLICATE KEY UPDATE
  }

  #value(token: Token): void {
    const { kind, text, line } = token;
    if (kind !== "symbol") {
      this.#cell.push(token);
      if (this.#cell.length > 2) throw this.error("has a value that cannot be read", line);
      return;
    }
    if (text !== "," && text !== ")") throw this.error(`has a row that cannot be read, at ${text}`, line);
    this.#row.push(this.#cellValue(line));
    this.#cell = [];
    if (this.#row.length > this.#names.length) throw this.error("has a row with more values than columns", line);
    if (text === ",") return;
    if (this.#row.length !== this.#names.length) throw this.#lengthError(this.#row.length, line);
    this.#addRow(this.#row, line);
    this.#state = "values";
  }

  #lengthError(values: number, line: number): CommandError {
    return this.error(`has a row with ${values} values for ${this.#names.length} columns`, line);
  }

  #cellValue(line: number): string | null {
    const [first, second] = this.#cell;
    if (first?.kind === "text" && second === undefined) return first.text;
    if (first?.kind === "word" && second === undefined) return /^(null|default)$/i.test(first.text) ? null : first.text;
    // A character set or a type before a text: _binary 'a', B'101'.
    if (first?.kind === "word" && second?.kind === "text") return second.text;
    throw this.error("has a value that cannot be read", line);
  }

  #addRow(row: readonly (string | null)[], line: number): void {
    const { name } = this.#table!;
    const place = [this.#database, this.#path.at(-2) ?? this.#schema].filter((part) => part !== "").join(".");
    const known = this.#places.get(name);
    if (known === undefined) this.#places.set(name, place);
    else if (known !== place) {
      throw this.error(`is there twice, in ${known} and in ${place}. Make a dump of one database and one schema`, line);
    }
    this.#complete.push({ table: name, values: new Map(this.#names.map((column, i) => [column, row[i]!])) });
  }

  /** The value in USE or SET. */
  #setting({ kind, text, line }: Token): void {
    const [verb] = this.#words;
    if (verb === "use") {
      this.#database = text;
      this.#state = "skip";
      return;
    }
    this.#words.push(text.toLowerCase());
    const [, name, sign, value] = this.#words;
    if (kind === "symbol" && name === text) this.#state = "skip";
    if (value === undefined) return;
    this.#state = "skip";
    if (sign !== "=" && sign !== "to") return;
    if (name === "search_path") this.#schema = text;
    else if (name === "standard_conforming_strings") this.hasBackslashes = value === "off";
    else if (name === "client_encoding" && !/^(utf-?8|unicode|sql_ascii)$/.test(value)) {
      throw this.error(`has the encoding ${text}. Make it with --encoding=UTF8`, line);
    }
  }
}

const CONSTRAINT = /^(primary|unique|constraint|foreign|check|exclude|like)$/i;

/** What an escaped character means in COPY; any other character means itself. */
const copyEscapes: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t", b: "\b", f: "\f", v: "\v" };

function unescaped(cell: string): string {
  if (!cell.includes("\\")) return cell;
  return cell.replaceAll(/\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|(.))/gs, (_, octal, hex, character) => {
    if (character !== undefined) return copyEscapes[character] ?? character;
    return String.fromCharCode(Number.parseInt(octal ?? hex, octal === undefined ? 16 : 8) & 255);
  });
}

function listOf(names: readonly string[]): string {
  const more = names.length - SHOWN_MAX;
  return names.slice(0, SHOWN_MAX).join(", ") + (more > 0 ? ` and ${more} more` : "");
}
