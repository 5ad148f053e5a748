import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2Stream } from "node:http2";
import type { HeldAnswer } from "./held-answer.ts";
import { has } from "./limit-headers.ts";
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
  const added = Object.entries(headers);
  if (added.length === 0 || response.headersSent) return;
  for (const [name, value] of added) {
    const earlier = response.getHeader(name);
    response.setHeader(name, earlier === undefined ? value : `${earlier}, ${value}`);
  }
  joinHeaders(response, headers);
}

/** Joins headers that were added with those of a handler that sets them too, when they are sent. */
export function joinHeaders(response: ServerResponse, headers: Readonly<Record<string, string>>): void {
  const added = Object.entries(headers);
  if (added.length === 0) return;
  const { writeHead } = response;
  response.writeHead = (...args: unknown[]) => {
    if (!response.headersSent) {
      const at = args.findIndex((each) => typeof each === "object" && each !== null);
      for (const [name, value] of added) {
        const given = at === -1 ? undefined : joined(args[at], name, value);
        if (given) args[at] = given;
        else {
          const set = response.getHeader(name);
          if (set !== undefined && set !== value) response.setHeader(name, join(value, set));
        }
      }
    }
    return Reflect.apply(writeHead, response, args);
  };
}

/** The headers that `writeHead` got, with one joined; undefined if it is not among them. */
function joined(given: unknown, name: string, value: string): unknown {
  const is = (each: unknown) => String(each).toLowerCase() === name.toLowerCase();
  if (Array.isArray(given)) {
    // Names and values in turn.
    const at = given.findIndex((each, i) => i % 2 === 0 && is(each));
    return at === -1 ? undefined : given.map((each, i) => (i === at + 1 ? join(value, each) : each));
  }
  const members = given as Record<string, unknown>;
  const found = Object.keys(members).find(is);
  return found === undefined ? undefined : { ...members, [found]: join(value, members[found]) };
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
