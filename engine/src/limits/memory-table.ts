import type { FingerprintKey } from "../crypto/fingerprint.ts";
import { StripeLocks } from "./stripe-locks.ts";

const slotsPerBucket = 8;
const bucketBits = 10;
const bucketMask = (1 << bucketBits) - 1;
/** A segment: 1,024 buckets of eight slots of 32 bytes. */
const slotsPerSegment = slotsPerBucket << bucketBits;
const marksPerSegment = slotsPerSegment / 32;

/** Bytes of one slot, which are also the bytes of one record of `collect`. */
export const SLOT_BYTES = 32;
/** Bytes of one segment, the unit in which the table grows: 256 KiB. */
export const SEGMENT_BYTES = slotsPerSegment * SLOT_BYTES;

/** Buckets of one segment. */
export const SEGMENT_BUCKETS = 1 << bucketBits;

/** States of a bucket in `makeRoom`. Other values are the slot, relative to its segment, whose counter can move to the bucket. */
const unvisited = -1;
const isStart = -2;

/**
 * How long a thread waits for a lock, in milliseconds, before it assumes that the holder is dead. With more threads than
 * cores, a living holder can be stopped for some hundred milliseconds.
 */
export const LOCK_TIMEOUT = 1_000;

/** Marks an initialised buffer, and the version of its layout. */
const layoutVersion = 0x6c6b0002;

// Words of the header.
const atVersion = 0;
const atSegmentsMax = 1;
const atSegments = 2;
const atRejections = 3;
const atKey = 4;
const atTotal = 6;
const headWords = 16;

/** Number of owner tags. A tag is the fraction of a slot's end, where a double of this size has 12 spare bits. */
const OWNERS = 4096;
/** The fraction of all slots that owned counters may use. Hashing cannot fill a table much further. */
const FILL_MAX = 0.95;
/** An owner may hold at most three times the free slots: one owner alone 3/4 of the table. Some slots always stay free. */
const SHARE = 3;
/** Every owner may hold this fraction of the table. */
const SHARE_MIN = 1 / 64;

/** The offsets of the parts of the buffer, in 32-bit words. */
function layOut(segmentsMax: number) {
  const stripeBits = Math.min(6, Math.floor(Math.log2(segmentsMax)));
  // Segments differ in depth only by chance, so three additional bits are more than enough.
  const depthMax = Math.max(stripeBits, Math.ceil(Math.log2(segmentsMax))) + 3;
  const stripes = 1 << stripeBits;
  let words = headWords;
  const part = (size: number): number => {
    const begin = words;
    words += size;
    return begin;
  };
  const locks = part(StripeLocks.words(stripes));
  const splitSource = part(stripes);
  const splitTarget = part(stripes);
  const owned = part(OWNERS);
  const directory = part(1 << depthMax);
  const depth = part(segmentsMax);
  const prefix = part(segmentsMax);
  const changed = part(segmentsMax);
  const marks = part(segmentsMax * marksPerSegment);
  const segments = Math.ceil(words / 1024) * 1024;
  const bytes = segments * 4 + segmentsMax * SEGMENT_BYTES;
  return {
    stripeBits,
    depthMax,
    stripes,
    locks,
    splitSource,
    splitTarget,
    owned,
    directory,
    depth,
    prefix,
    changed,
    marks,
    segments,
    bytes,
  };
}

/**
 * Reserves memory for counters: as many whole segments as fit into `bytes`, at least one, and about 0.5 % more for the
 * directory. The operating system allocates a page at its first write. `shared` allows use by several threads.
 */
export function reserveTable(bytes: number, shared: boolean): ArrayBuffer | SharedArrayBuffer {
  const segmentsMax = Math.max(1, Math.floor(bytes / SEGMENT_BYTES));
  const layout = layOut(segmentsMax);
  const buffer = shared ? new SharedArrayBuffer(layout.bytes) : new ArrayBuffer(layout.bytes);
  new Int32Array(buffer, 0, headWords)[atSegmentsMax] = segmentsMax;
  return buffer;
}

function ownerIn(tagged: number): number {
  return (tagged - Math.floor(tagged)) * OWNERS;
}

