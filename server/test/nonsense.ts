import { z } from "zod";

/** The parts of JSON Schema that our inputs are printed in. */
interface Shape {
  type?: string;
  anyOf?: Shape[];
  enum?: unknown[];
  const?: unknown;
  format?: string;
  properties?: Record<string, Shape>;
  required?: string[];
  additionalProperties?: boolean | Shape;
  items?: Shape;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  minItems?: number;
  not?: { maximum: number };
  maxItems?: number;
}

/** The kinds of mistakes that a body can have. */
export type MistakeKind =
  | "missing"
  | "type"
  | "null"
  | "unknown"
  | "enum"
  | "pattern"
  | "length"
  | "fraction"
  | "range"
  | "seconds"
  | "items"
  | "duplicate";

/** A body that has to be refused, and what is wrong with it. */
export interface Nonsense {
  what: string;
  kind: MistakeKind;
  /** Where `error.errors` has to place the mistake. */
  location: string;
  /** What it has to say there. */
  message: RegExp;
  /** JSON text. */
  raw: string;
}

/** A number as it is to be written in the text, which JSON.stringify would write otherwise. */
const written = (literal: string) => `\u{1F511}${literal}\u{1F511}`;
const WRITTEN = /"\u{1F511}([^"]*)\u{1F511}"/gu;

/** Bodies that are `valid` but for one mistake, one for each mistake that can be made in each field of `input`. */
export function nonsense(input: z.ZodType, valid: Record<string, unknown>): Nonsense[] {
  const shape = z.toJSONSchema(input, { io: "input", unrepresentable: "any" }) as Shape;
  return [...mistakes(shape, valid, [], (value) => value)].map(({ value, ...mistake }) => ({
    ...mistake,
    raw: JSON.stringify(value).replace(WRITTEN, "$1"),
  }));
}

type Path = readonly (string | number)[];
type Place = (value: unknown) => unknown;
type Mistake = Omit<Nonsense, "raw"> & { value: unknown };
/** What is wrong with a value, and how that has to be reported. */
type Wrong = readonly [value: unknown, kind: MistakeKind, keyword: string, says: string];

/** The place as the service names it in messages. */
function subjectOf(path: Path): string {
  if (path.length === 0) return "the body";
  return path.map((part, i) => (typeof part === "number" ? `[${part}]` : `${i ? "." : ""}${part}`)).join("");
}

function locationOf(path: Path, keyword: string): string {
  return `${path.map((part) => (typeof part === "number" ? "/items" : `/properties/${part}`)).join("")}/${keyword}`;
}

const escaped = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
const exactly = (text: string) => new RegExp(`^${escaped(text)}$`);

function* mistakes(shape: Shape, valid: unknown, path: Path, place: Place): Generator<Mistake> {
  const nullable = shape.anyOf?.some(({ type }) => type === "null") ?? false;
  const inner = shape.anyOf?.find(({ type }) => type !== "null") ?? shape;
  const subject = subjectOf(path);
  const isUnion = (shape.anyOf?.length ?? 0) > (nullable ? 2 : 1);
  for (const [value, kind, keyword, says] of wrongValues(inner, isUnion ? "anyOf" : "pattern")) {
    yield {
      what: `${subject} = ${describeValue(value)}`,
      ...{ kind, location: locationOf(path, keyword), message: new RegExp(`^${escaped(subject)} ${says}$`) },
      value: place(value),
    };
  }
  if (!nullable && path.length > 0) {
    yield {
      what: `${subject} = null`,
      kind: "null",
      location: locationOf(path, inner.enum ? "enum" : "type"),
      message: new RegExp(`^${escaped(subject)} must be ${inner.enum ? "one of .*" : "an? .*, not null"}$`),
      value: place(null),
    };
  }

  if (inner.properties) {
    const base = (valid ?? sample(inner)) as Record<string, unknown>;
    for (const [name, child] of Object.entries(inner.properties)) {
      yield* mistakes(child, base[name], [...path, name], (value) => place({ ...base, [name]: value }));
    }
    for (const name of inner.required ?? []) {
      const { [name]: _, ...rest } = base;
      yield {
        what: `${subject} without ${name}`,
        ...{ kind: "missing", location: locationOf(path, "required"), message: exactly(`missing property '${name}'`) },
        value: place(rest),
      };
    }
    if (inner.additionalProperties === false) {
      yield {
        what: `${subject} with an unknown property`,
        kind: "unknown",
        location: locationOf(path, "additionalProperties"),
        message: exactly(`${subject} has a property 'unheardOf' that is not known here`),
        value: place({ ...base, unheardOf: 1 }),
      };
    }
  }
  if (inner.items) {
    yield* mistakes(inner.items, undefined, [...path, 0], (value) => place([value]));
    if (inner.maxItems !== undefined) {
      const items = Array.from({ length: inner.maxItems + 1 }, () => sample(inner.items!));
      yield {
        what: `${subject} with too many entries`,
        kind: "items",
        location: locationOf(path, "maxItems"),
        message: exactly(`${subject} must have at most ${counted(inner.maxItems, "entry", "entries")}`),
        value: place(items),
      };
    }
    if (inner.minItems) {
      yield {
        what: `${subject} with too few entries`,
        kind: "items",
        location: locationOf(path, "minItems"),
        message: exactly(`${subject} must have at least ${counted(inner.minItems, "entry", "entries")}`),
        value: place([]),
      };
    }
    if (path.at(-1) === "ratelimits") {
      const limit = sample(inner.items) as { name: string };
      yield {
        what: `${subject} with the same name twice`,
        kind: "duplicate",
        location: `${locationOf([...path, 1, "name"], "uniqueItems")}`,
        message: exactly(`${subject}[1].name names the limit '${limit.name}' a second time`),
        value: place([limit, limit]),
      };
    }
  }
}

