import type { Socket } from "node:net";
import type { Clock, Milliseconds } from "../../../../engine/src/clock/clock.ts";
import { addressNetwork } from "../../../../engine/src/rules/address.ts";

/** Handshakes that are open at once. */
export const HANDSHAKES_MAX = 1_000;

interface Handshake {
  readonly socket: Socket;
  readonly network: string;
  readonly startedAt: Milliseconds;
}

/**
 * The connections whose TLS handshake has not ended. A further one replaces the oldest one of the network that has the most, so that
 * no network keeps another one from connecting. Node reports a handshake that takes too long, and leaves it open.
 */
export class Handshakes {
  readonly #clock: Clock;
  readonly #timeMax: Milliseconds;
  /** By their peers, the oldest first. */
  readonly #open = new Map<string, Handshake>();
  /** The peers of each network, the oldest first. */
  readonly #ofNetwork = new Map<string, Set<string>>();

  constructor(clock: Clock, timeMax: Milliseconds) {
    this.#clock = clock;
    this.#timeMax = timeMax;
  }

  begin(socket: Socket): void {
    if (this.#open.size >= HANDSHAKES_MAX) this.#makeRoom();
    const peer = peerOf(socket);
    const network = addressNetwork(socket.remoteAddress ?? "");
    this.#open.set(peer, { socket, network, startedAt: this.#clock.monotonic() });
    const neighbours = this.#ofNetwork.get(network) ?? new Set();
    this.#ofNetwork.set(network, neighbours.add(peer));
    socket.once("close", () => {
      if (this.#open.get(peer)?.socket === socket) this.#remove(peer);
    });
  }

  /** The handshake of a connection has ended. */
  end(socket: Socket): void {
    this.#remove(peerOf(socket));
  }

  /** Ends those that take too long. To be called about once a second. */
  sweep(): void {
    const now = this.#clock.monotonic();
    for (const [peer, { startedAt }] of this.#open) {
      if (now - startedAt <= this.#timeMax) break;
      this.#destroy(peer);
    }
  }

  destroy(): void {
    for (const peer of this.#open.keys()) this.#destroy(peer);
  }

  #makeRoom(): void {
    let most = new Set<string>();
    for (const neighbours of this.#ofNetwork.values()) if (neighbours.size > most.size) most = neighbours;
    const [oldest] = most;
    if (oldest !== undefined) this.#destroy(oldest);
  }

  #destroy(peer: string): void {
    const socket = this.#open.get(peer)?.socket;
    this.#remove(peer);
    socket?.destroy();
  }

  #remove(peer: string): void {
    const handshake = this.#open.get(peer);
    if (handshake === undefined) return;
    this.#open.delete(peer);
    const neighbours = this.#ofNetwork.get(handshake.network);
    neighbours?.delete(peer);
    if (neighbours?.size === 0) this.#ofNetwork.delete(handshake.network);
  }
}

/** The same for a connection and for its TLS socket. */
function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
