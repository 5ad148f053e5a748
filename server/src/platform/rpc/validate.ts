import { z } from "zod";
import { didYouMean } from "../../../../engine/src/rules/spelling.ts";
import { type InputError, Problem } from "./problems.ts";
import { numberFix, secondsFix, type Unit, units } from "./units.ts";

/** Errors per answer. */
export const ERRORS_MAX = 20;
/** Unknown properties of one object that are compared with the known ones. */
const SUGGESTIONS_MAX = 5;
/** Messages quote property names up to this length. */
const QUOTED_NAME_MAX = 100;
/** Includes the input in issues. A message has its type; a fix can have the number that a text stands for. */
export const PARSE_OPTIONS = { reportInput: true };

/** Schemas as code of their own. */
const compiled = new WeakMap<z.ZodType, z.ZodType>();

/** The schema as code, made at the first use. It takes half the time for valid bodies, and a millisecond to make. */
export function compiledSchema<S extends z.ZodType>(schema: S): S {
  let made = compiled.get(schema);
  if (made === undefined) {
    made = z.compile(schema);
    compiled.set(schema, made);
  }
  return made as S;
}

/**
 * Validates a body against the schema of the operation.
 *
 * @throws {Problem} `invalid_input` with the first 20 errors.
 */
export function validate<I extends z.ZodType>(schema: I, body: unknown, path: string): z.output<I> {
  const result = schema.safeParse(body, PARSE_OPTIONS);
  if (result.success) return result.data;
  throw invalidBody(inputErrorsOf(result.error.issues, schema), path);
}

/** The first issues of a value inside of a body, for a schema that the document does not describe; empty: it is valid. */
export function issuesOf(schema: z.ZodType, value: unknown): Issue[] {
  const { error } = schema.safeParse(value, PARSE_OPTIONS);
  return error === undefined ? [] : error.issues.slice(0, 2 * ERRORS_MAX);
}

export function invalidBody(errors: readonly InputError[], path: string): Problem {
  return new Problem("invalid_input", `POST request body for '${path}' failed to validate schema`, { errors });
}

/** The first errors in an input of the schema. A body may have a hundred thousand of them. */
export function inputErrorsOf(issues: readonly Issue[], schema: z.ZodType): InputError[] {
  const errors: InputError[] = [];
  for (const [i, issue] of issues.entries()) {
    if (isTightest(issue, i, issues)) errors.push(...inputErrors(issue, schema));
    if (errors.length >= ERRORS_MAX) break;
  }
  return errors.slice(0, ERRORS_MAX);
}

export type Issue = z.core.$ZodIssue;

/** An integer beyond 2^53 exceeds two limits, that of integers and its own. Only the tighter one is reported. */
function isTightest({ code, path }: Issue, i: number, issues: readonly Issue[]): boolean {
  const next = issues[i + 1];
  return (
    next === undefined ||
    next.code !== code ||
    next.path.length !== path.length ||
    next.path.some((segment, depth) => segment !== path[depth])
  );
}

/** The `params` of a custom check: the JSON Schema keyword and the remedy. */
interface CustomParams {
  keyword?: string;
  fix?: string;
}

/** An issue in terms of JSON Schema, like the published document. */
function inputErrors(issue: Issue, schema: z.ZodType): InputError[] {
  const at = (keyword: string, path: readonly PropertyKey[] = issue.path) => `${schemaPath(path)}/${keyword}`;
  const subject = describePath(issue.path);
  // Parsed JSON holds no undefined: the property is absent.
  if (issue.input === undefined && issue.path.length > 0 && MISSING_CODES.has(issue.code)) {
    return [
      {
        location: at("required", issue.path.slice(0, -1)),
        message: `missing property '${subject}'`,
        fix: `Add '${subject}' to the request body.`,
      },
    ];
  }
  switch (issue.code) {
    case "invalid_type":
      return [invalidType(subject, at("type"), issue.expected, issue.input, unitAt(schema, issue.path))];
    case "unrecognized_keys": {
      const known = namesAt(schema, issue.path);
      return issue.keys.slice(0, ERRORS_MAX).map((key, i) => {
        const name = key.length > QUOTED_NAME_MAX ? `${key.slice(0, QUOTED_NAME_MAX)}…` : key;
        const question = i < SUGGESTIONS_MAX ? didYouMean(key, known, (near) => `'${near}'`) : "";
        return {
          location: at("additionalProperties"),
          message: `${subject} has a property '${name}' that is not known here`,
          fix: question ? `${question} Otherwise remove '${name}'.` : `Remove '${name}' or correct its spelling.`,
        };
      });
    }
    case "too_small":
      return [outOfRange(subject, at, "least", Number(issue.minimum), issue, unitAt(schema, issue.path))];
    case "too_big":
      return [outOfRange(subject, at, "most", Number(issue.maximum), issue, unitAt(schema, issue.path))];
    case "invalid_format":
      return [
        {
          location: at("pattern"),
          message: `${subject} ${issue.message}`,
          fix: "Remove or replace the characters that are not allowed here.",
        },
      ];
    case "invalid_value": {
      const values = issue.values.map((value) => JSON.stringify(value)).join(", ");
      return [{ location: at("enum"), message: `${subject} must be one of ${values}`, fix: `Send one of ${values}.` }];
    }
    case "invalid_union": {
      const first = issue.errors.map(([inner]) => inner);
      const [one] = first;
      if (one?.code === "invalid_type" && first.every((inner) => inner?.code === "invalid_type")) {
        return [invalidType(subject, at("type"), one.expected, issue.input)];
      }
      return [
        {
          location: at("anyOf"),
          message: `${subject} ${issue.message === "Invalid input" ? "has none of the forms allowed here" : issue.message}`,
          fix: "Compare it with the operation's examples in the reference.",
        },
      ];
    }
    default: {
      const { keyword = "format", fix } = ("params" in issue ? (issue.params ?? {}) : {}) as CustomParams;
      return [{ location: at(keyword), message: `${subject} ${issue.message}`, ...(fix !== undefined && { fix }) }];
    }
  }
}

