import { write, writeSync } from "node:fs";

/** Characters that wait while the output takes none, such as a full disk or a pipe that nobody reads. */
const WAITING_LENGTH_MAX = 1024 ** 2;
/** Receives whole log lines. */
export interface LogDestination {
  write(line: string): void;
}

export interface LogOutputOptions {
  /** The file descriptor. */
  readonly fd: number;
  /** Called at the first of several failures. */
  onFailure(code: string | undefined): void;
  /** Called when lines are written again after this many were dropped. */
  onDropped(lines: number): void;
  readonly write?: typeof write;
  readonly writeSync?: typeof writeSync;
}

/**
 * Writes the log beside the event loop. What cannot be written waits for the next line, up to a bound; further lines are
 * dropped and counted. So neither a full disk nor a stalled reader stops the service.
 */
export class LogOutput implements LogDestination {
  readonly #options: Required<LogOutputOptions>;
  /** The rest of a chunk, and whole lines after it. */
  #rest: Buffer = Buffer.alloc(0);
  #waiting = "";
  #dropped = 0;
  #isWriting = false;
  #hasFailed = false;
  #written: (() => void)[] = [];

  constructor(options: LogOutputOptions) {
    this.#options = { write, writeSync, ...options };
  }

  write(line: string): void {
    if (this.#rest.length + this.#waiting.length + line.length > WAITING_LENGTH_MAX) this.#dropped++;
    else this.#waiting += line;
    if (!this.#isWriting) this.#writeWaiting();
  }

  /** Resolves when nothing waits any more; never if nobody reads. */
  async written(): Promise<void> {
    while (this.#isWriting) await new Promise<void>((resolve) => this.#written.push(resolve));
  }

  /** Writes what waits when the process ends all of a sudden. A write that has not ended could block the next one for ever. */
  end(): void {
    if (this.#isWriting) return;
    try {
      for (let left = this.#take(); left.length > 0; ) {
        left = left.subarray(this.#options.writeSync(this.#options.fd, left));
      }
    } catch {
      // Nobody reads it.
    }
  }

  #take(): Buffer {
    const chunk = this.#waiting === "" ? this.#rest : Buffer.concat([this.#rest, Buffer.from(this.#waiting)]);
    this.#rest = Buffer.alloc(0);
    this.#waiting = "";
    return chunk;
  }

  #writeWaiting(): void {
    const chunk = this.#take();
    if (chunk.length === 0) return;
    this.#isWriting = true;
    // Counted while the chunk is being written.
    this.#rest = chunk;
    this.#options.write(this.#options.fd, chunk, 0, chunk.length, null, (error, written) => {
      this.#isWriting = false;
      for (const resolve of this.#written.splice(0)) resolve();
      if (error) this.#fail(error);
      else {
        this.#rest = chunk.subarray(written);
        this.#hasFailed = false;
        const dropped = this.#dropped;
        this.#dropped = 0;
        if (dropped > 0) this.#options.onDropped(dropped);
        if (!this.#isWriting) this.#writeWaiting();
      }
    });
  }

  #fail({ code }: NodeJS.ErrnoException): void {
    // EAGAIN: a reader that is behind.
    if (this.#hasFailed || code === "EAGAIN") return;
    this.#hasFailed = true;
    this.#options.onFailure(code);
  }
}
