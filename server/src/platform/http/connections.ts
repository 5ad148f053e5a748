import type { Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Milliseconds } from "../../../../engine/src/clock/clock.ts";
import { addressNetwork } from "../../../../engine/src/rules/address.ts";
import { ByNetwork } from "../connections/by-network.ts";
import { Problem } from "../rpc/problems.ts";
import type { ConnectionCounts } from "./connection-counts.ts";

/** How often connections with slow readers are to be checked. */
export const SWEEP_INTERVAL: Milliseconds = 1_000;

/** The problem of a connection beyond the maximum. */
export function tooManyConnections(): Problem {
  const detail = "The service has its maximum number of connections. Try again shortly.";
  return new Problem("service_unavailable", detail, { headers: { "retry-after": "1" } });
}

/** Rejected connections that may wait until their peers close them. */
const REJECTED_MAX = 1_000;

/** A peer that reads its responses finishes within this time. Only slower ones are ended to free memory. */
const PROMPT_MS: Milliseconds = 1_000;

/** Connections that may wait until another thread has ended one of its own. */
const WAITING_MAX = 1_000;

/** A connection without a request for this time is idle. A client that uses its connections in turn uses each within it. */
const IDLE_AFTER: Milliseconds = 5_000;

/** Connections of one network that are looked at to find one to end. */
const CANDIDATES_MAX = 1_000;

/** The response to the latest request of a connection. */
const LATEST: unique symbol = Symbol("latest response");
/** What had been read of a connection at the latest checks, and since when nothing more. */
const READ: unique symbol = Symbol("read");
type TrackedSocket = Socket & { [LATEST]?: ServerResponse; [READ]?: { bytes: number; since: number } };

/** What reads connections before Node's server does. */
export interface Lane {
  accept(socket: Socket): void;
  /** Whether the connection has a request that is not answered, and its peer reads what there is of the answer. */
  isAnswering(socket: Socket): boolean;
}

/** The threads that have connections of the same service. */
export interface OtherThreads {
  counts: ConnectionCounts;
  /** Ends an unused connection of another thread, if that makes room for one of this network. Never rejects. */
  makeRoom(network: string): Promise<boolean>;
}

/** Limits on output that waits in memory until peers read it. */
export interface OutputLimits {
  /** How long a peer may take to read a response. */
  timeout: Milliseconds;
  /** Bytes on all connections together. */
  bytesMax: number;
}

/**
 * The connections of one server: limits their number and the output that waits on them.
 *
 * When there are as many as allowed, a new connection takes the place of one of the network that has the most, so that no client
 * can use up the connections: of an unused one if another network has more than its own, and otherwise of an idle one, so that a
 * program that forgets its connections keeps working. If there is none, it gets 503; if other threads have connections, it waits until
 * one of them has looked for one too. A connection whose request is being answered is never ended, unless its peer does not read the
 * response. A network is an IPv4 address or the first 64 bits of an IPv6 address.
 */
export class Connections {
  readonly #max: number;
  readonly #others: OtherThreads | undefined;
  readonly #reject: (socket: Socket) => void;
  #lane: Lane | null = null;
  readonly #open = new ByNetwork<Socket>();
  /** Connections that got 503, until their peers close them. */
  readonly #rejected = new Set<Socket>();
  /** Connections that wait for room. */
  readonly #waiting = new Set<Socket>();
  /** Since when each connection has had output waiting without a pause, oldest first. */
  readonly #sending = new Map<Socket, number>();
  #checkedAt = Number.NEGATIVE_INFINITY;

  /** @param others given if other threads have connections too. */
  constructor(max: number, reject: (socket: Socket) => void, others?: OtherThreads) {
    this.#max = max;
    this.#reject = reject;
    this.#others = others;
  }

  /**
   * Runs before the present listeners, which would read and run the requests of a rejected connection.
   *
   * @param openLane opens the lane in which connections begin; it gets the listeners.
   */
  watch(server: Server, openLane?: (accept: (socket: Socket) => void) => Lane): void {
    const listeners = server.listeners("connection");
    server.removeAllListeners("connection");
    const accept = (socket: Socket) => {
      for (const listener of listeners) listener.call(server, socket);
    };
    const lane = openLane?.(accept);
    this.#lane = lane ?? null;
    const next = lane === undefined ? accept : (socket: Socket) => lane.accept(socket);
    server.on("connection", (socket: Socket) => this.accept(socket, next));
  }

  /** Sets the lane in which connections begin. */
  set lane(lane: Lane) {
    this.#lane = lane;
  }

