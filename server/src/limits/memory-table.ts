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

/** Of a bucket in the search of `makeRoom`; otherwise the slot, from the segment's first, whose counter could move there. */
const unvisited = -1;
const isStart = -2;

/** How long a thread waits for a lock, in milliseconds, before it takes the holder for dead. */
const lockTimeout = 100;

/** Says that a buffer has been laid out, and by which layout. */
const layoutVersion = 0x6c6b0002;

// Words of the header.
const atVersion = 0;
const atSegmentsMax = 1;
const atSegments = 2;
const atRejections = 3;
const atKey = 4;
const atTotal = 6;
const headWords = 16;

/** Owners that are told apart: their tags are the fraction of a slot's end, where a double of this size has 12 bits. */
const OWNERS = 4096;
/** The part of all slots that counters of owners may take; random placing hardly fills more. */
const FILL_MAX = 0.95;
/** An owner may hold so many times what is free: one alone three quarters, and however many there are, some stays free. */
const SHARE = 3;
/** This part of the table every owner may hold. */
const SHARE_MIN = 1 / 64;

/** Where the parts of the buffer begin, in 32-bit words. */
function layOut(segmentsMax: number) {
  const stripeBits = Math.min(6, Math.floor(Math.log2(segmentsMax)));
  // Depths of segments differ by chance only; three bits of slack are far more than the largest table needs.
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
 * Reserves memory for counters: as many whole segments as `bytes` hold, at least one, and about half a percent more for
 * the directory. The operating system provides a page of it when it is first written. `shared` makes it usable by
 * several threads.
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

/** Receives what is remembered of one counter. The fraction of `end` is the tag of its owner. */
export type SlotRecord = Readonly<{ low: number; high: number; end: number; current: number; previous: number }>;

/**
 * Counters in one reserved buffer: which slot holds which counter, and where there is room.
 *
 * A slot is 32 bytes: the fingerprint (64 bits), the end of its relevance in milliseconds, and two counts. The fraction
 * of the end is the tag of the counter's owner, whose counters are numbered so that none can fill the table. A counter
 * lives in one of two buckets of one segment, all three chosen by its fingerprint; a slot whose end has passed is free
 * where it lies. A directory maps the low bits of the fingerprint's high word to segments. A segment in which a counter
 * finds no room is split by the next bit, alone: the half whose bit is set moves to a new segment, into the same
 * places. The directory has its full size from the start, so that nothing but the one segment ever moves.
 *
 * The lowest bits also choose the stripe, whose lock guards all segments that share them. Nothing of a stripe is read
 * or written without its lock when the buffer is shared; without sharing there are no locks and no cost.
 *
 * A thread can die at any point under a lock. Every sequence of writes is therefore ordered so that a half of it never
 * forgets a count, and a split can be finished by whoever releases the lock.
 */
export class MemoryTable {
  /** The key of the fingerprints, which lies in the buffer so that all threads use the same. */
  readonly key: FingerprintKey;
  readonly isShared: boolean;
  readonly #numbers: Float64Array;
  readonly #words: Int32Array;
  readonly #locks: StripeLocks;
  readonly #layout: ReturnType<typeof layOut>;
  readonly #segmentsMax: number;
  readonly #directory: number;
  readonly #directoryMask: number;
  /** How many counters owners may have altogether. */
  readonly #capacity: number;
  #swept = 0;
  /** Reused by `makeRoom`. */
  readonly #search = { queue: new Int32Array(SEGMENT_BUCKETS), reachedFrom: new Int32Array(SEGMENT_BUCKETS) };
  /** Slot 0 in units of slots from the beginning of the buffer. */
  readonly #origin: number;

  /**
   * Opens a buffer of `reserveTable`. The first to open it gives the `key` and must be done before other threads open
   * it; theirs is ignored. `owner` is the thread's, 1 to 2^30 − 1.
   */
  constructor(buffer: ArrayBuffer | SharedArrayBuffer, owner: number, key: FingerprintKey) {
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
    // Where the number of segments is no power of two, some cover twice as many counters as others and fill first.
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
        this.#direct(segment, layout.stripeBits, segment);
      }
      Atomics.store(words, atVersion, layoutVersion);
    }
    this.key = [words[atKey]!, words[atKey + 1]!];
  }

  /** The lock that guards a counter. */
  stripeOf(high: number): number {
    return high & (this.#layout.stripes - 1);
  }

  /** Takes a stripe's lock; false when its holder does not let go, presumably because it died. */
  lock(stripe: number): boolean {
    return this.#locks.take(stripe, lockTimeout);
  }

  unlock(stripe: number): void {
    this.#locks.release(stripe);
  }

  /** Finishes what a dead thread began and releases its locks. To be called only when that thread runs no more. */
  releaseLocksOf(owner: number): void {
    for (let stripe = 0; stripe < this.#layout.stripes; stripe++) {
      if (!this.#locks.isHeldBy(owner, stripe)) continue;
      this.finishSplit(stripe);
      this.#locks.release(stripe);
    }
  }

  /** The slot that carries this fingerprint, whether its end has passed or not; −1 when there is none. */
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
   * Puts a counter that `find` does not find into a free slot of the emptier of its two buckets, with counts of 0 that
   * matter until `end`. −1 when both are full.
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
    // The end comes last: it makes the slot count, and until then it is free.
    this.#own(free, end, owner);
    return free;
  }

  /**
   * Frees a slot in one of the two full buckets of a counter: moves another counter to its own other bucket, which may
   * move further ones (a breadth-first search over the segment, as in cuckoo hashing). Looks into at most `bucketsMax`
   * buckets. False when none of those has room; with `SEGMENT_BUCKETS` that means that the segment's counters and this
   * one cannot be placed together at all.
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

  /** The copy is complete before the original is cleared, so that a thread that dies in between forgets nothing. */
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

  /** Undoes a claim. */
  abandon(slot: number): void {
    this.#disown(slot);
  }

  /** Gives a counter its own slot back whose end has passed, with counts of 0. */
  renew(slot: number, end: number, owner: number): void {
    const numbers = this.#numbers;
    this.#disown(slot);
    numbers[slot * 4 + 2] = 0;
    numbers[slot * 4 + 3] = 0;
    this.#own(slot, end, owner);
  }

  /** The tag of an owner, from a keyed hash of its name. Owners with the same tag, one in 4,095 pairs, share a share. */
  tagOf(hash: number): number {
    return ((hash >>> 0) % (OWNERS - 1)) + 1;
  }

  /**
   * Whether an owner may have one more counter: always while it has few, else while it has at most three times as many
   * as are free. So no owner can fill the table, nor can several together. Counters without an owner (0) always may.
   */
  mayClaim(owner: number): boolean {
    if (owner === 0) return true;
    const has = Atomics.load(this.#words, this.#layout.owned + owner);
    if (has < SHARE_MIN * this.#capacity) return true;
    return has < SHARE * (this.#capacity - Atomics.load(this.#words, atTotal));
  }

  /** Whether shares begin to matter, so that slots whose end has passed should be given back. */
  get isTight(): boolean {
    return Atomics.load(this.#words, atTotal) > this.#capacity / 2;
  }

  /** Gives back the slots whose end has passed, in the next `count` segments. */
  sweep(count: number, now: number): void {
    const words = this.#words;
    const layout = this.#layout;
    for (let i = 0; i < count; i++) {
      this.#swept = (this.#swept + 1) % Atomics.load(words, atSegments);
      const stripe = words[layout.prefix + this.#swept]! & (layout.stripes - 1);
      if (this.isShared && !this.lock(stripe)) continue;
      const first = this.#origin + this.#swept * slotsPerSegment;
      for (let slot = first; slot < first + slotsPerSegment; slot++) {
        if (this.#numbers[slot * 4 + 1]! < now + 1) this.#disown(slot);
      }
      if (this.isShared) this.unlock(stripe);
    }
  }

  /** A slot has an owner, and is counted for it, exactly while its end is not 0. */
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
    // In this order, a thread that dies in between leaves at least what was counted: when a window turns, `previous`
    // takes over what `current` still says.
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

  /** Makes room for a counter by splitting its segment. False when the reserved memory is used up. */
  split(high: number): boolean {
    if (!this.beginSplit(high)) return false;
    this.finishSplit(this.stripeOf(high));
    return true;
  }

  /** Reserves a segment for one half of a counter's segment, and writes down that a split is under way. */
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
    // Segment 0 is never a target, so 0 says that no split is under way.
    words[layout.splitTarget + stripe] = target;
    return true;
  }

  /**
   * Does what is left of the stripe's split, if one is under way; may be repeated from any point of it. The copies are
   * made first and seen second, and only then the originals are cleared: no counter is out of sight at any time.
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
    // Both halves keep all marks: one whose counter went to the other half marks a free slot, which nobody collects.
    const marks = layout.marks;
    for (let i = 0; i < marksPerSegment; i++) {
      words[marks + target * marksPerSegment + i] = words[marks + source * marksPerSegment + i]!;
    }
    words[layout.changed + target] = words[layout.changed + source]!;
    this.#direct(target, depth, words[layout.prefix + target]!);
    words[layout.depth + source] = depth;
    for (let i = 0; i < slotsPerSegment; i++) {
      if ((words[(from + i) * 8 + 1]! & bit) !== 0) numbers[(from + i) * 4 + 1] = 0;
    }
    words[layout.splitTarget + stripe] = 0;
  }

  #direct(segment: number, depth: number, prefix: number): void {
    for (let entry = prefix; entry <= this.#directoryMask; entry += 1 << depth) {
      this.#words[this.#directory + entry] = segment;
    }
  }

  /** Counts a charge that found no room. */
  recordRejection(): void {
    Atomics.add(this.#words, atRejections, 1);
  }

  /** How many charges found no room, modulo 2^32. */
  get rejections(): number {
    return Atomics.load(this.#words, atRejections) >>> 0;
  }

  /** How many segments are in use, of how many. */
  get segments(): { used: number; max: number } {
    return { used: Atomics.load(this.#words, atSegments), max: this.#segmentsMax };
  }

  /** About how many counters matter at `now`, from up to 512 buckets spread over the table. Takes no lock. */
  estimateUsed(now: number): number {
    const buckets = Atomics.load(this.#words, atSegments) << bucketBits;
    const samples = Math.min(512, buckets);
    let taken = 0;
    for (let i = 0; i < samples; i++) {
      // Steps of the golden ratio visit all regions evenly.
      const bucket = Math.floor(((i * 0.6180339887498949) % 1) * buckets);
      const slot = this.#origin + bucket * slotsPerBucket;
      for (let k = 0; k < slotsPerBucket; k++) if (this.#numbers[(slot + k) * 4 + 1]! > now) taken++;
    }
    return Math.round((taken / samples) * buckets);
  }

  /**
   * Copies what one segment holds into `target` at `offset`, 32 bytes a record: all counters that matter at `now`, or
   * only those marked since they were last collected, whose marks it clears. Answers the offset behind the last record,
   * or −1 when the segment's lock could not be had. `target` needs room for `SEGMENT_BYTES` behind `offset`; where it
   * begins in its buffer, and `offset`, are multiples of 4.
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
   * Puts back a record of `collect`; the last of a counter wins. False when there is no room. Takes no lock.
   *
   * A segment is split only when its counters cannot be placed in it in any arrangement. So it takes no more segments
   * than the table had that held these counters, in whichever order they come.
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
