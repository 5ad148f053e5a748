import type { Server } from "node:http";
import type { Socket } from "node:net";
import type { Milliseconds } from "../clock/clock.ts";

/** Rejected connections that may wait until their peers close them. */
const REJECTED_MAX = 1_000;

/** A peer that reads its responses finishes within this time. Only slower ones are ended to free memory. */
const PROMPT_MS: Milliseconds = 1_000;

/** Limits on output that waits in memory until peers read it. */
export interface OutputLimits {
  /** How long a peer may take to read a response. */
  timeout: Milliseconds;
  /** Bytes on all connections together. */
  bytesMax: number;
}

/** The connections of one server: limits their number and the output that waits on them. */
export class Connections {
  readonly #max: number;
  readonly #reject: (socket: Socket) => void;
  readonly #open = new Set<Socket>();
  /** Connections that got 503, until their peers close them. */
  readonly #rejected = new Set<Socket>();
  /** Since when each connection has had output waiting without a pause, oldest first. */
  readonly #sending = new Map<Socket, number>();

  constructor(max: number, reject: (socket: Socket) => void) {
    this.#max = max;
    this.#reject = reject;
  }

  /** Runs before Node's own listener, which would read and run the requests of a rejected connection. */
  watch(server: Server): void {
    const [accept] = server.listeners("connection");
    server.removeAllListeners("connection");
    server.on("connection", (socket: Socket) => {
      if (this.#open.size >= this.#max) {
        this.#rejectConnection(socket);
        return;
      }
      this.#open.add(socket);
      socket.once("close", () => {
        this.#open.delete(socket);
        this.#sending.delete(socket);
      });
      accept!.call(server, socket);
    });
  }

  #rejectConnection(socket: Socket): void {
    this.#reject(socket);
    this.#rejected.add(socket);
    socket.once("close", () => this.#rejected.delete(socket));
    for (const oldest of this.#rejected) {
      if (this.#rejected.size <= REJECTED_MAX) break;
      this.#rejected.delete(oldest);
      oldest.destroy();
    }
  }

  /**
   * Ends connections whose peers do not read their responses: those with output that has waited for too long and, when
   * the output of all connections takes too much memory, those where it has waited for the longest. To be called about
   * once a second.
   */
  dropSlow(now: number, { timeout, bytesMax }: OutputLimits): void {
    let bytes = 0;
    for (const socket of this.#open) {
      if (socket.writableLength === 0) this.#sending.delete(socket);
      else {
        bytes += socket.writableLength;
        if (!this.#sending.has(socket)) this.#sending.set(socket, now);
      }
    }
    for (const [socket, since] of this.#sending) {
      const waited = now - since;
      if (waited <= timeout && (bytes <= bytesMax || waited < PROMPT_MS)) break;
      bytes -= socket.writableLength;
      this.#sending.delete(socket);
      socket.destroy();
    }
  }

  /** Ends connections without any request. Node does not treat them as idle and would wait for them. */
  dropSilent(): void {
    for (const socket of this.#open) if (socket.bytesRead === 0) socket.destroy();
    for (const socket of this.#rejected) socket.destroy();
  }

  destroy(): void {
    for (const socket of this.#open) socket.destroy();
  }
}
