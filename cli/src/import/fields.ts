import { findRepeatedName, parseExactly } from "../../../engine/src/rules/json-text.ts";

/** A part of a row that is not imported or works differently here, with what to do about it. It quotes no value. */
export interface Note {
  field: string;
  note: string;
}

/** A name without case and separators: `expires_at` and `expiresAt` are the same. Dots and the names in `meta.` stay. */
export function fieldName(name: string): string {
  const trimmed = name.trim();
  return trimmed.startsWith("meta.") ? trimmed : trimmed.toLowerCase().replaceAll(/[\s_-]/g, "");
}

/**
 * The fields of one row. A field is found by any spelling of its name; empty texts and nulls are absent. The fields that
 * were read are remembered, so that the others can be reported.
 */
export class Fields {
  /** What the report says about the row, besides the fields that were not read. */
  readonly notes: Note[] = [];
  /** The names of the fields whose text should be a time and is none. */
  readonly notTimes: string[] = [];
  /** The names of members that a value, which is a text of JSON, has twice in one object. */
  readonly repeatedMembers: string[] = [];
  /** A name that two fields have in two spellings, as the file spells it; undefined if there is none. */
  readonly repeated: string | undefined;
  readonly #values = new Map<string, unknown>();
  /** The names as the file spells them, by the normalized ones. */
  readonly #spellings = new Map<string, string>();
  readonly #read = new Set<string>();

  constructor(fields: Iterable<readonly [name: string, value: unknown]>) {
    for (const [name, value] of fields) {
      if (this.#values.has(fieldName(name))) this.repeated = name.trim();
      this.#values.set(fieldName(name), value);
      this.#spellings.set(fieldName(name), name.trim());
    }
  }

  /** The normalized names of the fields that have a value. */
  names(): string[] {
    return [...this.#values.keys()].filter((name) => this.#find(name) !== undefined);
  }

  /** The normalized names of the fields that nothing has read, and whose value means anything. */
  unread(): string[] {
    return this.names().filter((name) => !this.#read.has(name) && !isEmpty(this.#find(name)));
  }

  /** A text by which a reader of the report recognizes the row. */
  label(): string | undefined {
    const consumer = this.#find("consumer");
    const texts = [
      ...["name", "keyalias", "alias", "keyname", "username"].map((name) => this.#find(name)),
      isObject(consumer) ? (consumer.username ?? consumer.custom_id) : undefined,
      ...["id", "keyid"].map((name) => this.#find(name)),
    ];
    const label = texts.find((value) => typeof value === "string" || typeof value === "number");
    return label === undefined ? undefined : String(label).slice(0, 100);
  }

  /** A name as the file spells it. */
  spelling(name: string): string {
    return this.#spellings.get(name) ?? name;
  }

  note(field: string, note: string): void {
    this.notes.push({ field, note });
  }

  /** The first of these fields that has a value. */
  value(...names: string[]): unknown {
    for (const name of names) this.#read.add(fieldName(name));
    for (const name of names) {
      const value = this.#find(fieldName(name));
      if (value !== undefined) return value;
    }
    return undefined;
  }

  #find(name: string): unknown {
    const value = this.#values.get(name);
    return value === null || value === "" ? undefined : value;
  }

  text(...names: string[]): string | undefined {
    const value = this.value(...names);
    return value === undefined || typeof value === "object" ? undefined : String(value);
  }

  /** Texts that are no number stay: the validation names them. */
  number(...names: string[]): unknown {
    const value = this.value(...names);
    return typeof value === "string" && /^\s*-?\d+(\.\d+)?(e[+-]?\d+)?\s*$/i.test(value) ? Number(value) : value;
  }

  boolean(...names: string[]): unknown {
    const value = this.value(...names);
    if (typeof value !== "string" && typeof value !== "number") return value;
    const text = String(value).trim().toLowerCase();
    if (["true", "t", "1", "yes"].includes(text)) return true;
    return ["false", "f", "0", "no"].includes(text) ? false : value;
  }

  /** Unix time in milliseconds, from that, from seconds, or from a date, which is UTC unless it says otherwise. */
  time(...names: string[]): unknown {
    const value = this.number(...names);
    if (typeof value === "number") return value > 0 && value < 100_000_000_000 ? value * 1_000 : value;
    if (typeof value !== "string") return value;
    const text = value
      .trim()
      .replace(" ", "T")
      .replace(/(:\d{2}(?:\.\d+)?[+-]\d{2})$/, "$1:00");
    const time = Date.parse(
      /(Z|[+-]\d{2}:?\d{2})$/i.test(text) ? text : `${text.includes("T") ? text : `${text}T00:00`}Z`,
    );
    if (!Number.isNaN(time)) return time;
    this.notTimes.push(
      ...names.filter((name) => this.#find(fieldName(name)) === value).map((name) => this.spelling(fieldName(name))),
    );
    return value;
  }

  /** A JSON value, from its text too. Text that is no JSON stays. */
  json(...names: string[]): unknown {
    let value = this.value(...names);
    // Some exports have JSON in JSON.
    for (let depth = 0; depth < 2 && typeof value === "string"; depth++) {
      try {
        const text = value;
        value = parseExactly(text);
        const repeated = findRepeatedName(text, value);
        if (repeated !== undefined) this.repeatedMembers.push(repeated.name);
      } catch {
        break;
      }
    }
    return value === null ? undefined : value;
  }

  /** A JSON object; undefined for anything else. */
  object(...names: string[]): Record<string, unknown> | undefined {
    const value = this.json(...names);
    return isObject(value) ? value : undefined;
  }

  /** A list of texts, from JSON or from text with commas or semicolons. */
  list(...names: string[]): unknown {
    const value = this.json(...names);
    // PostgreSQL writes an array as {a,b}, and an empty one like an empty object.
    if (isObject(value) && Object.keys(value).length === 0) return undefined;
    if (typeof value !== "string") return value;
    const texts = /^\{.*\}$/s.test(value) ? arrayOf(value) : value.split(/[,;]/).map((part) => part.trim());
    const present = texts.filter(Boolean);
    return present.length > 0 ? present : undefined;
  }
}

/** The texts in an array as PostgreSQL writes it: `{a,"b, \\"c\\""}`. */
function arrayOf(text: string): string[] {
  return [...text.slice(1, -1).matchAll(/"((?:[^"\\]|\\.)*)"|([^,]+)/gs)].map(([, quoted, plain]) =>
    quoted === undefined ? plain!.trim() : quoted.replaceAll(/\\(.)/gs, "$1"),
  );
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Whether a value is one that a system writes when nothing was set: false, 0, -1, or a list or an object without others. */
function isEmpty(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return isEmptyText(value);
  return Object.values(value).every((member) =>
    typeof member === "object" && member !== null ? Object.keys(member).length === 0 : isEmptyText(member),
  );
}

function isEmptyText(value: unknown): boolean {
  // Trimmed: blanks on both sides of an expression that may be empty take quadratic time.
  return /^(|false|f|0+(\.0+)?|-1|\{\s*\}|\[\s*\]|null)$/i.test(String(value).trim());
}
