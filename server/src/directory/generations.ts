import { Fingerprint } from "../crypto/fingerprint.ts";
import { newFingerprintKey } from "../crypto/secret.ts";

/** Numbers in front of the slots: the newest change, the last change of everything, the key of the hash. */
const NEWEST = 0;
const EVERYTHING = 1;
const KEY = 2;
const HEAD = 4;

const SLOTS_MIN = 1 << 16;
const SLOTS_MAX = 1 << 26;
/** A record has two to five tags of its own, so that a change outdates one or two others by chance. */
const SLOTS_PER_ENTRY = 4;
/** By how many changes a number may lag behind the newest. */
const LAG_MAX = 2 ** 30;

/** Memory for as many generations as a directory of so many entries needs, with a new secret in it. */
export function newGenerationsBuffer(entries = 0): SharedArrayBuffer {
  let slots = SLOTS_MIN;
  while (slots < SLOTS_MAX && slots < SLOTS_PER_ENTRY * entries) slots *= 2;
  const buffer = new SharedArrayBuffer(4 * (HEAD + slots));
  new Int32Array(buffer).set(newFingerprintKey(), KEY);
  return buffer;
}

/**
 * When each thing last changed, in memory that all threads share.
 *
 * A tag (the id of a key, an identity, an API, a workspace; the hash of a secret) falls into a slot, which holds the
 * number of the last change to any tag in it. What was read when the newest change was number g is fresh as long as no
 * slot of its tags holds more than g. Two tags in one slot cost a look-up too many, never a stale answer; the hash is
 * keyed with a secret of the process, so that nobody can choose names that fall into the slots of others.
 *
 * Numbers wrap after 2^31 changes and are compared by their difference, so none may fall behind by that much: after
 * 2^30 changes everything is outdated once, and slots that lag further behind are raised one by one.
 */
export class Generations {
  readonly #head: Int32Array;
  readonly #slots: Int32Array;
  readonly #mask: number;
  readonly #fingerprint: Fingerprint;

  constructor(buffer: SharedArrayBuffer = newGenerationsBuffer()) {
    this.#head = new Int32Array(buffer, 0, HEAD);
    this.#slots = new Int32Array(buffer, 4 * HEAD);
    this.#mask = this.#slots.length - 1;
    this.#fingerprint = new Fingerprint([this.#head[KEY]!, this.#head[KEY + 1]!]);
  }

  /** The number of the newest change. Take it before reading what is to be remembered. */
  newest(): number {
    return Atomics.load(this.#head, NEWEST);
  }

  /** The slot of a tag, to be kept beside what carries the tag. */
  slot(tag: string): number {
    this.#fingerprint.of(tag, 0);
    return this.#fingerprint.low & this.#mask;
  }

  /** Whether nothing in these slots changed after `generation`. */
  areUnchanged(slots: ArrayLike<number>, generation: number): boolean {
    if (((Atomics.load(this.#head, EVERYTHING) - generation) | 0) > 0) return false;
    for (let i = 0; i < slots.length; i++) {
      if (((Atomics.load(this.#slots, slots[i]!) - generation) | 0) > 0) return false;
    }
    return true;
  }

  /** Outdates everything that carries one of the tags, in every thread, at once. */
  bump(tags: readonly string[]): void {
    const generation = this.#next();
    for (const tag of tags) raise(this.#slots, this.slot(tag), generation);
    const slot = generation & this.#mask;
    if (((generation - Atomics.load(this.#slots, slot)) | 0) > LAG_MAX)
      raise(this.#slots, slot, (generation - LAG_MAX) | 0);
  }

  /** Outdates everything. */
  bumpAll(): void {
    raise(this.#head, EVERYTHING, this.#next());
  }

  #next(): number {
    const generation = (Atomics.add(this.#head, NEWEST, 1) + 1) | 0;
    if (((generation - Atomics.load(this.#head, EVERYTHING)) | 0) > LAG_MAX) raise(this.#head, EVERYTHING, generation);
    return generation;
  }
}

/** Another thread may be raising the same number to a later one, which must not be lowered. */
function raise(numbers: Int32Array, index: number, generation: number): void {
  for (;;) {
    const seen = Atomics.load(numbers, index);
    if (((seen - generation) | 0) >= 0) return;
    if (Atomics.compareExchange(numbers, index, seen, generation) === seen) return;
  }
}
