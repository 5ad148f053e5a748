import type { Clock, Milliseconds } from "../clock/clock.ts";
import { Fingerprint } from "../crypto/fingerprint.ts";
import { newFingerprintKey } from "../crypto/secret.ts";
import type { Generations } from "./generations.ts";

/** Lifetime of an entry. Its tags already outdate it on every node; the lifetime only frees memory. */
const LIFE: Milliseconds = 30_000;
const SLOTS_PER_BUCKET = 8;
const BYTES_PER_SLOT = 28;
/** More than the default look-up rate can add in one lifetime. */
const SLOTS_MAX = 1 << 18;
/** Tags that outdate an entry: its own and at most one more. */
const TAGS_MAX = 2;

export interface NegativeCacheOptions {
  clock: Clock;
  generations: Generations;
  bytesMax: number;
}

/**
 * A cache of names without a record, for a limited time.
 *
 * A client that invents names adds entries at the rate that the look-up limiter allows. Typed arrays keep them out of the
 * garbage collector's way: an entry is 64 bits of a keyed hash in a bucket of eight slots. A new entry replaces an
 * expired one, or else the oldest of its bucket. In a full table the probability of a false hit is 1.4 in 10^14, and
 * without the key of the hash a client cannot construct one.
 */
export class NegativeCache {
  readonly #clock: Clock;
  readonly #generations: Generations;
  readonly #fingerprint = new Fingerprint(newFingerprintKey());
  readonly #bucketMask: number;
  readonly #low: Int32Array;
  readonly #high: Int32Array;
  /** The generation at which no record was found. */
  readonly #generation: Int32Array;
  /** Generation slots of the tags that outdate the entry. */
  readonly #tagSlots: Int32Array;
  /** Monotonic time at which the entry expires; 0 for a slot that was never used. */
  readonly #expiresAt: Float64Array;

  constructor({ clock, generations, bytesMax }: NegativeCacheOptions) {
    this.#clock = clock;
    this.#generations = generations;
    const slotsMax = Math.min(SLOTS_MAX, Math.max(SLOTS_PER_BUCKET, bytesMax / BYTES_PER_SLOT));
    const slotCount = 2 ** Math.floor(Math.log2(slotsMax));
    this.#bucketMask = slotCount / SLOTS_PER_BUCKET - 1;
    this.#low = new Int32Array(slotCount);
    this.#high = new Int32Array(slotCount);
    this.#generation = new Int32Array(slotCount);
    this.#tagSlots = new Int32Array(TAGS_MAX * slotCount);
    this.#expiresAt = new Float64Array(slotCount);
  }

  has(name: string): boolean {
    const slot = this.#find(name);
    if (slot === -1 || this.#expiresAt[slot]! <= this.#clock.monotonic()) return false;
    const tagSlots = this.#tagSlots.subarray(TAGS_MAX * slot, TAGS_MAX * (slot + 1));
    return this.#generations.areUnchanged(tagSlots, this.#generation[slot]!);
  }

  /**
   * @param generation the generation at which no record was found.
   * @param tagSlots the generation slots of the one or two tags that outdate the entry.
   */
  add(name: string, generation: number, tagSlots: readonly number[]): void {
    if (tagSlots.length > TAGS_MAX) throw new Error(`A negative entry has ${tagSlots.length} tags`);
    let slot = this.#find(name);
    if (slot === -1) {
      const first = this.#bucket();
      slot = first;
      for (let i = first + 1; i < first + SLOTS_PER_BUCKET; i++) {
        if (this.#expiresAt[i]! < this.#expiresAt[slot]!) slot = i;
      }
    }
    this.#low[slot] = this.#fingerprint.low;
    this.#high[slot] = this.#fingerprint.high;
    this.#generation[slot] = generation;
    for (let i = 0; i < TAGS_MAX; i++) {
      this.#tagSlots[TAGS_MAX * slot + i] = tagSlots[i] ?? tagSlots[0]!;
    }
    this.#expiresAt[slot] = this.#clock.monotonic() + LIFE;
  }

  /** Finds the slot of a name, or -1. Leaves its hash in `#fingerprint`. */
  #find(name: string): number {
    this.#fingerprint.of(name, 0);
    const { low, high } = this.#fingerprint;
    const first = this.#bucket();
    for (let slot = first; slot < first + SLOTS_PER_BUCKET; slot++) {
      if (this.#low[slot] === low && this.#high[slot] === high) return slot;
    }
    return -1;
  }

  /** The first slot of the bucket that `#fingerprint` selects. */
  #bucket(): number {
    return (this.#fingerprint.low & this.#bucketMask) * SLOTS_PER_BUCKET;
  }
}
