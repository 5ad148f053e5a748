import type { IncomingMessage } from "node:http";

/** Bytes that are read of long bodies in one turn of the event loop, and requests that go on reading in the next one. */
const BYTES_PER_TURN = 2 * 1024 * 1024;
const REQUESTS_PER_TURN = 8;

/**
 * Lets long bodies be read in turns. Whatever has arrived on a connection is read at once, megabytes of it, so that many
 * connections could keep the event loop for a long time; beyond a bound per turn, requests wait for a later one, in the
 * order in which they came to it.
 */
export class ReadPace {
  #bytes = 0;
  #scheduled = false;
  readonly #paused = new Set<IncomingMessage>();

  /** To be called for each chunk; pauses the request where it is its turn to wait. */
  record(request: IncomingMessage, bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes > BYTES_PER_TURN) {
      request.pause();
      this.#paused.add(request);
    }
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => this.#turn());
  }

  #turn(): void {
    this.#scheduled = false;
    this.#bytes = 0;
    let resumed = 0;
    for (const request of this.#paused) {
      if (resumed++ === REQUESTS_PER_TURN) {
        this.#scheduled = true;
        setImmediate(() => this.#turn());
        return;
      }
      this.#paused.delete(request);
      request.resume();
    }
  }
}
