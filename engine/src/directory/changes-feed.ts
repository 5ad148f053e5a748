import type { Clock, Milliseconds, Timer } from "../clock/clock.ts";
import { digest } from "../crypto/digest.ts";
import type { ChangedTags, ChangesReach, RecentChanges } from "./changes.ts";

/** The rows that are kept, and the characters of their tags. A reader further behind must invalidate everything. */
export const FEED_ROWS_MAX = 20_000;
const CHARACTERS_MAX = 8_000_000;
/** The tags of one answer. */
export const FEED_TAGS_MAX = 1_000;

/** Readers that wait at a time. Further ones are answered at once. */
export const FEED_WAITERS_MAX = { all: 20_000, perWorkspace: 5_000 };

/** The form of a position, for those who check it before they send it. */
export const feedPositionPattern = /^[\w-]{1,24}\.\d{1,16}\.\d{1,16}\.[\w-]{0,36}\.[\w-]{1,24}\.\d{1,16}$/;

/** How far a reader of the feed has come. */
interface FeedPosition {
  /** The server and the timeline that gave the numbers; of SQLite, this process. */
  readonly epoch: string;
  /** The reader has every row up to this number. */
  readonly final: number;
  /** The newest row that it has, and its nonce. */
  readonly newest: number;
  readonly nonce: string;
  /** The process that gave the position. */
  readonly process: string;
  /** The number of tags that had arrived there. */
  readonly arrived: number;
}

interface HeldRow extends ChangedTags {
  /** The number of tags that arrived before those of this row. */
  readonly arrivedBefore: number;
}

/** Some tags, and the position after them. */
export interface FeedAnswer {
  readonly tags: readonly string[];
  readonly position: string;
  readonly hasMore: boolean;
}

interface Waiter {
  readonly wake: () => void;
}

/**
 * The newest rows of `changes` in memory, for readers outside of the process. `ChangesFollower` feeds it.
 *
 * A row counts from its arrival, not from its number, because PostgreSQL shows numbers in another order. So the answers of
 * one process bring each row once, as soon as it is visible. Another process continues from `final`, the number up to which
 * its reader has every row, and may repeat rows above it.
 */
export class ChangesFeed {
  readonly #clock: Clock;
  readonly #process: string;
  /** Of the server that the last read was from. */
  #epoch: string;
  #rows: HeldRow[] = [];
  readonly #nonces = new Map<number, string>();
  #characters = 0;
  /** The tags that have arrived, and those of them that are not held any more. */
  #arrived = 0;
  #forgotten = 0;
  /** Rows up to this number are not held. */
  #floor = 0;
  #final = 0;
  #newest: { sequence: number; nonce: string } = { sequence: 0, nonce: "" };
  /** The present position as text, and the last text that was read: most edges are at the same one. */
  #present: string | undefined;
  #latest: { readonly text: string; readonly position: FeedPosition | undefined } | undefined;
  readonly #waiters = new Map<string, Set<Waiter>>();
  #waiting = 0;
  /** Workspaces of rows that arrived since the last wake; `#wakesAll` if one of them may concern any. */
  readonly #changed = new Set<string>();
  #wakesAll = false;

  /** @param process tells the process from all others. */
  constructor(clock: Clock, process: string) {
    this.#clock = clock;
    this.#process = process;
    this.#epoch = process;
  }

  /** The readers that wait. */
  get waiting(): number {
    return this.#waiting;
  }

  /** The rows in memory. */
  get held(): number {
    return this.#rows.length;
  }

  /** Starts at the end of `changes`, without what was before: every position up to now is lost. */
  restart({ server, final }: ChangesReach): void {
    this.#present = undefined;
    this.#epoch = server === "" ? this.#process : digest(server);
    this.#rows = [];
    this.#nonces.clear();
    this.#characters = 0;
    this.#arrived++;
    this.#forgotten = this.#arrived;
    this.#floor = final;
    this.#final = final;
    this.#newest = { sequence: final, nonce: "" };
    this.#wakesAll = true;
  }

