import type { z } from "zod";
import { type InputError, Problem } from "./problems.ts";

const ERRORS_MAX = 20;

/**
 * The body as the operation's schema has it.
 *
 * @throws {Problem} `invalid_input` with every mistake (at most 20), contract B2.5.
 */
export function validate<I extends z.ZodType>(schema: I, body: unknown, path: string): z.output<I> {
  const result = schema.safeParse(body);
  if (result.success) return result.data;
  throw new Problem("invalid_input", `POST request body for '${path}' failed to validate schema`, {
    errors: result.error.issues.flatMap(inputErrors).slice(0, ERRORS_MAX),
  });
}

type Issue = z.core.$ZodIssue;

/** One issue in the words of JSON Schema, which the published document speaks too. */
function inputErrors(issue: Issue): InputError[] {
  const at = (keyword: string, path: readonly PropertyKey[] = issue.path) => `${schemaPath(path)}/${keyword}`;
  const subject = describePath(issue.path);
  switch (issue.code) {
    case "invalid_type": {
      if (issue.input === undefined && issue.path.length > 0) {
        const name = String(issue.path.at(-1));
        return [
          {
            location: at("required", issue.path.slice(0, -1)),
            message: `missing property '${name}'`,
            fix: `Add '${name}' to the request body.`,
          },
        ];
      }
      const expected = jsonType(issue.expected);
      return [{ location: at("type"), message: `${subject} must be ${expected}, not ${jsonTypeOf(issue.input)}` }];
    }
    case "unrecognized_keys":
      return issue.keys.map((key) => ({
        location: at("additionalProperties"),
        message: `${subject} has a property '${key}' that is not known here`,
        fix: `Remove '${key}' or correct its spelling.`,
      }));
    case "too_small":
      return [tooFar(subject, at, "least", Number(issue.minimum), issue.origin)];
    case "too_big":
      return [tooFar(subject, at, "most", Number(issue.maximum), issue.origin)];
    case "invalid_format":
      return [
        {
          location: at("pattern"),
          message: `${subject} ${issue.message}`,
        },
      ];
    case "invalid_value":
      return [
        {
          location: at("enum"),
          message: `${subject} must be one of ${issue.values.map((value) => JSON.stringify(value)).join(", ")}`,
        },
      ];
    case "invalid_union":
      return [{ location: at("anyOf"), message: `${subject} has none of the forms that are allowed here` }];
    default:
      return [{ location: at("format"), message: `${subject} ${issue.message}` }];
  }
}

function tooFar(
  subject: string,
  at: (keyword: string) => string,
  side: "least" | "most",
  bound: number,
  origin: string,
): InputError {
  const low = side === "least";
  switch (origin) {
    case "string":
      return {
        location: at(low ? "minLength" : "maxLength"),
        message: `${subject} must be at ${side} ${bound} characters long`,
      };
    case "array":
    case "set":
      return {
        location: at(low ? "minItems" : "maxItems"),
        message: `${subject} must have at ${side} ${bound} entries`,
      };
    case "object":
    case "record":
      return {
        location: at(low ? "minProperties" : "maxProperties"),
        message: `${subject} must have at ${side} ${bound} properties`,
      };
    default:
      return { location: at(low ? "minimum" : "maximum"), message: `${subject} must be at ${side} ${bound}` };
  }
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
    default:
      return `a ${expected}`;
  }
}

function jsonTypeOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "an array" : typeof value === "object" ? "an object" : `a ${typeof value}`;
}
