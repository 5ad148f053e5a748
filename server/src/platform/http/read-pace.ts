import type { IncomingMessage } from "node:http";

/** What Node reads of a connection at a time, in bytes. */
const CHUNK_BYTES = 64 * 1024;

/**
 * Limits how much of long bodies is read in one iteration of the event loop. Node reads everything that has arrived on a
 * connection, megabytes of it, so many connections could block the event loop. Beyond the limit, requests are paused and
 * resume in later iterations, in the order of their pauses.
 */
export class ReadPace {
  /** Chunks that one iteration reads, and paused requests that the next one resumes. */
  readonly #chunksPerIteration: number;
  #bytes = 0;
  #scheduled = false;
  readonly #paused = new Set<IncomingMessage>();

  constructor(chunksPerIteration: number) {
    this.#chunksPerIteration = chunksPerIteration;
  }

  /** To be called for each chunk. Pauses the request if the limit is reached. */
  record(request: IncomingMessage, bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes > this.#chunksPerIteration * CHUNK_BYTES) {
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
      if (resumed++ === this.#chunksPerIteration) {
        this.#scheduled = true;
        setImmediate(() => this.#resume());
        return;
      }
      this.#paused.delete(request);
      request.resume();
    }
  }
}
