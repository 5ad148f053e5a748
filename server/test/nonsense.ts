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
  maxItems?: number;
}

/** A body that has to be refused, and what is wrong with it. */
export interface Nonsense {
  what: string;
  /** JSON text. */
  raw: string;
}

/** A number as it is to be written in the text, which JSON.stringify would write otherwise. */
const written = (literal: string) => `\u{1F511}${literal}\u{1F511}`;
const WRITTEN = /"\u{1F511}([^"]*)\u{1F511}"/gu;

/** Bodies that are `valid` but for one mistake, one for each mistake that can be made in each field of `input`. */
export function nonsense(input: z.ZodType, valid: Record<string, unknown>): Nonsense[] {
  const shape = z.toJSONSchema(input, { io: "input", unrepresentable: "any" }) as Shape;
  return [...mistakes(shape, valid, "body", (value) => value)].map(([what, value]) => ({
    what,
    raw: JSON.stringify(value).replace(WRITTEN, "$1"),
  }));
}

type Place = (value: unknown) => unknown;

function* mistakes(shape: Shape, valid: unknown, at: string, place: Place): Generator<[string, unknown]> {
  const nullable = shape.anyOf?.some(({ type }) => type === "null") ?? false;
  const inner = shape.anyOf?.find(({ type }) => type !== "null") ?? shape;
  for (const value of wrongValues(inner)) yield [`${at} = ${describeValue(value)}`, place(value)];
  if (!nullable && at !== "body") yield [`${at} = null`, place(null)];

  if (inner.properties) {
    const base = (valid ?? sample(inner)) as Record<string, unknown>;
    for (const [name, child] of Object.entries(inner.properties)) {
      yield* mistakes(child, base[name], `${at}.${name}`, (value) => place({ ...base, [name]: value }));
    }
    for (const name of inner.required ?? []) {
      const { [name]: _, ...rest } = base;
      yield [`${at} without ${name}`, place(rest)];
    }
    if (inner.additionalProperties === false) {
      yield [`${at} with an unknown property`, place({ ...base, unheardOf: 1 })];
    }
  }
  if (inner.items) {
    yield* mistakes(inner.items, undefined, `${at}[]`, (value) => place([value]));
    if (inner.maxItems !== undefined) {
      const items = Array.from({ length: inner.maxItems + 1 }, () => sample(inner.items!));
      yield [`${at} with too many entries`, place(items)];
    }
  }
}

function wrongValues(shape: Shape): unknown[] {
  if (shape.enum) return ["unheard-of", 1, true, [], {}];
  switch (shape.type) {
    case "string":
      return [
        5,
        true,
        [],
        {},
        "a\0b",
        "\ud800",
        ...(shape.minLength ? ["", "a".repeat(shape.minLength - 1)] : []),
        ...(shape.maxLength !== undefined ? ["a".repeat(shape.maxLength + 1)] : []),
        ...(shape.format ? ["not of this format"] : []),
      ];
    case "integer":
      return [
        "1",
        true,
        [],
        {},
        written("1.5"),
        written(`${Math.max(shape.minimum ?? 1, 1)}.0`),
        written("1e3"),
        written("9007199254740993"),
        written("1e400"),
        ...(shape.minimum !== undefined ? [shape.minimum - 1] : []),
        ...(shape.maximum !== undefined ? [shape.maximum + 1] : []),
      ];
    case "boolean":
      return ["true", 1, 0, [], {}];
    case "array":
      return ["text", 1, true, { 0: "a" }];
    case "object":
      return ["text", 1, true, []];
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
