import { Fingerprint } from "../crypto/fingerprint.ts";
import { newFingerprintKey } from "../crypto/secret.ts";

/**
 * The 32-bit words before the slots: the newest generation, the last `bumpAll`, the key of the hash (two words), and the
 * number of finished changes.
 */
const NEWEST = 0;
const EVERYTHING = 1;
const KEY = 2;
const FINISHED = 4;
const HEAD = 5;

const SLOTS_MIN = 1 << 16;
const SLOTS_MAX = 1 << 26;
/** Slots per cached record. With two to five tags per record, a change outdates one or two others by chance. */
const SLOTS_PER_ENTRY = 4;
/** How far a slot may lag behind the newest generation. */
const LAG_MAX = 2 ** 30;

/** Allocates slots for a cache of `entries` records, with a new hash key. */
export function newGenerationsBuffer(entries = 0): SharedArrayBuffer {
  let slots = SLOTS_MIN;
  while (slots < SLOTS_MAX && slots < SLOTS_PER_ENTRY * entries) slots *= 2;
  const buffer = new SharedArrayBuffer(4 * (HEAD + slots));
  new Int32Array(buffer).set(newFingerprintKey(), KEY);
  return buffer;
}

/**
 * The number of the last change of each tag, in memory that all threads share. It invalidates cached records.
 *
 * A tag (the id of a key, an identity, an API or a workspace; the hash of a secret) hashes to a slot. The slot holds the
 * generation of the last change to any of its tags. A record read at generation g is valid while no slot of its tags
 * holds a generation above g. Two tags in one slot cause an unnecessary look-up, never a stale answer. The hash is keyed
 * with a secret of the process, so a client cannot choose names that share the slot of another tenant.
 *
 * Generations wrap after 2^31 changes and are compared by difference, so no slot may lag that far behind: every 2^30
 * changes everything is outdated once, and each change also raises one slot that lags further behind.
 */
export class Generations {
  /** The memory that threads share. */
  readonly buffer: SharedArrayBuffer;
  readonly #head: Int32Array;
  readonly #slots: Int32Array;
  readonly #mask: number;
  readonly #fingerprint: Fingerprint;

  constructor(buffer: SharedArrayBuffer = newGenerationsBuffer()) {
    this.buffer = buffer;
    this.#head = new Int32Array(buffer, 0, HEAD);
    this.#slots = new Int32Array(buffer, 4 * HEAD);
    this.#mask = this.#slots.length - 1;
    this.#fingerprint = new Fingerprint([this.#head[KEY]!, this.#head[KEY + 1]!]);
  }

  /** The newest generation. Read it before reading a record from the database. */
  newest(): number {
    return Atomics.load(this.#head, NEWEST);
  }

  /**
   * The newest generation if the slots have all changes up to it; undefined while a thread is about to raise a slot. A
   * record whose slots are unchanged after this call is valid at the returned generation.
   */
  settled(): number | undefined {
    const finished = Atomics.load(this.#head, FINISHED);
    // Read in this order: `finished` never exceeds `newest`, so equal numbers mean that no change was under way.
    const newest = Atomics.load(this.#head, NEWEST);
    return finished === newest ? newest : undefined;
  }

  /** The slot of a tag, to be stored with the cached record. */
  slot(tag: string): number {
    this.#fingerprint.of(tag, 0);
    return this.#fingerprint.low & this.#mask;
  }

  /** Whether this slot did not change after `generation`. Not enough alone: `areUnchanged` also compares `bumpAll`. */
  isUnchanged(slot: number, generation: number): boolean {
    return ((Atomics.load(this.#slots, slot) - generation) | 0) <= 0;
  }

  /** Whether none of these slots changed after `generation`. */
  areUnchanged(slots: ArrayLike<number>, generation: number): boolean {
    if (((Atomics.load(this.#head, EVERYTHING) - generation) | 0) > 0) return false;
    for (let i = 0; i < slots.length; i++) {
      if (!this.isUnchanged(slots[i]!, generation)) return false;
    }
    return true;
  }

  /** Outdates all records with one of the tags, in every thread, at once. */
  bump(tags: readonly string[]): void {
    this.bumpSlots(tags.map((tag) => this.slot(tag)));
  }

  /** Outdates all records with a tag in one of these slots. */
  protected bumpSlots(slots: readonly number[]): void {
    const generation = this.#next();
    for (const slot of slots) raise(this.#slots, slot, generation);
    const passed = generation & this.#mask;
    if (((generation - Atomics.load(this.#slots, passed)) | 0) > LAG_MAX)
      raise(this.#slots, passed, (generation - LAG_MAX) | 0);
    Atomics.add(this.#head, FINISHED, 1);
  }

  /** Outdates everything. */
  bumpAll(): void {
    raise(this.#head, EVERYTHING, this.#next());
    Atomics.add(this.#head, FINISHED, 1);
  }

  #next(): number {
    const generation = (Atomics.add(this.#head, NEWEST, 1) + 1) | 0;
    if (((generation - Atomics.load(this.#head, EVERYTHING)) | 0) > LAG_MAX) raise(this.#head, EVERYTHING, generation);
    return generation;
  }
}

/** Raises a slot atomically. Never lowers it, because another thread may raise it further at the same time. */
function raise(numbers: Int32Array, index: number, generation: number): void {
  for (;;) {
    const seen = Atomics.load(numbers, index);
    if (((seen - generation) | 0) >= 0) return;
    if (Atomics.compareExchange(numbers, index, seen, generation) === seen) return;
  }
}
