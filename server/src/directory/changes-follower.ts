import type { Clock, Instant, Milliseconds, Timer } from "../clock/clock.ts";
import { CHANGES_RETENTION, type Changes, type ChangesCursor } from "../store/changes.ts";
import type { Generations } from "./generations.ts";

/** How often a node reads `changes` when nobody wakes it. */
const POLL_INTERVAL: Milliseconds = 500;
/** The age up to which what is known counts as current (contract A2.25). */
const CURRENT_AGE_MAX: Milliseconds = 1_000;

export interface ChangesFollowerOptions {
  clock: Clock;
  generations: Generations;
  read(cursor: ChangesCursor | undefined): Promise<Changes>;
  /** How long a node that is cut off serves what it knows. */
  staleMax: Milliseconds;
  /** Told when the store is lost and when it is back. */
  onReachability(reachable: boolean, cause?: unknown): void;
}

/**
 * Reads what changed, wherever it was changed, and outdates it here.
 *
 * Its freshness is the time since the last read that succeeded. States: *current* (at most a second old) serves;
 * *late* (older, though the store was there when last asked: the process itself was held up) asks before it serves;
 * *cut off* (the store does not answer) serves what is known until `staleMax`, then no more.
 */
export class ChangesFollower {
  readonly #options: ChangesFollowerOptions;
  readonly #own = new Set<number>();
  /** Rows that were read; PostgreSQL gives the newest ones again until every older transaction has ended. */
  #seen = new Set<number>();
  #newestSeen = 0;
  #cursor: ChangesCursor | undefined;
  #readAt: Instant | undefined;
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
  noteOwn(sequence: number): void {
    if (sequence > this.#newestSeen) this.#own.add(sequence);
  }

  /**
   * Whether what is known may be served now. A promise when it has to ask first.
   */
  mayServe(now: Instant): boolean | Promise<boolean> {
    // A clock that was set back proves nothing about the age; taking its distance errs towards asking.
    const age = Math.abs(now - this.#readAt!);
    if (age <= CURRENT_AGE_MAX) return true;
    if (!this.#reachable) return age <= this.#options.staleMax;
    return this.#poll().then(() => this.#reachable || age <= this.#options.staleMax);
  }

  get reachable(): boolean {
    return this.#reachable;
  }

  /** Milliseconds since `changes` was last read. */
  age(now: Instant): Milliseconds {
    return Math.abs(now - this.#readAt!);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#timer?.cancel();
    await this.#reading;
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
    const { clock } = this.#options;
    // A question that hangs is as good as none: after a second the store counts as lost.
    const late = Promise.withResolvers<never>();
    const deadline = clock.schedule(CURRENT_AGE_MAX, () =>
      late.reject(new Error("The database has not answered for a second")),
    );
    try {
      await Promise.race([this.#read(), late.promise]);
      this.#setReachable(true);
    } catch (error) {
      this.#setReachable(false, error);
    } finally {
      deadline.cancel();
      this.#next();
    }
  }

  async #read(): Promise<void> {
    const { clock, generations, read } = this.#options;
    const startedAt = clock.now();
    const changes = await read(this.#cursor);
    // An answer that was given up on may come after a newer one.
    if (this.#readAt !== undefined && startedAt < this.#readAt) return;
    if (this.#readAt !== undefined && Math.abs(startedAt - this.#readAt) > CHANGES_RETENTION / 2) {
      // What happened meanwhile may have been deleted from `changes` already.
      generations.bumpAll();
    }
    const seen = new Set<number>();
    for (const { sequence, tags } of changes.rows) {
      seen.add(sequence);
      if (sequence > this.#newestSeen) this.#newestSeen = sequence;
      if (this.#seen.has(sequence)) continue;
      if (!this.#own.delete(sequence)) generations.bump(tags);
    }
    this.#seen = seen;
    this.#cursor = changes.cursor;
    // As old as the question: what was committed after it was asked may be missing from the answer.
    this.#readAt = startedAt;
  }

  #setReachable(reachable: boolean, cause?: unknown): void {
    if (this.#reachable === reachable) return;
    this.#reachable = reachable;
    this.#options.onReachability(reachable, cause);
  }
}
