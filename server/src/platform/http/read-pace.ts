import type { IncomingMessage } from "node:http";

/** Bytes of long bodies that one iteration of the event loop reads, and paused requests that the next one resumes. */
const BYTES_PER_ITERATION = 512 * 1024;
const REQUESTS_PER_ITERATION = 8;

/**
 * Limits how much of long bodies is read in one iteration of the event loop. Node reads everything that has arrived on a
 * connection, megabytes of it, so many connections could block the event loop. Beyond the limit, requests are paused and
 * resume in later iterations, in the order of their pauses.
 */
export class ReadPace {
  #bytes = 0;
  #scheduled = false;
  readonly #paused = new Set<IncomingMessage>();

  /** To be called for each chunk. Pauses the request if the limit is reached. */
  record(request: IncomingMessage, bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes > BYTES_PER_ITERATION) {
      request.pause();
      this.#paused.add(request);
    }
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => this.#resume());
  }

  #resume(): void {
    this.#scheduled = false;
    this.#bytes = 0;
    let resumed = 0;
    for (const request of this.#paused) {
      if (resumed++ === REQUESTS_PER_ITERATION) {
        this.#scheduled = true;
        setImmediate(() => this.#resume());
        return;
      }
      this.#paused.delete(request);
      request.resume();
    }
  }
}