/** A record of `collect`: the state of one counter. The fraction of `end` is the tag of its owner. */
export type SlotRecord = Readonly<{ low: number; high: number; end: number; current: number; previous: number }>;

/**
 * A hash table of counters in one reserved buffer.
 *
 * A slot is 32 bytes: the fingerprint (64 bits), the end of its relevance in milliseconds, and two counts. The fraction
 * of the end is the tag of the counter's owner; the number of counters per owner is limited, so that no owner can fill
 * the table. A counter is in one of two buckets of one segment; its fingerprint selects all three. A slot whose end has
 * passed is free. A directory maps the low bits of the fingerprint's high word to segments (extendible hashing). A segment
 * without room for a counter is split by the next bit: the counters whose bit is set move to the same slots of a new
 * segment. The directory has its full size from the start, so a split moves nothing but half of one segment.
 *
 * The lowest bits also select the stripe, whose lock guards all its segments. In a shared buffer all reads and writes
 * need the lock of the stripe; an unshared buffer has no locks.
 *
 * A thread can die at any point under a lock. The order of writes therefore guarantees that an incomplete sequence loses
 * no count, and the thread that releases the lock can finish a split.
 */
export class MemoryTable {
  /** The key of the fingerprints. It is in the buffer, so that all threads use the same key. */
  readonly key: FingerprintKey;
  readonly isShared: boolean;
  readonly #numbers: Float64Array;
  readonly #words: Int32Array;
  readonly #locks: StripeLocks;
  readonly #lockTimeout: number;
  readonly #layout: ReturnType<typeof layOut>;
  readonly #segmentsMax: number;
  readonly #directory: number;
  readonly #directoryMask: number;
  /** The maximum number of owned counters. */
  readonly #capacity: number;
  /** The last swept segment. */
  #sweptSegment = 0;
  /** Reused by `makeRoom`. */
  readonly #search = { queue: new Int32Array(SEGMENT_BUCKETS), reachedFrom: new Int32Array(SEGMENT_BUCKETS) };
  /** Index of the first slot, counted in slots from the start of the buffer. */
  readonly #origin: number;

