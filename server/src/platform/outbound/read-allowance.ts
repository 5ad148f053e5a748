import type { Socket } from "node:net";
import { OutboundFailure } from "./exchange.ts";

/**
 * What each read costs beside its bytes. A host can send one byte in each TLS record, and each record is a read of its own.
 */
const READ_COST = 64;

/** TLS sessions of one connection. A server sends one or two; each takes about as long as a short answer. */
const SESSIONS_MAX = 16;

const allowances = new WeakMap<Socket, ReadAllowance>();

/**
 * Bounds how much a host sends on a connection, whatever it is: the bounds of the parser apply to one head, one chunk or
 * one line, of which there can be any number. A connection that sends more than it was granted is closed, and so is one
 * that sends anything while no request is open.
 */
export class ReadAllowance {
  readonly #socket: Socket;
  #left = 0;
  #sessions = 0;

  static of(socket: Socket): ReadAllowance {
    let allowance = allowances.get(socket);
    if (!allowance) {
      allowance = new ReadAllowance(socket);
      allowances.set(socket, allowance);
    }
    return allowance;
  }

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("session", () => {
      this.#sessions++;
      if (this.#sessions > SESSIONS_MAX) this.#refuse();
    });
  }

  /** Begins a request, whose answer may have so many bytes in all. */
  grant(bytes: number): void {
    this.#left = bytes;
    // Behind the parser: an answer that is complete, or long enough, in its first bytes is one, whatever follows.
    this.#socket.off("data", this.#onData);
    this.#socket.on("data", this.#onData);
  }

  /** Ends the request. */
  end(): void {
    this.#left = 0;
  }

  readonly #onData = (chunk: Buffer): void => {
    this.#left -= chunk.length + READ_COST;
    if (this.#left < 0) this.#refuse();
  };

  #refuse(): void {
    this.#socket.destroy(
      new OutboundFailure("failed", "The request failed: the host sent more than an answer may have"),
    );
  }
}
