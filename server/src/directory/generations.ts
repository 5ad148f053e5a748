const SLOTS = 1 << 16;

/**
 * When each thing last changed, in memory that all threads share.
 *
 * A tag (the id of a key, an identity, an API, a workspace; the hash of a secret) falls into one of 65,536 slots, which
 * holds the number of the last change to any tag in it. What was read when the newest change was number g is fresh as
 * long as no slot of its tags holds more than g. Two tags in one slot cost a look-up too many, never a stale answer.
 * Numbers wrap after 2^31 changes; they are compared by their difference.
 */
export class Generations {
  readonly #newest: Int32Array;
  readonly #slots: Int32Array;

  constructor(buffer: SharedArrayBuffer = new SharedArrayBuffer(4 * (SLOTS + 1))) {
    this.#newest = new Int32Array(buffer, 0, 1);
    this.#slots = new Int32Array(buffer, 4, SLOTS);
  }

  /** The number of the newest change. Take it before reading what is to be remembered. */
  newest(): number {
    return Atomics.load(this.#newest, 0);
  }

  /** The slot of a tag, to be kept beside what carries the tag. */
  static slot(tag: string): number {
    // FNV-1a.
    let mixed = 0x811c9dc5;
    for (let i = 0; i < tag.length; i++) mixed = Math.imul(mixed ^ tag.charCodeAt(i), 0x01000193);
    return (mixed ^ (mixed >>> 16)) & (SLOTS - 1);
  }

  /** Whether nothing in the slot changed after `generation`. */
  unchanged(slot: number, generation: number): boolean {
    return ((Atomics.load(this.#slots, slot) - generation) | 0) <= 0;
  }

  /** Outdates everything that carries one of the tags, in every thread, at once. */
  bump(tags: readonly string[]): void {
    const generation = (Atomics.add(this.#newest, 0, 1) + 1) | 0;
    for (const tag of tags) this.#raise(Generations.slot(tag), generation);
  }

  /** Outdates everything. */
  bumpAll(): void {
    const generation = (Atomics.add(this.#newest, 0, 1) + 1) | 0;
    for (let slot = 0; slot < SLOTS; slot++) this.#raise(slot, generation);
  }

  /** Another thread may be raising the same slot with a later number, which must not be lowered. */
  #raise(slot: number, generation: number): void {
    for (;;) {
      const seen = Atomics.load(this.#slots, slot);
      if (((seen - generation) | 0) >= 0) return;
      if (Atomics.compareExchange(this.#slots, slot, seen, generation) === seen) return;
    }
  }
}
