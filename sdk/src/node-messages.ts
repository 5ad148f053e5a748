import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2Stream } from "node:http2";
import type { HeldAnswer } from "./held-answer.ts";
import type { RequestReader } from "./middleware.ts";
import { type RejectionAnswer, textOf } from "./rejection.ts";

/** Reads requests of node:http. */
export const messageReader: RequestReader<IncomingMessage> = {
  method: ({ method = "" }) => method,
  // `headers` would have only the first of several.
  values: ({ rawHeaders, headers }, header) => {
    const name = header.toLowerCase();
    // Messages that were not read from a connection, as on AWS Lambda, have only those.
    if (rawHeaders.length === 0) return [headers[name] ?? []].flat();
    const values: string[] = [];
    for (let i = 0; i < rawHeaders.length; i += 2) {
      const [at = "", value = ""] = [rawHeaders[i], rawHeaders[i + 1]];
      if (at.length === name.length && at.toLowerCase() === name) values.push(value);
    }
    return values;
  },
  address: ({ socket }) => socket.remoteAddress,
};

/** Answers a request that is rejected. */
export function reject(response: ServerResponse, rejection: RejectionAnswer): void {
  if (response.headersSent) return;
  response.statusCode = rejection.status;
  for (const [name, value] of Object.entries(rejection.headers)) response.setHeader(name, value);
  response.end(textOf(rejection));
}

/** Adds headers to the answer of the handler, after those that are there. */
export function addHeaders(response: ServerResponse, headers: Readonly<Record<string, string>>): void {
  if (response.headersSent) return;
  for (const [name, value] of Object.entries(headers)) {
    const earlier = response.getHeader(name);
    response.setHeader(name, earlier === undefined ? value : `${earlier}, ${value}`);
  }
}

/**
 * Counts what is sent, and ends the hold of the answer with it. Returns false if the end user has hung up: the handler must
 * not begin.
 */
export function watch(
  response: ServerResponse & { readonly stream?: Http2Stream },
  held: HeldAnswer | undefined,
): boolean {
  if (!held) return true;
  // HTTP/2 has one. Its responses do not say that they are destroyed, and also those that broke off emit "finish".
  const { stream } = response;
  if (response.destroyed || stream?.destroyed) {
    held.end(false, 0);
    return false;
  }
  const { write, end } = response;
  // In HTTP/2, `end` calls `write`.
  let isEnding = false;
  const count = ([chunk, encoding]: readonly unknown[]) => {
    if (isEnding) return;
    if (typeof chunk === "string") held.sent(Buffer.byteLength(chunk, encoding as BufferEncoding));
    else if (ArrayBuffer.isView(chunk)) held.sent(chunk.byteLength);
  };
  response.write = (...args: unknown[]) => {
    count(args);
    return Reflect.apply(write, response, args);
  };
  response.end = (...args: unknown[]) => {
    count(args);
    isEnding = true;
    return Reflect.apply(end, response, args);
  };
  const ended = (complete: boolean) => held.end(complete, response.headersSent ? response.statusCode : 0);
  response.once("finish", () => ended(response.writableEnded && !stream?.rstCode)).once("close", () => ended(false));
  return true;
}
