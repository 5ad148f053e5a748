/** Set beside the owner while somebody waits, so that a release without rivals wakes nobody. */
const contended = 1 << 30;

/** Int32 words from one lock to the next: each has a cache line of its own. */
const spacing = 16;

/**
 * Locks in memory that threads share. A lock's word is 0, or the owner that holds it.
 *
 * Several are taken in ascending order, so that threads cannot wait for each other in a circle. What is done under a
 * lock takes microseconds, a split under a millisecond; whoever waits much longer waits for a thread that died. It
 * gives up rather than block its event loop, which may be the very one that is to hear of the death.
 */
export class StripeLocks {
  readonly #words: Int32Array;
  readonly #owner: number;

  /** `words` as `StripeLocks.words` asks for; `owner` is 1 to 2^30 − 1 and differs between threads. */
  constructor(words: Int32Array, owner: number) {
    if (!(Number.isInteger(owner) && owner >= 1 && owner < contended)) throw new RangeError(`Bad lock owner: ${owner}`);
    this.#words = words;
    this.#owner = owner;
  }

  /** How many 32-bit words `count` locks need. */
  static words(count: number): number {
    return count * spacing;
  }

  /** Takes a lock, or answers false after having waited for about `timeout` milliseconds. */
  take(lock: number, timeout: number): boolean {
    const words = this.#words;
    const at = lock * spacing;
    for (let attempt = 0; attempt < 200; attempt++) {
      if (Atomics.compareExchange(words, at, 0, this.#owner) === 0) return true;
    }
    for (let waited = 0; ; ) {
      const held = Atomics.load(words, at);
      if (held === 0) {
        // Others may be waiting as well; whoever waited takes it as contended, so that its release wakes one of them.
        if (Atomics.compareExchange(words, at, 0, this.#owner | contended) === 0) return true;
        continue;
      }
      if (waited >= timeout) return false;
      if ((held & contended) === 0 && Atomics.compareExchange(words, at, held, held | contended) !== held) continue;
      if (Atomics.wait(words, at, held | contended, 10) === "timed-out") waited += 10;
    }
  }

  release(lock: number): void {
    const at = lock * spacing;
    const held = Atomics.exchange(this.#words, at, 0);
    if ((held & contended) !== 0) Atomics.notify(this.#words, at, 1);
  }

  /** Whether `owner` holds the lock. */
  isHeldBy(owner: number, lock: number): boolean {
    return (Atomics.load(this.#words, lock * spacing) & ~contended) === owner;
  }
}