/** Issues that a schema raises for an absent property. */
const MISSING_CODES: ReadonlySet<string> = new Set(["invalid_type", "invalid_value", "invalid_union"]);

function invalidType(subject: string, location: string, expected: string, input: unknown, unit?: Unit): InputError {
  if (expected === "int" && typeof input === "number") {
    return {
      location,
      message: `${subject} must be an integer, not a fraction`,
      fix: "Send a whole number. Amounts are whole, and times and durations are whole milliseconds.",
    };
  }
  if (typeof input === "number" && expected === "number") {
    return { location, message: `${subject} is too large for a number`, fix: "Send a smaller number." };
  }
  const type = `${jsonType(expected)}${unit === undefined ? "" : " of milliseconds"}`;
  const fix = (typeof input === "string" && expected === "number" && numberFix(input, unit)) || `Send ${type}.`;
  return { location, message: `${subject} must be ${type}, not ${jsonTypeOf(input)}`, fix };
}

function outOfRange(
  subject: string,
  at: (keyword: string) => string,
  side: "least" | "most",
  bound: number,
  { origin, input }: { origin: string; input?: unknown },
  unit: Unit | undefined,
): InputError {
  const [minimum, maximum, verb, quantity] = rangeWords(origin, bound, unit);
  return {
    location: at(side === "least" ? minimum : maximum),
    message: `${subject} must ${verb} at ${side} ${quantity}${origin === "string" ? " long" : ""}`,
    fix: `Send at ${side} ${quantity}.${unit === "duration" && side === "least" ? secondsFix(input, bound) : ""}`,
  };
}

function rangeWords(
  origin: string,
  bound: number,
  unit: Unit | undefined,
): [minimum: string, maximum: string, verb: string, quantity: string] {
  const count = (one: string, many: string) => `${bound} ${bound === 1 ? one : many}`;
  switch (origin) {
    case "string":
      return ["minLength", "maxLength", "be", count("character", "characters")];
    case "array":
    case "set":
      return ["minItems", "maxItems", "have", count("entry", "entries")];
    case "object":
    case "record":
      return ["minProperties", "maxProperties", "have", count("property", "properties")];
    default:
      return ["minimum", "maximum", "be", unit === undefined ? String(bound) : `${bound} milliseconds`];
  }
}

/** The unit of the value at a path. */
function unitAt(schema: z.ZodType, path: readonly PropertyKey[]): Unit | undefined {
  const found = schemaAt(schema, path);
  return found && units.get(found)?.unit;
}

/** The properties that the object at a path may have. */
function namesAt(schema: z.ZodType, path: readonly PropertyKey[]): string[] {
  const found = schemaAt(schema, path);
  return found instanceof z.ZodObject ? Object.keys(found.shape) : [];
}

/** The schema of the value at a path; undefined where several forms are allowed. */
function schemaAt(schema: z.ZodType, path: readonly PropertyKey[]): z.ZodType | undefined {
  let found = required(schema);
  for (const segment of path) {
    const child = childOf(found, segment);
    if (!(child instanceof z.ZodType)) return undefined;
    found = required(child);
  }
  return found;
}

function childOf(parent: z.ZodType, segment: PropertyKey): unknown {
  if (parent instanceof z.ZodArray) return parent.element;
  return parent instanceof z.ZodObject && Object.hasOwn(parent.shape, segment)
    ? parent.shape[segment as string]
    : undefined;
}

/** A schema without the forms that allow a value to be absent or null. */
function required(schema: z.ZodType): z.ZodType {
  let inner = schema;
  while (inner instanceof z.ZodOptional || inner instanceof z.ZodNullable || inner instanceof z.ZodDefault) {
    inner = inner.unwrap() as z.ZodType;
  }
  return inner;
}

function schemaPath(path: readonly PropertyKey[]): string {
  return path.map((segment) => (typeof segment === "number" ? "/items" : `/properties/${String(segment)}`)).join("");
}

function describePath(path: readonly PropertyKey[]): string {
  if (path.length === 0) return "the body";
  return path
    .map((segment, i) => (typeof segment === "number" ? `[${segment}]` : `${i ? "." : ""}${String(segment)}`))
    .join("");
}

function jsonType(expected: string): string {
  switch (expected) {
    case "int":
      return "an integer";
    case "array":
    case "object":
      return `an ${expected}`;
    case "record":
      return "an object";
    case "tuple":
      return "an array";
    default:
      return `a ${expected}`;
  }
}

function jsonTypeOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "an array" : typeof value === "object" ? "an object" : `a ${typeof value}`;
}
