import type { Socket } from "node:net";
import type { Clock, Milliseconds } from "../../../../engine/src/clock/clock.ts";
import { addressNetwork } from "../../../../engine/src/rules/address.ts";
import { ByNetwork } from "../connections/by-network.ts";
import { type CallParts, GrpcCall } from "./call.ts";
import type { WaitingContent } from "./http2/answers.ts";
import { ENHANCE_YOUR_CALM } from "./http2/frames.ts";
import { Session } from "./http2/session.ts";
import type { Stream } from "./http2/stream.ts";

/** How often the connections and their calls are checked. */
export const SWEEP_INTERVAL: Milliseconds = 1_000;

/**
 * Calls that are open on all connections. A further one replaces the one whose message has been incomplete for the longest. If all
 * messages have arrived it is refused, and its client may repeat it elsewhere.
 */
export const CALLS_MAX = 20_000;

/** Connections of one network that are looked at to find an unused one. */
const CANDIDATES_MAX = 1_000;

/**
 * Between the two GOAWAY frames of a graceful end (RFC 9113, section 6.8): calls that the peer began before it got the first
 * one are answered.
 */
const NOTICE_TIME: Milliseconds = 1_000;

/** A peer that reads its answers does so within this time. Only slower ones are ended to free memory. */
const PROMPT: Milliseconds = 1_000;

export interface ConnectionLimits {
  /** Maximum number of open connections. */
  connectionsMax: number;
  /** How long a connection stays open, give or take a tenth. */
  connectionAge: Milliseconds;
  /** How long a connection may be open before its first call. */
  headersTimeout: Milliseconds;
  /** How long a call may be open, which includes that its answer is read. */
  requestTimeout: Milliseconds;
  /** Memory for answers that peers do not read. */
  bodiesBytesMax: number;
}

/** A connection: *serving* until it is asked to end, then *noticed* for a while, then *closing*. */
class Connection {
  readonly session: Session;
  readonly openedAt: Milliseconds;
  /** From when on it is to end. */
  readonly endsAt: Milliseconds;
  readonly calls = new Set<GrpcCall>();
  hasCalled = false;
  noticedAt: Milliseconds | undefined;

  constructor(
    { openedAt, endsAt }: Pick<Connection, "openedAt" | "endsAt">,
    open: (connection: Connection) => Session,
  ) {
    this.openedAt = openedAt;
    this.endsAt = endsAt;
    this.session = open(this);
  }

  /** Whether it has a call that is being answered. One whose message has not arrived, or whose answer is not read, is none. */
  get isInUse(): boolean {
    for (const call of this.calls) if (call.isAnswering) return true;
    return false;
  }
}

/** The connections of the listener and their calls: how many there are, and how long they last. */
export class GrpcConnections {
  /** Calls and connections that were refused because there were too many. */
  readonly refused = { calls: 0, connections: 0 };
  /** Open calls. */
  calls = 0;
  readonly #limits: ConnectionLimits;
  readonly #clock: Clock;
  readonly #parts: CallParts;
  readonly #open = new ByNetwork<Connection>();
  readonly #waiting: WaitingContent;
  /** Since when connections have had something that their peers do not read, the oldest first. */
  readonly #unread = new Map<Connection, Milliseconds>();
  /** A number from 0 to 1, so that connections of one moment do not end at one moment. */
  readonly #chance: () => number;
  #isDraining = false;

  constructor(limits: ConnectionLimits, parts: CallParts, chance: () => number) {
    this.#limits = limits;
    this.#waiting = { bytes: 0, bytesMax: limits.bodiesBytesMax };
    this.#parts = parts;
    this.#clock = parts.clock;
    this.#chance = chance;
  }

  get size(): number {
    return this.#open.size;
  }

