import { type Clock, type Instant, instantAt, type Milliseconds, type Timer } from "../clock/clock.ts";
import { startTimeout } from "../clock/timeout.ts";
import { CHANGES_PER_READ, CHANGES_RETENTION, type Changes, type ChangesCursor } from "./changes.ts";
import type { ChangesFeed } from "./changes-feed.ts";
import type { Generations } from "./generations.ts";

/** Interval between reads of `changes` without a notification. */
const POLL_INTERVAL: Milliseconds = 500;
/** The same while somebody outside of the process follows. */
const ATTENDED_INTERVAL: Milliseconds = 200;
/** For how long somebody counts as following after each question. */
const ATTENDED: Milliseconds = 5_000;
/** The age up to which the caches count as current. */
export const CURRENT_AGE_MAX: Milliseconds = 1_000;
/** A moment by both clocks. */
export interface Moment {
  readonly monotonic: Milliseconds;
  readonly wall: Instant;
}

/**
 * Whether what was read at a moment is current at another one, by both clocks: `then` and `wallThen` against `monotonic` and
 * `now`. Each call asks, so it takes numbers.
 */
export function isCurrentAt(then: Milliseconds, wallThen: number, now: Instant, monotonic: Milliseconds): boolean {
  return monotonic - then <= CURRENT_AGE_MAX && !hasJumped(then, wallThen, now, monotonic);
}

/** Whether the clocks disagree. While a machine is suspended its monotonic clock stops and its wall clock does not. */
export function hasJumped(then: Milliseconds, wallThen: number, now: Instant, monotonic: Milliseconds): boolean {
  return Math.abs(now - wallThen - (monotonic - then)) > CURRENT_AGE_MAX;
}

/** How long a call on a late node waits for a read of `changes`. */
export const LATE_WAIT_MAX: Milliseconds = 250;
/** A reader further behind than this invalidates everything, which is cheaper than reading all rows. */
const ROWS_BEHIND_MAX = 10 * CHANGES_PER_READ;

export interface ChangesFollowerOptions {
  clock: Clock;
  generations: Generations;
  /** Gets every row that is read, this node's own too. */
  feed: ChangesFeed;
  read(cursor: ChangesCursor | undefined): Promise<Changes>;
  /** How long a node without a database connection serves from its caches. */
  staleMax: Milliseconds;
  /** Called when the database becomes unreachable and when it is reachable again. */
  onReachability(reachable: boolean, cause?: unknown): void;
  /** Called when everything was invalidated because this is another database than before. */
  onLost?(): void;
}

/**
 * Polls the table `changes` and invalidates the cached records of every change, from this node or another.
 *
 * The age of the caches is the time since the start of the last successful read, by the monotonic clock. States:
 * *current* (age at most one second): calls are served. *Late* (older, or the wall clock has jumped, and the last read
 * succeeded; the process or the machine was suspended): a call first waits for a read, at most 250 ms. *Cut off* (the
 * database does not answer): calls are served from the caches until `staleMax`, then rejected.
 */
export class ChangesFollower {
  readonly #options: ChangesFollowerOptions;
  readonly #own = new Set<number>();
  /** Rows read last time. PostgreSQL returns the newest rows again until all older transactions have ended. */
  #seen = new Set<number>();
  #newestSeen = 0;
  #cursor: ChangesCursor | undefined;
  /** Start of the last successful read, by each clock; long ago before the first one. */
  #readAt: Moment;
  #reachable = true;
  /** Successful reads. */
  #reads = 0;
  #reading: Promise<void> | undefined;
  #woken = false;
  #timer: Timer | undefined;
  #attendedUntil = Number.NEGATIVE_INFINITY;
  #closed = false;

  constructor(options: ChangesFollowerOptions) {
    this.#options = options;
    this.#readAt = { monotonic: Number.NEGATIVE_INFINITY, wall: instantAt(0) };
  }

  /** Reads the end of `changes`. Nothing may be cached before. */
  async start(): Promise<void> {
    await this.#read();
    this.#schedule();
  }

