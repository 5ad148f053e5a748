import type { Clock, Milliseconds } from "../../../../../engine/src/clock/clock.ts";
import type { StorageTrouble, WriteHealth } from "../store.ts";

/** How long trouble is reported after it was last observed: on a full disk some writes succeed between those that fail. */
const REPORTED_FOR: Milliseconds = 30_000;
/** A sync that takes this long is slow. Disks take some milliseconds. */
const SLOW_SYNC: Milliseconds = 1_000;

/** SQLite's codes of writes that the file system refused: READONLY, IOERR, FULL, CANTOPEN. */
const REFUSALS: ReadonlyMap<number, StorageTrouble> = new Map([
  [8, "read-only"],
  [10, "failing"],
  [13, "full"],
  [14, "failing"],
]);

/**
 * Counts commits that have begun and ended, in memory that the database thread shares. So the main thread notices a sync
 * that does not end, during which the thread sends nothing.
 */
export class SyncMark {
  readonly #count: Int32Array;

  constructor(buffer: SharedArrayBuffer = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)) {
    this.#count = new Int32Array(buffer);
  }

  get buffer(): SharedArrayBuffer {
    return this.#count.buffer as SharedArrayBuffer;
  }

  /** Runs work that syncs a file. */
  during<T>(work: () => T): T {
    Atomics.add(this.#count, 0, 1);
    try {
      return work();
    } finally {
      Atomics.add(this.#count, 0, 1);
    }
  }

  /** The number of the sync that is under way; undefined if none is. */
  get current(): number | undefined {
    const count = Atomics.load(this.#count, 0);
    return (count & 1) === 1 ? count : undefined;
  }
}

/** What the writing thread of an embedded database says about its disk. */
export class ThreadWriteHealth implements WriteHealth {
  refused = 0;
  slowSyncs = 0;
  readonly #clock: Clock;
  readonly #mark: SyncMark;
  #refusal: { trouble: StorageTrouble; at: Milliseconds; isOver: boolean } | undefined;
  #sync: { number: number; since: Milliseconds; isSlow: boolean } | undefined;
  #slowAt: Milliseconds = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, mark: SyncMark) {
    this.#clock = clock;
    this.#mark = mark;
  }

  /** Records a write that SQLite ended with this code. Others than those of the file system are ignored. */
  refuse(errcode: number | undefined): void {
    // Extended codes carry the primary one in their lowest byte.
    const trouble = errcode === undefined ? undefined : REFUSALS.get(errcode & 0xff);
    if (trouble === undefined) return;
    this.refused++;
    this.#refusal = { trouble, at: this.#clock.monotonic(), isOver: false };
  }

  recover(): void {
    if (this.#refusal !== undefined) this.#refusal.isOver = true;
  }

  /** Looks at the sync that is under way. Call it several times a second. */
  observe(): void {
    const number = this.#mark.current;
    const now = this.#clock.monotonic();
    if (number === undefined) this.#sync = undefined;
    else if (this.#sync?.number !== number) this.#sync = { number, since: now, isSlow: false };
    else if (now - this.#sync.since >= SLOW_SYNC) {
      this.#slowAt = now;
      if (!this.#sync.isSlow) this.slowSyncs++;
      this.#sync.isSlow = true;
    }
  }

  get trouble(): StorageTrouble | undefined {
    const now = this.#clock.monotonic();
    const refusal = this.#refusal;
    if (refusal !== undefined && (!refusal.isOver || now - refusal.at < REPORTED_FOR)) return refusal.trouble;
    return now - this.#slowAt < REPORTED_FOR ? "slow" : undefined;
  }

  get isRefusing(): boolean {
    return this.#refusal?.isOver === false;
  }
}
