/** Flag in the lock word while a thread waits, so that an uncontended release needs no wake-up. */
const contended = 1 << 30;

/** Int32 words between two locks: each lock has a cache line of its own. */
const spacing = 16;

/** The longest wait, in milliseconds, until a thread looks at a lock again. */
const SLICE = 10;

/**
 * Locks in memory that threads share. The word of a lock is 0, or the owner that holds it.
 *
 * Threads acquire several locks in ascending order, so that no deadlock is possible. Work under a lock takes
 * microseconds, a split under a millisecond. A lock that is held much longer belongs to a thread that died. `acquire` then
 * gives up instead of blocking the event loop, because this thread may be the one that must handle that death. It gives up
 * soon on a lock on which it gave up before, until that lock has another holder or none: many calls may need it.
 */
export class StripeLocks {
  readonly #words: Int32Array;
  readonly #owner: number;
  /** The holders of the locks on which `acquire` gave up last, by lock. */
  readonly #dead = new Map<number, number>();

  /** `words` has the length of `StripeLocks.words`; `owner` is 1 to 2^30 − 1 and unique per thread. */
  constructor(words: Int32Array, owner: number) {
    if (!(Number.isInteger(owner) && owner >= 1 && owner < contended)) throw new RangeError(`Bad lock owner: ${owner}`);
    this.#words = words;
    this.#owner = owner;
  }

  /** The number of 32-bit words that `count` locks need. */
  static words(count: number): number {
    return count * spacing;
  }

  /** Acquires a lock; false after a wait of about `timeout` milliseconds, or less if its holder seems to be dead. */
  acquire(lock: number, timeout: number): boolean {
    const isAcquired = this.#acquire(lock, timeout);
    if (isAcquired && this.#dead.size > 0) this.#dead.delete(lock);
    return isAcquired;
  }

  #acquire(lock: number, timeout: number): boolean {
    const words = this.#words;
    const at = lock * spacing;
    for (let attempt = 0; attempt < 200; attempt++) {
      if (Atomics.compareExchange(words, at, 0, this.#owner) === 0) return true;
    }
    for (let waited = 0; ; ) {
      const held = Atomics.load(words, at);
      if (held === 0) {
        // Other threads may be waiting too, so the lock stays contended and its release wakes one of them.
        if (Atomics.compareExchange(words, at, 0, this.#owner | contended) === 0) return true;
        continue;
      }
      const holder = held & ~contended;
      if (waited >= (this.#dead.get(lock) === holder ? SLICE : timeout)) {
        this.#dead.set(lock, holder);
        return false;
      }
      if ((held & contended) === 0 && Atomics.compareExchange(words, at, held, held | contended) !== held) continue;
      if (Atomics.wait(words, at, held | contended, SLICE) === "timed-out") waited += SLICE;
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