  /** Reads at once, after a notification of a change. */
  wake(): void {
    if (this.#closed) return;
    if (this.#reading) this.#woken = true;
    else void this.#poll();
  }

  /** Records a change of this node. Its tags are already invalidated, so the follower skips its row. */
  recordOwn(sequence: number): void {
    if (sequence > this.#newestSeen) this.#own.add(sequence);
  }

  /** Whether calls may be served from the caches now, by both clocks. A promise if a read is necessary first. */
  mayServe(now: Instant, monotonic: Milliseconds): boolean | Promise<boolean> {
    if (this.isCurrent(now, monotonic)) return true;
    if (!this.#reachable) return monotonic - this.#readAt.monotonic <= this.#options.staleMax;
    return this.#readBeforeServing();
  }

  /** Whether the caches are current by both clocks, whatever may be served from older ones. */
  isCurrent(now: Instant, monotonic: Milliseconds): boolean {
    return isCurrentAt(this.#readAt.monotonic, this.#readAt.wall, now, monotonic);
  }

  /** Reads more often for a while, because somebody outside of the process follows. */
  attend(): void {
    const { clock } = this.#options;
    const isNew = clock.monotonic() >= this.#attendedUntil;
    this.#attendedUntil = clock.monotonic() + ATTENDED;
    if (isNew && this.#reading === undefined) this.#schedule();
  }

  /**
   * Waits, for a short time, for a read that starts now or later. Returns whether it succeeded: then this node has all that
   * was committed before the call.
   */
  async catchUp(): Promise<boolean> {
    const late = startTimeout(this.#options.clock, LATE_WAIT_MAX);
    const read = async () => {
      // One that is under way started before the call.
      await this.#reading;
      const before = this.#reads;
      await this.#poll();
      return this.#reads > before;
    };
    const hasRead = await Promise.race([read(), late.expired.then(() => false)]);
    late.cancel();
    return hasRead;
  }

  /** The start of the last successful read, by each clock. */
  get readAt(): Moment {
    return this.#readAt;
  }

  get reachable(): boolean {
    return this.#reachable;
  }

  /** Milliseconds since `changes` was last read. */
  age(): Milliseconds {
    return this.#options.clock.monotonic() - this.#readAt.monotonic;
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#timer?.cancel();
    await this.#reading;
  }

  async #readBeforeServing(): Promise<boolean> {
    const late = startTimeout(this.#options.clock, LATE_WAIT_MAX);
    const answered = await Promise.race([this.#poll().then(() => true), late.expired.then(() => false)]);
    late.cancel();
    if (!answered)
      this.#setReachable(false, new Error("The database did not answer after this node was suspended or blocked"));
    return this.#reachable || this.age() <= this.#options.staleMax;
  }

  #schedule(): void {
    if (this.#closed) return;
    this.#timer?.cancel();
    const { clock } = this.#options;
    const interval = clock.monotonic() < this.#attendedUntil ? ATTENDED_INTERVAL : POLL_INTERVAL;
    this.#timer = clock.schedule(interval, () => void this.#poll());
  }

  /** Reads once. Never rejects. Concurrent callers share the read in progress. */
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
    // A query without an answer for a second means that the database is unreachable.
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
      this.#schedule();
    }
  }

  async #read(): Promise<void> {
    const { clock, generations, feed, read, onLost } = this.#options;
    const startedAt = { monotonic: clock.monotonic(), wall: clock.now() };
    let cursor = this.#cursor;
    const seen = new Set<number>();
    let changes: Changes;
    do {
      changes = await read(cursor);
      // The answer of a timed-out query may arrive after that of a newer one.
      if (startedAt.monotonic < this.#readAt.monotonic) return;
      cursor = changes.cursor;
      if (changes.isLost) this.#invalidateAll();
      if (changes.isLost || this.#cursor === undefined) feed.restart(changes);
      for (const row of changes.rows) {
        const { sequence, tags } = row;
        feed.add(row);
        seen.add(sequence);
        if (sequence > this.#newestSeen) this.#newestSeen = sequence;
        if (this.#seen.has(sequence)) continue;
        if (!this.#own.delete(sequence)) generations.bump(tags);
      }
      if (changes.hasMore && seen.size >= ROWS_BEHIND_MAX) {
        changes = await read(undefined);
        cursor = changes.cursor;
        this.#invalidateAll();
        feed.restart(changes);
      }
    } while (changes.hasMore);
    if (this.#cursor !== undefined && startedAt.monotonic - this.#readAt.monotonic > CHANGES_RETENTION / 2) {
      // Rows of the meantime may already be deleted from `changes`.
      this.#invalidateAll();
      feed.restart(changes);
    }
    if (changes.isLost) onLost?.();
    this.#seen = seen;
    this.#cursor = cursor;
    // The age counts from the start of the query: later commits may be missing from its answer.
    this.#readAt = startedAt;
    this.#reads++;
    feed.reach(changes);
  }

  /** Invalidates everything. Called after a new cursor was read, so that no earlier change is missed. */
  #invalidateAll(): void {
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
