import type { Server } from "node:http";
import type { Socket } from "node:net";
import type { Milliseconds } from "../clock/clock.ts";

/** Refused connections that may wait for their peers to hang up. */
const REFUSED_MAX = 1_000;

/** A connection whose peer takes what it is sent is done within this time; only others are given up for memory. */
const PROMPT_MS: Milliseconds = 1_000;

/** What may wait in memory for peers to take it. */
export interface OutputBounds {
  /** How long a peer may take over a response. */
  timeout: Milliseconds;
  /** Bytes on all connections together. */
  bytesMax: number;
}

/** The connections of one server: how many there may be, what they hold, and how they end. */
export class Connections {
  readonly #max: number;
  readonly #refuse: (socket: Socket) => void;
  readonly #open = new Set<Socket>();
  /** Connections that were told to come back, until their peers have hung up. */
  readonly #refused = new Set<Socket>();
  /** Since when a connection has held output without a pause, in the order in which that began. */
  readonly #sending = new Map<Socket, number>();

  constructor(max: number, refuse: (socket: Socket) => void) {
    this.#max = max;
    this.#refuse = refuse;
  }

  /** Stands in front of Node's own listener, which would read and run what a refused connection asks for. */
  watch(server: Server): void {
    const [accept] = server.listeners("connection");
    server.removeAllListeners("connection");
    server.on("connection", (socket: Socket) => {
      if (this.#open.size >= this.#max) {
        this.#turnAway(socket);
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

  #turnAway(socket: Socket): void {
    this.#refuse(socket);
    this.#refused.add(socket);
    socket.once("close", () => this.#refused.delete(socket));
    for (const oldest of this.#refused) {
      if (this.#refused.size <= REFUSED_MAX) break;
      this.#refused.delete(oldest);
      oldest.destroy();
    }
  }

  /**
   * Ends connections whose peers do not take what they are sent: those that hold output for longer than they may, and,
   * where all together hold too much, those that have held it for the longest. To be called about once a second.
   */
  dropSlow(now: number, { timeout, bytesMax }: OutputBounds): void {
    let bytes = 0;
    for (const socket of this.#open) {
      if (socket.writableLength === 0) this.#sending.delete(socket);
      else {
        bytes += socket.writableLength;
        if (!this.#sending.has(socket)) this.#sending.set(socket, now);
      }
    }
    for (const [socket, since] of this.#sending) {
      const held = now - since;
      if (held <= timeout && (bytes <= bytesMax || held < PROMPT_MS)) break;
      bytes -= socket.writableLength;
      this.#sending.delete(socket);
      socket.destroy();
    }
  }

  /** Ends those on which nothing was ever asked, which are not idle to Node and would be waited for. */
  dropSilent(): void {
    for (const socket of this.#open) if (socket.bytesRead === 0) socket.destroy();
    for (const socket of this.#refused) socket.destroy();
  }

  destroy(): void {
    for (const socket of this.#open) socket.destroy();
  }
}
