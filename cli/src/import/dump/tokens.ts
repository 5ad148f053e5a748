import { isUtf8 } from "node:buffer";
import type { CommandError } from "../../output.ts";

/** A part of a statement. */
export interface Token {
  /** `name`: a quoted name; `meta`: a command of psql, without its backslash; `block`: a text in dollar quotes, left out. */
  readonly kind: "word" | "name" | "text" | "symbol" | "meta" | "block";
  readonly text: string;
  /** The line of the file, from 1. */
  readonly line: number;
}

export type Dialect = "MySQL" | "PostgreSQL";

/** The longest value, in bytes. */
export const VALUE_BYTES_MAX = 1024 * 1024;
/** The longest tag of a dollar quote, with its dollars, and the longest command of psql that is kept. */
const TAG_MAX = 66;
const META_MAX = 256;

/** What takes the tokens. */
export interface TokenReader {
  /** Whether the current statement matters. Of others, only the semicolon is added. */
  readonly isWanted: boolean;
  /** Whether a backslash escapes in every text, and not only in `E''`. */
  readonly hasBackslashes: boolean;
  /** Returns true if the text after the token is not SQL. */
  add(token: Token): boolean;
  /** An error in the statement that is being read. */
  error(problem: string, line: number): CommandError;
}

/** What an escaped character means; any other character means itself. */
const mysqlEscapes: Readonly<Record<string, string>> = { 0: "\0", n: "\n", r: "\r", t: "\t", b: "\b", Z: "\u001a" };
const postgresEscapes: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t", b: "\b", f: "\f" };

/**
 * Divides SQL into tokens. The text has one character for each byte (latin1); tokens are UTF-8 again.
 *
 * It is in one of these states at the end of a chunk, so that it never has to keep more than a few characters: between
 * tokens; in a word; in quotes; in dollar quotes; in a comment to the end of the line; in a comment of a block, which may be
 * nested; in a command of psql.
 */
export class Tokens {
  line = 1;
  /** Whether `read` ended after a token, because what follows is not SQL. */
  isStopped = false;
  readonly #dialect: Dialect;
  readonly #reader: TokenReader;
  #state: "between" | "word" | "quotes" | "dollars" | "line comment" | "block comment" | "command" = "between";
  #value = "";
  #valueLine = 1;
  #isNumber = false;
  #quote = "'";
  #isEscaping = false;
  #tag = "";
  #depth = 0;
  /** Whether a statement begins. */
  #isBeginning = true;

  constructor(dialect: Dialect, reader: TokenReader) {
    this.#dialect = dialect;
    this.#reader = reader;
  }

  /** Reads a text, and returns how much of it. The rest belongs before the next text. */
  read(text: string, isLast: boolean): number {
    this.isStopped = false;
    let at = 0;
    while (at < text.length && !this.isStopped) {
      const next = this.#step(text, at, isLast);
      if (next === -1) break;
      at = next;
    }
    if (isLast && this.#state === "word") this.#emit("word");
    return at;
  }

  /** Whether the end of the text is in the middle of a token. */
  get isIncomplete(): boolean {
    return this.#state === "quotes" || this.#state === "dollars" || this.#state === "block comment";
  }

  /** Reads one token or a part of it. Returns the position after it; -1 if the decision needs more text. */
  #step(text: string, at: number, isLast: boolean): number {
    switch (this.#state) {
      case "between":
        return this.#between(text, at, isLast);
      case "word":
        return this.#word(text, at, isLast);
      case "quotes":
        return this.#quotes(text, at, isLast);
      case "dollars":
        return this.#dollars(text, at);
      case "block comment":
        return this.#blockComment(text, at);
      default: {
        const end = text.indexOf("\n", at);
        const isCommand = this.#state === "command";
        if (isCommand) this.#value = (this.#value + text.slice(at, end === -1 ? undefined : end)).slice(0, META_MAX);
        if (end === -1) return text.length;
        this.#state = "between";
        if (isCommand) this.#emit("meta");
        return end;
      }
    }
  }

