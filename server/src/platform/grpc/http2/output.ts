import type { Socket } from "node:net";
import type { Clock, Milliseconds } from "../../../../../engine/src/clock/clock.ts";

/** What a connection sends. Frames of one turn leave in one piece. */
export class Output {
  readonly #socket: Socket;
  readonly #clock: Clock;
  readonly #onDrain: () => void;
  #frames: Buffer[] = [];
  /** Since when the peer has not read what it was sent. */
  #stalledSince: Milliseconds | undefined;
  #isHeld = false;
  #willFlush = false;
  #hasEnded = false;

  /** @param onDrain called when the peer has read what it was sent. */
  constructor(socket: Socket, clock: Clock, onDrain: () => void) {
    this.#socket = socket;
    this.#clock = clock;
    this.#onDrain = onDrain;
    socket.on("drain", () => this.#drained());
  }

  get isStalled(): boolean {
    return this.#stalledSince !== undefined;
  }

  /** How long the peer has not read what it was sent. */
  get stalledFor(): Milliseconds {
    return this.#stalledSince === undefined ? 0 : this.#clock.monotonic() - this.#stalledSince;
  }

  write(frame: Buffer): void {
    if (this.#hasEnded) return;
    this.#frames.push(frame);
    if (this.#isHeld || this.#willFlush) return;
    this.#willFlush = true;
    queueMicrotask(() => {
      this.#willFlush = false;
      this.#flush();
    });
  }

  /** Runs a function, and sends what it writes. */
  together(run: () => void): void {
    this.#isHeld = true;
    try {
      run();
    } finally {
      this.#isHeld = false;
      this.#flush();
    }
  }

  /** Sends what was written, and ends the connection. A peer that does not read it has stalled. */
  end(): void {
    this.#flush();
    this.#hasEnded = true;
    this.#stalledSince ??= this.#clock.monotonic();
    this.#socket.destroySoon();
  }

  #flush(): void {
    const frames = this.#frames;
    const [first] = frames;
    if (first === undefined || this.#hasEnded) return;
    this.#frames = [];
    const hasRoom = this.#socket.write(frames.length === 1 ? first : Buffer.concat(frames));
    if (!hasRoom) this.#stalledSince ??= this.#clock.monotonic();
  }

  #drained(): void {
    if (this.#hasEnded) return;
    this.#stalledSince = undefined;
    this.#onDrain();
  }
}
