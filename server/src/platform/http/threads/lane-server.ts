import "../keep-ticks-fast.ts";
import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import type { Timer } from "../../../../../engine/src/clock/clock.ts";
import { every } from "../../../../../engine/src/clock/every.ts";
import type { Operation } from "../../rpc/operation.ts";
import { Connections, type OtherThreads, SWEEP_INTERVAL, tooManyConnections } from "../connections.ts";
import type { FastLane } from "../fast-lane/fast-lane.ts";
import { type LaneOptions, meteredPaths, openLane } from "../fast-lane/open.ts";
import { rejectSocket } from "../reject.ts";
import { copyOf, type TunnelMessage, type TunnelOpening, WINDOW_BYTES } from "./tunnel.ts";

export interface LaneServerOptions extends Omit<LaneOptions, "metered" | "isClosing" | "handOver"> {
  operations: readonly Operation[];
  otherThreads: OtherThreads;
  /** Sends a message about a connection that leaves the lane to the thread of the ordinary server. */
  send(message: TunnelMessage | TunnelOpening): void;
}

/**
 * The server of a thread that has only the fast lane. Connections that leave the lane go on to the thread of the ordinary
 * server: this thread passes their bytes on in both directions.
 */
export class LaneServer {
  readonly #options: LaneServerOptions;
  readonly #servers: Server[] = [];
  readonly #lane: FastLane;
  readonly #connections: Connections;
  readonly #tunnels = new Map<number, Tunnel>();
  readonly #sweep: Timer;
  #tunnelled = 0;
  #isClosing = false;

  constructor(options: LaneServerOptions) {
    this.#options = options;
    const { limits, rpc, otherThreads, clock } = options;
    const reject = (socket: Socket) => rejectSocket(socket, tooManyConnections(), rpc);
    this.#connections = new Connections(limits.connectionsMax, reject, otherThreads);
    const handOver = (socket: Socket) => this.#tunnel(socket);
    this.#lane = openLane({
      ...options,
      // Edges are answered by the thread of the ordinary server.
      metered: meteredPaths(options.operations),
      isClosing: () => this.#isClosing,
      handOver,
    });
    this.#connections.lane = this.#lane;
    const output = { timeout: limits.requestTimeout, bytesMax: limits.bodiesBytesMax };
    this.#sweep = every(clock, SWEEP_INTERVAL, async () => this.#connections.dropSlow(clock.monotonic(), output));
  }

  /** @throws when the address cannot be used. */
  async listen(host: string, port: number): Promise<void> {
    const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => this.accept(socket));
    server.listen({ host, port, reusePort: true });
    await once(server, "listening");
    this.#servers.push(server);
  }

  /** Reads a connection. */
  accept(socket: Socket): void {
    this.#connections.accept(socket, (accepted) => this.#lane.accept(accepted));
  }

  /** Ends an unused connection, if that makes room for one of this network. */
  makeRoom(network: string): boolean {
    return this.#connections.makeRoom(network);
  }

  /** Handles a message of the other thread. */
  receive(message: TunnelMessage): void {
    this.#tunnels.get(message[1])?.receive(message);
  }

  /** Ends each connection after its next answer. New connections are still accepted. */
  drain(): void {
    this.#isClosing = true;
  }

  /** Accepts no more connections, ends unused ones, and resolves when all are closed. */
  async close(): Promise<void> {
    this.#isClosing = true;
    const closed = Promise.all(this.#servers.map((server) => new Promise((resolve) => server.close(resolve))));
    this.#lane.close();
    this.#connections.dropSilent();
    await closed;
    this.#sweep.cancel();
  }

  /** Ends every connection at once. */
  destroy(): void {
    this.#connections.destroy();
    for (const tunnel of this.#tunnels.values()) tunnel.socket.destroy();
  }

  #tunnel(socket: Socket): void {
    const id = ++this.#tunnelled;
    // The other thread counts it.
    this.#connections.release(socket);
    this.#options.send(["open", id, socket.remoteAddress ?? ""]);
    this.#tunnels.set(id, new Tunnel(id, socket, this.#options.send));
    socket.once("close", () => {
      this.#tunnels.delete(id);
      this.#options.send(["close", id]);
    });
  }
}

/** The side of a tunnel that has the socket. */
class Tunnel {
  readonly socket: Socket;
  readonly #id: number;
  readonly #send: (message: TunnelMessage) => void;
  /** Bytes that the other thread has not read. */
  #unread = 0;

  constructor(id: number, socket: Socket, send: (message: TunnelMessage) => void) {
    this.socket = socket;
    this.#id = id;
    this.#send = send;
    // The event "close" follows an error.
    socket.on("error", () => {});
    socket.on("end", () => send(["end", id]));
    socket.on("data", (chunk: Buffer) => {
      this.#unread += chunk.length;
      if (this.#unread > WINDOW_BYTES) socket.pause();
      send(["data", id, copyOf(chunk)]);
    });
  }

  receive(message: TunnelMessage): void {
    const { socket } = this;
    switch (message[0]) {
      case "data": {
        const [, , bytes] = message;
        socket.write(bytes, () => this.#send(["read", this.#id, bytes.length]));
        return;
      }
      case "read":
        this.#unread -= message[2];
        if (this.#unread <= WINDOW_BYTES && socket.isPaused()) socket.resume();
        return;
      case "end":
        socket.end(() => this.#send(["ended", this.#id]));
        return;
      case "close":
        socket.destroy();
    }
  }
}
