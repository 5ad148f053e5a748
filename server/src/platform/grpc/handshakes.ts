import type { Socket } from "node:net";
import type { Clock, Milliseconds } from "../../../../engine/src/clock/clock.ts";
import { addressNetwork } from "../../../../engine/src/rules/address.ts";
import { ByNetwork } from "../connections/by-network.ts";

/** Connections whose handshake has not ended. */
export const HANDSHAKES_MAX = 1_000;
/** Handshakes that go on at once. Each takes some 0.6 ms of CPU, and all can be in one turn of the loop. */
export const BEGUN_MAX = 32;
/** A peer ends its handshake within this time. Only a slower one gives way to one that waits. */
const PROMPT: Milliseconds = 1_000;

interface Handshake {
  readonly peer: string;
  readonly socket: Socket;
  readonly since: Milliseconds;
}

export interface HandshakesOptions {
  clock: Clock;
  /** How long one may last, with the time that it waits. */
  timeMax: Milliseconds;
  /** Reads the connection, whose handshake begins. */
  begin(socket: Socket): void;
}

/**
 * The TLS handshakes of connections: a few go on at once, and the networks of the others have their turns. When too many wait, a
 * further one replaces the oldest one of the network that has the most. Node reports a handshake that takes too long, and leaves its
 * connection open.
 */
export class Handshakes {
  readonly #options: HandshakesOptions;
  /** By their peers, the oldest first. */
  readonly #open = new Map<string, Handshake>();
  /** Those that go on, with the time since when. */
  readonly #begun = new Map<Handshake, Milliseconds>();
  /** Those that wait. */
  readonly #waiting = new ByNetwork<Handshake>();

  constructor(options: HandshakesOptions) {
    this.#options = options;
  }

  /** @param socket a connection that is not read yet. */
  add(socket: Socket): void {
    if (this.#open.size >= HANDSHAKES_MAX) this.#makeRoom();
    const peer = peerOf(socket);
    const handshake = { peer, socket, since: this.#options.clock.monotonic() };
    this.#open.set(peer, handshake);
    this.#waiting.add(handshake, addressNetwork(socket.remoteAddress ?? ""));
    // "close" follows.
    socket.on("error", ignore);
    socket.once("close", () => this.#remove(handshake));
    this.#advance();
  }

  /** The handshake of a connection has ended. */
  end(socket: Socket): void {
    const handshake = this.#open.get(peerOf(socket));
    if (handshake !== undefined) this.#remove(handshake);
  }

  /** Ends those that take too long. To be called about once a second. */
  sweep(): void {
    const now = this.#options.clock.monotonic();
    for (const handshake of this.#open.values()) {
      if (now - handshake.since <= this.#options.timeMax) break;
      this.#destroy(handshake);
    }
    this.#advance();
  }

  destroy(): void {
    for (const handshake of this.#open.values()) this.#destroy(handshake);
  }

  /** Begins those that have a turn. */
  #advance(): void {
    const now = this.#options.clock.monotonic();
    for (;;) {
      const handshake = this.#mayBegin(now) ? this.#waiting.takeNext() : undefined;
      if (handshake === undefined) return;
      this.#begun.set(handshake, now);
      this.#options.begin(handshake.socket);
    }
  }

  /** Whether one that waits may begin, for which a slow one gives way. */
  #mayBegin(now: Milliseconds): boolean {
    return this.#waiting.size > 0 && (this.#begun.size < BEGUN_MAX || this.#replaceSlow(now));
  }

  #replaceSlow(now: Milliseconds): boolean {
    for (const [handshake, begunAt] of this.#begun) {
      if (now - begunAt < PROMPT) return false;
      this.#destroy(handshake);
      return true;
    }
    return false;
  }

  #makeRoom(): void {
    const [oldest] = this.#waiting.largest();
    if (oldest !== undefined) this.#destroy(oldest);
  }

  #destroy(handshake: Handshake): void {
    this.#forget(handshake);
    handshake.socket.destroy();
  }

  #remove(handshake: Handshake): void {
    if (this.#forget(handshake)) this.#advance();
  }

  #forget(handshake: Handshake): boolean {
    if (this.#open.get(handshake.peer) !== handshake) return false;
    this.#open.delete(handshake.peer);
    this.#begun.delete(handshake);
    this.#waiting.remove(handshake);
    return true;
  }
}

/** The same for a connection and for its TLS socket. */
function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

/** The event "close" follows an error. */
function ignore(): void {}
