import type { z } from "zod";
import { notJson, parse, rejectLoss } from "./body.ts";
import { yieldEventLoop } from "./event-loop.ts";
import { type InputError, Problem } from "./problems.ts";
import { ERRORS_MAX, type Issue, inputErrorsOf, invalidBody, PARSE_OPTIONS } from "./validate.ts";

/** Bodies up to this many characters are parsed and validated in one step. */
export const SHORT_BODY_LENGTH_MAX = 64 * 1024;
/** The same of bodies with a list: 800 keys to import would take 3 ms, and 200 less than one. */
export const SHORT_LIST_LENGTH_MAX = 16 * 1024;

/** Characters per scan step, which takes less than a millisecond. */
const SCAN_LENGTH = 256 * 1024;
/** A chunk of a long list ends at the entry that reaches one of these limits. */
const CHUNK_LENGTH = SHORT_LIST_LENGTH_MAX;
const CHUNK_ENTRIES_MAX = 1_000;

/**
 * Limits of one parse. They keep parsing and validation below 50 ms: 20,000 members with distinct names take about 35 ms,
 * 3 MiB of escaped text the same, 200,000 numbers 5 ms.
 */
const MEMBERS_MAX = 20_000;
const VALUES_MAX = 200_000;
const DEPTH_MAX = 500;
const LENGTH_MAX = 3 * 1024 ** 2;

/**
 * Parses and validates a long body without blocking the event loop. It scans the text in slices. If `list` names the
 * member with the long list, it parses and validates that list in chunks. The number of members and values per parse
 * (the body, or one chunk) is limited. It begins in a turn of its own, because a queue starts a body in the turn in which
 * another one ends.
 *
 * @throws {Problem} `invalid_input` with the first 20 errors.
 */
export async function parseLongBody<I extends z.ZodType>(
  schema: I,
  text: string,
  path: string,
  list?: string,
): Promise<z.output<I>> {
  const scan = new Scan(text, list);
  do await yieldEventLoop();
  while (!scan.advance());
  return new ChunkedBody(schema, text, path, list, scan.chunks).read();
}

/** Part of a long list, as offsets into the text. */
interface Chunk {
  readonly start: number;
  readonly end: number;
  readonly entries: number;
}

const [QUOTE, BACKSLASH, COMMA, COLON] = [0x22, 0x5c, 0x2c, 0x3a];
const [OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET] = [0x7b, 0x7d, 0x5b, 0x5d];

/**
 * One pass over JSON text. It counts members, values and depth, and finds the chunks of the list. It does not validate
 * the text: the parser does that for every part.
 */
class Scan {
  readonly #text: string;
  readonly #list: string | undefined;
  readonly chunks: Chunk[] = [];
  #at = 0;
  #depth = 0;
  #members = 0;
  #values = 1;
  /** Start of the current or last string at depth 1. Before a colon it is the name of a member. */
  #nameStart = 0;
  #nameEnd = 0;
  #inString = false;
  /** The last token was the colon after the list's name. */
  #isListNext = false;
  #inList = false;
  #chunkStart = 0;
  #entries = 0;

  constructor(text: string, list: string | undefined) {
    this.#text = text;
    this.#list = list;
  }

