import type { IncomingMessage, ServerResponse } from "node:http";
import { Problem } from "../rpc/problems.ts";
import { type BodyBudget, noRoomForBody, UNKNOWN_BODY_BYTES_MAX } from "./body-budget.ts";
import { bodyTooLarge } from "./metered.ts";
import type { ReadPace } from "./read-pace.ts";

export interface LongBodyOptions {
  budget: BodyBudget;
  pace: ReadPace;
  /** Bytes that the body may have. */
  bytesMax: number;
  /** The workspace of the caller; null when the call will be refused because of who makes it. */
  recognize(): Promise<string | null>;
}

/** The caller is not known, so that the rest of the body is left unread. */
export const UNKNOWN_CALLER = Symbol("unknown caller");

/**
 * Reads a body. What is beyond 64 KiB is read only when it is known who sends it. Its bytes count until the response is
 * sent.
 *
 * @throws {Problem} when it is too large, breaks off, or there is no memory for it.
 */
export function readLongBody(
  request: IncomingMessage,
  response: ServerResponse,
  { budget, pace, bytesMax, recognize }: LongBodyOptions,
): Promise<Buffer | typeof UNKNOWN_CALLER> {
  const announced = Number(request.headers["content-length"]);
  if (announced > bytesMax) return Promise.reject(bodyTooLarge(bytesMax));
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    /** Undefined: not asked yet. */
    let workspaceId: string | undefined;
    const settle = (settled: () => void) => {
      request.off("data", read).off("end", end).off("error", fail);
      settled();
    };
    const refuse = (problem: Problem) =>
      settle(() => {
        chunks.length = 0;
        held.release();
        reject(problem);
      });
    const held = budget.hold(() => refuse(noRoomForBody()));
    response.once("finish", held.release).once("close", held.release);

    const count = (chunk: Buffer): boolean =>
      workspaceId === undefined ? held.takeShort(chunk.length) : held.takeLong(chunk.length, workspaceId);
    const keep = (chunk: Buffer) => {
      if (count(chunk)) chunks.push(chunk);
      else refuse(noRoomForBody());
    };
    const read = (data: Buffer | string) => {
      const chunk = typeof data === "string" ? Buffer.from(data) : data;
      bytes += chunk.length;
      if (bytes > bytesMax) refuse(bodyTooLarge(bytesMax));
      else if (bytes <= UNKNOWN_BODY_BYTES_MAX || workspaceId !== undefined) {
        keep(chunk);
        pace.record(request, chunk.length);
      } else {
        request.pause();
        void recognize().then((recognized) => {
          if (recognized === null) {
            settle(() => {
              held.release();
              resolve(UNKNOWN_CALLER);
            });
            return;
          }
          workspaceId = recognized;
          keep(chunk);
          request.resume();
        });
      }
    };
    const end = () =>
      settle(() => {
        held.complete();
        if (announced >= 0 && bytes !== announced) reject(new Problem("request_body_unreadable"));
        else resolve(Buffer.concat(chunks, bytes));
        chunks.length = 0;
      });
    const fail = () => refuse(new Problem("request_body_unreadable"));
    request.on("data", read).once("end", end).once("error", fail).resume();
  });
}