  /**
   * Opens a buffer of `reserveTable`. The first call sets the `key` and must return before other threads open the buffer;
   * the key of later calls is ignored. `owner` identifies the thread, 1 to 2^30 − 1. `lockTimeout` is in milliseconds.
   */
  constructor(
    buffer: ArrayBuffer | SharedArrayBuffer,
    owner: number,
    key: FingerprintKey,
    lockTimeout: number = LOCK_TIMEOUT,
  ) {
    this.#lockTimeout = lockTimeout;
    this.isShared = buffer instanceof SharedArrayBuffer;
    this.#numbers = new Float64Array(buffer);
    this.#words = new Int32Array(buffer);
    const words = this.#words;
    const segmentsMax = words[atSegmentsMax]!;
    const layout = layOut(segmentsMax);
    if (segmentsMax < 1 || layout.bytes !== buffer.byteLength) throw new RangeError("Not a buffer of reserveTable");
    this.#layout = layout;
    this.#segmentsMax = segmentsMax;
    this.#directory = layout.directory;
    this.#directoryMask = (1 << layout.depthMax) - 1;
    this.#origin = layout.segments / 8;
    // If the number of segments is not a power of two, some segments receive twice as many counters and fill first.
    this.#capacity = FILL_MAX * slotsPerSegment * 2 ** Math.floor(Math.log2(segmentsMax));
    this.#locks = new StripeLocks(
      words.subarray(layout.locks, layout.locks + StripeLocks.words(layout.stripes)),
      owner,
    );
    if (Atomics.load(words, atVersion) !== layoutVersion) {
      words[atKey] = key[0];
      words[atKey + 1] = key[1];
      words[atSegments] = layout.stripes;
      for (let segment = 0; segment < layout.stripes; segment++) {
        words[layout.depth + segment] = layout.stripeBits;
        words[layout.prefix + segment] = segment;
        this.#mapDirectory(segment, layout.stripeBits, segment);
      }
      Atomics.store(words, atVersion, layoutVersion);
    }
    this.key = [words[atKey]!, words[atKey + 1]!];
  }

  /** The lock that guards a counter. */
  stripeOf(high: number): number {
    return high & (this.#layout.stripes - 1);
  }

  /** Acquires the lock of a stripe; false if its holder does not release it, presumably because it died. */
  lock(stripe: number): boolean {
    return this.#locks.acquire(stripe, this.#lockTimeout);
  }

  unlock(stripe: number): void {
    this.#locks.release(stripe);
  }

  /** Finishes the splits of a dead thread and releases its locks. Call it only after the thread has ended. */
  releaseLocksOf(owner: number): void {
    for (let stripe = 0; stripe < this.#layout.stripes; stripe++) {
      if (!this.#locks.isHeldBy(owner, stripe)) continue;
      this.finishSplit(stripe);
      this.#locks.release(stripe);
    }
  }

  /** The slot with this fingerprint, expired or not; −1 if there is none. */
  find(low: number, high: number): number {
    const words = this.#words;
    const segment = words[this.#directory + (high & this.#directoryMask)]!;
    const base = this.#origin + segment * slotsPerSegment;
    const first = base + (low & bucketMask) * slotsPerBucket;
    for (let slot = first; slot < first + slotsPerBucket; slot++) {
      if (words[slot * 8] === low && words[slot * 8 + 1] === high) return slot;
    }
    const second = base + ((low >>> bucketBits) & bucketMask) * slotsPerBucket;
    for (let slot = second; slot < second + slotsPerBucket; slot++) {
      if (words[slot * 8] === low && words[slot * 8 + 1] === high) return slot;
    }
    return -1;
  }

  /**
   * Inserts a counter that is not in the table into a free slot of the emptier of its two buckets, with counts of 0 until
   * `end`. −1 if both buckets are full.
   */
  claim(low: number, high: number, end: number, now: number, owner = 0): number {
    const words = this.#words;
    const segment = words[this.#directory + (high & this.#directoryMask)]!;
    const base = this.#origin + segment * slotsPerSegment;
    const first = base + (low & bucketMask) * slotsPerBucket;
    const second = base + ((low >>> bucketBits) & bucketMask) * slotsPerBucket;
    const numbers = this.#numbers;
    let free = -1;
    let taken = 0;
    for (let slot = first; slot < first + slotsPerBucket; slot++) {
      if (numbers[slot * 4 + 1]! >= now + 1) taken++;
      else if (free === -1) free = slot;
    }
    let otherFree = -1;
    let otherTaken = 0;
    for (let slot = second; slot < second + slotsPerBucket; slot++) {
      if (numbers[slot * 4 + 1]! >= now + 1) otherTaken++;
      else if (otherFree === -1) otherFree = slot;
    }
    if (otherTaken < taken) free = otherFree;
    if (free === -1) return -1;
    this.#disown(free);
    words[free * 8] = low;
    words[free * 8 + 1] = high;
    numbers[free * 4 + 2] = 0;
    numbers[free * 4 + 3] = 0;
    // The end is written last: until then the slot is free.
    this.#own(free, end, owner);
    return free;
  }

  /**
   * Frees a slot in one of the two full buckets of a counter by cuckoo hashing: moves another counter to its other bucket,
   * which may require further moves (breadth-first search in the segment). Searches at most `bucketsMax` buckets. False if
   * none of them has room; with `SEGMENT_BUCKETS` this means that the counter does not fit into the segment at all.
   */
  makeRoom(low: number, high: number, now: number, bucketsMax: number): boolean {
    const words = this.#words;
    const numbers = this.#numbers;
    const base = this.#origin + words[this.#directory + (high & this.#directoryMask)]! * slotsPerSegment;
    const { queue, reachedFrom } = this.#search;
    reachedFrom.fill(unvisited);
    queue[0] = low & bucketMask;
    reachedFrom[queue[0]!] = isStart;
    let end = 1;
    const second = (low >>> bucketBits) & bucketMask;
    if (reachedFrom[second] === unvisited) {
      reachedFrom[second] = isStart;
      queue[end++] = second;
    }
    for (let at = 0; at < end && at < bucketsMax; at++) {
      const bucket = queue[at]!;
      const first = base + bucket * slotsPerBucket;
      for (let slot = first; slot < first + slotsPerBucket; slot++) {
        const itsLow = words[slot * 8]!;
        const itsFirst = itsLow & bucketMask;
        const other = itsFirst === bucket ? (itsLow >>> bucketBits) & bucketMask : itsFirst;
        if (reachedFrom[other] !== unvisited) continue;
        reachedFrom[other] = slot - base;
        queue[end++] = other;
        let target = base + other * slotsPerBucket;
        const behind = target + slotsPerBucket;
        while (target < behind && numbers[target * 4 + 1]! >= now + 1) target++;
        if (target === behind) continue;
        let source = slot;
        for (;;) {
          this.#move(source, target);
          const from = reachedFrom[((source - base) / slotsPerBucket) | 0]!;
          if (from === isStart) return true;
          target = source;
          source = base + from;
        }
      }
    }
    return false;
  }

  /** Completes the copy before it clears the original, so that a thread that dies in between loses nothing. */
  #move(source: number, target: number): void {
    const words = this.#words;
    const numbers = this.#numbers;
    this.#disown(target);
    words[target * 8] = words[source * 8]!;
    words[target * 8 + 1] = words[source * 8 + 1]!;
    numbers[target * 4 + 2] = numbers[source * 4 + 2]!;
    numbers[target * 4 + 3] = numbers[source * 4 + 3]!;
    numbers[target * 4 + 1] = numbers[source * 4 + 1]!;
    const index = source - this.#origin;
    if ((words[this.#layout.marks + (index >>> 5)]! & (1 << (index & 31))) !== 0) this.mark(target);
    numbers[source * 4 + 1] = 0;
  }

  /** Undoes `claim`. */
  abandon(slot: number): void {
    this.#disown(slot);
  }

  /** Reuses the expired slot of a counter, with counts of 0. */
  renew(slot: number, end: number, owner: number): void {
    const numbers = this.#numbers;
    this.#disown(slot);
    numbers[slot * 4 + 2] = 0;
    numbers[slot * 4 + 3] = 0;
    this.#own(slot, end, owner);
  }

  /** The tag of an owner, from a keyed hash of its name. Owners with the same tag (1 in 4,095 pairs) have one share together. */
  tagOf(hash: number): number {
    return ((hash >>> 0) % (OWNERS - 1)) + 1;
  }

  /**
   * Whether an owner may have another counter: while it has few, or fewer than three times the free slots. So neither one
   * owner nor several together can fill the table. Counters without an owner (0) are always allowed.
   */
  mayClaim(owner: number): boolean {
    if (owner === 0) return true;
    const has = Atomics.load(this.#words, this.#layout.owned + owner);
    if (has < SHARE_MIN * this.#capacity) return true;
    return has < SHARE * (this.#capacity - Atomics.load(this.#words, atTotal));
  }

  /** Whether more than half of the table is in use, so that expired slots should be released. */
  get isHalfFull(): boolean {
    return Atomics.load(this.#words, atTotal) > this.#capacity / 2;
  }

  /** Releases the expired slots of the next `count` segments. */
  sweep(count: number, now: number): void {
    const words = this.#words;
    const layout = this.#layout;
    for (let i = 0; i < count; i++) {
      this.#sweptSegment = (this.#sweptSegment + 1) % Atomics.load(words, atSegments);
      const stripe = words[layout.prefix + this.#sweptSegment]! & (layout.stripes - 1);
      if (this.isShared && !this.lock(stripe)) continue;
      const first = this.#origin + this.#sweptSegment * slotsPerSegment;
      for (let slot = first; slot < first + slotsPerSegment; slot++) {
        if (this.#numbers[slot * 4 + 1]! < now + 1) this.#disown(slot);
      }
      if (this.isShared) this.unlock(stripe);
    }
  }

  /** Sets the end and the owner of a slot. A slot counts for its owner while its end is not 0. */
  #own(slot: number, end: number, owner: number): void {
    this.#count(owner, 1);
    this.#numbers[slot * 4 + 1] = end + owner / OWNERS;
  }

  #disown(slot: number): void {
    const tagged = this.#numbers[slot * 4 + 1]!;
    if (tagged === 0) return;
    this.#numbers[slot * 4 + 1] = 0;
    this.#count(ownerIn(tagged), -1);
  }

  #count(owner: number, difference: 1 | -1): void {
    const words = this.#words;
    const at = this.#layout.owned + owner;
    if (this.isShared) {
      Atomics.add(words, at, difference);
      Atomics.add(words, atTotal, difference);
    } else {
      words[at]! += difference;
      words[atTotal]! += difference;
    }
  }

  endOf(slot: number): number {
    return Math.floor(this.#numbers[slot * 4 + 1]!);
  }

  currentOf(slot: number): number {
    return this.#numbers[slot * 4 + 2]!;
  }

  previousOf(slot: number): number {
    return this.#numbers[slot * 4 + 3]!;
  }

  write(slot: number, end: number, current: number, previous: number): void {
    const numbers = this.#numbers;
    // In this order a thread that dies in between loses no count: when a new window begins, `previous` is written before
    // `current` is overwritten.
    numbers[slot * 4 + 3] = previous;
    const tagged = numbers[slot * 4 + 1]!;
    numbers[slot * 4 + 1] = end + (tagged - Math.floor(tagged));
    numbers[slot * 4 + 2] = current;
  }

  /** Marks a slot as changed, for `collect`. */
  mark(slot: number): void {
    const words = this.#words;
    const index = slot - this.#origin;
    words[this.#layout.marks + (index >>> 5)]! |= 1 << (index & 31);
    words[this.#layout.changed + ((index / slotsPerSegment) | 0)] = 1;
  }

  /** Makes room for a counter by splitting its segment. False if the reserved memory is used up. */
  split(high: number): boolean {
    if (!this.beginSplit(high)) return false;
    this.finishSplit(this.stripeOf(high));
    return true;
  }

  /** Reserves a segment for one half of a counter's segment, and records that a split is in progress. */
  beginSplit(high: number): boolean {
    const words = this.#words;
    const layout = this.#layout;
    const source = words[this.#directory + (high & this.#directoryMask)]!;
    if (words[layout.depth + source]! >= layout.depthMax) return false;
    let target = Atomics.load(words, atSegments);
    for (;;) {
      if (target >= this.#segmentsMax) return false;
      const seen = Atomics.compareExchange(words, atSegments, target, target + 1);
      if (seen === target) break;
      target = seen;
    }
    const depth = words[layout.depth + source]!;
    words[layout.depth + target] = depth + 1;
    words[layout.prefix + target] = words[layout.prefix + source]! | (1 << depth);
    const stripe = this.stripeOf(high);
    words[layout.splitSource + stripe] = source;
    // Segment 0 is never a target, so 0 means that no split is in progress.
    words[layout.splitTarget + stripe] = target;
    return true;
  }

  /**
   * Finishes the split of a stripe, if one is in progress. It can be repeated from any point. It makes the copies first,
   * then makes them visible, then clears the originals, so that all counters are visible at any time.
   */
  finishSplit(stripe: number): void {
    const words = this.#words;
    const numbers = this.#numbers;
    const layout = this.#layout;
    const target = words[layout.splitTarget + stripe]!;
    if (target === 0) return;
    const source = words[layout.splitSource + stripe]!;
    const depth = words[layout.depth + target]!;
    const bit = 1 << (depth - 1);
    const from = this.#origin + source * slotsPerSegment;
    const to = this.#origin + target * slotsPerSegment;
    for (let i = 0; i < slotsPerSegment; i++) {
      const high = words[(from + i) * 8 + 1]!;
      if ((high & bit) === 0 || numbers[(from + i) * 4 + 1] === 0) continue;
      words[(to + i) * 8] = words[(from + i) * 8]!;
      words[(to + i) * 8 + 1] = high;
      numbers[(to + i) * 4 + 1] = numbers[(from + i) * 4 + 1]!;
      numbers[(to + i) * 4 + 2] = numbers[(from + i) * 4 + 2]!;
      numbers[(to + i) * 4 + 3] = numbers[(from + i) * 4 + 3]!;
    }
    // Both halves keep all marks. The mark of a counter that moved marks a free slot, which `collect` skips.
    const marks = layout.marks;
    for (let i = 0; i < marksPerSegment; i++) {
      words[marks + target * marksPerSegment + i] = words[marks + source * marksPerSegment + i]!;
    }
    words[layout.changed + target] = words[layout.changed + source]!;
    this.#mapDirectory(target, depth, words[layout.prefix + target]!);
    words[layout.depth + source] = depth;
    for (let i = 0; i < slotsPerSegment; i++) {
      if ((words[(from + i) * 8 + 1]! & bit) !== 0) numbers[(from + i) * 4 + 1] = 0;
    }
    words[layout.splitTarget + stripe] = 0;
  }

  #mapDirectory(segment: number, depth: number, prefix: number): void {
    for (let entry = prefix; entry <= this.#directoryMask; entry += 1 << depth) {
      this.#words[this.#directory + entry] = segment;
    }
  }

  /** Counts a charge without room. */
  recordRejection(): void {
    Atomics.add(this.#words, atRejections, 1);
  }

  /** The number of charges without room, modulo 2^32. */
  get rejections(): number {
    return Atomics.load(this.#words, atRejections) >>> 0;
  }

  /** The number of used segments, and their maximum. */
  get segments(): { used: number; max: number } {
    return { used: Atomics.load(this.#words, atSegments), max: this.#segmentsMax };
  }

  /** Estimates the number of unexpired counters at `now` from up to 512 buckets. Takes no lock. */
  estimateUsed(now: number): number {
    const buckets = Atomics.load(this.#words, atSegments) << bucketBits;
    const samples = Math.min(512, buckets);
    let taken = 0;
    for (let i = 0; i < samples; i++) {
      // Steps of the golden ratio sample all regions evenly.
      const bucket = Math.floor(((i * 0.6180339887498949) % 1) * buckets);
      const slot = this.#origin + bucket * slotsPerBucket;
      for (let k = 0; k < slotsPerBucket; k++) if (this.#numbers[(slot + k) * 4 + 1]! > now) taken++;
    }
    return Math.round((taken / samples) * buckets);
  }

  /**
   * Copies the counters of one segment into `target` at `offset`, 32 bytes per record: all that are unexpired at `now`, or
   * only the marked ones, whose marks it clears. Returns the offset after the last record, or −1 if the lock of the
   * segment was not available. `target` needs room for `SEGMENT_BYTES` after `offset`. Its start in its buffer and
   * `offset` are multiples of 4.
   */
  collect(segment: number, target: Uint8Array, offset: number, now: number, which: "all" | "marked"): number {
    const words = this.#words;
    const layout = this.#layout;
    if (which === "marked" && words[layout.changed + segment] === 0) return offset;
    const stripe = words[layout.prefix + segment]! & (layout.stripes - 1);
    if (this.isShared && !this.lock(stripe)) return -1;
    const copies = new Int32Array(target.buffer, target.byteOffset, target.byteLength >>> 2);
    const origin = this.#origin + segment * slotsPerSegment;
    const marks = layout.marks + segment * marksPerSegment;
    let end = offset;
    for (let i = 0; i < slotsPerSegment; i++) {
      if (which === "marked") {
        const marked = words[marks + (i >>> 5)]!;
        if (marked === 0) {
          i += 31;
          continue;
        }
        if ((marked & (1 << (i & 31))) === 0) continue;
      }
      const slot = origin + i;
      if (this.#numbers[slot * 4 + 1]! <= now) continue;
      for (let word = 0; word < 8; word++) copies[(end >>> 2) + word] = words[slot * 8 + word]!;
      end += SLOT_BYTES;
    }
    if (which === "marked") {
      words.fill(0, marks, marks + marksPerSegment);
      words[layout.changed + segment] = 0;
    }
    if (this.isShared) this.unlock(stripe);
    return end;
  }

  /**
   * Restores a record of `collect`; the last record of a counter wins. False if there is no room. Takes no lock.
   *
   * It splits a segment only if the counters do not fit into it in any arrangement. So it needs no more segments than the
   * table that the records come from, in any order of the records.
   */
  restore(record: SlotRecord, now: number): boolean {
    const { low, high, current, previous } = record;
    const end = Math.floor(record.end);
    let slot = this.find(low, high);
    while (slot === -1) {
      slot = this.claim(low, high, end, now, ownerIn(record.end));
      if (slot === -1 && !this.makeRoom(low, high, now, SEGMENT_BUCKETS) && !this.split(high)) return false;
    }
    this.write(slot, end, current, previous);
    return true;
  }
}
