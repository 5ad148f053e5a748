import type { ServerResponse } from "node:http";
import type { RpcResponse } from "../rpc/server.ts";

/** Whether an error travels as `application/problem+json`, the only form in which the clients recognise these two. */
export function contentTypeOf(status: number, path: string): string {
  return status === 429 || (status >= 400 && path.endsWith("/identities.deleteIdentity"))
    ? "application/problem+json"
    : "application/json";
}

/** Writes an answer without help of the framework. */
export function respond(response: ServerResponse, answer: RpcResponse, path: string, close: boolean): void {
  const { status, body, requestId, headers } = answer;
  const fields: (string | number)[] = [
    "Content-Type",
    contentTypeOf(status, path),
    "X-Request-Id",
    requestId,
    "Content-Length",
    Buffer.byteLength(body),
  ];
  if (headers) for (const name in headers) fields.push(name, headers[name]!);
  if (close) fields.push("Connection", "close");
  response.writeHead(status, fields as string[]);
  response.end(body);
}
