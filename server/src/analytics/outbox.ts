import type { BatchLocation, Spool } from "./spool.ts";

/** A batch on its way to the store. */
interface Waiting {
  /** Undefined: only on disk. */
  text: string | undefined;
  place: BatchLocation | undefined;
  /** 0 until it was read, where an earlier process left it. */
  events: number;
  readonly bytes: number;
}

export interface OutboxOptions {
  spool: Pick<Spool, "append" | "read" | "done" | "open" | "next" | "setAside">;
  write(batches: readonly string[]): Promise<void>;
  /** Bytes of batches in memory; what exceeds them is on disk only, or lost. */
  bytesMax: number;
  /** Told when the store begins to refuse, and when it takes batches again. */
  onReachability(reachable: boolean, cause?: unknown): void;
  /** Told of events that were lost, and why. */
  onLoss(events: number, cause: unknown): void;
  /** Told of a file that cannot be read, and of lines on disk that are no batches. */
  onUnreadable(cause: unknown): void;
}

/** Bytes that go to the store in one transaction, unless one batch alone has more. */
const BYTES_PER_WRITE = 8 * 1024 * 1024;

/** Batches that go to the store in one transaction: enough to be worth it, few enough to be short. */
const BATCHES_PER_WRITE = 8;

/**
 * Batches on their way to the store, in order. Each is written to disk and sent to the store at once; whichever is done
 * first, it is kept until the store has it. A batch that the store refuses, or of which it is not known whether the store
 * has it, is sent again: the store knows it by its number. One is lost only when neither disk nor memory takes it.
 */
export class Outbox {
  readonly #options: OutboxOptions;
  readonly #waiting: Waiting[] = [];
  /** Appending, one batch after the other. */
  #appending: Promise<void> = Promise.resolve();
  #sending: Promise<void> | undefined;
  #bytes = 0;
  #reachable = true;
  /** Events that the store has taken, and those that were lost. */
  readonly counts = { delivered: 0, lost: 0 };
  /** Lines on disk that are no batches and were set aside. */
  unreadable = 0;
  #leavesRest = false;

  constructor(options: OutboxOptions) {
    this.#options = options;
  }

  /** Finds what an earlier process left; it is read while it is sent, file by file. */
  open(): Promise<void> {
    return this.#options.spool.open();
  }

  /** Leaves on disk what an earlier process left and was not read yet. */
  leaveRest(): void {
    this.#leavesRest = true;
  }

  /** How many batches the store does not have yet, without those in files that were not read yet. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Bytes of memory in use, estimated. */
  get bytes(): number {
    return this.#bytes;
  }

  get reachable(): boolean {
    return this.#reachable;
  }

  /** Takes a batch; never throws. */
  put(text: string, events: number): void {
    const one: Waiting = { text, place: undefined, events, bytes: text.length };
    this.#waiting.push(one);
    this.#bytes += one.bytes;
    this.#appending = this.#appending.then(() => this.#append(one));
  }

  /** Sends what waits, until the store refuses or nothing is left. */
  send(): Promise<void> {
    this.#sending ??= this.#send().finally(() => {
      this.#sending = undefined;
    });
    return this.#sending;
  }

  /** Resolves when nothing is under way any more: every batch is with the store, on disk, or lost. */
  async settled(): Promise<void> {
    await this.#appending;
    await this.#sending;
  }

  async #append(one: Waiting): Promise<void> {
    // Where the store was faster there is nothing left to keep.
    if (!this.#waiting.includes(one)) return;
    try {
      one.place = await this.#options.spool.append(one.text!);
      if (!this.#waiting.includes(one)) await this.#options.spool.done(one.place);
      else if (this.#bytes > this.#options.bytesMax) this.#forgetText(one);
    } catch (error) {
      if (this.#bytes > this.#options.bytesMax && this.#remove(one)) this.#lose(one, error);
    }
  }

  async #send(): Promise<void> {
    for (;;) {
      if (this.#waiting.length < BATCHES_PER_WRITE) await this.#takeUp();
      if (this.#waiting.length === 0) return;
      const batches: Waiting[] = [];
      try {
        const texts: string[] = [];
        let bytes = 0;
        for (const one of this.#waiting.slice(0, BATCHES_PER_WRITE)) {
          if (texts.length > 0 && bytes + one.bytes > BYTES_PER_WRITE) break;
          const text = one.text ?? (await this.#read(one));
          if (text === undefined) continue;
          batches.push(one);
          texts.push(text);
          bytes += one.bytes;
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
      for (const one of batches) {
        if (!this.#remove(one)) continue;
        this.counts.delivered += one.events;
        // A file that cannot be deleted is taken in again at the next start, and known there by its batches' numbers.
        if (one.place !== undefined) await this.#options.spool.done(one.place).catch(() => {});
      }
    }
  }

  /** The next file that an earlier process left and that holds batches. */
  async #takeUp(): Promise<void> {
    for (let taken = 0; taken === 0 && !this.#leavesRest; ) {
      try {
        const places = await this.#options.spool.next();
        if (places === undefined) return;
        for (const place of places) this.#waiting.push({ text: undefined, place, events: 0, bytes: place.bytes });
        taken = places.length;
      } catch (error) {
        this.#options.onUnreadable(error);
      }
    }
  }

  /** From disk; what cannot be read there is lost, and what is no batch is set aside. */
  async #read(one: Waiting): Promise<string | undefined> {
    const { spool } = this.#options;
    let text: string | undefined;
    try {
      text = await spool.read(one.place!);
    } catch (error) {
      if (this.#remove(one)) this.#lose(one, error);
      return undefined;
    }
    if (text !== undefined) {
      if (one.events === 0) one.events = eventsOf(text);
      return text;
    }
    this.unreadable++;
    this.#options.onUnreadable(new Error("A line is no batch; it was set aside"));
    await spool.setAside(one.place!).catch(() => {});
    if (this.#remove(one)) await spool.done(one.place!).catch(() => {});
    return undefined;
  }

  #forgetText(one: Waiting): void {
    if (one.text !== undefined) this.#bytes -= one.bytes;
    one.text = undefined;
  }

  #remove(one: Waiting): boolean {
    const index = this.#waiting.indexOf(one);
    if (index === -1) return false;
    this.#waiting.splice(index, 1);
    this.#forgetText(one);
    return true;
  }

  #lose(one: Waiting, cause: unknown): void {
    this.counts.lost += one.events;
    this.#options.onLoss(one.events, cause);
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
