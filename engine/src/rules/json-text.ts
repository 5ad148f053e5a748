/** A part of a JSON text that parsing would lose or change silently. */
export interface Loss {
  /** Index into the text. */
  position: number;
  /** What is wrong there. */
  message: string;
  fix: string;
}

/** Numbers that parsing may change: with an exponent, or with 16 digits or more. */
const LONG_NUMBER = /[:,[\s]-?(?:[\d.]{16}|[\d.]{1,15}[eE])/;
/** Messages quote numbers up to this length. */
const QUOTED_NUMBER_MAX = 40;

/**
 * The first part of a valid JSON text that its parsed `value` does not preserve: a number that a double cannot represent,
 * a duplicate name in an object, the name `__proto__`, or an unpaired surrogate.
 *
 * Most texts need no scan: they contain no suspicious characters, and as many colons as the value has members. If all
 * numbers are bounded integers (`hasFreeNumbers` false), their notation is not checked.
 */
export function findLoss(text: string, value: unknown, hasFreeNumbers: boolean): Loss | undefined {
  // A search for fixed strings is several times faster than a pattern of alternatives.
  const isSuspicious =
    text.includes("\\") ||
    text.includes("__proto__") ||
    (hasFreeNumbers && LONG_NUMBER.test(text)) ||
    mayRepeatNames(text, value);
  return isSuspicious ? scan(text) : undefined;
}

/**
 * The value of a JSON text. A number that no double holds exactly is its text: systems number rows and owners with 64 bits.
 *
 * @throws {SyntaxError} when it is not JSON.
 */
export function parseExactly(text: string): unknown {
  if (!LONG_NUMBER.test(text)) return JSON.parse(text);
  return JSON.parse(text, (_, value: unknown, ...context: { readonly source?: string }[]) => {
    const source = typeof value === "number" ? context[0]?.source : undefined;
    return source === undefined || isPreserved(source) ? value : source;
  });
}

/**
 * A name that an object in a valid JSON text has twice, of which its parsed `value` has the last one only. Undefined if there is
 * none.
 */
export function findRepeatedName(text: string, value: unknown): { name: string; position: number } | undefined {
  // A colon that is escaped in a string hides one that is too many.
  if (!text.includes("\\") && !mayRepeatNames(text, value)) return undefined;
  const open: (Set<string> | null)[] = [];
  for (let i = 0; i < text.length; ) {
    const code = text.charCodeAt(i);
    if (code !== QUOTE) {
      followBracket(open, code);
      i++;
      continue;
    }
    const end = closingQuote(text, i);
    if (text.charCodeAt(skipSpace(text, end)) === COLON) {
      const name: string = JSON.parse(text.slice(i, end));
      const names = open.at(-1);
      if (names?.has(name)) return { name, position: i };
      names?.add(name);
    }
    i = end;
  }
  return undefined;
}

/** A colon follows each name. Colons beyond those of names and strings belong to duplicate names. */
function mayRepeatNames(text: string, value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  let colons = colonsIn(text);
  let pending: object[] | undefined;
  for (let holder: object | undefined = value; holder !== undefined; holder = pending?.pop()) {
    if (Array.isArray(holder)) {
      for (let i = 0; i < holder.length; i++) {
        const member: unknown = holder[i];
        if (typeof member === "string") colons -= colonsIn(member);
        else if (typeof member === "object" && member !== null) {
          if (pending === undefined) pending = [member];
          else pending.push(member);
        }
      }
      continue;
    }
    for (const name in holder) {
      colons--;
      const member = (holder as Record<string, unknown>)[name];
      if (typeof member === "string") colons -= colonsIn(member);
      else if (typeof member === "object" && member !== null) {
        if (pending === undefined) pending = [member];
        else pending.push(member);
      }
    }
  }
  return colons !== 0;
}

function colonsIn(text: string): number {
  let count = 0;
  for (let i = text.indexOf(":"); i !== -1; i = text.indexOf(":", i + 1)) count++;
  return count;
}

const QUOTE = 0x22;
const COLON = 0x3a;

/** Scans a valid JSON text once. */
function scan(text: string): Loss | undefined {
  /** The names of each open object, or null for an open array; the innermost last. */
  const open: (Set<string> | null)[] = [];
  for (let i = 0; i < text.length; ) {
    const code = text.charCodeAt(i);
    if (code === QUOTE) {
      const end = closingQuote(text, i);
      const after = skipSpace(text, end);
      const raw = text.slice(i, end);
      const read: string = raw.includes("\\") ? JSON.parse(raw) : raw.slice(1, -1);
      if (!read.isWellFormed()) {
        return {
          position: i,
          message: "this string holds half of a surrogate pair",
          fix: "Send whole characters: both halves of the pair, or neither.",
        };
      }
      if (text.charCodeAt(after) !== COLON) {
        i = end;
        continue;
      }
      if (read === "__proto__") {
        return { position: i, message: "'__proto__' cannot be the name of a property", fix: "Choose another name." };
      }
      const names = open.at(-1)!;
      if (names.has(read)) {
        return {
          position: i,
          message: "this object has the same property twice",
          fix: "Send each property of an object once.",
        };
      }
      names.add(read);
      i = after + 1;
    } else if (isNumberStart(code)) {
      let end = i + 1;
      while (isNumberPart(text.charCodeAt(end))) end++;
      const literal = text.slice(i, end);
      if (!isPreserved(literal)) {
        const quoted = literal.length > QUOTED_NUMBER_MAX ? `${literal.slice(0, QUOTED_NUMBER_MAX)}…` : literal;
        return {
          position: i,
          message: `the number ${quoted} cannot be kept exactly`,
          fix: "Send integers up to 2^53 and fractions of at most 15 digits, or send it as a string.",
        };
      }
      i = end;
    } else {
      followBracket(open, code);
      i++;
    }
  }
  return undefined;
}

/** Keeps the names of each open object, or null for an open array, the innermost last. */
function followBracket(open: (Set<string> | null)[], code: number): void {
  if (code === 0x7b) open.push(new Set());
  else if (code === 0x5b) open.push(null);
  else if (code === 0x7d || code === 0x5d) open.pop();
}

/** The index after the closing quote of the string at `start`. */
function closingQuote(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); ; end = text.indexOf('"', end + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(end - 1 - backslashes) === 0x5c) backslashes++;
    if (backslashes % 2 === 0) return end + 1;
  }
}

