import type { Socket } from "node:net";
import type { Clock, Milliseconds } from "../../../../../engine/src/clock/clock.ts";
import { Allowance } from "./allowance.ts";
import { Answers, type WaitingContent } from "./answers.ts";
import { ProtocolError } from "./errors.ts";
import { FrameReader, withoutPadding } from "./frame-reader.ts";
import {
  ACK,
  DATA,
  END_STREAM,
  ENHANCE_YOUR_CALM,
  FLOW_CONTROL_ERROR,
  FRAME_SIZE_ERROR,
  frame,
  GOAWAY,
  INITIAL_WINDOW_SIZE,
  MAX_CONCURRENT_STREAMS,
  MAX_HEADER_LIST_SIZE,
  NO_ERROR,
  NUMBER_MAX,
  numbersFrame,
  PING,
  PRIORITY,
  PROTOCOL_ERROR,
  PUSH_PROMISE,
  REFUSED_STREAM,
  RST_STREAM,
  SETTINGS,
  STREAM_CLOSED,
  settingsFrame,
  WINDOW_BYTES,
  WINDOW_UPDATE,
} from "./frames.ts";
import { HpackDecoder, type ListLimits } from "./hpack.ts";
import { Output } from "./output.ts";
import { PeerSettings } from "./peer-settings.ts";
import { areTrailers, type RequestHead, readRequestHead } from "./request-head.ts";
import { Stream, type StreamListener } from "./stream.ts";

/** Streams of one connection that may be open at once. */
const STREAMS_MAX = 256;

/**
 * Streams beyond that in a row, after which the connection ends. A gateway that has not read yet how many it may open can
 * begin with more.
 */
const REJECTED_STREAMS_MAX = 1_000;

/** The header fields of a request. */
const listLimits: ListLimits = { bytesMax: 16 * 1_024, fieldsMax: 64 };

/**
 * Streams that end by a reset, of the peer or because of what it sent: at once, and then per second. A gateway resets each
 * call that takes longer than its time limit, so the numbers are above what one sends while a node is slow; beyond them the
 * connection ends.
 */
const RESETS_BURST = 10_000;
const RESETS_PER_SECOND = 1_000;

/** Frames `SETTINGS`, each of which concerns all open streams: at once, and then per second. */
const SETTINGS_BURST = 100;
const SETTINGS_PER_SECOND = 10;

/** What a peer may send before the service has read it: in one stream more than the longest message. */
const STREAM_WINDOW = 256 * 1_024;
const CONNECTION_WINDOW = 1_024 * 1_024;

/** Answers that wait for a peer's windows, beyond which its new calls are refused. */
const WAITING_BYTES_MAX = 4 * 1_024 * 1_024;

/** Calls that one connection begins before others have their turn. */
const CALLS_PER_TURN = 64;
/** A read of this length is probably not all that has arrived: Node reads 64 KiB at a time, and up to 2 MiB in a turn. */
const LONG_READ_BYTES = 32 * 1_024;

const greeting = Buffer.concat([
  settingsFrame([
    [MAX_CONCURRENT_STREAMS, STREAMS_MAX],
    [INITIAL_WINDOW_SIZE, STREAM_WINDOW],
    [MAX_HEADER_LIST_SIZE, listLimits.bytesMax],
  ]),
  numbersFrame(WINDOW_UPDATE, 0, CONNECTION_WINDOW - WINDOW_BYTES),
]);
const settingsReceived = frame(SETTINGS, ACK, 0, Buffer.alloc(0));

export interface SessionOptions {
  readonly socket: Socket;
  readonly clock: Clock;
  readonly waiting: WaitingContent;
  /** Takes the call of a stream; undefined: it is refused. */
  onRequest(stream: Stream): StreamListener | undefined;
  onClose(): void;
}

/**
 * The server's side of one connection of HTTP/2 (RFC 9113), for answers of one message.
 *
 * *Open* at first. `close` and a GOAWAY of the peer make it *closing*: open streams end, and no new ones begin. After the last
 * one, and after an error of the peer, it has *ended*: it reads nothing more, and closes when the peer has read what was sent.
 *
 * All that it keeps has a bound: streams, header blocks, what the peer sends ahead, and what waits for the peer. While the
 * peer does not read, it is not read either, so any number of other frames costs what their bytes cost.
 */