  /** Adds rows from before the start, so that positions of before do not become lost. Nothing may have been added yet. */
  fill({ server, rows }: RecentChanges): void {
    const isOther = server === "" || digest(server) !== this.#epoch;
    if (isOther || this.#rows.length > 0 || this.#floor !== this.#final) return;
    // Those above will be read again.
    const final = rows.filter(({ sequence }) => sequence <= this.#final).reverse();
    for (const row of final) this.add(row);
    const [first] = this.#rows;
    if (first === undefined) return;
    this.#floor = first.sequence - 1;
    // Their readers came from other processes: here, nobody has seen them arrive.
    this.#changed.clear();
    this.#wakesAll = false;
  }

  /** Adds a row, unless it is there already. */
  add(row: ChangedTags): void {
    const { sequence, nonce, workspaceId, tags } = row;
    if (this.#nonces.has(sequence)) return;
    this.#present = undefined;
    this.#rows.push({ ...row, arrivedBefore: this.#arrived });
    this.#nonces.set(sequence, nonce);
    this.#characters += charactersOf(row);
    this.#arrived += tags.length;
    if (sequence >= this.#newest.sequence) this.#newest = { sequence, nonce };
    if (workspaceId === null) this.#wakesAll = true;
    else this.#changed.add(workspaceId);
    if (this.#rows.length > FEED_ROWS_MAX || this.#characters > CHARACTERS_MAX) this.#forget();
  }

  /** Ends a read. Wakes those who wait for what it brought. */
  reach({ final }: Pick<ChangesReach, "final">): void {
    if (final > this.#final) {
      this.#final = final;
      this.#present = undefined;
    }
    const names = this.#wakesAll ? [...this.#waiters.keys()] : [...this.#changed];
    this.#wakesAll = false;
    this.#changed.clear();
    for (const name of names) for (const { wake } of [...(this.#waiters.get(name) ?? [])]) wake();
  }

  /** The position of a reader that has nothing to invalidate. */
  present(): string {
    this.#present ??= textOf(this.#end());
    return this.#present;
  }

  /**
   * How a position stands to what this process has read: `ahead` if `changes` must be read before it can be answered, `lost`
   * if its reader must invalidate everything.
   *
   * @param hasRead whether `changes` was read since the reader asked. Then nothing that it has can be missing here.
   */
  compare(text: string, hasRead = false): "held" | "ahead" | "lost" {
    const position = this.#parse(text);
    if (position === undefined || position.epoch !== this.#epoch) return "lost";
    if (position.process === this.#process) {
      return position.arrived >= this.#forgotten && position.arrived <= this.#arrived ? "held" : "lost";
    }
    if (position.final < this.#floor) return "lost";
    // Below its newest row the reader may have rows that this process has not: while a transaction is open, they are not final.
    if (Math.max(position.final, position.newest) > this.#final && !hasRead) return "ahead";
    if (position.newest <= this.#floor || position.nonce === "") return "held";
    const nonce = this.#nonces.get(position.newest);
    if (nonce === undefined) return hasRead ? "lost" : "ahead";
    return nonce.slice(0, NONCE_LENGTH) === position.nonce ? "held" : "lost";
  }

  /** The tags of a workspace after a position that is held. */
  take(text: string, workspaceId: string): FeedAnswer {
    const position = this.#parse(text);
    if (position === undefined) throw new TypeError("The text is no position");
    const isOwn = position.process === this.#process;
    const tags: string[] = [];
    const from = isOwn ? this.#firstAfter(position.arrived) : 0;
    for (const row of this.#rows.slice(from)) {
      if (!isOwn && row.sequence <= position.final) continue;
      if (row.workspaceId !== null && row.workspaceId !== workspaceId) continue;
      const seen = isOwn ? Math.max(0, position.arrived - row.arrivedBefore) : 0;
      const room = FEED_TAGS_MAX - tags.length;
      const some = row.tags.slice(seen, seen + room);
      for (const tag of some) tags.push(tag);
      if (seen + some.length < row.tags.length) {
        // Another process has to begin where the reader was before, and to know all that it has.
        const next = { ...this.#end(), final: position.final, arrived: row.arrivedBefore + seen + some.length };
        return { tags, position: textOf(next), hasMore: true };
      }
    }
    return { tags, position: this.present(), hasMore: false };
  }

  /** Resolves when a row for the workspace arrives, or after a time. At once if too many wait. */
  wait(workspaceId: string, length: Milliseconds): Promise<void> {
    let waiters = this.#waiters.get(workspaceId);
    if (this.#waiting >= FEED_WAITERS_MAX.all || (waiters?.size ?? 0) >= FEED_WAITERS_MAX.perWorkspace) {
      return Promise.resolve();
    }
    if (waiters === undefined) {
      waiters = new Set();
      this.#waiters.set(workspaceId, waiters);
    }
    const ofWorkspace = waiters;
    return new Promise((resolve) => {
      let timer: Timer | undefined;
      const waiter: Waiter = {
        wake: () => {
          timer?.cancel();
          if (!ofWorkspace.delete(waiter)) return;
          this.#waiting--;
          if (ofWorkspace.size === 0) this.#waiters.delete(workspaceId);
          resolve();
        },
      };
      ofWorkspace.add(waiter);
      this.#waiting++;
      timer = this.#clock.schedule(length, waiter.wake);
    });
  }

  #parse(text: string): FeedPosition | undefined {
    if (this.#latest?.text !== text) this.#latest = { text, position: parse(text) };
    return this.#latest.position;
  }

  /** Forgets the oldest rows, some at once. */
  #forget(): void {
    const count = Math.max(1, Math.ceil(this.#rows.length / 10));
    const forgotten = this.#rows.splice(0, count);
    for (const row of forgotten) {
      this.#nonces.delete(row.sequence);
      this.#characters -= charactersOf(row);
      this.#floor = Math.max(this.#floor, row.sequence);
      this.#forgotten = Math.max(this.#forgotten, row.arrivedBefore + row.tags.length);
    }
  }

  /** The place of the first row with tags that arrived after this number of them. */
  #firstAfter(arrived: number): number {
    let [low, high] = [0, this.#rows.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      const row = this.#rows[middle];
      if (row !== undefined && row.arrivedBefore + row.tags.length <= arrived) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #end(): FeedPosition {
    return {
      epoch: this.#epoch,
      final: this.#final,
      newest: this.#newest.sequence,
      nonce: this.#newest.nonce.slice(0, NONCE_LENGTH),
      process: this.#process,
      arrived: this.#arrived,
    };
  }
}

function textOf({ epoch, final, newest, nonce, process, arrived }: FeedPosition): string {
  return [epoch, final, newest, nonce, process, arrived].join(".");
}

/** The part of a nonce that a position has: 32 bits. */
const NONCE_LENGTH = 8;

function charactersOf({ tags }: ChangedTags): number {
  // A row without tags takes memory too.
  return tags.reduce((sum, tag) => sum + tag.length, 100);
}

/** Undefined if it is no position. */
function parse(text: string): FeedPosition | undefined {
  if (!feedPositionPattern.test(text)) return undefined;
  const [epoch, final, newest, nonce, process, arrived] = text.split(".") as [
    string,
    string,
    string,
    string,
    string,
    string,
  ];
  return { epoch, final: Number(final), newest: Number(newest), nonce, process, arrived: Number(arrived) };
}
