import { shareClass } from "./share-class.ts";

const REDACTED = "[redacted]";

/**
 * A text that must not be logged, such as a key string. It prints as `[redacted]` in templates, JSON and consoles;
 * `reveal()` returns the text.
 */
export class Secret {
  static {
    shareClass(Secret, "Secret");
  }

  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  /** The text itself. */
  reveal(): string {
    return this.#text;
  }

  toString(): string {
    return REDACTED;
  }

  toJSON(): string {
    return REDACTED;
  }

  [Symbol.toPrimitive](): string {
    return REDACTED;
  }

  /** What `console.log` prints in Node, Bun and Workers. */
  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return REDACTED;
  }

  /** What `console.log` prints in Deno. */
  [Symbol.for("Deno.customInspect")](): string {
    return REDACTED;
  }
}
