import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Clock } from "../../../../engine/src/clock/clock.ts";
import { ReadPace } from "./read-pace.ts";
import { type Answer, respond } from "./respond.ts";

/** How much of a rejected body is still read, in milliseconds and in bytes. */
const LINGER_MS = 5_000;
const LINGER_BYTES_MAX = 64 * 1024 * 1024;
/** Connections that linger. Each holds up to 128 KiB that no budget counts. */
const LINGERING_MAX = 256;

/**
 * Answers requests whose body is rejected before it has arrived.
 *
 * Closing a connection while its peer still sends resets it, and most clients then report the reset instead of the
 * answer. So the answer is written at once, and the connection stays open for a limited time in which the rest of the
 * body is read and discarded (a lingering close).
 */
export class Lingering {
  readonly #clock: Clock;
  /** A turn that discards 512 KiB takes 8 ms of CPU, and nobody waits for it. */
  readonly #pace = new ReadPace(1);
  /** The lingering connections, each with the function that ends it; the oldest first. */
  readonly #lingering = new Map<Socket, () => void>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  respond(request: IncomingMessage, response: ServerResponse, answer: Answer, path: string): void {
    respond(response, answer, path, true, false);
    if (request.readableEnded || request.destroyed) {
      response.end();
      return;
    }
    let left = LINGER_BYTES_MAX;
    const end = () => {
      timer.cancel();
      this.#lingering.delete(request.socket);
      response.end();
    };
    const timer = this.#clock.schedule(LINGER_MS, end);
    this.#lingering.set(request.socket, end);
    if (this.#lingering.size > LINGERING_MAX) this.#endOldest();
    request.on("data", (chunk: Buffer) => {
      left -= chunk.length;
      if (left < 0) end();
      else this.#pace.record(request, chunk.length);
    });
    request.once("close", end).once("end", end).resume();
  }

  /** Ends a connection that lingers, after its answers. False if it does not linger. */
  end(socket: Socket): boolean {
    const end = this.#lingering.get(socket);
    end?.();
    return end !== undefined;
  }

  #endOldest(): void {
    const [end] = this.#lingering.values();
    end?.();
  }

  /** Ends every lingering connection. */
  close(): void {
    for (const end of this.#lingering.values()) end();
  }
}
