import type { ServerResponse } from "node:http";
import type { FastifyReply } from "fastify";
import type { RpcResponse } from "../rpc/server.ts";

/** Whether an error travels as `application/problem+json`, the only form in which the clients recognise these two. */
function contentTypeOf(status: number, path: string): string {
  return status === 429 || (status >= 400 && path.endsWith("/identities.deleteIdentity"))
    ? "application/problem+json"
    : "application/json";
}

/** Writes an answer to a request that the framework routed. */
export type Send = (reply: FastifyReply, answer: RpcResponse, path: string) => FastifyReply;

/** Writes an answer without help of the framework; `end` false leaves the response open with nothing more to come. */
export function respond(response: ServerResponse, answer: RpcResponse, path: string, close: boolean, end = true): void {
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
  if (close) fields.push("Connection", "close");
  response.writeHead(status, fields as string[]);
  // As many bytes as characters: all of it is ASCII, and Latin-1 is written without being encoded.
  const encoding = bytes === body.length ? "latin1" : "utf8";
  if (end) response.end(body, encoding);
  else response.write(body, encoding);
}

/**
 * Answers that were ready at once, written together when the event loop has read what had arrived.
 *
 * Each write wakes its reader unless the reader is awake, and waking costs more than a verification. One reader of many
 * connections, such as a proxy on this machine, is awake from the first answer of a batch to the last. Alone, an answer
 * waits for nothing.
 */
export class AnswerBatch {
  #due: { response: ServerResponse; answer: RpcResponse; path: string; close: boolean }[] = [];

  add(response: ServerResponse, answer: RpcResponse, path: string, close: boolean): void {
    if (this.#due.push({ response, answer, path, close }) === 1) setImmediate(() => this.#write());
  }

  #write(): void {
    const due = this.#due;
    this.#due = [];
    for (const { response, answer, path, close } of due) respond(response, answer, path, close);
  }
}
