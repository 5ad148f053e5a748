import type { ServerResponse } from "node:http";
import type { FastifyReply } from "fastify";
import type { RpcResponse } from "../rpc/server.ts";
import { SHORT_CONTENT_BYTES_MAX, writePace } from "./write-pace.ts";

/** The content type. Clients recognise these two problems only as `application/problem+json`; errors of OAuth are none. */
export function contentTypeOf(status: number, path: string): string {
  return (status === 429 && !path.startsWith("/oauth/")) ||
    (status >= 400 && path.endsWith("/identities.deleteIdentity"))
    ? "application/problem+json"
    : "application/json";
}

/** What is written: an answer, or the compressed bytes of one. */
export type Answer = Omit<RpcResponse, "body"> & { readonly body: string | Buffer };

/** Writes an answer to a request that the framework routed. */
export type Send = (reply: FastifyReply, answer: Answer, path: string) => FastifyReply;

/** Writes an answer without the framework. With `end` false the response stays open, although it is complete. */
export function respond(response: ServerResponse, answer: Answer, path: string, close: boolean, end = true): void {
  const { status, body, requestId, headers } = answer;
  const bytes = Buffer.byteLength(body);
  const fields: (string | number)[] = [
    "Content-Type",
    contentTypeOf(status, path),
    "X-Request-Id",
    requestId,
    "Content-Length",
    bytes,
  ];
  if (headers) for (const name in headers) fields.push(name, headers[name]!);
  if (close) {
    fields.push("Connection", "close");
    // Node derives it from the request only. `Connections.afterAnswers` reads it.
    response.shouldKeepAlive = false;
  }
  response.writeHead(status, fields as string[]);
  if (end && bytes > SHORT_CONTENT_BYTES_MAX) {
    writePace.stream(typeof body === "string" ? Buffer.from(body) : body).pipe(response);
    return;
  }
  // As many bytes as characters: the text is ASCII. Writing it as Latin-1 avoids the encoding.
  const encoding = bytes === body.length ? "latin1" : "utf8";
  if (end) response.end(body, encoding);
  else response.write(body, encoding);
}

/**
 * Writes answers together, after the event loop has read all input that had arrived.
 *
 * Each write wakes up its reader unless the reader is running, and a wake-up costs more than a verification. A reader of
 * many connections, such as a proxy on this machine, keeps running from the first answer of a batch to the last. A single
 * answer is not delayed.
 */
export class AnswerBatch {
  #pending: { response: ServerResponse; answer: RpcResponse; path: string; close: boolean }[] = [];

  add(response: ServerResponse, answer: RpcResponse, path: string, close: boolean): void {
    if (this.#pending.push({ response, answer, path, close }) === 1) setImmediate(() => this.write());
  }

  /** Writes what there is at once. */
  write(): void {
    const pending = this.#pending;
    this.#pending = [];
    for (const { response, answer, path, close } of pending) respond(response, answer, path, close);
  }
}