function skipSpace(text: string, from: number): number {
  let at = from;
  for (;;) {
    const code = text.charCodeAt(at);
    if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return at;
    at++;
  }
}

function isNumberStart(code: number): boolean {
  return (code >= 0x30 && code <= 0x39) || code === 0x2d;
}

/** Digits, `+`, `-`, `.`, `e` and `E`. */
function isNumberPart(code: number): boolean {
  return isNumberStart(code) || code === 0x2b || code === 0x2e || code === 0x65 || code === 0x45;
}

/** Whether parsing preserves the value of a decimal number. Its notation may change. */
export function isPreserved(literal: string): boolean {
  const value = Number(literal);
  return Number.isFinite(value) && decimal(literal) === decimal(String(value));
}

/** Canonical form of a number without its sign: digits and a power of ten. */
function decimal(literal: string): string {
  const exponentAt = literal.search(/[eE]/);
  const mantissa = exponentAt === -1 ? literal : literal.slice(0, exponentAt);
  const dot = mantissa.indexOf(".");
  const digits = mantissa.replace(/[-.]/g, "");
  let start = 0;
  while (digits.charCodeAt(start) === 0x30) start++;
  let end = digits.length;
  while (end > start && digits.charCodeAt(end - 1) === 0x30) end--;
  if (start === end) return "0";
  const fraction = dot === -1 ? 0 : mantissa.length - dot - 1;
  const exponent = exponentAt === -1 ? 0 : Number(literal.slice(exponentAt + 1));
  return `${digits.slice(start, end)}e${exponent - fraction + digits.length - end}`;
}
