import type { Milliseconds } from "../../../../engine/src/clock/clock.ts";
import type { KeyUse } from "./recorder.ts";

/** Minimum interval between two writes of the last use of one key. */
export const USE_INTERVAL: Milliseconds = 30_000;

/** Maximum number of tracked keys, of some 150 bytes each. */
export const TRACKED_KEYS_MAX = 50_000;

/** With more due uses, each part waits for its turn. */
const DUE_AT_ONCE = 1_000;

/** Uses of keys whose ids have the same character here are in one part: the first one after `key_`. */
export const PART_AT = 4;
const PARTS = 64;

/** A part has a turn in every interval. */
const TURN: Milliseconds = USE_INTERVAL / PARTS;

/** The part of a key: keys of one part have neighbouring rows. */
function partOf(keyId: string): number {
  return (keyId.charCodeAt(PART_AT) || 0) % PARTS;
}

interface WrittenKey {
  readonly keyId: string;
  /** When `take` last returned a use of the key. */
  readonly writtenAt: number;
  /** Time of a later use that is not written yet; 0 if there is none. */
  unwrittenUseAt: number;
}

/**
 * The last uses of keys that are not written yet, and which of them to write: at most one per key and interval. A use that
 * waits is replaced by a later one of its key, so slow writes take no more memory. While many uses are due, they are written
 * part by part, so that the uses of an interval share the pages of their rows.
 */
export class KeyUses {
  readonly #dueAtOnce: number;
  /** Times of the uses that are due, by part and key. */
  readonly #due = new Map<number, Map<string, number>>();
  #dueCount = 0;
  /** The part whose turn it is, and since when. */
  #part = 0;
  #turnSince = 0;
  /** Keys that were returned by `take` within the interval, oldest first. */
  readonly #written = new Map<string, WrittenKey>();
  // An iterator that stays where it is: one that starts anew would pass all the deleted entries before the first.
  #nextWritten = this.#written.values();
  /** The value that `#nextWritten` returned last. */
  #oldest: WrittenKey | undefined;

  /** @param dueAtOnce up to this number of due uses are written without waiting for a turn. */
  constructor(dueAtOnce = DUE_AT_ONCE) {
    this.#dueAtOnce = dueAtOnce;
  }

  /** Returns the uses of keys for which there is no room. */
  add(uses: readonly KeyUse[]): KeyUse[] {
    return uses.filter(({ keyId, at }) => !this.addOne(keyId, at));
  }

  /** Adds a use; false if there is no room for its key. */
  addOne(keyId: string, at: number): boolean {
    const written = this.#written.get(keyId);
    if (written !== undefined) {
      written.unwrittenUseAt = Math.max(written.unwrittenUseAt, at);
      return true;
    }
    const hasRoom = this.#dueCount + this.#written.size < TRACKED_KEYS_MAX;
    if (!hasRoom && !this.#dueIn(partOf(keyId)).has(keyId)) return false;
    this.#addDue(keyId, at);
    return true;
  }

  /** Returns at most `count` uses that are to be written now. They count as written. */
  take(count: number, now: number): KeyUse[] {
    this.#expire(now);
    const atOnce = this.#dueCount <= this.#dueAtOnce;
    // A time in the future means that the clock was set back.
    if (atOnce || now < this.#turnSince) this.#turnSince = now;
    const uses: KeyUse[] = [];
    while (uses.length < count && this.#dueCount > 0) {
      if (this.#dueIn(this.#part).size === 0) {
        if (!atOnce && !this.#endTurn(now)) break;
        this.#part = (this.#part + 1) % PARTS;
      }
      const due = this.#dueIn(this.#part);
      for (const [keyId, at] of due) {
        if (uses.length === count) break;
        due.delete(keyId);
        this.#dueCount--;
        this.#written.set(keyId, { keyId, writtenAt: now, unwrittenUseAt: 0 });
        uses.push({ keyId, at });
      }
    }
    return uses;
  }

  /** Takes uses back whose write failed. They are due again. */
  putBack(uses: readonly KeyUse[]): void {
    for (const { keyId, at } of uses) {
      const usedAt = Math.max(at, this.#written.get(keyId)?.unwrittenUseAt ?? 0);
      this.#written.delete(keyId);
      this.#addDue(keyId, usedAt);
    }
  }

  /** Returns all uses that are not written, also those that are not due yet, and forgets them. */
  drain(): KeyUse[] {
    const uses = [...this.#due.values()].flatMap((due) => Array.from(due, ([keyId, at]) => ({ keyId, at })));
    for (const { keyId, unwrittenUseAt } of this.#written.values()) {
      if (unwrittenUseAt > 0) uses.push({ keyId, at: unwrittenUseAt });
    }
    this.#due.clear();
    this.#written.clear();
    this.#dueCount = 0;
    return uses;
  }

  #dueIn(part: number): Map<string, number> {
    let due = this.#due.get(part);
    if (due === undefined) {
      due = new Map();
      this.#due.set(part, due);
    }
    return due;
  }

  #addDue(keyId: string, at: number): void {
    const due = this.#dueIn(partOf(keyId));
    const before = due.get(keyId);
    if (before === undefined) this.#dueCount++;
    due.set(keyId, Math.max(at, before ?? 0));
  }

  /** Ends the turn of a part if it is time. Turns that were missed are made up for, those of one interval at most. */
  #endTurn(now: number): boolean {
    if (now - this.#turnSince < TURN) return false;
    this.#turnSince = Math.max(this.#turnSince + TURN, now - USE_INTERVAL);
    return true;
  }

  /** Ends the interval of keys that were written long enough ago. Their later uses become due. */
  #expire(now: number): void {
    while (this.#written.size > 0) {
      const oldest = this.#oldest ?? this.#nextWritten.next().value;
      if (oldest === undefined) {
        this.#nextWritten = this.#written.values();
        continue;
      }
      this.#oldest = undefined;
      const { keyId, writtenAt, unwrittenUseAt } = oldest;
      // It was put back.
      if (this.#written.get(keyId) !== oldest) continue;
      // A `writtenAt` in the future means that the clock was set back. Its interval ends too, because the key would
      // otherwise wait until the clock catches up.
      if (now - writtenAt < USE_INTERVAL && now >= writtenAt) {
        this.#oldest = oldest;
        return;
      }
      this.#written.delete(keyId);
      if (unwrittenUseAt > 0) this.#addDue(keyId, unwrittenUseAt);
    }
  }
}
