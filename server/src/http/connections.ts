import type { Server } from "node:http";
import type { Socket } from "node:net";

/** Refused connections that may wait for their peers to hang up. */
const REFUSED_MAX = 1_000;

/** The connections of one server: how many there may be, and how they end. */
export class Connections {
  readonly #max: number;
  readonly #refuse: (socket: Socket) => void;
  readonly #open = new Set<Socket>();
  /** Connections that were told to come back, until their peers have hung up. */
  readonly #refused = new Set<Socket>();

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
      socket.once("close", () => this.#open.delete(socket));
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

  /** Ends those on which nothing was ever asked, which are not idle to Node and would be waited for. */
  dropSilent(): void {
    for (const socket of this.#open) if (socket.bytesRead === 0) socket.destroy();
    for (const socket of this.#refused) socket.destroy();
  }

  destroy(): void {
    for (const socket of this.#open) socket.destroy();
  }
}
