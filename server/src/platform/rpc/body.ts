import type { z } from "zod";
import { findLoss } from "../../../../engine/src/rules/json-text.ts";
import { type InputError, Problem } from "./problems.ts";
import { validate } from "./validate.ts";

const JSON_TYPE = /^application\/json\s*(;|$)/i;
const CHARSET = /;\s*charset\s*=\s*"?([^\s;"]*)/i;
const UTF8 = /^utf-?8$/i;
const BYTE_ORDER_MARK = "\ufeff";

/** @throws {Problem} unless the headers declare uncompressed JSON in UTF-8. */
export function requireJson(contentType: string | undefined, contentEncoding: string | undefined): void {
  if (contentEncoding !== undefined && !/^(identity)?$/i.test(contentEncoding)) {
    throw new Problem("unsupported_content_encoding", undefined, { headers: { "accept-encoding": "identity" } });
  }
  // Fast path for the usual spelling.
  if (contentType === "application/json") return;
  const fix = "Send the header `Content-Type: application/json`.";
  if (contentType === undefined || !JSON_TYPE.test(contentType)) {
    const missing = "the Content-Type header is missing";
    throw invalid("The request body must be JSON.", {
      location: "header",
      message: contentType === undefined ? missing : "this Content-Type is not supported",
      fix,
    });
  }
  const charset = CHARSET.exec(contentType)?.[1];
  if (charset !== undefined && !UTF8.test(charset)) {
    throw invalid("The request body must be JSON in UTF-8.", {
      location: "header",
      message: "this charset is not supported",
      fix: `Encode the body as UTF-8. ${fix}`,
    });
  }
}

/**
 * Parses and validates a body. `hasFreeNumbers`: the schema allows numbers other than bounded integers.
 *
 * @throws {Problem} `invalid_input`.
 */
export function readBody<I extends z.ZodType>(
  schema: I,
  text: string,
  path: string,
  hasFreeNumbers: boolean,
): z.output<I> {
  const body = parse(text);
  const input = validate(schema, body, path);
  rejectLoss(text, body, hasFreeNumbers);
  return input;
}

/** @throws {Problem} `invalid_input`. */
export function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (text.startsWith(BYTE_ORDER_MARK)) {
      throw notJson(
        "the body begins with a byte order mark (BOM)",
        "Send the JSON as UTF-8 without a byte order mark.",
      );
    }
    throw notJson(text.trim() === "" ? "the body is empty" : `the text is not JSON${positionOf(error as Error)}`);
  }
}

/**
 * Rejects JSON that parsing would change. `value` is the parsed text, and `offset` its position in the body.
 *
 * @throws {Problem} `invalid_input`.
 */
export function rejectLoss(text: string, value: unknown, hasFreeNumbers: boolean, offset = 0): void {
  const loss = findLoss(text, value, hasFreeNumbers);
  if (loss === undefined) return;
  const { position, message, fix } = loss;
  throw invalid("The request body holds something that cannot be kept as it was sent.", {
    location: "requestBody",
    message: `${message}, at position ${offset + position}`,
    fix,
  });
}

export function notJson(message: string, fix = "Send a JSON object."): Problem {
  return invalid("The request body is not valid JSON.", {
    location: "requestBody",
    message,
    fix,
  });
}

/** The problem of a body that is not UTF-8. */
export function notUtf8(): Problem {
  return invalid("The request body is not valid UTF-8.", {
    location: "requestBody",
    message: "the bytes are not UTF-8",
    fix: "Encode the body as UTF-8.",
  });
}

function invalid(detail: string, error: InputError): Problem {
  return new Problem("invalid_input", detail, { errors: [error] });
}

/** The position in the parser's message. The rest of the message quotes the body, which may contain secrets. */
function positionOf({ message }: Error): string {
  return / at position \d+( \(line \d+ column \d+\))?/.exec(message)?.[0] ?? "";
}
