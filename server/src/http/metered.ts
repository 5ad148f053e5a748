import { isUtf8 } from "node:buffer";
import type { IncomingMessage } from "node:http";
import { Problem } from "../rpc/problems.ts";
import { type BodyBudget, type BodyReservation, COUNTED_BYTES_MIN, noMemoryForBody } from "./body-budget.ts";

/** Bodies of metered operations are at most this long, in bytes. */
export const METERED_BODY_BYTES_MAX = 64 * 1024;

/**
 * Reads a short body and calls `done` with its text, with null if it is not UTF-8, or with a problem. Nearly every body
 * arrives in one chunk, which is not copied. `done` is not called if the connection closes before the end of the body.
 */
export function readShortBody(
  request: IncomingMessage,
  budget: BodyBudget,
  done: (body: string | null | Problem) => void,
): void {
  // There is no error listener: it would cost every request, and node:http emits no error without one.
  let first: Buffer | undefined;
  let more: Buffer[] | undefined;
  let bytes = 0;
  let reservation: BodyReservation | undefined;
  const reject = (problem: Problem) => {
    reservation?.release();
    request.removeAllListeners("data");
    request.removeAllListeners("end");
    first = undefined;
    more = undefined;
    request.resume();
    done(problem);
  };
  request.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > METERED_BODY_BYTES_MAX) {
      reject(bodyTooLarge(METERED_BODY_BYTES_MAX));
      return;
    }
    if (chunk.length >= COUNTED_BYTES_MIN || reservation !== undefined || more !== undefined) {
      if (reservation === undefined) {
        reservation = budget.reserve(() => reject(noMemoryForBody()));
        request.once("close", reservation.release);
      }
      if (!reservation.takeShort(chunk.length)) {
        reject(noMemoryForBody());
        return;
      }
    }
    if (first === undefined) first = chunk;
    else if (more === undefined) more = [first, chunk];
    else more.push(chunk);
  });
  request.on("end", () => {
    reservation?.release();
    done(more ? decodeText(Buffer.concat(more)) : first === undefined ? "" : decodeText(first));
  });
}

/**
 * Decodes a body; null if its bytes are not UTF-8. The decoder replaces invalid bytes by U+FFFD, so only a text with this
 * character needs a check of its bytes.
 */
export function decodeText(bytes: Buffer): string | null {
  const text = bytes.toString();
  return text.includes("\ufffd") && !isUtf8(bytes) ? null : text;
}

export function bodyTooLarge(bytesMax: number): Problem {
  return new Problem("request_body_too_large", `The request body is larger than the ${bytesMax} bytes allowed here.`);
}
