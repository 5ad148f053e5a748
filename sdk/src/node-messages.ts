import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2Stream } from "node:http2";
import type { HeldAnswer } from "./held-answer.ts";
import { has, NO_HEADERS } from "./limit-headers.ts";
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
      const at = rawHeaders[i] ?? "";
      if (at.length === name.length && at.toLowerCase() === name) values.push(rawHeaders[i + 1] ?? "");
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
  if (headers === NO_HEADERS || response.headersSent) return;
  for (const name in headers) {
    const value = headers[name] ?? "";
    const earlier = response.getHeader(name);
    response.setHeader(name, earlier === undefined ? value : `${earlier}, ${value}`);
  }
  joinHeaders(response, headers);
}

/** Joins headers that were added with those of a handler that sets them too, when they are sent. */
export function joinHeaders(response: ServerResponse, headers: Readonly<Record<string, string>>): void {
  if (headers === NO_HEADERS) return;
  const { writeHead } = response;
  // Each request passes here: an array of the headers, or of all arguments, would cost more than the rest.
  response.writeHead = (status: number, ...further: unknown[]) => {
    if (!response.headersSent) {
      for (const name in headers) {
        const value = headers[name] ?? "";
        if (further.length > 0 && joinGiven(further, name, value)) continue;
        const set = response.getHeader(name);
        if (set !== undefined && set !== value) response.setHeader(name, join(value, set));
      }
    }
    return further.length === 0
      ? writeHead.call(response, status)
      : Reflect.apply(writeHead, response, [status, ...further]);
  };
}

/** Joins a header with one that `writeHead` got, after the status. Returns whether it is among them. */
function joinGiven(further: unknown[], name: string, value: string): boolean {
  // After the message of the status, if there is one.
  const at = typeof further[0] === "object" && further[0] !== null ? 0 : 1;
  const given = further[at];
  if (typeof given !== "object" || given === null) return false;
  if (Array.isArray(given)) {
    // Names and values in turn.
    const found = given.findIndex((each, i) => i % 2 === 0 && isName(String(each), name));
    if (found !== -1) further[at] = given.map((each, i) => (i === found + 1 ? join(value, each) : each));
    return found !== -1;
  }
  const members = given as Record<string, unknown>;
  for (const member in members) {
    if (!isName(member, name)) continue;
    const own = members[member];
    if (own !== value) further[at] = { ...members, [member]: join(value, own) };
    return true;
  }
  return false;
}

/** Whether a name is that of a header. Most have another length. */
function isName(given: string, name: string): boolean {
  return given.length === name.length && given.toLowerCase() === name.toLowerCase();
}

/** A value before those of the handler, unless it is among them. */
function join(value: string, own: unknown): string {
  const list = [own].flat().join(", ");
  return has(list, value) ? list : `${value}, ${list}`;
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
