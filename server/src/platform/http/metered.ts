import { isUtf8 } from "node:buffer";
import type { IncomingMessage } from "node:http";
import { Problem } from "../rpc/problems.ts";
import { type BodyBudget, type BodyReservation, COUNTED_BYTES_MIN, noMemoryForBody } from "./body-budget.ts";
import { CollectedBytes } from "./collected-bytes.ts";

/** Bodies of metered operations are at most this long, in bytes. */
export const METERED_BODY_BYTES_MAX = 64 * 1024;

/**
 * Reads a short body and calls `done` with its text, with null if it is not UTF-8, or with a problem. Nearly every body
 * arrives in one short chunk, which is neither copied nor counted. `done` is not called if the connection closes before
 * the end of the body.
 */
export function readShortBody(
  request: IncomingMessage,
  budget: BodyBudget,
  done: (body: string | null | Problem) => void,
): void {
  // There is no error listener: it would cost every request, and node:http emits no error without one.
  let only: Buffer | undefined;
  let chunks: Chunks | undefined;
  request.on("data", (chunk: Buffer) => {
    if (chunks === undefined && only === undefined && chunk.length < COUNTED_BYTES_MIN) {
      only = chunk;
      return;
    }
    chunks ??= new Chunks(request, budget, only, done);
    chunks.add(chunk);
  });
  request.on("end", () => {
    if (chunks !== undefined) chunks.end();
    else done(only === undefined ? "" : decodeText(only));
  });
}

/** A body of several chunks, or of one that counts against the memory of bodies. */
class Chunks {
  readonly #request: IncomingMessage;
  readonly #reservation: BodyReservation;
  readonly #done: (body: string | null | Problem) => void;
  readonly #collected = new CollectedBytes();

  constructor(
    request: IncomingMessage,
    budget: BodyBudget,
    first: Buffer | undefined,
    done: (body: string | null | Problem) => void,
  ) {
    this.#request = request;
    this.#done = done;
    if (first !== undefined) this.#collected.append(first);
    this.#reservation = budget.reserve(() => this.#reject(noMemoryForBody()));
    request.once("close", this.#reservation.release);
  }

  add(chunk: Buffer): void {
    if (this.#collected.length + chunk.length > METERED_BODY_BYTES_MAX)
      this.#reject(bodyTooLarge(METERED_BODY_BYTES_MAX));
    else if (!this.#reservation.takeShort(chunk.length)) this.#reject(noMemoryForBody());
    else this.#collected.append(chunk);
  }

  end(): void {
    this.#reservation.release();
    this.#done(decodeText(this.#collected.all()));
  }

  #reject(problem: Problem): void {
    this.#reservation.release();
    this.#request.removeAllListeners("data");
    this.#request.removeAllListeners("end");
    this.#collected.clear();
    this.#request.resume();
    this.#done(problem);
  }
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
