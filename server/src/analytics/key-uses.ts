import type { Milliseconds } from "../clock/clock.ts";
import type { KeyUse } from "./recorder.ts";

/** Minimum interval between two writes of the last use of a key. */
export const USE_INTERVAL: Milliseconds = 30_000;

/** Keys per transaction: few enough to delay no other transaction. */
export const USES_PER_WRITE = 500;

/** Maximum number of tracked keys. Uses of further keys are recorded when there is room. */
const KEYS_MAX = 500_000;

interface TrackedKey {
  /** Time of the last write. */
  writtenAt: number;
  /** A later use that is not written yet; 0 if there is none. */
  unwrittenAt: number;
}

/** Selects the key uses to write: at most one per key and interval. */
export class KeyUses {
  /** In order of their writes, oldest first. */
  readonly #tracked = new Map<string, TrackedKey>();

  /** Adds uses, and returns those that are due to be written now. */
  due(uses: readonly KeyUse[], now: number): KeyUse[] {
    const due: KeyUse[] = [];
    for (const { keyId, at } of uses) {
      const tracked = this.#tracked.get(keyId);
      if (tracked !== undefined) tracked.unwrittenAt = Math.max(tracked.unwrittenAt, at);
      else if (this.#tracked.size < KEYS_MAX) {
        this.#tracked.set(keyId, { writtenAt: now, unwrittenAt: 0 });
        due.push({ keyId, at });
      }
    }
    for (const [keyId, tracked] of this.#tracked) {
      // Also due after the clock was set back: otherwise the uses would wait until it catches up.
      if (now - tracked.writtenAt < USE_INTERVAL && now >= tracked.writtenAt) break;
      this.#tracked.delete(keyId);
      if (tracked.unwrittenAt === 0) continue;
      due.push({ keyId, at: tracked.unwrittenAt });
      this.#tracked.set(keyId, { writtenAt: now, unwrittenAt: 0 });
    }
    return due;
  }

  /** Stops tracking keys whose write failed: each is due again at its next use. */
  untrack(uses: readonly KeyUse[]): void {
    for (const { keyId } of uses) this.#tracked.delete(keyId);
  }
}
