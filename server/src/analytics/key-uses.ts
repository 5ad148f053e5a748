import type { Milliseconds } from "../clock/clock.ts";
import type { KeyUse } from "./recorder.ts";

/** How long a key's last use may be behind: it is written at most once in this time. */
export const USE_INTERVAL: Milliseconds = 30_000;

/** Keys that are written in one transaction: few enough that nobody has to wait for it. */
export const USES_PER_WRITE = 500;

/** Keys that are remembered; of more at the same time the use is noted when there is room. */
const KEYS_MAX = 500_000;

interface Noted {
  /** When it was written. */
  at: number;
  /** A later use that was not written. */
  later: number;
}

/** When keys were last used: which uses are worth being written, at most one a key in each interval. */
export class KeyUses {
  /** Oldest write first. */
  readonly #noted = new Map<string, Noted>();

  /** The uses to be written now. */
  due(uses: readonly KeyUse[], now: number): KeyUse[] {
    const due: KeyUse[] = [];
    for (const { keyId, at } of uses) {
      const noted = this.#noted.get(keyId);
      if (noted !== undefined) noted.later = Math.max(noted.later, at);
      else if (this.#noted.size < KEYS_MAX) {
        this.#noted.set(keyId, { at: now, later: 0 });
        due.push({ keyId, at });
      }
    }
    for (const [keyId, noted] of this.#noted) {
      // A clock that was set back must not hold them for as long as it was set back.
      if (now - noted.at < USE_INTERVAL && now >= noted.at) break;
      this.#noted.delete(keyId);
      if (noted.later === 0) continue;
      due.push({ keyId, at: noted.later });
      this.#noted.set(keyId, { at: now, later: 0 });
    }
    return due;
  }

  /** These could not be written: each is due again with its next use. */
  forget(uses: readonly KeyUse[]): void {
    for (const { keyId } of uses) this.#noted.delete(keyId);
  }
}
