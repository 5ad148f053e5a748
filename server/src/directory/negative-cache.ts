import type { Clock, Milliseconds } from "../clock/clock.ts";
import { Fingerprint } from "../crypto/fingerprint.ts";
import { newFingerprintKey } from "../crypto/secret.ts";
import type { Generations } from "./generations.ts";

/** How long "there is none" is believed. Its tags outdate it at once on every node; this bounds its use of memory. */
const LIFE: Milliseconds = 30_000;
const PLACES_PER_BUCKET = 8;
const BYTES_PER_PLACE = 28;
/** More than are looked up in their lifetime where the budget is as it comes. */
const PLACES_MAX = 1 << 18;
/** Of the tags that outdate an absence: its own and at most one other. */
const SLOTS_MAX = 2;

export interface NegativeCacheOptions {
  clock: Clock;
  generations: Generations;
  bytesMax: number;
}

/**
 * Names under which there is nothing, for a while.
 *
 * Whoever invents names makes as many of these as the budget allows, so they are kept where they cost the garbage
 * collector nothing: as 64 bits of a keyed hash in buckets of eight places, of which a new one takes the one that is
 * over, or else the oldest. In a full table a name that was never told is taken for one that was with a probability of
 * 1.4 in 10^14; nobody can aim at it without the key.
 */
export class NegativeCache {
  readonly #clock: Clock;
  readonly #generations: Generations;
  readonly #fingerprint = new Fingerprint(newFingerprintKey());
  readonly #bucketMask: number;
  readonly #low: Int32Array;
  readonly #high: Int32Array;
  /** The generation at which there was nothing. */
  readonly #generation: Int32Array;
  /** Slots of the tags that outdate it. */
  readonly #slots: Int32Array;
  /** Monotonic time after which it is not believed any more; a place that was never taken is over from the start. */
  readonly #until: Float64Array;

  constructor({ clock, generations, bytesMax }: NegativeCacheOptions) {
    this.#clock = clock;
    this.#generations = generations;
    const room = Math.min(PLACES_MAX, Math.max(PLACES_PER_BUCKET, bytesMax / BYTES_PER_PLACE));
    const places = 2 ** Math.floor(Math.log2(room));
    this.#bucketMask = places / PLACES_PER_BUCKET - 1;
    this.#low = new Int32Array(places);
    this.#high = new Int32Array(places);
    this.#generation = new Int32Array(places);
    this.#slots = new Int32Array(SLOTS_MAX * places);
    this.#until = new Float64Array(places);
  }

  has(name: string): boolean {
    const place = this.#find(name);
    if (place === -1 || this.#until[place]! <= this.#clock.monotonic()) return false;
    const slots = this.#slots.subarray(SLOTS_MAX * place, SLOTS_MAX * (place + 1));
    return this.#generations.areUnchanged(slots, this.#generation[place]!);
  }

  /**
   * @param generation at which there was nothing.
   * @param slots of the tags that outdate this: one or two.
   */
  add(name: string, generation: number, slots: readonly number[]): void {
    if (slots.length > SLOTS_MAX) throw new Error(`An absence has ${slots.length} tags`);
    let place = this.#find(name);
    if (place === -1) {
      const first = this.#bucket();
      place = first;
      for (let i = first + 1; i < first + PLACES_PER_BUCKET; i++) {
        if (this.#until[i]! < this.#until[place]!) place = i;
      }
    }
    this.#low[place] = this.#fingerprint.low;
    this.#high[place] = this.#fingerprint.high;
    this.#generation[place] = generation;
    for (let i = 0; i < SLOTS_MAX; i++) {
      this.#slots[SLOTS_MAX * place + i] = slots[i] ?? slots[0]!;
    }
    this.#until[place] = this.#clock.monotonic() + LIFE;
  }

  /** Its place or -1; its bits stand in the fingerprint afterwards. */
  #find(name: string): number {
    this.#fingerprint.of(name, 0);
    const { low, high } = this.#fingerprint;
    const first = this.#bucket();
    for (let place = first; place < first + PLACES_PER_BUCKET; place++) {
      if (this.#low[place] === low && this.#high[place] === high) return place;
    }
    return -1;
  }

  /** Where the bucket of the fingerprint begins. */
  #bucket(): number {
    return (this.#fingerprint.low & this.#bucketMask) * PLACES_PER_BUCKET;
  }
}
