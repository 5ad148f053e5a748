import type { Milliseconds } from "../clock/clock.ts";
import type { KeyUse } from "./recorder.ts";

/** Minimum interval between two writes of the last use of one key. */
export const USE_INTERVAL: Milliseconds = 30_000;

/** Keys per transaction. A long transaction would delay the others. */
export const USES_PER_WRITE = 500;

/** Maximum number of tracked keys. Uses of further keys are dropped until there is room. */
const KEYS_MAX = 500_000;

interface TrackedKey {
  /** When `due` last returned a use of the key. */
  writtenAt: number;
  /** Time of a later use that is not written yet; 0 if there is none. */
  unwrittenUseAt: number;
}

/** Selects the key uses to write: at most one per key and interval. */
export class KeyUses {
  /** Ordered by `writtenAt`, oldest first. */
  readonly #tracked = new Map<string, TrackedKey>();

  /** Adds uses, and returns those that are due to be written now. */
  due(uses: readonly KeyUse[], now: number): KeyUse[] {
    const due: KeyUse[] = [];
    for (const { keyId, at } of uses) {
      const tracked = this.#tracked.get(keyId);
      if (tracked !== undefined) tracked.unwrittenUseAt = Math.max(tracked.unwrittenUseAt, at);
      else if (this.#tracked.size < KEYS_MAX) {
        this.#tracked.set(keyId, { writtenAt: now, unwrittenUseAt: 0 });
        due.push({ keyId, at });
      }
    }
    for (const [keyId, tracked] of this.#tracked) {
      // A `writtenAt` in the future means that the clock was set back. Such a key is due too, because it would otherwise
      // wait until the clock catches up.
      if (now - tracked.writtenAt < USE_INTERVAL && now >= tracked.writtenAt) break;
      this.#tracked.delete(keyId);
      if (tracked.unwrittenUseAt === 0) continue;
      due.push({ keyId, at: tracked.unwrittenUseAt });
      this.#tracked.set(keyId, { writtenAt: now, unwrittenUseAt: 0 });
    }
    return due;
  }

  /** Stops tracking keys whose write failed. Their next use is due at once. */
  untrack(uses: readonly KeyUse[]): void {
    for (const { keyId } of uses) this.#tracked.delete(keyId);
  }
}
