import type { ClientRequest, IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import type { Clock, Milliseconds } from "../../../engine/src/clock/clock.ts";
import { newRequestId, type Random } from "../../../engine/src/random/random.ts";
import { UNREADABLE_ADDRESS } from "../../../engine/src/rules/address.ts";
import { type Operation, pathOf } from "../platform/rpc/operation.ts";
import type { RpcRequest, RpcResponse } from "../platform/rpc/server.ts";
import { AnswerPace } from "./answer-pace.ts";
import { collected, statusOf } from "./answers.ts";
import type { PassedOn } from "./caller-places.ts";
import type { HomeRequest, HttpHome } from "./http-home.ts";

/** How long home may be silent in the middle of a request that is passed on. */
const SILENCE_MAX: Milliseconds = 60_000;
/** How long an answer to a metered operation may take as a whole. */
const CALL_TIME_MAX: Milliseconds = 60_000;
/** Bytes of an answer to a metered operation. */
const ANSWER_BYTES_MAX = 4 * 1024 * 1024;

/** Bytes of a request that is looked at when it is answered. */
const REQUEST_BYTES_MAX = 64 * 1024;

/** Values of headers that every answer may have. */
const PLAIN = /^[\t\x20-\x7e]*$/;

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

/**
 * A call to home as it arrived: with the credential of its caller, and the address. Rejects if there is no answer of the operation.
 */
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
  // Other routes, such as that for proxies, call an operation too.
  const target = path.startsWith(pathOf("")) ? path : pathOf(name);
  const asked = { method: "POST", path: target, headers: given(headers), timeout: SILENCE_MAX, within: CALL_TIME_MAX };
  const answer = await exchange(home, asked, text);
  if (answer.status === 200) home.requireDecision(name, answer.body);
  return responseOf(answer, random);
}

function responseOf({ status, body, headers }: RpcAnswer, random: Random): RpcResponse {
  const requestId = headers["x-request-id"];
  return {
    status,
    body,
    requestId: typeof requestId === "string" ? requestId : newRequestId(random),
    headers: furtherHeaders(headers),
  };
}

/** Sends a request whose body has arrived, once there is a place for it, and reads the answer. */
function exchange(home: HttpHome, request: HomeRequest, body: string): Promise<RpcAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<RpcAnswer>();
  const passedOn: PassedOn = {
    waitsForCaller: () => false,
    fail: reject,
    begin() {
      const passed = home.request(request, (answer) => {
        const { headers } = answer;
        collected(answer, ANSWER_BYTES_MAX).then(
          (text) => resolve({ status: statusOf(answer), body: text, headers }),
          reject,
        );
      });
      passed.on("error", reject);
      passed.on("close", () => home.places.leave(passedOn));
      passed.end(body);
    },
  };
  home.places.enter(passedOn);
  return promise;
}

interface RpcAnswer {
  readonly status: number;
  readonly body: string;
  readonly headers: IncomingHttpHeaders;
}

/** The headers of an answer beyond those that each answer has, and without those that cannot be written: home may be behind a proxy. */
function furtherHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  const further: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (ownHeaders.has(name) || ["content-type", "content-length", "x-request-id", "date"].includes(name)) continue;
    if (typeof value === "string" && PLAIN.test(value)) further[name] = value;
  }
  return further;
}

/** Completes an answer of home that succeeded, before the caller gets it. Never rejects. */
export type Completion = (answer: string, request: string) => Promise<string>;

export interface PassedOnRequest {
  readonly clock: Clock;
  readonly address: string;
  readonly random: Random;
  /** Undefined: the answer is passed on piece by piece. */
  readonly complete: Completion | undefined;
  /** Takes the answer to a request whose body has not arrived: the rest of it is read for a limited time, and the connection ends. */
  readonly answerUnread: (answer: RpcResponse) => void;
  readonly onFailure: (error: Error) => void;
}

/** Passes on any other request, and its answer. */
export function passOnRequest(
  home: HttpHome,
  request: IncomingMessage,
  response: ServerResponse,
  { clock, address, random, complete, answerUnread, onFailure }: PassedOnRequest,
): void {
  const headers: Record<string, string | string[]> = {
    ...withoutOwn(request.headers),
    ...delimitation(request.headers),
    "x-forwarded-for": forwarded(address),
  };
  // What is completed must be readable.
  if (complete) delete headers["accept-encoding"];
  const sent = { method: request.method ?? "GET", path: request.url ?? "/", headers, timeout: SILENCE_MAX };
  let passed: ClientRequest | undefined;
  let pace: AnswerPace | undefined;
  let beginning: (() => string) | undefined;
  let hasFailed = false;
  const answerWith = (answer: IncomingMessage) => {
    pace?.answered(answer);
    const asked = beginning;
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
    if (!request.complete && passed && statusOf(answer) >= 400) {
      request.unpipe(passed);
      collected(answer, ANSWER_BYTES_MAX)
        .then((text) => {
          passed?.destroy();
          answerUnread(responseOf({ status: statusOf(answer), body: text, headers: answer.headers }, random));
        })
        .catch(fail);
      return;
    }
    response.writeHead(statusOf(answer), withoutOwn(answer.headers));
    answer.pipe(response);
    answer.on("error", () => response.destroy());
  };
  const fail = (error: Error) => {
    if (hasFailed) return;
    hasFailed = true;
    passed?.destroy();
    if (response.headersSent) response.destroy();
    else onFailure(error);
  };
  const passedOn: PassedOn = {
    waitsForCaller: () => !request.complete || response.writableNeedDrain,
    fail,
    begin() {
      passed = home.request(sent, answerWith);
      pace = new AnswerPace(clock, request, passed, passedOn.waitsForCaller);
      passed.on("error", fail);
      passed.on("close", () => home.places.leave(passedOn));
      beginning = complete && beginningOf(request);
      request.pipe(passed);
    },
  };
  response.on("drain", () => pace?.drained());
  response.on("close", () => {
    home.places.leave(passedOn);
    passed?.destroy();
  });
  home.places.enter(passedOn);
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

/**
 * How the body of a request is delimited, as it arrived. Node would write a body of `DELETE` without any: home would read it as
 * further requests, from this edge, and their answers would go to other callers (request smuggling). So `Connection` cannot name
 * these headers either.
 */
function delimitation(headers: IncomingHttpHeaders): Record<string, string> {
  if (headers["transfer-encoding"] !== undefined) return { "transfer-encoding": "chunked" };
  const length = headers["content-length"];
  return length === undefined ? {} : { "content-length": length };
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
