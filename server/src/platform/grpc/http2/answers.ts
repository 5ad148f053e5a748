import { ProtocolError } from "./errors.ts";
import {
  DATA,
  END_HEADERS,
  END_STREAM,
  FLOW_CONTROL_ERROR,
  frame,
  HEAD_BYTES,
  HEADERS,
  NO_ERROR,
  NUMBER_MAX,
  numbersFrame,
  PAYLOAD_BYTES_MAX,
  RST_STREAM,
  STREAM_AT,
  WINDOW_BYTES,
  writeHead,
} from "./frames.ts";
import { encodeField } from "./hpack.ts";
import type { Output } from "./output.ts";
import type { Stream } from "./stream.ts";

/** That header blocks use no dynamic table, once: peers that allow only a smaller one wait for it (RFC 7541, section 4.2). */
const noTable = Buffer.from([0x20]);
/** `:status: 200` is in the static table. */
const answerBlock = Buffer.concat([Buffer.from([0x88]), encodeField("content-type", "application/grpc")]);
const okBlock = encodeField("grpc-status", "0");
const answerHead = frame(HEADERS, END_HEADERS, 0, answerBlock);
const okTrailers = frame(HEADERS, END_HEADERS | END_STREAM, 0, okBlock);

/** Content that waits for windows, on all connections together. */
export interface WaitingContent {
  bytes: number;
  /** Beyond it, connections with such content begin no further calls. */
  readonly bytesMax: number;
}

/** The answers of one connection, as its windows allow them. */
export class Answers {
  /** Content that waits for a window. */
  waitingBytes = 0;
  readonly #ofAll: WaitingContent;
  readonly #output: Output;
  readonly #onEnd: (stream: Stream) => void;
  /** Streams that wait for the window of the connection. */
  readonly #waiting = new Set<Stream>();
  #window = WINDOW_BYTES;
  #hasSentBlock = false;

  /** @param onEnd called when an answer was sent whole. */
  constructor(output: Output, ofAll: WaitingContent, onEnd: (stream: Stream) => void) {
    this.#output = output;
    this.#ofAll = ofAll;
    this.#onEnd = onEnd;
  }

  /** Sends what the windows allow of an answer: usually all of it, in one piece. */
  send(stream: Stream): void {
    const { id, rest } = stream;
    if (rest === undefined) return;
    if (!stream.hasAnswerHead) {
      stream.hasAnswerHead = true;
      if (this.#sendWhole(stream, rest)) return;
      this.#sendBlock(id, END_HEADERS, answerBlock);
      this.#wait(rest.length);
    }
    let at = 0;
    while (at < rest.length) {
      const size = Math.min(rest.length - at, stream.sendWindow, this.#window, PAYLOAD_BYTES_MAX);
      if (size <= 0) break;
      this.#output.write(frame(DATA, 0, id, rest.subarray(at, at + size)));
      stream.sendWindow -= size;
      this.#window -= size;
      at += size;
    }
    this.#wait(-at);
    stream.rest = rest.subarray(at);
    if (at === rest.length) {
      this.#sendBlock(id, END_HEADERS | END_STREAM, okBlock);
      this.#end(stream);
    } else if (stream.sendWindow > 0) this.#waiting.add(stream);
    else this.#waiting.delete(stream);
  }

  /** Answers with header fields only. */
  sendBlock(stream: Stream, block: Buffer): void {
    this.#sendBlock(stream.id, END_HEADERS | END_STREAM, block);
    this.#end(stream);
  }

  /** Widens the window of the connection. */
  widen(bytes: number): void {
    this.#window += bytes;
    if (this.#window > NUMBER_MAX) throw new ProtocolError(FLOW_CONTROL_ERROR);
    for (const stream of this.#waiting) {
      if (this.#window === 0) return;
      this.send(stream);
    }
  }

  /** Forgets what is left of an answer. */
  drop(stream: Stream): void {
    this.#waiting.delete(stream);
    if (stream.hasAnswerHead) this.#wait(-(stream.rest?.length ?? 0));
    stream.rest = undefined;
  }

  #wait(bytes: number): void {
    this.waitingBytes += bytes;
    this.#ofAll.bytes += bytes;
  }

  /** Sends head, content and trailers in one piece, if the windows allow it. */
  #sendWhole(stream: Stream, content: Buffer): boolean {
    const { length } = content;
    if (!this.#hasSentBlock || length > Math.min(PAYLOAD_BYTES_MAX, stream.sendWindow, this.#window)) return false;
    const { id } = stream;
    this.#window -= length;
    const dataAt = answerHead.length;
    const trailersAt = dataAt + HEAD_BYTES + length;
    const bytes = Buffer.allocUnsafe(trailersAt + okTrailers.length);
    bytes.set(answerHead);
    bytes.writeUInt32BE(id, STREAM_AT);
    bytes.set(content, writeHead(bytes, dataAt, length, DATA, 0, id));
    bytes.set(okTrailers, trailersAt);
    bytes.writeUInt32BE(id, trailersAt + STREAM_AT);
    this.#output.write(bytes);
    stream.rest = undefined;
    this.#end(stream);
    return true;
  }

  #sendBlock(id: number, flags: number, block: Buffer): void {
    this.#output.write(frame(HEADERS, flags, id, this.#hasSentBlock ? block : Buffer.concat([noTable, block])));
    this.#hasSentBlock = true;
  }

  /** A peer that has not ended its side need not go on (RFC 9113, section 8.1). */
  #end(stream: Stream): void {
    if (!stream.hasRequest) this.#output.write(numbersFrame(RST_STREAM, stream.id, NO_ERROR));
    this.#onEnd(stream);
  }
}
