import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import type { Milliseconds } from "../../../engine/src/clock/clock.ts";
import { newRequestId, type Random } from "../../../engine/src/random/random.ts";
import { UNREADABLE_ADDRESS } from "../../../engine/src/rules/address.ts";
import { type Operation, pathOf } from "../platform/rpc/operation.ts";
import type { RpcRequest, RpcResponse } from "../platform/rpc/server.ts";
import { collected, statusOf } from "./answers.ts";
import type { HttpHome } from "./http-home.ts";

/** How long home may be silent in the middle of a request that is passed on. */
const SILENCE_MAX: Milliseconds = 60_000;
/** Bytes of an answer to a metered operation. */
const ANSWER_BYTES_MAX = 4 * 1024 * 1024;

/** Bytes of a request that is looked at when it is answered. */
const REQUEST_BYTES_MAX = 64 * 1024;

/** Headers that belong to one connection (RFC 9110, section 7.6.1), and those that this process writes itself. */
const ownHeaders = new Set([
  "connection",
  "host",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "x-forwarded-for",
]);

/** A call to home as it arrived: with the credential of its caller, and the address. */
export async function passOnCall(
  home: HttpHome,
  { name }: Operation,
  request: RpcRequest,
  random: Random,
): Promise<RpcResponse> {
  const { credentials, contentType, contentEncoding, idempotencyKey, body, address, path } = request;
  const text = body ?? "";
  const headers = {
    authorization: credentials.authorization,
    "content-type": contentType,
    "content-encoding": contentEncoding,
    "idempotency-key": idempotencyKey,
    "content-length": String(Buffer.byteLength(text)),
    "x-forwarded-for": forwarded(address),
  };
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  // Other routes, such as that for proxies, call an operation too.
  const target = path.startsWith(pathOf("")) ? path : pathOf(name);
  const started = home.request(
    { method: "POST", path: target, headers: given(headers), timeout: SILENCE_MAX },
    resolve,
  );
  started.on("error", reject);
  started.end(text);
  const answer = await promise;
  const answered = await collected(answer, ANSWER_BYTES_MAX);
  const requestId = answer.headers["x-request-id"];
  return {
    status: statusOf(answer),
    body: answered,
    requestId: typeof requestId === "string" ? requestId : newRequestId(random),
    headers: furtherHeaders(answer.headers),
  };
}

/** The headers of an answer beyond those that each answer has. */
function furtherHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  const further: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (ownHeaders.has(name) || ["content-type", "content-length", "x-request-id", "date"].includes(name)) continue;
    if (typeof value === "string") further[name] = value;
  }
  return further;
}

/** Completes an answer of home that succeeded, before the caller gets it. Never rejects. */
export type Completion = (answer: string, request: string) => Promise<string>;

export interface PassedOnRequest {
  readonly address: string;
  /** Undefined: the answer is passed on piece by piece. */
  readonly complete: Completion | undefined;
  readonly onFailure: (error: Error) => void;
}

/** Passes on any other request, and its answer. */
export function passOnRequest(
  home: HttpHome,
  request: IncomingMessage,
  response: ServerResponse,
  { address, complete, onFailure }: PassedOnRequest,
): void {
  const headers = withoutOwn(request.headers);
  headers["x-forwarded-for"] = forwarded(address);
  const asked = complete && beginningOf(request);
  // What is completed must be readable.
  if (complete) delete headers["accept-encoding"];
  const passed = home.request(
    { method: request.method ?? "GET", path: request.url ?? "/", headers, timeout: SILENCE_MAX },
    (answer) => {
      if (complete && asked && answer.statusCode === 200) {
        collected(answer, ANSWER_BYTES_MAX)
          .then((text) => complete(text, asked()))
          .then((text) => {
            const length = String(Buffer.byteLength(text));
            response.writeHead(200, { ...withoutOwn(answer.headers), "content-length": length }).end(text);
          })
          .catch(fail);
        return;
      }
      response.writeHead(statusOf(answer), withoutOwn(answer.headers));
      answer.pipe(response);
      answer.on("error", () => response.destroy());
    },
  );
  const fail = (error: Error) => {
    if (response.headersSent) response.destroy();
    else onFailure(error);
  };
  passed.on("error", fail);
  response.on("close", () => passed.destroy());
  request.pipe(passed);
}

/** Keeps the body of a request that goes elsewhere; returns what reads it. Of a longer one than is ever completed, it is empty. */
function beginningOf(request: IncomingMessage): () => string {
  const pieces: Buffer[] = [];
  let bytes = 0;
  request.on("data", (piece: Buffer) => {
    bytes += piece.length;
    if (bytes <= REQUEST_BYTES_MAX) pieces.push(piece);
    else pieces.length = 0;
  });
  return () => Buffer.concat(pieces).toString();
}

/** For home, an address that cannot be read must not become that of this edge. */
function forwarded(address: string): string {
  return address === UNREADABLE_ADDRESS ? "unknown" : address;
}

function withoutOwn(headers: IncomingHttpHeaders): Record<string, string | string[]> {
  const named = new Set((headers.connection ?? "").split(",").map((name) => name.trim().toLowerCase()));
  return given(
    Object.fromEntries(Object.entries(headers).filter(([name]) => !ownHeaders.has(name) && !named.has(name))),
  );
}

function given(headers: Record<string, string | string[] | undefined>): Record<string, string | string[]> {
  return Object.fromEntries(
    Object.entries(headers).filter((entry): entry is [string, string | string[]] => entry[1] !== undefined),
  );
}
