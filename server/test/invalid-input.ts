import { z } from "zod";

/** The parts of JSON Schema that the schemas of inputs use. */
interface Shape {
  type?: string;
  anyOf?: Shape[];
  /** Variants, each with another `operation`; or only which members are required. */
  oneOf?: Shape[];
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

/** The kinds of violations of a schema. */
export type ViolationKind =
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

/** An invalid body and its expected error. */
export interface InvalidBody {
  what: string;
  kind: ViolationKind;
  /** The expected `location` in `error.errors`. */
  location: string;
  /** The expected `message` there. */
  message: RegExp;
  /** JSON text. */
  raw: string;
}

/** A number literal for the JSON text that differs from the output of JSON.stringify. */
const literal = (digits: string) => `\u{1F511}${digits}\u{1F511}`;
const LITERAL = /"\u{1F511}([^"]*)\u{1F511}"/gu;

/** Bodies that differ from `valid` in one violation: one body for each possible violation of each field of `input`. */
export function invalidBodies(input: z.ZodType, valid: Record<string, unknown>): InvalidBody[] {
  const shape = z.toJSONSchema(input, { io: "input", unrepresentable: "any" }) as Shape;
  return [...violations(shape, valid, [], (value) => value)].map(({ value, ...violation }) => ({
    ...violation,
    raw: JSON.stringify(value).replace(LITERAL, "$1"),
  }));
}

type Path = readonly (string | number)[];
type Embed = (value: unknown) => unknown;
type Violation = Omit<InvalidBody, "raw"> & { value: unknown };
/** An invalid value and its expected error. */
type InvalidValue = readonly [value: unknown, kind: ViolationKind, keyword: string, text: string];

/** The path in the form of the service's messages. */
function subjectOf(path: Path): string {
  if (path.length === 0) return "the body";
  return path.map((part, i) => (typeof part === "number" ? `[${part}]` : `${i ? "." : ""}${part}`)).join("");
}

function locationOf(path: Path, keyword: string): string {
  return `${path.map((part) => (typeof part === "number" ? "/items" : `/properties/${part}`)).join("")}/${keyword}`;
}

const escaped = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
const exactly = (text: string) => new RegExp(`^${escaped(text)}$`);

function* violations(shape: Shape, valid: unknown, path: Path, embed: Embed): Generator<Violation> {
  const [variant] = shape.oneOf ?? [];
  if (variant?.properties) {
    // The first variant. Its `operation` stays, because that says which one it is.
    const { operation, ...properties } = variant.properties;
    const required = variant.required?.filter((name) => name !== "operation") ?? [];
    yield* violations({ ...variant, properties, required }, validValue(variant), path, embed);
    return;
  }
  const nullable = shape.anyOf?.some(({ type }) => type === "null") ?? false;
  const inner = shape.anyOf?.find(({ type }) => type !== "null") ?? shape;
  const subject = subjectOf(path);
  const isUnion = (shape.anyOf?.length ?? 0) > (nullable ? 2 : 1);
  for (const [value, kind, keyword, text] of invalidValues(inner, isUnion ? "anyOf" : "pattern")) {
    yield {
      what: `${subject} = ${describeValue(value)}`,
      kind,
      location: locationOf(path, keyword),
      message: new RegExp(`^${escaped(subject)} ${text}$`),
      value: embed(value),
    };
  }
  if (!nullable && path.length > 0) {
    yield {
      what: `${subject} = null`,
      kind: "null",
      location: locationOf(path, inner.enum ? "enum" : "type"),
      message: new RegExp(`^${escaped(subject)} must be ${inner.enum ? "one of .*" : "an? .*, not null"}$`),
      value: embed(null),
    };
  }

  if (inner.properties) {
    const base = (valid ?? validValue(inner)) as Record<string, unknown>;
    for (const [name, child] of Object.entries(inner.properties)) {
      yield* violations(child, base[name], [...path, name], (value) => embed({ ...base, [name]: value }));
    }
    for (const name of inner.required ?? []) {
      const { [name]: _, ...rest } = base;
      yield {
        what: `${subject} without ${name}`,
        kind: "missing",
        location: locationOf(path, "required"),
        message: exactly(`missing property '${subjectOf([...path, name])}'`),
        value: embed(rest),
      };
    }
    if (inner.additionalProperties === false) {
      yield {
        what: `${subject} with an unknown property`,
        kind: "unknown",
        location: locationOf(path, "additionalProperties"),
        message: exactly(`${subject} has a property 'unknownField' that is not known here`),
        value: embed({ ...base, unknownField: 1 }),
      };
    }
  }
  if (inner.items) {
    yield* violations(inner.items, undefined, [...path, 0], (value) => embed([value]));
    if (inner.maxItems !== undefined) {
      const items = Array.from({ length: inner.maxItems + 1 }, () => validValue(inner.items!));
      yield {
        what: `${subject} with too many entries`,
        kind: "items",
        location: locationOf(path, "maxItems"),
        message: exactly(`${subject} must have at most ${counted(inner.maxItems, "entry", "entries")}`),
        value: embed(items),
      };
    }
    if (inner.minItems) {
      yield {
        what: `${subject} with too few entries`,
        kind: "items",
        location: locationOf(path, "minItems"),
        message: exactly(`${subject} must have at least ${counted(inner.minItems, "entry", "entries")}`),
        value: embed([]),
      };
    }
    if (path.at(-1) === "ratelimits") {
      const limit = validValue(inner.items) as { name: string };
      yield {
        what: `${subject} with the same name twice`,
        kind: "duplicate",
        location: `${locationOf([...path, 1, "name"], "uniqueItems")}`,
        message: exactly(`${subject}[1].name names the limit '${limit.name}' a second time`),
        value: embed([limit, limit]),
      };
    }
  }
}