  #between(text: string, from: number, isLast: boolean): number {
    let at = from;
    let character = text[at]!;
    while (character === " " || character === "\n" || character === "\t" || character === "\r") {
      if (character === "\n") this.line++;
      at++;
      if (at === text.length) return at;
      character = text[at]!;
    }
    const next = text[at + 1];
    // One character decides about comments and numbers.
    if (next === undefined && !isLast && "-+./$".includes(character)) return at === from ? -1 : at;
    if (character === "'" || character === '"' || character === "`") {
      const isName = character === "`" || (character === '"' && this.#dialect === "PostgreSQL");
      this.#begin("quotes");
      this.#quote = character;
      this.#isEscaping = this.#reader.hasBackslashes && !isName;
      return at + 1;
    }
    if (character === "-" && next === "-") return this.#begin("line comment", at + 2);
    if (character === "#" && this.#dialect === "MySQL") return this.#begin("line comment", at + 1);
    if (character === "/" && next === "*") {
      this.#depth = 1;
      return this.#begin("block comment", at + 2);
    }
    if (this.#dialect === "PostgreSQL" && character === "\\" && this.#isBeginning)
      return this.#begin("command", at + 1);
    if (this.#dialect === "PostgreSQL" && character === "$") {
      const tag = /^\$(?:[A-Za-z_\x80-\xff][\w\x80-\xff]*)?\$/.exec(text.slice(at, at + TAG_MAX))?.[0];
      if (tag !== undefined) {
        this.#tag = tag;
        return this.#begin("dollars", at + tag.length);
      }
      if (text.length < at + TAG_MAX && !isLast) return at === from ? -1 : at;
    }
    this.#isNumber = isDigit(character) || ("-+.".includes(character) && next !== undefined && isDigit(next));
    if (this.#isNumber || isWordCharacter(text.charCodeAt(at))) {
      this.#begin("word");
      this.#value = character;
      return at + 1;
    }
    this.#valueLine = this.line;
    this.#value = character;
    this.#emit("symbol");
    return at + 1;
  }

  #begin(state: "word" | "quotes" | "dollars" | "line comment" | "block comment" | "command", at = 0): number {
    this.#state = state;
    this.#value = "";
    this.#valueLine = this.line;
    return at;
  }

  #word(text: string, from: number, isLast: boolean): number {
    let at = from;
    while (at < text.length) {
      const code = text.charCodeAt(at);
      const isPart =
        isWordCharacter(code) ||
        (this.#isNumber && text[at] === ".") ||
        (this.#isNumber && (text[at] === "-" || text[at] === "+") && /e$/i.test(this.#value + text.slice(from, at)));
      if (!isPart) break;
      at++;
    }
    this.#take(text, from, at);
    if (at === text.length && !isLast) return at;
    if (this.#dialect === "PostgreSQL" && text[at] === "'" && /^e$/i.test(this.#value)) {
      this.#begin("quotes");
      this.#quote = "'";
      this.#isEscaping = true;
      return at + 1;
    }
    this.#emit("word");
    return at;
  }

  #quotes(text: string, from: number, isLast: boolean): number {
    const quote = this.#quote;
    let start = from;
    let at = from;
    while (true) {
      if (this.#isEscaping) while (at < text.length && text[at] !== quote && text[at] !== "\\") at++;
      else {
        at = text.indexOf(quote, at);
        if (at === -1) at = text.length;
      }
      const next = text[at + 1];
      if (at >= text.length || (next === undefined && !isLast)) {
        this.#take(text, start, at);
        return at === from ? -1 : at;
      }
      this.#take(text, start, at);
      if (text[at] === "\\") {
        if (next === undefined) return text.length;
        this.#value += this.#escaped(next);
        if (next === "\n") this.line++;
      } else if (next === quote) {
        if (this.#reader.isWanted) this.#value += quote;
      } else {
        this.#emit(quote === "'" || (quote === '"' && this.#dialect === "MySQL") ? "text" : "name");
        return at + 1;
      }
      at += 2;
      start = at;
    }
  }

  #escaped(character: string): string {
    if (!this.#reader.isWanted) return "";
    if (this.#dialect === "MySQL") return mysqlEscapes[character] ?? character;
    // pg_dump doubles backslashes and writes no others.
    if (/[0-7xuU]/.test(character))
      throw this.#reader.error(`has the escape \\${character}, which is not read`, this.line);
    return postgresEscapes[character] ?? character;
  }

  #dollars(text: string, from: number): number {
    const end = text.indexOf(this.#tag, from);
    const next = end === -1 ? Math.max(from, text.length - this.#tag.length + 1) : end + this.#tag.length;
    this.#countLines(text, from, next);
    if (end !== -1) this.#emit("block");
    return next === from ? -1 : next;
  }

  #blockComment(text: string, from: number): number {
    const mark = this.#dialect === "PostgreSQL" ? /\/\*|\*\//g : /\*\//g;
    mark.lastIndex = from;
    const found = mark.exec(text);
    const next = found ? mark.lastIndex : Math.max(from, text.length - 1);
    this.#countLines(text, from, next);
    if (found) this.#depth += found[0] === "*/" ? -1 : 1;
    if (this.#depth === 0) this.#state = "between";
    return next === from ? -1 : next;
  }

  /** Adds a part of the text to the value. */
  #take(text: string, from: number, to: number): void {
    this.#countLines(text, from, to);
    if (!this.#reader.isWanted) return;
    this.#value += text.slice(from, to);
    if (this.#value.length > VALUE_BYTES_MAX) {
      throw this.#reader.error(`has a value longer than ${VALUE_BYTES_MAX / 2 ** 20} MiB`, this.#valueLine);
    }
  }

  #countLines(text: string, from: number, to: number): void {
    // A search in the whole text would be repeated for each token of a long line.
    const part = text.slice(from, to);
    for (let at = part.indexOf("\n"); at !== -1; at = part.indexOf("\n", at + 1)) this.line++;
  }

  #emit(kind: Token["kind"]): void {
    this.#state = "between";
    const value = this.#value;
    this.#value = "";
    const isEnd = kind === "symbol" && value === ";";
    this.#isBeginning = isEnd || kind === "meta";
    if (isEnd || this.#reader.isWanted) {
      const text = utf8(value);
      if (text === undefined) throw this.#reader.error(NOT_UTF8, this.#valueLine);
      this.isStopped = this.#reader.add({ kind, text, line: this.#valueLine });
    }
  }
}

export const NOT_UTF8 = "has a value that is not UTF-8. Let the dump be written in UTF-8";

/** The text of UTF-8 bytes that are one character each; undefined if they are none. */
export function utf8(text: string): string | undefined {
  if (!/[\x80-\xff]/.test(text)) return text;
  const bytes = Buffer.from(text, "latin1");
  return isUtf8(bytes) ? bytes.toString("utf8") : undefined;
}

function isDigit(character: string): boolean {
  return character >= "0" && character <= "9";
}

/** Letters, digits, `_`, `$`, and everything above ASCII. */
function isWordCharacter(code: number): boolean {
  return (
    (code >= 48 && code <= 57) ||
    (code >= 65 && code <= 90) ||
    (code >= 97 && code <= 122) ||
    code === 95 ||
    code === 36 ||
    code > 127
  );
}
