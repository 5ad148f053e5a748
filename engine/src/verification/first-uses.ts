import type { ImportedKeyUse } from "./stored.ts";

/** Maximum number of first uses per transaction. */
const USES_PER_BATCH_MAX = 500;

/** Maximum number of first uses that wait for a write. */
const WAITING_MAX = 100_000;

/**
 * Stores what the first verification of an imported key reveals about it. First uses that arrive during a write are
 * batched into the next one, so that a wave of first verifications after a migration needs few transactions.
 */
export class FirstUseWriter {
  readonly #write: (uses: readonly ImportedKeyUse[]) => Promise<void>;
  #next: { readonly uses: ImportedKeyUse[]; readonly written: Promise<boolean> } | undefined;
  #written: Promise<unknown> = Promise.resolve();

  constructor(write: (uses: readonly ImportedKeyUse[]) => Promise<void>) {
    this.#write = write;
  }

  /** Resolves when the write has ended: whether all of it succeeded. Never rejects. */
  record(use: ImportedKeyUse): Promise<boolean> {
    if (this.#next) {
      if (this.#next.uses.length >= WAITING_MAX) return Promise.resolve(false);
      this.#next.uses.push(use);
      return this.#next.written;
    }
    const uses = [use];
    const written = this.#written.then(() => {
      this.#next = undefined;
      return this.#writeAll(uses);
    });
    this.#written = written;
    this.#next = { uses, written };
    return written;
  }

  async #writeAll(uses: readonly ImportedKeyUse[]): Promise<boolean> {
    try {
      for (let from = 0; from < uses.length; from += USES_PER_BATCH_MAX) {
        await this.#write(uses.slice(from, from + USES_PER_BATCH_MAX));
      }
      return true;
    } catch {
      return false;
    }
  }
}