export class Session {
  readonly #options: SessionOptions;
  readonly #reader: FrameReader;
  readonly #output: Output;
  readonly #answers: Answers;
  readonly #decoder = new HpackDecoder();
  readonly #peer = new PeerSettings();
  readonly #streams = new Map<number, Stream>();
  readonly #resets: Allowance;
  readonly #settings: Allowance;
  #state: "open" | "closing" | "ended" = "open";
  #lastStream = 0;
  #rejectedStreams = 0;
  #receiveWindow = CONNECTION_WINDOW;
  /** The latest block that did not change the table, and what it says. */
  #known: { block: Buffer; version: number; head: RequestHead } | undefined;
  /** What is read when others had their turn. */
  #unread: Buffer | undefined;
  #callsOfTurn = 0;

  constructor(options: SessionOptions) {
    const { socket, clock, waiting } = options;
    this.#options = options;
    this.#output = new Output(socket, clock, () => this.#goOn());
    this.#answers = new Answers(this.#output, waiting, (stream) => this.#close(stream));
    this.#resets = new Allowance(clock, RESETS_BURST, RESETS_PER_SECOND);
    this.#settings = new Allowance(clock, SETTINGS_BURST, SETTINGS_PER_SECOND);
    this.#reader = new FrameReader({
      frame: (type, flags, id, payload) => this.#frame(type, flags, id, payload),
      block: (flags, id, block) => this.#block(flags, id, block),
    });
    socket.on("data", (chunk: Buffer) => this.#read(chunk));
    // "close" follows.
    socket.on("error", ignore);
    socket.once("close", () => {
      this.#state = "ended";
      this.#closeStreams();
      options.onClose();
    });
    this.#output.write(greeting);
  }

  /** Whether it takes no more streams. */
  get isClosing(): boolean {
    return this.#state !== "open";
  }

  get #hasEnded(): boolean {
    return this.#state === "ended";
  }

  /** How long the peer has not read what it was sent. */
  get stalledFor(): Milliseconds {
    return this.#output.stalledFor;
  }

  /** What is kept until the peer reads it. */
  get keptBytes(): number {
    return this.#answers.waitingBytes + this.#options.socket.writableLength;
  }

  /** Asks the peer to open no more streams. Those that it opens meanwhile are answered. */
  notice(): void {
    this.#output.write(numbersFrame(GOAWAY, 0, NUMBER_MAX, NO_ERROR));
  }

  /** Takes no more streams, and ends after the open ones. */
  close(): void {
    if (this.#state !== "open") return;
    this.#state = "closing";
    this.#output.write(numbersFrame(GOAWAY, 0, this.#lastStream, NO_ERROR));
    this.#endIfDone();
  }

  /** Ends the connection, and tells the peer why. */
  fail(code: number): void {
    if (this.#state === "ended") return;
    this.#output.write(numbersFrame(GOAWAY, 0, this.#lastStream, code));
    this.#end();
  }

  destroy(): void {
    this.#state = "ended";
    this.#options.socket.destroy();
  }

  #end(): void {
    this.#state = "ended";
    this.#output.end();
    this.#closeStreams();
  }

  #endIfDone(): void {
    if (this.#state === "closing" && this.#streams.size === 0) this.#end();
  }

  #closeStreams(): void {
    for (const stream of this.#streams.values()) this.#remove(stream);
  }

  #read(chunk: Buffer): void {
    if (this.#hasEnded) return;
    this.#callsOfTurn = 0;
    const mayGoOn = () => !this.#hasEnded && this.#callsOfTurn < CALLS_PER_TURN;
    this.#output.together(() => {
      try {
        this.#unread = this.#reader.read(chunk, mayGoOn);
      } catch (error) {
        if (!(error instanceof ProtocolError)) throw error;
        this.fail(error.code);
      }
    });
    if (this.#hasEnded) return;
    // Others have their turn, whatever the frames were.
    const hasMore = this.#unread !== undefined || chunk.length >= LONG_READ_BYTES;
    if (hasMore) setImmediate(() => this.#goOn());
    if (hasMore || this.#output.isStalled) this.#options.socket.pause();
  }

  /** Reads on, unless the peer has to read first. */
  #goOn(): void {
    if (this.#hasEnded || this.#output.isStalled) return;
    const unread = this.#unread;
    this.#unread = undefined;
    if (unread !== undefined) this.#read(unread);
    if (this.#unread === undefined && !this.#output.isStalled) this.#options.socket.resume();
  }

  #frame(type: number, flags: number, id: number, payload: Buffer): void {
    switch (type) {
      case DATA:
        this.#data(flags, id, payload);
        return;
      case PRIORITY:
        requireSize(payload, 5);
        requireStream(id);
        return;
      case RST_STREAM:
        requireSize(payload, 4);
        this.#requireOpened(id);
        this.#countReset();
        this.#close(this.#streams.get(id));
        return;
      case SETTINGS:
        requireNoStream(id);
        this.#receiveSettings(flags, payload);
        return;
      case PUSH_PROMISE:
        throw new ProtocolError(PROTOCOL_ERROR);
      case PING:
        requireSize(payload, 8);
        requireNoStream(id);
        // No PING is sent from here.
        if ((flags & ACK) !== 0) throw new ProtocolError(PROTOCOL_ERROR);
        this.#output.write(frame(PING, ACK, 0, payload));
        return;
      case GOAWAY:
        requireNoStream(id);
        if (payload.length < 8) throw new ProtocolError(FRAME_SIZE_ERROR);
        if (payload.readUInt32BE(4) === NO_ERROR) this.close();
        else this.fail(NO_ERROR);
        return;
      case WINDOW_UPDATE:
        requireSize(payload, 4);
        this.#widen(id, payload.readUInt32BE(0) & NUMBER_MAX);
    }
  }

  #receiveSettings(flags: number, payload: Buffer): void {
    if ((flags & ACK) !== 0) {
      requireSize(payload, 0);
      return;
    }
    if (!this.#settings.take()) throw new ProtocolError(ENHANCE_YOUR_CALM);
    const former = this.#peer.initialWindow;
    this.#peer.apply(payload);
    this.#output.write(settingsReceived);
    const change = this.#peer.initialWindow - former;
    if (change === 0) return;
    for (const stream of [...this.#streams.values()]) {
      stream.sendWindow += change;
      if (stream.sendWindow > NUMBER_MAX) throw new ProtocolError(FLOW_CONTROL_ERROR);
      this.#answers.send(stream);
    }
  }

  #widen(id: number, bytes: number): void {
    if (id === 0) {
      if (bytes === 0) throw new ProtocolError(PROTOCOL_ERROR);
      this.#answers.widen(bytes);
      return;
    }
    this.#requireOpened(id);
    const stream = this.#streams.get(id);
    if (stream === undefined) return;
    stream.sendWindow += bytes;
    if (bytes === 0) this.#fault(stream, PROTOCOL_ERROR);
    else if (stream.sendWindow > NUMBER_MAX) this.#fault(stream, FLOW_CONTROL_ERROR);
    else this.#answers.send(stream);
  }

  /** A header block: of a new stream, or the trailers of an open one. */
  #block(flags: number, id: number, block: Buffer): void {
    const isEnd = (flags & END_STREAM) !== 0;
    if (id > this.#lastStream) {
      if (id % 2 === 0) throw new ProtocolError(PROTOCOL_ERROR);
      this.#begin(id, this.#decode(block), isEnd);
      return;
    }
    const fields = this.#decoder.decode(block, listLimits);
    const stream = this.#streams.get(id);
    // It has closed meanwhile.
    if (stream === undefined) return;
    if (stream.hasRequest) this.#fault(stream, STREAM_CLOSED);
    else if (!isEnd || fields === undefined || !areTrailers(fields)) this.#fault(stream, PROTOCOL_ERROR);
    else this.#endRequest(stream);
  }

  /** What a block says; undefined: it is malformed. Most peers send the same block for each call, so it is compared first. */
  #decode(block: Buffer): RequestHead | "too long" | undefined {
    const known = this.#known;
    if (known?.version === this.#decoder.version && known.block.equals(block)) return known.head;
    const { version } = this.#decoder;
    const fields = this.#decoder.decode(block, listLimits);
    if (fields === undefined) return "too long";
    const head = readRequestHead(fields);
    if (head !== undefined && this.#decoder.version === version) {
      this.#known = { block: Buffer.from(block), version, head };
    }
    return head;
  }

  #begin(id: number, head: RequestHead | "too long" | undefined, isEnd: boolean): void {
    this.#callsOfTurn++;
    // The peer may send it elsewhere. It is not the last stream, which was in the GOAWAY.
    if (this.#state !== "open") {
      this.#output.write(numbersFrame(RST_STREAM, id, REFUSED_STREAM));
      return;
    }
    this.#lastStream = id;
    if (head === undefined || head === "too long") {
      this.#countReset();
      this.#output.write(numbersFrame(RST_STREAM, id, head === undefined ? PROTOCOL_ERROR : ENHANCE_YOUR_CALM));
    } else if (this.#hasRoom()) this.#open(id, head, isEnd);
    else this.#output.write(numbersFrame(RST_STREAM, id, REFUSED_STREAM));
  }

  #hasRoom(): boolean {
    const { waitingBytes } = this.#answers;
    const { bytes, bytesMax } = this.#options.waiting;
    const readsAnswers = waitingBytes === 0 || (waitingBytes < WAITING_BYTES_MAX && bytes < bytesMax);
    const hasRoom = this.#streams.size < STREAMS_MAX && readsAnswers;
    this.#rejectedStreams = hasRoom ? 0 : this.#rejectedStreams + 1;
    if (this.#rejectedStreams > REJECTED_STREAMS_MAX) throw new ProtocolError(ENHANCE_YOUR_CALM);
    return hasRoom;
  }

  #open(id: number, head: RequestHead, isEnd: boolean): void {
    const stream = new Stream(id, head, { receive: STREAM_WINDOW, send: this.#peer.initialWindow }, this);
    this.#streams.set(id, stream);
    stream.listener = this.#options.onRequest(stream);
    if (stream.listener === undefined) stream.reset(REFUSED_STREAM);
    else stream.listener.begin();
    if (isEnd && stream.isOpen) this.#endRequest(stream);
  }

  #data(flags: number, id: number, payload: Buffer): void {
    this.#requireOpened(id);
    const content = withoutPadding(flags, payload);
    this.#receiveWindow -= payload.length;
    if (this.#receiveWindow < 0) throw new ProtocolError(FLOW_CONTROL_ERROR);
    if (this.#receiveWindow < CONNECTION_WINDOW / 2) {
      this.#output.write(numbersFrame(WINDOW_UPDATE, 0, CONNECTION_WINDOW - this.#receiveWindow));
      this.#receiveWindow = CONNECTION_WINDOW;
    }
    const stream = this.#streams.get(id);
    // It has closed meanwhile.
    if (stream === undefined) return;
    if (stream.hasRequest) this.#fault(stream, STREAM_CLOSED);
    else this.#receive(stream, content, payload.length, (flags & END_STREAM) !== 0);
  }

  #receive(stream: Stream, content: Buffer, bytes: number, isEnd: boolean): void {
    stream.receiveWindow -= bytes;
    stream.received += content.length;
    if (stream.receiveWindow < 0) this.#fault(stream, FLOW_CONTROL_ERROR);
    else if (stream.received > (stream.head.contentLength ?? NUMBER_MAX)) this.#fault(stream, PROTOCOL_ERROR);
    else if (content.length > 0) stream.listener?.receive(content);
    if (!stream.isOpen) return;
    if (isEnd) this.#endRequest(stream);
    else if (stream.receiveWindow < STREAM_WINDOW / 2) {
      this.#output.write(numbersFrame(WINDOW_UPDATE, stream.id, STREAM_WINDOW - stream.receiveWindow));
      stream.receiveWindow = STREAM_WINDOW;
    }
  }

  #endRequest(stream: Stream): void {
    if (!stream.hasLengthOfHead) {
      this.#fault(stream, PROTOCOL_ERROR);
      return;
    }
    stream.hasRequest = true;
    stream.listener?.end();
  }

  /** Resets a stream because of what its peer sent. */
  #fault(stream: Stream, code: number): void {
    this.#countReset();
    stream.reset(code);
  }

  #countReset(): void {
    if (!this.#resets.take()) throw new ProtocolError(ENHANCE_YOUR_CALM);
  }

  #close(stream: Stream | undefined): void {
    if (stream === undefined) return;
    this.#remove(stream);
    this.#endIfDone();
  }

  #remove(stream: Stream): void {
    this.#streams.delete(stream.id);
    this.#answers.drop(stream);
    stream.isOpen = false;
    stream.listener?.close();
  }

  #requireOpened(id: number): void {
    // Those that were refused at the end are not the last stream. Those of a server have even numbers, and 0 is the connection.
    const isOpened = id % 2 === 1 && (id <= this.#lastStream || this.#state !== "open");
    if (!isOpened) throw new ProtocolError(PROTOCOL_ERROR);
  }

  // What streams use.

  send(stream: Stream): void {
    this.#answers.send(stream);
  }

  sendBlock(stream: Stream, block: Buffer): void {
    this.#answers.sendBlock(stream, block);
  }

  reset(stream: Stream, code: number): void {
    this.#output.write(numbersFrame(RST_STREAM, stream.id, code));
    this.#close(stream);
  }
}

function requireSize(payload: Buffer, bytes: number): void {
  if (payload.length !== bytes) throw new ProtocolError(FRAME_SIZE_ERROR);
}

function requireStream(id: number): void {
  if (id === 0) throw new ProtocolError(PROTOCOL_ERROR);
}

function requireNoStream(id: number): void {
  if (id !== 0) throw new ProtocolError(PROTOCOL_ERROR);
}

function ignore(): void {}
