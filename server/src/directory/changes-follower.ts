import type { Clock, Instant, Milliseconds, Timer } from "../clock/clock.ts";
import { startTimeout } from "../clock/timeout.ts";
import { CHANGES_PER_READ, CHANGES_RETENTION, type Changes, type ChangesCursor } from "../store/changes.ts";
import type { Generations } from "./generations.ts";

/** How often a node reads `changes` when nobody wakes it. */
const POLL_INTERVAL: Milliseconds = 500;
/** The age up to which what is known counts as current. */
const CURRENT_AGE_MAX: Milliseconds = 1_000;
/** How long a call waits for the read that a late node makes before it serves. */
const LATE_WAIT_MAX: Milliseconds = 250;
/** A reader that is further behind invalidates everything instead: by then little of it would be left. */
const ROWS_BEHIND_MAX = 10 * CHANGES_PER_READ;

export interface ChangesFollowerOptions {
  clock: Clock;
  generations: Generations;
  read(cursor: ChangesCursor | undefined): Promise<Changes>;
  /** How long a node that is cut off serves what it knows. */
  staleMax: Milliseconds;
  /** Told when the store is lost and when it is back. */
  onReachability(reachable: boolean, cause?: unknown): void;
  /** Called when everything was invalidated because the database is not the one that was read before. */
  onLost?(): void;
}

/**
 * Reads what changed, wherever it was changed, and outdates it here.
 *
 * Its freshness is the time since the beginning of the last read that succeeded, by the monotonic clock. States:
 * *current* (at most a second old) serves; *late* (older, or the wall clock has jumped, though the store was there when
 * last asked: the process or the machine was held up) asks before it serves, for a quarter of a second at most; *cut
 * off* (the store does not answer) serves what is known until `staleMax`, then no more.
 */
export class ChangesFollower {
  readonly #options: ChangesFollowerOptions;
  readonly #own = new Set<number>();
  /** Rows that were read; PostgreSQL gives the newest ones again until every older transaction has ended. */
  #seen = new Set<number>();
  #newestSeen = 0;
  #cursor: ChangesCursor | undefined;
  /** When the last read that succeeded began, by each clock. */
  #readAt: { monotonic: Milliseconds; wall: Instant } | undefined;
  #reachable = true;
  #reading: Promise<void> | undefined;
  #woken = false;
  #timer: Timer | undefined;
  #closed = false;

  constructor(options: ChangesFollowerOptions) {
    this.#options = options;
  }

  /** Takes its place at the end of `changes`. Before that nothing may be remembered. */
  async start(): Promise<void> {
    await this.#read();
    this.#next();
  }

  /** Reads soon: somebody says that there is something. */
  wake(): void {
    if (this.#closed) return;
    if (this.#reading) this.#woken = true;
    else void this.#poll();
  }

  /** This node's own change, whose tags it has outdated itself. */
  recordOwn(sequence: number): void {
    if (sequence > this.#newestSeen) this.#own.add(sequence);
  }

  /**
   * Whether what is known may be served now. A promise when it has to ask first.
   */
  mayServe(now: Instant): boolean | Promise<boolean> {
    const age = this.age();
    // A machine that was suspended has a monotonic clock that stood still and a wall clock that did not.
    const jump = Math.abs(now - this.#readAt!.wall - age);
    if (age <= CURRENT_AGE_MAX && jump <= CURRENT_AGE_MAX) return true;
    if (!this.#reachable) return age <= this.#options.staleMax;
    return this.#askBeforeServing();
  }

  get reachable(): boolean {
    return this.#reachable;
  }

  /** Milliseconds since `changes` was last read. */
  age(): Milliseconds {
    return this.#options.clock.monotonic() - this.#readAt!.monotonic;
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#timer?.cancel();
    await this.#reading;
  }

  async #askBeforeServing(): Promise<boolean> {
    const late = startTimeout(this.#options.clock, LATE_WAIT_MAX);
    const answered = await Promise.race([this.#poll().then(() => true), late.expired.then(() => false)]);
    late.cancel();
    if (!answered) this.#setReachable(false, new Error("The database does not answer a node that was held up"));
    return this.#reachable || this.age() <= this.#options.staleMax;
  }

  #next(): void {
    if (this.#closed) return;
    this.#timer?.cancel();
    this.#timer = this.#options.clock.schedule(POLL_INTERVAL, () => void this.#poll());
  }

  /** Never rejects. Callers who come while a read is under way wait for that one. */
  #poll(): Promise<void> {
    this.#reading ??= this.#pollOnce().finally(() => {
      this.#reading = undefined;
      if (this.#woken) {
        this.#woken = false;
        this.wake();
      }
    });
    return this.#reading;
  }

  async #pollOnce(): Promise<void> {
    // A question that hangs is as good as none: after a second the store counts as lost.
    const deadline = startTimeout(this.#options.clock, CURRENT_AGE_MAX);
    const late = deadline.expired.then(() => {
      throw new Error("The database has not answered for a second");
    });
    try {
      await Promise.race([this.#read(), late]);
      this.#setReachable(true);
    } catch (error) {
      this.#setReachable(false, error);
    } finally {
      deadline.cancel();
      this.#next();
    }
  }

  async #read(): Promise<void> {
    const { clock, generations, read, onLost } = this.#options;
    const startedAt = { monotonic: clock.monotonic(), wall: clock.now() };
    let cursor = this.#cursor;
    const seen = new Set<number>();
    let changes: Changes;
    do {
      changes = await read(cursor);
      // An answer that was given up on may come after a newer one.
      if (this.#readAt !== undefined && startedAt.monotonic < this.#readAt.monotonic) return;
      cursor = changes.cursor;
      if (changes.isLost) this.#forget();
      for (const { sequence, tags } of changes.rows) {
        seen.add(sequence);
        if (sequence > this.#newestSeen) this.#newestSeen = sequence;
        if (this.#seen.has(sequence)) continue;
        if (!this.#own.delete(sequence)) generations.bump(tags);
      }
      if (changes.hasMore && seen.size >= ROWS_BEHIND_MAX) {
        changes = await read(undefined);
        cursor = changes.cursor;
        this.#forget();
      }
    } while (changes.hasMore);
    if (this.#readAt !== undefined && startedAt.monotonic - this.#readAt.monotonic > CHANGES_RETENTION / 2) {
      // What happened meanwhile may have been deleted from `changes` already.
      this.#forget();
    }
    if (changes.isLost) onLost?.();
    this.#seen = seen;
    this.#cursor = cursor;
    // As old as the question: what was committed after it was asked may be missing from the answer.
    this.#readAt = startedAt;
  }

  /** Invalidates everything. After a new cursor was taken: what was changed before that is invalid here. */
  #forget(): void {
    this.#options.generations.bumpAll();
    this.#own.clear();
    this.#seen = new Set();
    this.#newestSeen = 0;
  }

  #setReachable(reachable: boolean, cause?: unknown): void {
    if (this.#reachable === reachable) return;
    this.#reachable = reachable;
    this.#options.onReachability(reachable, cause);
  }
}
