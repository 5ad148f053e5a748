import { Readable } from "node:stream";

/** Bytes of a long content that are written at a time. */
const CHUNK_BYTES = 64 * 1024;
/** Bytes of long contents that one iteration of the event loop writes. */
const BYTES_PER_ITERATION = 512 * 1024;

/** Contents up to this length, in bytes, are written at once. */
export const SHORT_CONTENT_BYTES_MAX = CHUNK_BYTES;

/**
 * Limits how much of long contents is written in one iteration of the event loop. A write copies megabytes into the
 * buffers of the system, and Node accepts one connection per iteration, so long iterations keep new clients waiting.
 */
export class WritePace {
  #bytes = 0;
  #isScheduled = false;
  readonly #waiting = new Set<() => void>();

  /** A stream of the content, which reads as fast as the pace and its consumer allow. It copies nothing. */
  stream(content: Buffer): Readable {
    let position = 0;
    const next = () => {
      const chunk = content.subarray(position, position + CHUNK_BYTES);
      position += chunk.length;
      stream.push(chunk.length === 0 ? null : chunk);
    };
    const stream = new Readable({
      highWaterMark: CHUNK_BYTES,
      read: () => this.#run(next),
      destroy: (error, done) => {
        this.#waiting.delete(next);
        done(error);
      },
    });
    return stream;
  }

  #run(next: () => void): void {
    this.#schedule();
    if (this.#waiting.size > 0 || !this.#take()) this.#waiting.add(next);
    else next();
  }

  #take(): boolean {
    if (this.#bytes >= BYTES_PER_ITERATION) return false;
    this.#bytes += CHUNK_BYTES;
    return true;
  }

  /** Serves the streams that wait, one chunk each in turn. */
  #resume(): void {
    this.#isScheduled = false;
    this.#bytes = 0;
    for (const next of this.#waiting) {
      if (!this.#take()) break;
      this.#waiting.delete(next);
      next();
    }
    if (this.#waiting.size > 0) this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => this.#resume());
  }
}

/** The pace of this event loop. */
export const writePace = new WritePace();