const counted = (count: number, one: string, many: string) => `${count} ${count === 1 ? one : many}`;

function wrongValues(shape: Shape, pattern: "anyOf" | "pattern"): Wrong[] {
  const wrongType =
    (expected: string) =>
    (value: unknown): Wrong => {
      const type = Array.isArray(value) ? "an array" : typeof value === "object" ? "an object" : `a ${typeof value}`;
      return [value, "type", "type", `must be ${expected}, not ${type}`];
    };
  if (shape.enum) {
    return ["unheard-of", 1, true, [], {}].map((value) => [value, "enum", "enum", "must be one of .*"]);
  }
  switch (shape.type) {
    case "string": {
      const bounds = (side: "least" | "most", bound: number) =>
        `must be at ${side} ${counted(bound, "character", "characters")} long`;
      const { minLength, maxLength } = shape;
      const tooLong = (length: number): Wrong => [
        "a".repeat(length),
        "length",
        "maxLength",
        bounds("most", maxLength!),
      ];
      const tooShort = (length: number): Wrong => [
        "a".repeat(length),
        "length",
        "minLength",
        bounds("least", minLength!),
      ];
      const long = (text: string) => text.padEnd(Math.min(minLength ?? 0, 300), "a");
      return [
        ...[5, true, [], {}].map(wrongType("a string")),
        [long("a\0b"), "pattern", pattern, "(must|may) .*"],
        [long("\ud800"), "pattern", pattern, "(must|may) .*"],
        ...(minLength ? [tooShort(0), tooShort(minLength - 1)] : []),
        ...(maxLength !== undefined ? [tooLong(maxLength + 1)] : []),
      ];
    }
    case "integer": {
      const { minimum, maximum = Number.MAX_SAFE_INTEGER } = shape;
      const tooHigh = `must be at most ${maximum}`;
      return [
        ...["1", true, [], {}].map(wrongType("a number")),
        [written("1.5"), "fraction", "type", "must be an integer, not a fraction"],
        [written("9007199254740993"), "range", "maximum", tooHigh],
        [written("1.5e0"), "fraction", "type", "must be an integer, not a fraction"],
        ...(shape.not
          ? [
              [shape.not.maximum, "seconds", "not", "is a time in seconds, .*"] as const,
              [1, "seconds", "not", ".*"] as const,
            ]
          : []),
        [written("1e400"), "range", "type", "is too large for a number"],
        ...(minimum === undefined ? [] : [[minimum - 1, "range", "minimum", `must be at least ${minimum}`] as const]),
        [maximum + 1, "range", "maximum", tooHigh],
      ];
    }
    case "boolean":
      return ["true", 1, 0, [], {}].map(wrongType("a boolean"));
    case "array":
      return ["text", 1, true, { 0: "a" }].map(wrongType("an array"));
    case "object":
      return ["text", 1, true, []].map(wrongType("an object"));
    default:
      throw new Error(`Say what would be wrong for ${JSON.stringify(shape)}.`);
  }
}

/** Something that the shape allows. */
function sample(shape: Shape): unknown {
  if (shape.enum) return shape.enum[0];
  if (shape.anyOf) return sample(shape.anyOf[0]!);
  switch (shape.type) {
    case "string":
      return "a".repeat(Math.max(shape.minLength ?? 1, 1));
    case "integer":
      return Math.max(shape.minimum ?? 1, 1);
    case "boolean":
      return true;
    case "array":
      return [];
    default:
      return Object.fromEntries((shape.required ?? []).map((name) => [name, sample(shape.properties![name]!)]));
  }
}

function describeValue(value: unknown): string {
  return JSON.stringify(value).replace(WRITTEN, "$1").slice(0, 60);
}
