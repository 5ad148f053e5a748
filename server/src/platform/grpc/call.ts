import type { Clock, Milliseconds, Timer } from "../../../../engine/src/clock/clock.ts";
import { CANCEL } from "./http2/frames.ts";
import { encodeField } from "./http2/hpack.ts";
import type { Stream, StreamListener } from "./http2/stream.ts";
import {
  type IncompleteMessage,
  type MessageBudget,
  MessageBytes,
  PREFIX_BYTES,
  type Rejection,
} from "./message-bytes.ts";
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
/** Characters of an unknown path that an answer repeats. */
const PATH_SHOWN = 200;

/** Longer deadlines count as none, so that a timer never overflows. */
const TIMEOUT_MAX: Milliseconds = 3_600_000;

/** What calls share. */
export interface CallParts {
  readonly clock: Clock;
  readonly methods: ReadonlyMap<string, UnaryMethod>;
  readonly budget: MessageBudget;
  /** Calls whose messages have not arrived whole, the oldest first. */
  readonly incomplete: Set<GrpcCall>;
}

/** One call: a stream of HTTP/2 with one message, which is answered with one message and a status, or with a status only. */
export class GrpcCall implements StreamListener, IncompleteMessage {
  readonly startedAt: Milliseconds;
  /** Whether the message has arrived, and the answer is under way. */
  isAnswering = false;
  readonly #stream: Stream;
  readonly #parts: CallParts;
  readonly #address: string;
  readonly #onEnd: (call: GrpcCall) => void;
  #method: UnaryMethod | undefined;
  #bytes: MessageBytes | undefined;

  /** @param onEnd called when the stream has closed, whatever became of it. */
  constructor(stream: Stream, address: string, parts: CallParts, onEnd: (call: GrpcCall) => void) {
    this.#stream = stream;
    this.#address = address;
    this.#parts = parts;
    this.#onEnd = onEnd;
    this.startedAt = parts.clock.monotonic();
    parts.incomplete.add(this);
  }

  /** Rejects the call, if it cannot be answered whatever its message is. */
  begin(): void {
    const { method, path, contentType } = this.#stream.head;
    if (method !== "POST" || contentType?.startsWith(CONTENT_TYPE) !== true) {
      this.#stream.answerWithout(encodeField(":status", method === "POST" ? "415" : "405"));
      return;
    }
    this.#method = this.#parts.methods.get(path);
    if (this.#method === undefined) {
      this.#fail(new GrpcError(UNIMPLEMENTED, `There is no method ${path.slice(0, PATH_SHOWN)} here.`));
      return;
    }
    this.#bytes = new MessageBytes(this.#method.messageBytesMax, this.#parts.budget, this);
  }

  receive(chunk: Buffer): void {
    if (this.#bytes === undefined || this.#method === undefined) return;
    const rejection = this.#bytes.add(chunk);
    if (rejection !== undefined) this.#fail(rejectionOf(rejection, this.#method));
  }

  end(): void {
    this.#complete();
    this.isAnswering = true;
    if (this.#method !== undefined) this.#answer(this.#method, this.#bytes?.message);
  }

  close(): void {
    this.#complete();
    this.#settle();
    this.#onEnd(this);
  }

  #complete(): void {
    this.#parts.incomplete.delete(this);
    this.#parts.budget.complete(this);
  }

  /** Another call needs its place or its memory. */
  drop(): void {
    const detail = "Other calls needed the place of this one, whose message had not arrived. Try again shortly.";
    this.#fail(new GrpcError(RESOURCE_EXHAUSTED, detail));
  }

  /** Ends the stream without an answer. */
  cancel(): void {
    this.#stream.reset(CANCEL);
  }

  #answer(method: UnaryMethod, message: Buffer | undefined): void {
    if (message === undefined) {
      this.#fail(new GrpcError(INTERNAL, "The stream ended before its message was complete."));
      return;
    }
    let answer: Uint8Array | Promise<Uint8Array>;
    try {
      answer = method.answer(message, { authorization: this.#stream.head.authorization, address: this.#address });
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
    const timeout = parseTimeout(this.#stream.head.timeout);
    if (timeout === undefined) return undefined;
    const expire = () => this.#fail(new GrpcError(DEADLINE_EXCEEDED, "The deadline of the call has passed."));
    return this.#parts.clock.schedule(timeout, expire);
  }

  /** Without effect if the stream has closed, or has an answer. */
  #succeed(message: Uint8Array): void {
    this.#settle();
    const content = Buffer.allocUnsafe(PREFIX_BYTES + message.length);
    content[0] = 0;
    content.writeUInt32BE(message.length, 1);
    content.set(message, PREFIX_BYTES);
    this.#stream.answer(content);
  }

  /** The answer may wait for the peer to read it. The message need not. */
  #settle(): void {
    this.isAnswering = false;
    this.#bytes?.release();
  }

  /** Answers with a status only. What the peer still sends is not read. Without effect as above. */
  #fail({ code, message, requestId }: GrpcError): void {
    this.#settle();
    const fields = [
      encodeField(":status", "200"),
      encodeField("content-type", CONTENT_TYPE),
      encodeField("grpc-status", String(code)),
      encodeField("grpc-message", encodeMessage(message)),
    ];
    if (requestId !== undefined) fields.push(encodeField("x-request-id", requestId));
    this.#stream.answerWithout(Buffer.concat(fields));
  }
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
function parseTimeout(value: string | undefined): Milliseconds | undefined {
  const [, amount, unit] = /^(\d{1,8})([HMSmun])$/.exec(String(value)) ?? [];
  if (unit === undefined) return undefined;
  const timeout = Number(amount) * (timeoutUnits[unit] ?? Number.NaN);
  return timeout <= TIMEOUT_MAX ? timeout : undefined;
}
