import type { Clock } from "../clock/clock.ts";
import { pause } from "../clock/pause.ts";
import type { ImportedKeyUse } from "./stored.ts";

/** Maximum number of first uses per transaction. */
const USES_PER_BATCH_MAX = 1_000;

/** Maximum number of first uses that wait for a write. */
const WAITING_MAX = 100_000;

/** The uses that wait, and whether they will all have been written. */
interface Waiting {
  readonly uses: ImportedKeyUse[];
  readonly written: PromiseWithResolvers<boolean>;
  /** Whether an answer waits for one of them. */
  isUrgent: boolean;
}

/**
 * Stores what the first verification of an imported key reveals about it. A write is followed by a pause of its length, and
 * first uses that arrive meanwhile are written together. So a wave of first verifications after a migration needs few
 * transactions, and leaves time to the calls. Uses for which an answer waits end the pause.
 */
export class FirstUseWriter {
  readonly #clock: Pick<Clock, "monotonic" | "schedule">;
  readonly #write: (uses: readonly ImportedKeyUse[]) => Promise<void>;
  #waiting: Waiting | undefined;
  #isWriting = false;
  /** Ends the pause. */
  #pause = new AbortController();

  constructor(clock: Pick<Clock, "monotonic" | "schedule">, write: (uses: readonly ImportedKeyUse[]) => Promise<void>) {
    this.#clock = clock;
    this.#write = write;
  }

  /**
   * Resolves when the write has ended: whether all of it succeeded. Never rejects.
   *
   * @param isUrgent whether an answer waits for it.
   */
  record(use: ImportedKeyUse, isUrgent = false): Promise<boolean> {
    this.#waiting ??= { uses: [], written: Promise.withResolvers(), isUrgent: false };
    const { uses, written } = this.#waiting;
    if (uses.length >= WAITING_MAX) return Promise.resolve(false);
    uses.push(use);
    if (isUrgent) {
      this.#waiting.isUrgent = true;
      this.#pause.abort();
    }
    if (!this.#isWriting) void this.#writeWaiting();
    return written.promise;
  }

  async #writeWaiting(): Promise<void> {
    this.#isWriting = true;
    for (let waiting = this.#waiting; waiting !== undefined; waiting = this.#waiting) {
      this.#waiting = undefined;
      await this.#writeAll(waiting);
    }
    this.#isWriting = false;
  }

  async #writeAll({ uses, written, isUrgent }: Waiting): Promise<void> {
    for (let from = 0; from < uses.length; from += USES_PER_BATCH_MAX) {
      const startedAt = this.#clock.monotonic();
      try {
        await this.#write(uses.slice(from, from + USES_PER_BATCH_MAX));
      } catch {
        written.resolve(false);
        return;
      }
      if (from + USES_PER_BATCH_MAX >= uses.length) written.resolve(true);
      const took = this.#clock.monotonic() - startedAt;
      if (isUrgent || this.#waiting?.isUrgent) continue;
      this.#pause = new AbortController();
      await pause(this.#clock, took, this.#pause.signal);
    }
  }
}