  add(socket: Socket): void {
    const address = socket.remoteAddress ?? "";
    const network = addressNetwork(address);
    const hasRoom = this.#open.size < this.#limits.connectionsMax || this.#makeRoom(network);
    const now = this.#clock.monotonic();
    const age = this.#limits.connectionAge * (0.9 + 0.2 * this.#chance());
    const connection = new Connection(
      { openedAt: now, endsAt: this.#isDraining ? now : now + age },
      (opened) =>
        new Session({
          socket,
          clock: this.#clock,
          waiting: this.#waiting,
          onRequest: (stream) => this.#begin(stream, opened, address),
          onClose: () => this.#remove(opened),
        }),
    );
    if (!hasRoom) {
      this.refused.connections++;
      connection.session.fail(ENHANCE_YOUR_CALM);
      return;
    }
    this.#open.add(connection, network);
  }

  #remove(connection: Connection): void {
    this.#open.remove(connection);
    this.#unread.delete(connection);
  }

  #begin(stream: Stream, connection: Connection, address: string): GrpcCall | undefined {
    connection.hasCalled = true;
    if (this.calls >= CALLS_MAX) this.#dropOldestCall();
    if (this.calls >= CALLS_MAX) {
      this.refused.calls++;
      return undefined;
    }
    const call = new GrpcCall(stream, address, this.#parts, () => {
      connection.calls.delete(call);
      this.calls--;
    });
    this.calls++;
    connection.calls.add(call);
    return call;
  }

  /** Ends what lasts too long. To be called about once a second. */
  sweep(): void {
    const now = this.#clock.monotonic();
    const { headersTimeout, requestTimeout } = this.#limits;
    this.#dropUnread(now);
    for (const connection of this.#open) {
      const { session, calls, hasCalled, openedAt, noticedAt } = connection;
      // In the order of their beginnings.
      for (const call of calls) {
        if (now - call.startedAt <= requestTimeout) break;
        call.cancel();
      }
      if (!hasCalled && now - openedAt > headersTimeout) session.destroy();
      // It does not read what it asked for.
      else if (session.stalledFor > requestTimeout) session.destroy();
      else if (noticedAt !== undefined) {
        if (now - noticedAt < NOTICE_TIME) continue;
        // Calls end within the time of a request, so only a peer that does not read keeps its connection longer.
        if (now - noticedAt > NOTICE_TIME + 2 * requestTimeout) session.destroy();
        else session.close();
      } else if (now >= connection.endsAt) this.#notice(connection, now);
    }
  }

  /** Ends the connections whose peers have not read their answers for the longest, while these take too much memory. */
  #dropUnread(now: Milliseconds): void {
    let bytes = 0;
    for (const connection of this.#open) {
      const { keptBytes } = connection.session;
      bytes += keptBytes;
      if (keptBytes === 0) this.#unread.delete(connection);
      else if (!this.#unread.has(connection)) this.#unread.set(connection, now);
    }
    for (const [connection, since] of this.#unread) {
      if (bytes <= this.#limits.bodiesBytesMax || now - since < PROMPT) break;
      bytes -= connection.session.keptBytes;
      this.#remove(connection);
      connection.session.destroy();
    }
  }

  /** Asks every peer to connect to another node. New connections are still accepted, and asked the same. */
  drain(): void {
    this.#isDraining = true;
    const now = this.#clock.monotonic();
    for (const connection of this.#open) if (connection.noticedAt === undefined) this.#notice(connection, now);
  }

  /** Ends each connection after its open calls. */
  close(): void {
    for (const { session } of this.#open) session.close();
  }

  destroy(): void {
    for (const { session } of this.#open) session.destroy();
  }

  #notice(connection: Connection, now: Milliseconds): void {
    connection.noticedAt = now;
    connection.session.notice();
  }

  /** Ends the call whose message has been incomplete for the longest. */
  #dropOldestCall(): void {
    const [oldest] = this.#parts.incomplete;
    oldest?.drop();
  }

  /**
   * Ends the oldest unused connection of the network that has the most: no network can take the connections of another one that has
   * fewer. If it is the network of the new connection, that replaces one of its own.
   */
  #makeRoom(network: string): boolean {
    let left = CANDIDATES_MAX;
    for (const connection of this.#open.largest(network)) {
      if (left-- === 0) return false;
      if (connection.isInUse) continue;
      this.#remove(connection);
      connection.session.destroy();
      return true;
    }
    return false;
  }
}
