import type { ImportedKeyUse } from "../store/keys/key-migrations.ts";

/** Most that one transaction takes in. */
const USES_PER_BATCH_MAX = 500;

/**
 * Keeps what the first verifications of imported keys tell about them. Those that come while others are being written
 * are written together after them: when the callers of a whole migration arrive at once, they share few transactions.
 */
export class FirstUses {
  readonly #write: (uses: readonly ImportedKeyUse[]) => Promise<void>;
  #next: { readonly uses: ImportedKeyUse[]; readonly written: Promise<void> } | undefined;
  #written: Promise<void> = Promise.resolve();

  constructor(write: (uses: readonly ImportedKeyUse[]) => Promise<void>) {
    this.#write = write;
  }

  /** Resolves when it is kept, and also when that failed: the next verification of the key tells it again. */
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
