import type { Milliseconds } from "../../../../engine/src/clock/clock.ts";
import type { KeyUse } from "./recorder.ts";

/** Minimum interval between two writes of the last use of one key. */
export const USE_INTERVAL: Milliseconds = 30_000;

/** Maximum number of tracked keys. Uses of further keys are dropped until there is room. */
export const TRACKED_KEYS_MAX = 500_000;

interface WrittenKey {
  readonly keyId: string;
  /** When `take` last returned a use of the key. */
  readonly writtenAt: number;
  /** Time of a later use that is not written yet; 0 if there is none. */
  unwrittenUseAt: number;
}

/**
 * The last uses of keys that are not written yet, and which of them to write: at most one per key and interval. A use that
 * waits is replaced by a later one of its key, so slow writes take no more memory.
 */
export class KeyUses {
  /** Times of the uses that are due, by key, oldest first. */
  readonly #due = new Map<string, number>();
  /** Keys that were returned by `take` within the interval, oldest first. */
  readonly #written = new Map<string, WrittenKey>();
  // Iterators that stay where they are: one that starts anew would pass all the deleted entries before the first.
  #nextDue = this.#due.entries();
  #nextWritten = this.#written.values();
  /** The value that `#nextWritten` returned last. */
  #oldest: WrittenKey | undefined;

  add(uses: readonly KeyUse[]): void {
    for (const { keyId, at } of uses) {
      const written = this.#written.get(keyId);
      const dueAt = this.#due.get(keyId);
      if (written !== undefined) written.unwrittenUseAt = Math.max(written.unwrittenUseAt, at);
      else if (dueAt !== undefined) this.#due.set(keyId, Math.max(dueAt, at));
      else if (this.#due.size + this.#written.size < TRACKED_KEYS_MAX) this.#due.set(keyId, at);
    }
  }

  /** Returns at most `count` uses that are to be written now. They count as written. */
  take(count: number, now: number): KeyUse[] {
    this.#expire(now);
    const uses: KeyUse[] = [];
    while (uses.length < count && this.#due.size > 0) {
      const { value, done } = this.#nextDue.next();
      if (done) {
        this.#nextDue = this.#due.entries();
        continue;
      }
      const [keyId, at] = value;
      this.#due.delete(keyId);
      this.#written.set(keyId, { keyId, writtenAt: now, unwrittenUseAt: 0 });
      uses.push({ keyId, at });
    }
    return uses;
  }

  /** Takes uses back whose write failed. They are due again, after the others. */
  putBack(uses: readonly KeyUse[]): void {
    for (const { keyId, at } of uses) {
      const usedAt = Math.max(at, this.#written.get(keyId)?.unwrittenUseAt ?? 0, this.#due.get(keyId) ?? 0);
      this.#written.delete(keyId);
      this.#due.set(keyId, usedAt);
    }
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
      if (unwrittenUseAt > 0) this.#due.set(keyId, unwrittenUseAt);
    }
  }
}