const counted = (count: number, one: string, many: string) => `${count} ${count === 1 ? one : many}`;

function invalidValues(shape: Shape, pattern: "anyOf" | "pattern"): InvalidValue[] {
  const wrongType =
    (expected: string) =>
    (value: unknown): InvalidValue => {
      const unit = expected === "a number" ? "( of milliseconds)?" : "";
      const type = Array.isArray(value) ? "an array" : typeof value === "object" ? "an object" : `a ${typeof value}`;
      return [value, "type", "type", `must be ${expected}${unit}, not ${type}`];
    };
  if (shape.enum) {
    return ["unlisted", -1, true, [], {}].map((value) => [value, "enum", "enum", "must be one of .*"]);
  }
  switch (shape.type) {
    case "string": {
      const bounds = (side: "least" | "most", bound: number) =>
        `must be at ${side} ${counted(bound, "character", "characters")} long`;
      const { minLength, maxLength } = shape;
      const tooLong = (length: number): InvalidValue => [
        "a".repeat(length),
        "length",
        "maxLength",
        bounds("most", maxLength!),
      ];
      const tooShort = (length: number): InvalidValue => [
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
      const tooHigh = `must be at most ${maximum}( milliseconds)?`;
      return [
        ...["1", true, [], {}].map(wrongType("a number")),
        [literal("1.5"), "fraction", "type", "must be an integer, not a fraction"],
        [literal("9007199254740993"), "range", "maximum", tooHigh],
        [literal("1.5e0"), "fraction", "type", "must be an integer, not a fraction"],
        ...(shape.not
          ? [
              [shape.not.maximum, "seconds", "not", "is a time in seconds, .*"] as const,
              [1, "seconds", "not", ".*"] as const,
            ]
          : []),
        [literal("1e400"), "range", "type", "is too large for a number"],
        ...(minimum === undefined
          ? []
          : [[minimum - 1, "range", "minimum", `must be at least ${minimum}( milliseconds)?`] as const]),
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
      throw new Error(`Add invalid values for ${JSON.stringify(shape)}.`);
  }
}

/** A value that matches the shape. */
function validValue(shape: Shape): unknown {
  if (shape.enum) return shape.enum[0];
  if (shape.anyOf) return validValue(shape.anyOf[0]!);
  if (shape.oneOf) return validValue(shape.oneOf[0]!);
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
      return Object.fromEntries((shape.required ?? []).map((name) => [name, validValue(shape.properties![name]!)]));
  }
}

function describeValue(value: unknown): string {
  return JSON.stringify(value).replace(LITERAL, "$1").slice(0, 60);
}
