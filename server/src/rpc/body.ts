import type { z } from "zod";
import { Problem } from "./problems.ts";
import { validate } from "./validate.ts";

const JSON_TYPE = /^application\/json\s*(;|$)/i;

/** @throws {Problem} when the body is not declared to be JSON. */
export function requireJson(contentType: string | undefined): void {
  // The common spelling needs no pattern.
  if (contentType === "application/json") return;
  if (contentType !== undefined && JSON_TYPE.test(contentType)) return;
  throw new Problem("invalid_input", "The request body must be JSON.", {
    errors: [
      {
        location: "header",
        message:
          contentType === undefined ? "the Content-Type header is missing" : "this Content-Type is not supported",
        fix: "Send the header `Content-Type: application/json`.",
      },
    ],
  });
}

/**
 * Reads and validates a body.
 *
 * @throws {Problem} `invalid_input`.
 */
export function readBody<I extends z.ZodType>(schema: I, text: string, path: string): z.output<I> {
  const body = parse(text);
  const input = validate(schema, body, path);
  if (mayHoldFraction(text)) refuseFractions(schema, text, path);
  return input;
}

/** @throws {Problem} `invalid_input`. */
export function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw notJson(text.trim() === "" ? "the body is empty" : `the text is not JSON${place(error as Error)}`);
  }
}

export function notJson(message: string): Problem {
  return new Problem("invalid_input", "The request body is not valid JSON.", {
    errors: [{ location: "requestBody", message, fix: "Send a JSON object." }],
  });
}

/** Where the engine gave up, if it says so. Its message as a whole quotes the text, and secrets may stand in that. */
function place({ message }: Error): string {
  return / at position \d+( \(line \d+ column \d+\))?/.exec(message)?.[0] ?? "";
}

const FRACTION_SOMEWHERE = /[0-9][.eE]/;
const STRINGS = /"(?:[^"\\]|\\.)*"/g;

export function mayHoldFraction(text: string): boolean {
  return FRACTION_SOMEWHERE.test(text) && FRACTION_SOMEWHERE.test(text.replace(STRINGS, '""'));
}

/** A number whose value is whole and whose writing is not, such as `1.0` or `1e3`. */
class WrittenAsFraction {}

/**
 * Integers are to be written as such (contract B2.5): the published clients of other languages refuse `1.0`, and a
 * service that takes it from one client and not from another is hard to debug. Free JSON such as `meta` may hold it.
 */
function refuseFractions(schema: z.ZodType, text: string, path: string): void {
  validate(schema, parseMarkingFractions(text), path);
}

/** As `JSON.parse`, with an object that no schema takes in place of each whole number that is written as a fraction. */
export function parseMarkingFractions(text: string): unknown {
  return JSON.parse(text, (_key, value, context?: { source?: string }) =>
    typeof value === "number" && Number.isInteger(value) && /[.eE]/.test(context?.source ?? "")
      ? new WrittenAsFraction()
      : value,
  );
}