  /** Scans the next slice; true at the end. */
  advance(): boolean {
    const end = Math.min(this.#text.length, this.#at + SCAN_LENGTH);
    while (this.#at < end) {
      const code = this.#text.charCodeAt(this.#at);
      if (this.#inString) {
        if (code === BACKSLASH) this.#at++;
        else if (code === QUOTE) {
          this.#inString = false;
          if (this.#depth === 1) this.#nameEnd = this.#at + 1;
        }
      } else if (code > 0x20) this.#readToken(code);
      this.#at++;
    }
    return this.#at >= this.#text.length;
  }

  #readToken(code: number): void {
    const isListNext = this.#isListNext;
    this.#isListNext = false;
    switch (code) {
      case QUOTE:
        this.#inString = true;
        if (this.#depth === 1) this.#nameStart = this.#at;
        return;
      case OPEN_BRACE:
      case OPEN_BRACKET:
        if (++this.#depth > DEPTH_MAX) throw tooMuch(`is nested deeper than ${DEPTH_MAX} levels`);
        this.#countValue();
        if (isListNext && code === OPEN_BRACKET) this.#beginList();
        return;
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        this.#depth--;
        if (this.#inList && this.#depth === 1) {
          if (code === CLOSE_BRACE) throw notJson("the text is not JSON: a list ends with a brace");
          this.#endChunk();
          this.#inList = false;
        }
        return;
      case COMMA:
        this.#countValue();
        if (this.#inList && this.#depth === 2) this.#endEntry();
        return;
      case COLON:
        if (++this.#members > MEMBERS_MAX) throw tooMuch(`has more than ${MEMBERS_MAX} members`);
        if (this.#depth === 1) this.#isListNext = this.#list !== undefined && this.#name() === this.#list;
        return;
    }
  }

  #name(): unknown {
    // Longer than the longest escaped spelling of the name.
    if (this.#nameEnd - this.#nameStart > 6 * this.#list!.length + 2) return undefined;
    try {
      return JSON.parse(this.#text.slice(this.#nameStart, this.#nameEnd));
    } catch {
      return undefined;
    }
  }

  #countValue(): void {
    if (++this.#values > VALUES_MAX) throw tooMuch(`has more than ${VALUES_MAX} values`);
  }

  #beginList(): void {
    if (this.chunks.length > 0) throw tooMuch(`names '${this.#list}' a second time`);
    this.#inList = true;
    this.#chunkStart = this.#at + 1;
    this.#values = 0;
    this.#members = 0;
  }

  #endEntry(): void {
    this.#entries++;
    if (this.#entries < CHUNK_ENTRIES_MAX && this.#at - this.#chunkStart < CHUNK_LENGTH) return;
    this.chunks.push({ start: this.#chunkStart, end: this.#at, entries: this.#entries });
    this.#chunkStart = this.#at + 1;
    this.#entries = 0;
    this.#values = 0;
    this.#members = 0;
  }

  #endChunk(): void {
    const isEmpty = this.chunks.length === 0 && this.#text.slice(this.#chunkStart, this.#at).trim() === "";
    this.chunks.push({ start: this.#chunkStart, end: this.#at, entries: isEmpty ? 0 : this.#entries + 1 });
  }
}

/** Parses and validates the parts, and joins the results. */
class ChunkedBody<I extends z.ZodType> {
  readonly #schema: I;
  readonly #text: string;
  readonly #path: string;
  readonly #list: string | undefined;
  readonly #chunks: readonly Chunk[];

  constructor(schema: I, text: string, path: string, list: string | undefined, chunks: readonly Chunk[]) {
    this.#schema = schema;
    this.#text = text;
    this.#path = path;
    this.#list = list;
    this.#chunks = chunks;
  }

  async read(): Promise<z.output<I>> {
    const [first, last] = [this.#chunks[0], this.#chunks.at(-1)];
    if (first === undefined) {
      const body = parsePart(this.#text);
      const input = this.#validate(body.value, 0);
      rejectLoss(body.text, body.value, true, body.start);
      return input;
    }
    const list = this.#list!;
    const rest = parsePart(`${this.#text.slice(0, first.start)}${this.#text.slice(last!.end)}`);
    const outer = rest.value as Record<string, unknown>;
    const all: unknown[] = [];
    const errors: InputError[] = [];
    let base = 0;
    let input: Record<string, unknown> = {};
    for (const { start, end, entries } of this.#chunks) {
      const chunk = parsePart(`[${this.#text.slice(start, end)}]`);
      const part = chunk.value as unknown[];
      if (part.length !== entries) throw notJson("the text is not JSON: a list lacks an entry");
      try {
        input = this.#validate({ ...outer, [list]: part }, base) as typeof input;
        for (const entry of input[list] as unknown[]) all.push(entry);
      } catch (error) {
        if (!(error instanceof InvalidPart)) throw error;
        errors.push(...error.errors);
        if (errors.length >= ERRORS_MAX) break;
      }
      if (errors.length === 0) rejectLoss(chunk.text, part, true, start - 1);
      base += entries;
      await yieldEventLoop();
    }
    if (errors.length > 0) throw invalidBody(errors.slice(0, ERRORS_MAX), this.#path);
    rejectLoss(rest.text, outer, true, rest.start);
    return { ...input, [list]: all } as z.output<I>;
  }

  #validate(value: unknown, base: number): z.output<I> {
    const result = this.#schema.safeParse(value, PARSE_OPTIONS);
    if (result.success) return result.data;
    const isInList = ({ path }: Issue) => path[0] === this.#list && typeof path[1] === "number";
    const { issues } = result.error;
    if (this.#chunks.length === 0) throw invalidBody(inputErrorsOf(issues, this.#schema), this.#path);
    // Validation of every chunk repeats the errors outside of the list.
    const fresh = base === 0 ? issues : issues.filter(isInList);
    const shifted = fresh.slice(0, ERRORS_MAX).map((issue) => {
      if (!isInList(issue)) return issue;
      const [list, index, ...more] = issue.path;
      return { ...issue, path: [list!, base + (index as number), ...more] };
    });
    throw new InvalidPart(inputErrorsOf(shifted, this.#schema));
  }
}

/** A chunk is invalid, or the rest of the body is. */
class InvalidPart extends Error {
  readonly errors: readonly InputError[];

  constructor(errors: readonly InputError[]) {
    super("A part of the body is not valid");
    this.errors = errors;
  }
}

/** A parsed part, its text without padding, and the offset of that text. */
interface Part {
  readonly value: unknown;
  readonly text: string;
  readonly start: number;
}

/**
 * Parses without the white space at both ends: it does not count towards the limit, and the later search for lost values
 * would take a twelfth of a second for 10 MiB of it.
 *
 * @throws {Problem} `invalid_input`.
 */
function parsePart(text: string): Part {
  let [start, end] = [0, text.length];
  while (start < end && isSpace(text.charCodeAt(start))) start++;
  while (end > start && isSpace(text.charCodeAt(end - 1))) end--;
  if (end - start > LENGTH_MAX) throw tooMuch(`has more than ${LENGTH_MAX} characters in one piece`);
  const inner = text.slice(start, end);
  return { value: parse(inner), text: inner, start };
}

function tooMuch(message: string): Problem {
  return new Problem("invalid_input", `The request body ${message}.`, {
    errors: [{ location: "requestBody", message: `the body ${message}`, fix: "Send less in one call." }],
  });
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x09 || code === 0x0a || code === 0x0d;
}
