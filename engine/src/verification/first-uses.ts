import type { ImportedKeyUse } from "./stored.ts";

/** Maximum number of first uses per transaction. */
const USES_PER_BATCH_MAX = 500;

/**
 * Stores what the first verification of an imported key reveals about it. First uses that arrive during a write are
 * batched into the next one, so that a wave of first verifications after a migration needs few transactions.
 */
export class FirstUseWriter {
  readonly #write: (uses: readonly ImportedKeyUse[]) => Promise<void>;
  #next: { readonly uses: ImportedKeyUse[]; readonly written: Promise<void> } | undefined;
  #written: Promise<void> = Promise.resolve();

  constructor(write: (uses: readonly ImportedKeyUse[]) => Promise<void>) {
    this.#write = write;
  }

  /** Resolves when the write has ended. Errors are ignored; the next verification of the key records its use again. */
  record(use: ImportedKeyUse): Promise<void> {
    if (this.#next) {
      this.#next.uses.push(use);
      return this.#next.written;
    }
    const uses = [use];
    this.#written = this.#written.then(() => {
      this.#next = undefined;
      return this.#writeAll(uses);
    });
    this.#next = { uses, written: this.#written };
    return this.#written;
  }

  async #writeAll(uses: readonly ImportedKeyUse[]): Promise<void> {
    for (let from = 0; from < uses.length; from += USES_PER_BATCH_MAX) {
      await this.#write(uses.slice(from, from + USES_PER_BATCH_MAX)).catch(() => {});
    }
  }
}