  /** Counts a connection and passes it on, unless there are too many. */
  accept(socket: Socket, next: (socket: Socket) => void): void {
    const network = addressNetwork(socket.remoteAddress ?? "");
    const others = this.#others?.counts.others ?? 0;
    if (this.#open.size + others < this.#max || this.makeRoom(network)) {
      this.#add(socket, network);
      next(socket);
    } else if (others > 0 && this.#waiting.size < WAITING_MAX) void this.#wait(socket, network, next);
    else this.#rejectConnection(socket);
  }

  /** Passes a connection on when another thread has made room for it. */
  async #wait(socket: Socket, network: string, next: (socket: Socket) => void): Promise<void> {
    this.#waiting.add(socket);
    socket.on("error", ignore);
    const hasRoom = await this.#others!.makeRoom(network);
    this.#waiting.delete(socket);
    socket.off("error", ignore);
    if (socket.destroyed) return;
    if (hasRoom) {
      this.#add(socket, network);
      next(socket);
    } else this.#rejectConnection(socket);
  }

  /** Called for each request. The connection is in use from the end of the request to the end of its response. */
  record(response: ServerResponse): void {
    (response.req.socket as TrackedSocket)[LATEST] = response;
  }

  /**
   * Calls `then` once all requests that arrived whole on a connection are answered, unless it closes before. Until then
   * a text on the socket would be taken for the answer to one of them.
   */
  afterAnswers(socket: Socket, then: () => void): void {
    const latest = (socket as TrackedSocket)[LATEST];
    if (latest === undefined || latest.writableFinished) then();
    else if (latest.req.complete || latest.headersSent) {
      // Before Node's own listener, which ends the connection if the peer has ended its side. An answer with
      // "Connection: close" is the last one.
      latest.prependOnceListener("finish", () => latest.shouldKeepAlive && then());
    }
    // The handler of an incomplete request may reject it in this turn, and then that is its answer. Node gives the socket
    // to one response at a time.
    else if (latest.socket === null) latest.once("socket", () => setImmediate(then));
    else setImmediate(then);
  }

  #add(socket: Socket, network: string): void {
    this.#open.add(socket, network);
    this.#publish();
    socket.once("close", () => this.release(socket));
  }

  /** Leaves a connection to another thread, which counts it from now on, or forgets one that has ended. */
  release(socket: Socket): void {
    this.#open.remove(socket);
    this.#sending.delete(socket);
    this.#publish();
  }

  #publish(): void {
    if (this.#others) this.#others.counts.own = this.#open.size;
  }

  /** Ends a connection of the network with the most, for one of `network`. Returns whether there was one. */
  makeRoom(network: string): boolean {
    const most = this.#open.largest(network);
    const isOthers = most.size >= this.#open.count(network) + 2;
    let left = CANDIDATES_MAX;
    for (const socket of most) {
      if (left-- === 0) break;
      if (isInUse(socket) || this.#lane?.isAnswering(socket)) continue;
      if (!isOthers && !this.#isIdle(socket)) continue;
      socket.destroy();
      // Its event "close" comes later.
      this.#open.remove(socket);
      this.#publish();
      return true;
    }
    return false;
  }

  #isIdle({ [READ]: read, bytesRead, writableLength }: TrackedSocket): boolean {
    const isQuiet = read !== undefined && read.bytes === bytesRead && this.#checkedAt - read.since >= IDLE_AFTER;
    return isQuiet && writableLength === 0;
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
   * Notes which connections are idle. Ends those whose peers do not read their responses: those with output that has waited for too long and, when
   * the output of all connections takes too much memory, those where it has waited for the longest. To be called about
   * once a second.
   */
  dropSlow(now: number, { timeout, bytesMax }: OutputLimits): void {
    let bytes = 0;
    this.#checkedAt = now;
    for (const socket of this.#open as Iterable<TrackedSocket>) {
      const { bytesRead, [READ]: read } = socket;
      if (read?.bytes !== bytesRead) socket[READ] = { bytes: bytesRead, since: now };
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
    for (const socket of [...this.#rejected, ...this.#waiting]) socket.destroy();
  }

  destroy(): void {
    for (const socket of [...this.#open, ...this.#waiting]) socket.destroy();
  }
}

/** Whether a request has arrived whole, its response is not complete, and the peer reads what there is of it. */
function isInUse(socket: TrackedSocket): boolean {
  const latest = socket[LATEST];
  return latest?.req.complete === true && !latest.writableEnded && !latest.writableNeedDrain;
}

/** The event "close" follows an error. */
function ignore(): void {}
