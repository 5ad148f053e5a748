import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import type { Clock, Milliseconds, Timer } from "../../../../engine/src/clock/clock.ts";
import { type MessageBudget, MessageBytes, PREFIX_BYTES, type Rejection } from "./message-bytes.ts";
import type { UnaryMethod } from "./method.ts";
import {
  DEADLINE_EXCEEDED,
  encodeMessage,
  GrpcError,
  grpcError,
  INTERNAL,
  RESOURCE_EXHAUSTED,
  UNIMPLEMENTED,
} from "./status.ts";

const CONTENT_TYPE = "application/grpc";
const { NGHTTP2_NO_ERROR } = constants;

/** Longer deadlines count as none, so that a timer never overflows. */
const TIMEOUT_MAX: Milliseconds = 3_600_000;

const answerHeaders = { ":status": 200, "content-type": CONTENT_TYPE };
const okTrailers = { "grpc-status": "0" };
const withTrailers = { waitForTrailers: true };

/** What calls share. */
export interface CallParts {
  readonly clock: Clock;
  readonly methods: ReadonlyMap<string, UnaryMethod>;
  readonly budget: MessageBudget;
}

/** One call: a stream of HTTP/2 with one message, which is answered with one message and a status, or with a status only. */
export class GrpcCall {
  readonly startedAt: Milliseconds;
  readonly #stream: ServerHttp2Stream;
  readonly #headers: IncomingHttpHeaders;
  readonly #parts: CallParts;
  readonly #address: string;
  #bytes: MessageBytes | undefined;
  #isSettled = false;

  /** @param onEnd called when the stream has closed, whatever became of it. */
  constructor(
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    address: string,
    parts: CallParts,
    onEnd: (call: GrpcCall) => void,
  ) {
    this.#stream = stream;
    this.#headers = headers;
    this.#address = address;
    this.#parts = parts;
    this.startedAt = parts.clock.monotonic();
    // The event "close" follows an error, such as a reset by the peer.
    stream.on("error", ignore);
    stream.once("close", () => {
      this.#isSettled = true;
      this.#bytes?.release();
      onEnd(this);
    });
  }

  /** Reads the message, and answers it when the peer has ended its side. */
  run(): void {
    const headers = this.#headers;
    if (headers[":method"] !== "POST" || headers["content-type"]?.startsWith(CONTENT_TYPE) !== true) {
      if (!this.#settle()) return;
      this.#stream.respond({ ":status": headers[":method"] === "POST" ? 415 : 405 }, { endStream: true });
      this.#stream.close(NGHTTP2_NO_ERROR);
      return;
    }
    const method = this.#parts.methods.get(headers[":path"] ?? "");
    if (method === undefined) {
      this.#reject(new GrpcError(UNIMPLEMENTED, `There is no method ${headers[":path"]} here.`));
      return;
    }
    const bytes = new MessageBytes(method.messageBytesMax, this.#parts.budget);
    this.#bytes = bytes;
    this.#stream.on("data", (chunk: Buffer) => {
      if (this.#isSettled) return;
      const rejection = bytes.add(chunk);
      if (rejection !== undefined) this.#reject(rejectionOf(rejection, method));
    });
    this.#stream.once("end", () => {
      if (!this.#isSettled) this.#answer(method, bytes.message);
    });
  }

  /** Ends the stream without an answer. */
  cancel(): void {
    this.#isSettled = true;
    this.#stream.close(constants.NGHTTP2_CANCEL);
  }

  #answer(method: UnaryMethod, message: Buffer | undefined): void {
    if (message === undefined) {
      this.#fail(new GrpcError(INTERNAL, "The stream ended before its message was complete."));
      return;
    }
    let answer: Uint8Array | Promise<Uint8Array>;
    try {
      answer = method.answer(message, { authorization: this.#headers.authorization, address: this.#address });
    } catch (error) {
      this.#fail(grpcError(error));
      return;
    }
    if (!(answer instanceof Promise)) {
      this.#succeed(answer);
      return;
    }
    const deadline = this.#scheduleDeadline();
    answer
      .then(
        (settled) => this.#succeed(settled),
        (error) => this.#fail(grpcError(error)),
      )
      .finally(() => deadline?.cancel());
  }

  #scheduleDeadline(): Timer | undefined {
    const timeout = parseTimeout(this.#headers["grpc-timeout"]);
    if (timeout === undefined) return undefined;
    const expire = () => this.#fail(new GrpcError(DEADLINE_EXCEEDED, "The deadline of the call has passed."));
    return this.#parts.clock.schedule(timeout, expire);
  }

  /** Whether this is the answer, and there is somebody to read it: a stream that was reset closes before it says so. */
  #settle(): boolean {
    if (this.#isSettled || isGone(this.#stream)) return false;
    this.#isSettled = true;
    return true;
  }

  #succeed(message: Uint8Array): void {
    if (!this.#settle()) return;
    const frame = Buffer.allocUnsafe(PREFIX_BYTES + message.length);
    frame[0] = 0;
    frame.writeUInt32BE(message.length, 1);
    frame.set(message, PREFIX_BYTES);
    this.#stream.respond(answerHeaders, withTrailers);
    this.#stream.once("wantTrailers", sendOkTrailers);
    this.#stream.end(frame);
  }

  /** Answers with a status only. */
  #fail({ code, message, requestId }: GrpcError): void {
    if (!this.#settle()) return;
    this.#stream.respond(
      {
        ...answerHeaders,
        "grpc-status": String(code),
        "grpc-message": encodeMessage(message),
        ...(requestId !== undefined && { "x-request-id": requestId }),
      },
      { endStream: true },
    );
  }

  /** The same before the peer has ended its side: what it still sends is not read. */
  #reject(error: GrpcError): void {
    this.#fail(error);
    this.#bytes?.release();
    this.#stream.close(NGHTTP2_NO_ERROR);
  }
}

/** Node throws on what is sent to a stream that the peer has reset. */
function isGone(stream: ServerHttp2Stream): boolean {
  return stream.destroyed || stream.closed;
}

function sendOkTrailers(this: ServerHttp2Stream): void {
  if (!isGone(this)) this.sendTrailers(okTrailers);
}

function rejectionOf(rejection: Rejection, { messageBytesMax }: UnaryMethod): GrpcError {
  switch (rejection) {
    case "too long":
      return new GrpcError(RESOURCE_EXHAUSTED, `The message may have at most ${messageBytesMax} bytes.`);
    case "no memory":
      return new GrpcError(RESOURCE_EXHAUSTED, "There is no memory for another message. Try again shortly.");
    case "compressed":
      return new GrpcError(UNIMPLEMENTED, "Compressed messages are not supported.");
    case "more than one":
      return new GrpcError(UNIMPLEMENTED, "The method takes one message.");
  }
}

const timeoutUnits: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1_000, m: 1, u: 1e-3, n: 1e-6 };

/** The header `grpc-timeout` in milliseconds; undefined: there is none that can be used. */
function parseTimeout(value: string | string[] | undefined): Milliseconds | undefined {
  const [, amount, unit] = /^(\d{1,8})([HMSmun])$/.exec(String(value)) ?? [];
  if (unit === undefined) return undefined;
  const timeout = Number(amount) * (timeoutUnits[unit] ?? Number.NaN);
  return timeout <= TIMEOUT_MAX ? timeout : undefined;
}

function ignore(): void {}
