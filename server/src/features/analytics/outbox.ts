import { eventsOf, readBatch } from "./batch.ts";
import type { BatchLocation, Spool } from "./spool.ts";

/** A batch that the store has not committed yet. */
interface WaitingBatch {
  /** Undefined if the batch is only on disk. */
  text: string | undefined;
  location: BatchLocation | undefined;
  /** Number of events; 0 until a batch of an earlier process is read. */
  events: number;
  readonly bytes: number;
}

export interface OutboxOptions {
  spool: Pick<Spool, "append" | "read" | "done" | "open" | "next" | "setAside">;
  write(batches: readonly string[]): Promise<void>;
  /** Maximum bytes of batches in memory. Further batches are only on disk, or lost. */
  bytesMax: number;
  /** Called with false after a failed write, and with true after the next successful one. */
  onReachability(reachable: boolean, cause?: unknown): void;
  /** Called for lost events, with the cause. */
  onLoss(events: number, cause: unknown): void;
  /** Called for an unreadable file of an earlier process, and for an invalid line on disk. */
  onUnreadable(cause: unknown): void;
}

/** Maximum bytes per transaction of the store, unless one batch is larger. */
const BYTES_PER_WRITE = 8 * 1024 * 1024;

/** Maximum number of batches per transaction of the store. PostgreSQL's are prepared on the event loop. */
const BATCHES_PER_WRITE = 8;

/**
 * Delivers batches to the store, in order. Each batch is written to disk and sent to the store at the same time, and kept
 * until the store has committed it. After a failure the batch is sent again; the store ignores a number that it already
 * has. A batch is lost if neither disk nor memory has room, if it cannot be read back from disk, or if the process ends
 * while the batch is only in memory.
 */
export class Outbox {
  readonly #options: OutboxOptions;
  readonly #waiting: WaitingBatch[] = [];
  /** Serialises the writes to disk. */
  #appending: Promise<void> = Promise.resolve();
  #sending: Promise<void> | undefined;
  #bytes = 0;
  #reachable = true;
  /** Delivered and lost events, for the metrics. */
  readonly counts = { delivered: 0, lost: 0 };
  /** Invalid lines that were found on disk, for the metrics. */
  invalidLines = 0;
  #keepsUnreadFiles = false;

  constructor(options: OutboxOptions) {
    this.#options = options;
  }

  /** Finds the files of an earlier process. They are read file by file while they are sent. */
  open(): Promise<void> {
    return this.#options.spool.open();
  }

  /** Stops reading the files of an earlier process, which stay on disk. */
  keepUnreadFiles(): void {
    this.#keepsUnreadFiles = true;
  }

  /** The number of undelivered batches, without those in unread files. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Estimated memory of the batches, in bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  get reachable(): boolean {
    return this.#reachable;
  }

  /** Adds a batch. Never throws. */
  put(text: string, events: number): void {
    const batch: WaitingBatch = { text, location: undefined, events, bytes: text.length };
    this.#waiting.push(batch);
    this.#bytes += batch.bytes;
    this.#appending = this.#appending.then(() => this.#append(batch));
  }

  /** Sends waiting batches until the store fails or none is left. */
  send(): Promise<void> {
    this.#sending ??= this.#send().finally(() => {
      this.#sending = undefined;
    });
    return this.#sending;
  }

  /** Resolves when the writes in progress have ended. A batch that neither disk nor store accepted is then still in memory. */
  async settled(): Promise<void> {
    await this.#appending;
    await this.#sending;
  }

  async #append(batch: WaitingBatch): Promise<void> {
    // The store may already have the batch.
    if (!this.#waiting.includes(batch)) return;
    try {
      batch.location = await this.#options.spool.append(batch.text!);
      if (!this.#waiting.includes(batch)) await this.#options.spool.done(batch.location);
      else if (this.#bytes > this.#options.bytesMax) this.#dropText(batch);
    } catch (error) {
      // Without the disk, the batch stays in memory if there is room.
      if (this.#bytes > this.#options.bytesMax && this.#remove(batch)) this.#recordLoss(batch, error);
    }
  }

  async #send(): Promise<void> {
    for (;;) {
      if (this.#waiting.length < BATCHES_PER_WRITE) await this.#readNextFile();
      if (this.#waiting.length === 0) return;
      const batches: WaitingBatch[] = [];
      try {
        const texts: string[] = [];
        let bytes = 0;
        for (const batch of this.#waiting.slice(0, BATCHES_PER_WRITE)) {
          if (texts.length > 0 && bytes + batch.bytes > BYTES_PER_WRITE) break;
          const text = batch.text ?? (await this.#read(batch));
          if (text === undefined) continue;
          batches.push(batch);
          texts.push(text);
          bytes += batch.bytes;
        }
        if (texts.length === 0) continue;
        await this.#options.write(texts);
      } catch (error) {
        if (this.#reachable) this.#options.onReachability(false, error);
        this.#reachable = false;
        return;
      }
      if (!this.#reachable) this.#options.onReachability(true);
      this.#reachable = true;
      for (const batch of batches) {
        if (!this.#remove(batch)) continue;
        this.counts.delivered += batch.events;
        // A file that cannot be deleted is read again at the next start. The store ignores the numbers that it already has.
        if (batch.location !== undefined) await this.#options.spool.done(batch.location).catch(() => {});
      }
    }
  }

  /** Reads the next non-empty file of an earlier process. */
  async #readNextFile(): Promise<void> {
    for (let found = 0; found === 0 && !this.#keepsUnreadFiles; ) {
      try {
        const locations = await this.#options.spool.next();
        if (locations === undefined) return;
        for (const location of locations)
          this.#waiting.push({ text: undefined, location, events: 0, bytes: location.bytes });
        found = locations.length;
      } catch (error) {
        this.#options.onUnreadable(error);
      }
    }
  }

  /** Reads a batch from disk. A batch that cannot be read is lost. An invalid line is moved to another file. */
  async #read(batch: WaitingBatch): Promise<string | undefined> {
    const { spool } = this.#options;
    let text: string | undefined;
    try {
      text = await spool.read(batch.location!);
    } catch (error) {
      if (this.#remove(batch)) this.#recordLoss(batch, error);
      return undefined;
    }
    if (text !== undefined) {
      if (batch.events === 0) batch.events = eventsOf(readBatch(text));
      return text;
    }
    this.invalidLines++;
    this.#options.onUnreadable(new Error("A line on disk is not a valid batch; it was moved aside"));
    await spool.setAside(batch.location!).catch(() => {});
    if (this.#remove(batch)) await spool.done(batch.location!).catch(() => {});
    return undefined;
  }

  #dropText(batch: WaitingBatch): void {
    if (batch.text !== undefined) this.#bytes -= batch.bytes;
    batch.text = undefined;
  }

  #remove(batch: WaitingBatch): boolean {
    const index = this.#waiting.indexOf(batch);
    if (index === -1) return false;
    this.#waiting.splice(index, 1);
    this.#dropText(batch);
    return true;
  }

  #recordLoss(batch: WaitingBatch, cause: unknown): void {
    this.counts.lost += batch.events;
    this.#options.onLoss(batch.events, cause);
  }
}
