import { Duplex } from "node:stream";
import type { Clock, Milliseconds, Timer } from "../../../../../engine/src/clock/clock.ts";
import { copyOf, type TunnelMessage } from "./tunnel.ts";

/**
 * A connection that another thread accepted, with those members of a socket that servers use. What it reads and writes
 * goes through messages. A chunk counts as written when the peer's socket has taken it, so a slow peer slows down the
 * writer.
 */
export class TunnelledConnection extends Duplex {
  readonly remoteAddress: string;
  /** Bytes that arrived from the peer. */
  bytesRead = 0;
  readonly #id: number;
  readonly #clock: Clock;
  readonly #send: (message: TunnelMessage) => void;
  /** Bytes that are not reported as read. */
  #unread = 0;
  #unwritten = 0;
  #written: (() => void) | undefined;
  #ended: (() => void) | undefined;
  #timeout: Milliseconds = 0;
  #usedAt: Milliseconds = 0;
  #timer: Timer | undefined;

  constructor(id: number, address: string, clock: Clock, send: (message: TunnelMessage) => void) {
    super({ allowHalfOpen: true });
    this.remoteAddress = address;
    this.#id = id;
    this.#clock = clock;
    this.#send = send;
  }

  receive(message: TunnelMessage): void {
    switch (message[0]) {
      case "data": {
        const [, , bytes] = message;
        this.bytesRead += bytes.length;
        this.#unread += bytes.length;
        this.#usedAt = this.#clock.monotonic();
        if (this.push(Buffer.from(bytes.buffer))) this.#reportRead();
        return;
      }
      case "read":
        this.#unwritten -= message[2];
        this.#usedAt = this.#clock.monotonic();
        if (this.#unwritten === 0) this.#written?.();
        return;
      case "end":
        this.push(null);
        return;
      case "ended":
        this.#ended?.();
        return;
      case "close":
        this.destroy();
    }
  }

  override _read(): void {
    this.#reportRead();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#usedAt = this.#clock.monotonic();
    this.#unwritten = chunk.length;
    this.#written = done;
    if (chunk.length === 0) done();
    else this.#send(["data", this.#id, copyOf(chunk)]);
  }

  override _final(done: () => void): void {
    this.#ended = done;
    this.#send(["end", this.#id]);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#timer?.cancel();
    this.#send(["close", this.#id]);
    done(error);
  }

  #reportRead(): void {
    if (this.#unread === 0) return;
    this.#send(["read", this.#id, this.#unread]);
    this.#unread = 0;
  }

  destroySoon(): void {
    if (this.writable) this.end();
    if (this.writableFinished) this.destroy();
    else this.once("finish", () => this.destroy());
  }

  /** Emits "timeout" after this time without input and output; 0: never. */
  setTimeout(timeout: Milliseconds, listener?: () => void): this {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#timeout = timeout;
    this.#usedAt = this.#clock.monotonic();
    if (timeout > 0) {
      if (listener) this.once("timeout", listener);
      this.#watch(timeout);
    } else if (listener) this.off("timeout", listener);
    return this;
  }

  #watch(length: Milliseconds): void {
    this.#timer = this.#clock.schedule(length, () => {
      const left = this.#usedAt + this.#timeout - this.#clock.monotonic();
      if (left > 0) {
        this.#watch(left);
        return;
      }
      this.#timer = undefined;
      this.emit("timeout");
    });
  }

  // The thread with the socket does these.

  setNoDelay(): this {
    return this;
  }

  setKeepAlive(): this {
    return this;
  }
}
