import { StoreUnavailable } from "../errors/store-unavailable.ts";

/** Queries at the same time, unless told otherwise. */
const READS_MAX = 2;
/** Names of one query. */
const NAMES_MAX = 1_000;

/**
 * Reads values by name. Reads of one event loop iteration share a query, and so do those that arrive while others are being
 * read.
 */
export class GatheredReads<V> {
  readonly #read: (names: readonly string[]) => Promise<ReadonlyMap<string, V>>;
  readonly #readsMax: number;
  /** What waits for a query, by name. */
  readonly #waiting = new Map<string, PromiseWithResolvers<V | undefined>>();
  #reads = 0;
  #isScheduled = false;

  /** @param readsMax how many queries run at the same time. */
  constructor(read: (names: readonly string[]) => Promise<ReadonlyMap<string, V>>, readsMax = READS_MAX) {
    this.#read = read;
    this.#readsMax = readsMax;
  }

  /**
   * The value; undefined if there is none. Rejects when the query does, and with `StoreUnavailable` also when one does for
   * which it waited.
   */
  find(name: string): Promise<V | undefined> {
    let waiting = this.#waiting.get(name);
    if (!waiting) {
      waiting = Promise.withResolvers();
      this.#waiting.set(name, waiting);
      this.#readSoon();
    }
    return waiting.promise;
  }

  #readSoon(): void {
    if (this.#isScheduled || this.#reads === this.#readsMax) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      while (this.#waiting.size > 0 && this.#reads < this.#readsMax) void this.#readSome();
    });
  }

  async #readSome(): Promise<void> {
    const some = [...this.#waiting].slice(0, NAMES_MAX);
    for (const [name] of some) this.#waiting.delete(name);
    this.#reads++;
    try {
      const values = await this.#read(some.map(([name]) => name));
      for (const [name, { resolve }] of some) resolve(values.get(name));
    } catch (error) {
      for (const [, { reject }] of some) reject(error);
      // A query of their own would let them wait for a store that hangs as long again.
      if (error instanceof StoreUnavailable) this.#rejectWaiting(error);
    }
    this.#reads--;
    if (this.#waiting.size > 0) this.#readSoon();
  }

  #rejectWaiting(error: StoreUnavailable): void {
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }
}
