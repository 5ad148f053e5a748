import type { IncomingMessage, ServerResponse } from "node:http";
import type { FastifyReply } from "fastify";
import { Problem } from "../rpc/problems.ts";
import { type BodyBudget, noMemoryForBody, UNAUTHENTICATED_BODY_BYTES_MAX } from "./body-budget.ts";
import { CollectedBytes } from "./collected-bytes.ts";
import { bodyTooLarge } from "./metered.ts";
import type { ReadPace } from "./read-pace.ts";

export interface LongBodyOptions {
  budget: BodyBudget;
  pace: ReadPace;
  /** The largest size of the body, in bytes. */
  bytesMax: number;
  /** The workspace of the caller; null if authentication or authorization rejects the call. */
  recognize(): Promise<string | null>;
}

/** Authentication or authorization rejects the caller, so the rest of the body is not read. */
export const REJECTED_CALLER = Symbol("rejected caller");

/** Reads the body of a request as `readLongBody` does. */
export type ReadBody = (
  request: IncomingMessage,
  reply: FastifyReply,
  bytesMax: LongBodyOptions["bytesMax"],
  recognize: LongBodyOptions["recognize"],
) => Promise<Buffer | typeof REJECTED_CALLER>;

/**
 * Reads a body. The bytes beyond 64 KiB are read only for an authenticated caller. All bytes count in the budget until the
 * response is sent.
 *
 * @throws {Problem} when the body is too large or incomplete, or there is no memory for it.
 */
export function readLongBody(
  request: IncomingMessage,
  response: ServerResponse,
  { budget, pace, bytesMax, recognize }: LongBodyOptions,
): Promise<Buffer | typeof REJECTED_CALLER> {
  const announced = Number(request.headers["content-length"]);
  if (announced > bytesMax) return Promise.reject(bodyTooLarge(bytesMax));
  return new Promise((resolve, reject) => {
    const collected = new CollectedBytes();
    let bytes = 0;
    /** Undefined until the caller is authenticated. */
    let workspaceId: string | undefined;
    const settle = (settled: () => void) => {
      request.off("data", read).off("end", end).off("error", abort);
      settled();
    };
    const fail = (problem: Problem) =>
      settle(() => {
        collected.clear();
        reservation.release();
        reject(problem);
      });
    const reservation = budget.reserve(() => fail(noMemoryForBody()));
    response.once("finish", reservation.release).once("close", reservation.release);

    const count = (chunk: Buffer): boolean =>
      workspaceId === undefined ? reservation.takeShort(chunk.length) : reservation.takeLong(chunk.length, workspaceId);
    const append = (chunk: Buffer) => {
      if (count(chunk)) collected.append(chunk);
      else fail(noMemoryForBody());
    };
    const read = (data: Buffer | string) => {
      const chunk = typeof data === "string" ? Buffer.from(data) : data;
      bytes += chunk.length;
      if (bytes > bytesMax) fail(bodyTooLarge(bytesMax));
      else if (bytes <= UNAUTHENTICATED_BODY_BYTES_MAX || workspaceId !== undefined) {
        append(chunk);
        pace.record(request, chunk.length);
      } else {
        request.pause();
        void recognize().then((recognized) => {
          if (recognized === null) {
            settle(() => {
              reservation.release();
              resolve(REJECTED_CALLER);
            });
            return;
          }
          workspaceId = recognized;
          append(chunk);
          request.resume();
        });
      }
    };
    const end = () =>
      settle(() => {
        reservation.complete();
        if (announced >= 0 && bytes !== announced) reject(new Problem("request_body_unreadable"));
        else resolve(collected.all());
        collected.clear();
      });
    const abort = () => fail(new Problem("request_body_unreadable"));
    request.on("data", read).once("end", end).once("error", abort).resume();
  });
}
