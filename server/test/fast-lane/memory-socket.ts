import { Duplex } from "node:stream";

/** The server's side of a connection in memory: what a peer sends arrives in exactly the chunks that it sends. */
export class MemorySocket extends Duplex {
  readonly remoteAddress = "192.0.2.7";
  /** What the server has written, as Latin-1. */
  output = "";
  /** Whether the server has ended its side. */
  hasEnded = false;

  constructor() {
    super({ allowHalfOpen: true });
  }

  override _read(): void {}

  override _write(chunk: Buffer | string, encoding: BufferEncoding, done: () => void): void {
    this.output +=
      typeof chunk === "string" ? Buffer.from(chunk, encoding).toString("latin1") : chunk.toString("latin1");
    done();
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
