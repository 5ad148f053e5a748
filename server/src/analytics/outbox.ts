import type { BatchLocation, Spool } from "./spool.ts";

/** A batch on its way to the store. */
interface Waiting {
  /** Undefined if the batch is only on disk. */
  text: string | undefined;
  location: BatchLocation | undefined;
  /** Number of events; 0 for a batch of an earlier process that is not read yet. */
  events: number;
  readonly bytes: number;
}

export interface OutboxOptions {
  spool: Pick<Spool, "append" | "read" | "done" | "open" | "next" | "setAside">;
  write(batches: readonly string[]): Promise<void>;
  /** Maximum bytes of batches in memory. Further batches are only on disk, or lost. */
  bytesMax: number;
  /** Called when the store stops and when it resumes accepting batches. */
  onReachability(reachable: boolean, cause?: unknown): void;
  /** Called for lost events, with the cause. */
  onLoss(events: number, cause: unknown): void;
  /** Called for a file that cannot be read, and for an invalid line on disk. */
  onUnreadable(cause: unknown): void;
}

/** Maximum bytes per transaction of the store, unless one batch is larger. */
const BYTES_PER_WRITE = 8 * 1024 * 1024;

/** Maximum number of batches per transaction of the store. */
const BATCHES_PER_WRITE = 8;

/**
 * Delivers batches to the store, in order. Each batch is written to disk and sent to the store at the same time, and kept
 * until the store has committed it. After a failure the batch is sent again; the store recognises repetitions by their
 * number. A batch is lost only if neither disk nor memory has room.
 */
export class Outbox {
  readonly #options: OutboxOptions;
  readonly #waiting: Waiting[] = [];
  /** Serialises the writes to disk. */
  #appending: Promise<void> = Promise.resolve();
  #sending: Promise<void> | undefined;
  #bytes = 0;
  #reachable = true;
  /** Delivered and lost events, for the metrics. */
  readonly counts = { delivered: 0, lost: 0 };
  /** Invalid lines that were moved aside, for the metrics. */
  unreadable = 0;
  #keepsUnread = false;

  constructor(options: OutboxOptions) {
    this.#options = options;
  }

  /** Finds the files of an earlier process. They are read file by file while they are sent. */
  open(): Promise<void> {
    return this.#options.spool.open();
  }

  /** Stops reading the files of an earlier process, which stay on disk. */
  keepUnread(): void {
    this.#keepsUnread = true;
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
    const batch: Waiting = { text, location: undefined, events, bytes: text.length };
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

  /** Resolves when all work in progress has ended: each batch is in the store, on disk, or lost. */
  async settled(): Promise<void> {
    await this.#appending;
    await this.#sending;
  }

  async #append(batch: Waiting): Promise<void> {
    // The store may already have the batch.
    if (!this.#waiting.includes(batch)) return;
    try {
      batch.location = await this.#options.spool.append(batch.text!);
      if (!this.#waiting.includes(batch)) await this.#options.spool.done(batch.location);
      else if (this.#bytes > this.#options.bytesMax) this.#dropText(batch);
    } catch (error) {
      if (this.#bytes > this.#options.bytesMax && this.#remove(batch)) this.#recordLoss(batch, error);
    }
  }

  async #send(): Promise<void> {
    for (;;) {
      if (this.#waiting.length < BATCHES_PER_WRITE) await this.#readNextFile();
      if (this.#waiting.length === 0) return;
      const batches: Waiting[] = [];
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
        // A file that cannot be deleted is read again at the next start. The store recognises its batches by their numbers.
        if (batch.location !== undefined) await this.#options.spool.done(batch.location).catch(() => {});
      }
    }
  }

  /** Reads the next non-empty file of an earlier process. */
  async #readNextFile(): Promise<void> {
    for (let taken = 0; taken === 0 && !this.#keepsUnread; ) {
      try {
        const locations = await this.#options.spool.next();
        if (locations === undefined) return;
        for (const location of locations)
          this.#waiting.push({ text: undefined, location, events: 0, bytes: location.bytes });
        taken = locations.length;
      } catch (error) {
        this.#options.onUnreadable(error);
      }
    }
  }

  /** Reads a batch from disk. An unreadable batch is lost; an invalid line is moved aside. */
  async #read(batch: Waiting): Promise<string | undefined> {
    const { spool } = this.#options;
    let text: string | undefined;
    try {
      text = await spool.read(batch.location!);
    } catch (error) {
      if (this.#remove(batch)) this.#recordLoss(batch, error);
      return undefined;
    }
    if (text !== undefined) {
      if (batch.events === 0) batch.events = eventsOf(text);
      return text;
    }
    this.unreadable++;
    this.#options.onUnreadable(new Error("A line on disk is not a valid batch; it was moved aside"));
    await spool.setAside(batch.location!).catch(() => {});
    if (this.#remove(batch)) await spool.done(batch.location!).catch(() => {});
    return undefined;
  }

  #dropText(batch: Waiting): void {
    if (batch.text !== undefined) this.#bytes -= batch.bytes;
    batch.text = undefined;
  }

  #remove(batch: Waiting): boolean {
    const index = this.#waiting.indexOf(batch);
    if (index === -1) return false;
    this.#waiting.splice(index, 1);
    this.#dropText(batch);
    return true;
  }

  #recordLoss(batch: Waiting, cause: unknown): void {
    this.counts.lost += batch.events;
    this.#options.onLoss(batch.events, cause);
  }
}

function eventsOf(text: string): number {
  const { verifications, ratelimits } = JSON.parse(text) as {
    verifications: [number, ...unknown[]][];
    ratelimits: [number, ...unknown[]][];
  };
  // The count is the third figure from the end of every cell.
  const count = (cells: readonly unknown[][]) => cells.reduce((sum, cell) => sum + (cell.at(-3) as number), 0);
  return count(verifications) + count(ratelimits);
}
