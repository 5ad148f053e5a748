import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** The end of a request's head, which contains it once. */
const HEAD_END = Buffer.from("\r\n\r\n");
const CR = 13;
const LF = 10;

/**
 * Bytes of one connection that are parsed in one turn of the event loop, besides bodies of a known length. A body that is
 * sent in many small chunks costs the most: hundreds of events.
 */
const BYTES_PER_TURN = 4 * 1024;

/** A chunk of this length is probably not the last that has arrived. Node reads 64 KiB at a time, and up to 2 MiB in a turn. */
const LONG_CHUNK_BYTES = 32 * 1024;

/** A connection of Node's server. The members are Node's. */
interface ServerSocket extends Socket {
  /** The first response that is not written. */
  _httpMessage?: ServerResponse | null;
  /** Whether the server must not get input now. It resumes the connection later. */
  _paused?: boolean;
  [INPUT]?: Input;
}

const INPUT: unique symbol = Symbol("input of a connection");

/**
 * Makes Node's server parse the next request of a connection after the answer to the one before, in a later turn of the
 * event loop. A listener for the event "connection" of that server, after its own.
 *
 * Otherwise it would parse and answer everything that has arrived in one turn. 64 KiB hold 2,000 requests: they would keep
 * all other connections waiting, and their answers would wait in memory.
 */
export function parseOneAtATime(socket: Socket): void {
  const parse = socket.listeners("data")[0] as (chunk: Buffer) => void;
  (socket as ServerSocket)[INPUT] = new Input(socket, parse);
  // With a listener of others, Node's server does not read the connection below the stream.
  socket.off("data", parse).on("data", onData);
}

/** Discards the input of a connection from here on, unless others listen for it. */
export function stopParsing(socket: Socket): void {
  (socket as ServerSocket)[INPUT]?.stop();
}

function onData(this: ServerSocket, chunk: Buffer): void {
  this[INPUT]?.read(chunk);
}

class Input {
  readonly #socket: ServerSocket;
  /** Node's listener for input. */
  readonly #parse: (chunk: Buffer) => void;
  #isStopped = false;
  /** Bytes of the present body that have not arrived, if its length is known. */
  #bodyLeft = 0;
  /** Whether this will resume the connection. The readers of bodies resume it too, in the same turn. */
  #willResume = false;

  constructor(socket: ServerSocket, parse: (chunk: Buffer) => void) {
    this.#socket = socket;
    this.#parse = parse;
  }

  stop(): void {
    this.#isStopped = true;
    this.#socket.off("data", onData);
  }

  read(chunk: Buffer): void {
    let left = BYTES_PER_TURN;
    for (let position = 0; position < chunk.length; ) {
      if (this.#isStopped || this.#socket.destroyed) return;
      if (this.#willResume || left === 0 || this.#socket.isPaused() || this.#unwritten) {
        this.#pause();
        // The stream keeps the rest.
        this.#socket.unshift(chunk.subarray(position));
        return;
      }
      const isBody = this.#bodyLeft > 0;
      const end = isBody ? Math.min(chunk.length, position + this.#bodyLeft) : partEnd(chunk, position, left);
      const part = end - position === chunk.length ? chunk : chunk.subarray(position, end);
      this.#parse(part);
      position = end;
      if (isBody) this.#bodyLeft -= part.length;
      else {
        left -= part.length;
        if (isWholeHeadEnd(part)) this.#bodyLeft = this.#announced;
      }
    }
    // More has arrived: other connections are read first.
    if (chunk.length >= LONG_CHUNK_BYTES && !this.#isStopped) this.#pause();
  }

  /** Stops reading until the answer is written, or else until the next turn. */
  #pause(): void {
    this.#socket.pause();
    if (this.#willResume) return;
    this.#willResume = true;
    const resumeSoon = () => void setImmediate(() => this.#resume());
    const unwritten = this.#unwritten;
    if (unwritten) unwritten.once("finish", resumeSoon);
    else resumeSoon();
  }

  #resume(): void {
    this.#willResume = false;
    const { _paused, _httpMessage } = this.#socket;
    const request = _httpMessage?.req;
    // The server resumes the connection when the reader of the body has room.
    const isFull = request?.complete === false && request.readableLength >= request.readableHighWaterMark;
    if (!_paused && !isFull) this.#socket.resume();
  }

  /** The response to a request that has arrived whole, until it is written. */
  get #unwritten(): ServerResponse | undefined {
    const response = this.#socket._httpMessage;
    return response?.req.complete ? response : undefined;
  }

  /** The length of the body of the present request; 0 if there is none, or it is not known. */
  get #announced(): number {
    const request = this.#socket._httpMessage?.req;
    return request === undefined || request.complete ? 0 : Number(request.headers["content-length"] ?? 0);
  }
}

/** The end of the next part of the input: the end of a head, if there is one within `bytesMax`. */
function partEnd(chunk: Buffer, position: number, bytesMax: number): number {
  const head = chunk.indexOf(HEAD_END, position);
  const end = head === -1 ? chunk.length : head + HEAD_END.length;
  return Math.min(end, position + bytesMax);
}

/** Whether a head ends where the part ends. At the start of a part, the end of one that began in the chunk before is no sign of it. */
function isWholeHeadEnd(part: Buffer): boolean {
  return part[0] !== CR && part[0] !== LF && part.indexOf(HEAD_END, part.length - HEAD_END.length) !== -1;
}
