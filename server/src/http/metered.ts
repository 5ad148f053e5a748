import { isUtf8 } from "node:buffer";
import type { IncomingMessage } from "node:http";
import { Problem } from "../rpc/problems.ts";
import { type BodyBudget, COUNTED_BYTES_MIN, type HeldBody, noRoomForBody } from "./body-budget.ts";

/** Bodies of metered operations are at most this long, in bytes. */
export const METERED_BODY_BYTES_MAX = 64 * 1024;

/**
 * Reads a short body and hands it over: as text, null when it is not UTF-8, or as the problem that it is. Bodies nearly
 * always come in one piece, and then nothing is copied. Hands nothing over when the caller goes away in the middle:
 * there is nobody to answer.
 */
export function readShortBody(
  request: IncomingMessage,
  budget: BodyBudget,
  done: (body: string | null | Problem) => void,
): void {
  // Nobody listens for errors: a listener costs every request, and without one node:http tells of none.
  let first: Buffer | undefined;
  let more: Buffer[] | undefined;
  let bytes = 0;
  let held: HeldBody | undefined;
  const refuse = (problem: Problem) => {
    held?.release();
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
      refuse(bodyTooLarge(METERED_BODY_BYTES_MAX));
      return;
    }
    if (chunk.length >= COUNTED_BYTES_MIN || held !== undefined || more !== undefined) {
      if (held === undefined) {
        held = budget.hold(() => refuse(noRoomForBody()));
        request.once("close", held.release);
      }
      if (!held.takeShort(chunk.length)) {
        refuse(noRoomForBody());
        return;
      }
    }
    if (first === undefined) first = chunk;
    else if (more === undefined) more = [first, chunk];
    else more.push(chunk);
  });
  request.on("end", () => {
    held?.release();
    done(more ? decodeText(Buffer.concat(more)) : first === undefined ? "" : decodeText(first));
  });
}

/**
 * A body as text; null when its bytes are not UTF-8. Decoding puts U+FFFD in place of what it cannot read, so only a text
 * that holds this character is looked at a second time.
 */
export function decodeText(bytes: Buffer): string | null {
  const text = bytes.toString();
  return text.includes("\ufffd") && !isUtf8(bytes) ? null : text;
}

export function bodyTooLarge(bytesMax: number): Problem {
  return new Problem("request_body_too_large", `The request body is larger than the ${bytesMax} bytes allowed here.`);
}
