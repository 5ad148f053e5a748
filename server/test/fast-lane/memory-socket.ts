import { once } from "node:events";
import { Duplex } from "node:stream";

/** The server's side of a connection in memory: what a peer sends arrives in exactly the chunks that it sends. */
export class MemorySocket extends Duplex {
  readonly remoteAddress: string;
  /** What the server has written, as Latin-1. */
  output = "";
  /** Whether the server has ended its side. */
  hasEnded = false;

  constructor(remoteAddress = "192.0.2.7") {
    super({ allowHalfOpen: true });
    this.remoteAddress = remoteAddress;
  }

  /** Gives the server what the peer sends; null: the peer has ended its side. */
  receive(chunk: Buffer | null): void {
    this.push(chunk);
  }

  override _read(): void {}

  override _write(chunk: Buffer | string, encoding: BufferEncoding, done: () => void): void {
    this.output +=
      typeof chunk === "string" ? Buffer.from(chunk, encoding).toString("latin1") : chunk.toString("latin1");
    done();
    this.emit("output");
  }

  override _final(done: () => void): void {
    this.hasEnded = true;
    done();
  }

  // The methods of a TCP socket that servers call.

  destroySoon(): void {
    if (this.writable) this.end();
    if (this.writableFinished) this.destroy();
    else this.once("finish", () => this.destroy());
  }

  setTimeout(): this {
    return this;
  }

  setNoDelay(): this {
    return this;
  }

  setKeepAlive(): this {
    return this;
  }
}

/**
 * The same, read into memory that connections share, as a TCP socket in the lane is. Each chunk is overwritten as soon as
 * it was read.
 */
export class SharedMemorySocket extends MemorySocket {
  /** Members of Node's. */
  readonly _handle = {
    reading: true,
    readStart: () => {},
    readStop: () => {},
    useUserBuffer: (memory: Buffer) => {
      this.#memory = memory;
    },
  };
  #memory: Buffer | undefined;
  /** What has arrived and is not read. */
  #arrived: (Buffer | null)[] = [];
  #isFull = false;

  /** Whether the server reads it so. */
  get isShared(): boolean {
    return this.#memory !== undefined && this.#callback !== undefined;
  }

  override receive(chunk: Buffer | null): void {
    this.#arrived.push(chunk);
    this.#readAll();
  }

  override resume(): this {
    super.resume();
    setImmediate(() => this.#readAll());
    return this;
  }

  override _read(): void {
    if (!this.#isFull) return;
    this.#isFull = false;
    setImmediate(() => this.#readAll());
  }

  get #callback(): ((bytes: number, memory: Buffer) => boolean) | undefined {
    const name = Object.getOwnPropertySymbols(this).find(({ description }) => description === "kBufferCb");
    return name && (this as unknown as Record<symbol, (bytes: number, memory: Buffer) => boolean>)[name];
  }

  #readAll(): void {
    while (this.#arrived.length > 0 && !this.isPaused() && !this.#isFull && !this.destroyed) {
      const chunk = this.#arrived.shift()!;
      const memory = this.#memory;
      if (memory === undefined || chunk === null) {
        this.push(chunk);
        continue;
      }
      const part = chunk.subarray(0, memory.length);
      if (part.length < chunk.length) this.#arrived.unshift(chunk.subarray(memory.length));
      memory.set(part);
      this.#isFull = !this.#callback!.call(this, part.length, memory);
      memory.fill("!", 0, part.length);
    }
  }
}

/** An answer as text. */
export interface Answer {
  status: number;
  /** By lower-case name. */
  headers: Record<string, string>;
  payload: string;
}

/** Sends one request on a connection of its own and returns the answer. */
export async function sendAlone(
  accept: (connection: Duplex) => void,
  { path, headers, body, from }: { path: string; headers: object; body: string | Buffer; from: string },
): Promise<Answer> {
  const socket = new MemorySocket(from);
  accept(socket);
  const fields = Object.entries({ host: "keys.example", ...headers, "content-length": Buffer.byteLength(body) });
  const head = `POST ${path} HTTP/1.1\r\n${fields.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n`;
  socket.push(Buffer.concat([Buffer.from(head, "latin1"), Buffer.from(body)]));
  for (;;) {
    const answer = readAnswer(socket.output);
    if (answer !== undefined) {
      socket.destroy();
      return answer;
    }
    await once(socket, "output");
  }
}

/** The answer in a text in Latin-1; undefined while it is incomplete. */
function readAnswer(text: string): Answer | undefined {
  const end = text.indexOf("\r\n\r\n");
  if (end === -1) return undefined;
  const [line, ...fields] = text.slice(0, end).split("\r\n") as [string, ...string[]];
  const headers = Object.fromEntries(
    fields.map((field) => [
      field.slice(0, field.indexOf(":")).toLowerCase(),
      field.slice(field.indexOf(":") + 1).trim(),
    ]),
  );
  const payload = Buffer.from(text.slice(end + 4), "latin1");
  if (payload.length < Number(headers["content-length"])) return undefined;
  return { status: Number(line.split(" ")[1]), headers, payload: payload.toString() };
}
