import type { Clock } from "../clock/clock.ts";
import { Fingerprint } from "../crypto/fingerprint.ts";
import { RING, releaseOf, StrictWindow, subWindow } from "../rules/strict-window.ts";
import { DURATION_MAX, fits, LIMIT_MAX, openWindow, usedIn, Window, waitIn } from "../rules/window.ts";
import type { Charge, ChargeResult, Counters, LimitDecision, LimitState, Receipt, ReceiptCharge } from "./counters.ts";
import type { MemoryTable } from "./memory-table.ts";
import { costChanges, receiptCharge } from "./receipts.ts";

/** Owners whose tags are cached. */
const OWNERS_CACHED_MAX = 10_000;

/** Buckets that a full table searches for a counter to move: few enough for one call, and nearly all counters fit. */
const SEARCH_BUCKETS_MAX = 64;

/** Slots of a strict counter: each has a pair of its sub-windows. */
export const STRICT_SLOTS = RING / 2;

/** Added to the duration in the fingerprint of a strict counter. Larger than any duration. */
const STRICT = 2 ** 40;

const full: ChargeResult = { outcome: "full" };
const shareExceeded: ChargeResult = { outcome: "share" };
const blocked: ChargeResult = { outcome: "blocked" };

/** Working state of one charge of a call. Entries are reused for all calls, so that a call allocates none. */
class Entry {
  /** The fingerprint of the slot that is charged. */
  low = 0;
  high = 0;
  /** Index of the first entry of the call with the same counter, which can be this entry. */
  first = 0;
  slot = -1;
  /** Whether this call has inserted the counter into the table. */
  isClaimed = false;
  window = new Window();
  /** The window of a strict limit, instead of `window`. */
  strict = new StrictWindow();
  /** The slots of a strict limit; −1 where there is none. */
  slots = new Int32Array(STRICT_SLOTS);
  /** The end that a charge writes. */
  end = 0;
  used = 0;
  /** Whether this limit alone would allow the call. */
  isAllowed = false;
  /** The cost of the earlier entries of the call with the same counter. */
  before = 0;
  /** The cost of the whole call for this counter; only in its first entry. */
  total = 0;
}

/**
 * Counters in the memory of this process. Threads can share them: one `MemoryCounters` per thread over one buffer. It
 * answers synchronously.
 */
export class MemoryCounters implements Counters {
  readonly #table: MemoryTable;
  readonly #clock: Pick<Clock, "now">;
  readonly #fingerprint: Fingerprint;
  readonly #entries: Entry[] = [new Entry()];
  readonly #stripes: number[] = [];
  readonly #tags = new Map<string, number>();
  readonly #epoch: string | undefined;

  /**
   * `epoch` names what this process counts, in receipts; another process must have another name, because the journal may
   * lack the last charges of the one before it. Without a name there are no receipts.
   */
  constructor(table: MemoryTable, clock: Pick<Clock, "now">, epoch?: string) {
    this.#table = table;
    this.#clock = clock;
    this.#epoch = epoch;
    this.#fingerprint = new Fingerprint(table.key);
  }

  charge(charges: readonly Charge[], asksReceipt = false): ChargeResult {
    const result = this.#decide(charges, true);
    return asksReceipt && result.outcome === "decided" && result.allowed ? this.#addReceipt(charges, result) : result;
  }

  peek(charges: readonly Charge[]): ChargeResult {
    return this.#decide(charges, false);
  }

  adjust(receipt: Receipt, costs: readonly (number | undefined)[]): readonly boolean[] {
    return costChanges(receipt, costs).map(({ charge, excess, raise }) => {
      if (charge.epoch !== this.#epoch) return false;
      if (raise) return this.charge([raise]).outcome === "decided";
      return excess === 0 || this.#lower(charge, excess);
    });
  }

  /** Adds the receipt of the call that was decided last. */
  #addReceipt(charges: readonly Charge[], decision: LimitDecision): LimitDecision {
    const epoch = this.#epoch;
    if (epoch === undefined) return decision;
    const committed = charges.flatMap((charge, i): ReceiptCharge[] => {
      if (charge.commit === false) return [];
      const { end, strict } = this.#entries[this.#entries[i]!.first]!;
      return [{ ...receiptCharge(charge, epoch), window: charge.mode === "strict" ? strict.current : end }];
    });
    return { ...decision, receipt: { charges: committed } };
  }

  /** Subtracts from the window of a charge; false if that has ended. */
  #lower(charged: ReceiptCharge, amount: number): boolean {
    const table = this.#table;
    const { duration, mode, window = Number.NaN } = charged;
    this.#identify([{ ...charged, limit: 0 }]);
    const { low, high } = this.#fingerprint;
    const now = this.#clock.now();
    if (table.isShared && !this.#lock(1)) return false;
    try {
      const pair = Math.floor(window / 2);
      const slot = table.find(mode === "strict" ? lowOf(low, pair % STRICT_SLOTS) : low, high);
      const end = slot === -1 ? 0 : table.endOf(slot);
      if (end <= now) return false;
      // 0: the charge is in the first count of the slot, 1: in the second one. Others are of another window.
      const at =
        mode !== "strict"
          ? (end - window) / duration
          : end === releaseOf(2 * pair + 1, duration)
            ? window % 2
            : undefined;
      const current = table.currentOf(slot);
      const previous = table.previousOf(slot);
      if (at === 0) table.write(slot, end, reduce(current, amount), previous);
      else if (at === 1) table.write(slot, end, current, reduce(previous, amount));
      else return false;
      table.mark(slot);
      return true;
    } finally {
      if (table.isShared) this.#unlock();
    }
  }

  #decide(charges: readonly Charge[], mayConsume: boolean): ChargeResult {
    this.#identify(charges);
    const now = this.#clock.now();
    if (!this.#table.isShared) return this.#decideLocked(charges, now, mayConsume);
    if (!this.#lock(charges.length)) return blocked;
    try {
      return this.#decideLocked(charges, now, mayConsume);
    } finally {
      this.#unlock();
    }
  }

  #unlock(): void {
    for (let i = this.#stripes.length - 1; i >= 0; i--) this.#table.unlock(this.#stripes[i]!);
  }

  #identify(charges: readonly Charge[]): void {
    const entries = this.#entries;
    while (entries.length < charges.length) entries.push(new Entry());
    for (let i = 0; i < charges.length; i++) {
      const charge = charges[i]!;
      assertCharge(charge);
      const entry = entries[i]!;
      const { counter, duration, mode } = charge;
      this.#fingerprint.of(counter, mode === "strict" ? duration + STRICT : duration);
      entry.low = this.#fingerprint.low;
      entry.high = this.#fingerprint.high;
      entry.first = i;
      for (let k = 0; k < i; k++) {
        const other = entries[k]!;
        if (other.low === entry.low && other.high === entry.high) {
          entry.first = k;
          break;
        }
      }
    }
  }

  /** Acquires the locks of the first `count` entries in ascending order, each once. */
  #lock(count: number): boolean {
    const stripes = this.#stripes;
    stripes.length = 0;
    for (let i = 0; i < count; i++) {
      const stripe = this.#table.stripeOf(this.#entries[i]!.high);
      let at = stripes.length;
      while (at > 0 && stripes[at - 1]! > stripe) at--;
      if (at === 0 || stripes[at - 1] !== stripe) stripes.splice(at, 0, stripe);
    }
    for (let taken = 0; taken < stripes.length; taken++) {
      if (this.#table.lock(stripes[taken]!)) continue;
      while (--taken >= 0) this.#table.unlock(stripes[taken]!);
      return false;
    }
    return true;
  }

  #decideLocked(charges: readonly Charge[], now: number, mayConsume: boolean): ChargeResult {
    const table = this.#table;
    const entries = this.#entries;
    const count = charges.length;
    let allowed = true;
    for (let i = 0; i < count; i++) {
      const { limit, duration, mode, cost, commit, force } = charges[i]!;
      const entry = entries[i]!;
      const first = entries[entry.first]!;
      entry.isClaimed = false;
      if (entry === first) {
        entry.total = 0;
        if (mode === "strict") this.#openStrict(entry, duration, now);
        else this.#open(entry, duration, now);
      }
      entry.before = first.total;
      entry.isAllowed = force === true || fits(first.used, entry.before + cost, limit);
      if (!entry.isAllowed) allowed = false;
      // A rejected entry counts too, so that the `retryAfter` of the last one is that of the whole call.
      if (commit !== false) first.total += cost;
    }
    const consumes = allowed && mayConsume;
    if (consumes) {
      const failure = this.#claim(charges, now);
      if (failure) {
        table.recordRejection();
        return failure;
      }
      for (let i = 0; i < count; i++) {
        const entry = entries[i]!;
        if (entry.first !== i || entry.total === 0) continue;
        if (charges[i]!.mode === "strict") this.#writeStrict(entry);
        else table.write(entry.slot, entry.end, increase(entry.window.current, entry.total), entry.window.previous);
        table.mark(entry.slot);
      }
    }
    return this.#answer(charges, now, allowed, consumes);
  }

  #open(entry: Entry, duration: number, now: number): void {
    const table = this.#table;
    const { window } = entry;
    const slot = table.find(entry.low, entry.high);
    entry.slot = slot;
    if (slot === -1) openWindow(window, 0, 0, 0, duration, now);
    else openWindow(window, table.endOf(slot), table.currentOf(slot), table.previousOf(slot), duration, now);
    entry.end = window.start + 2 * duration;
    entry.used = usedIn(window, duration);
    if (!window.isMoved) return;
    table.write(slot, entry.end, window.current, window.previous);
    table.mark(slot);
  }

  /**
   * A strict counter has up to nine slots, each with the counts of two successive sub-windows: the even one in `current`,
   * the odd one in `previous`. The end of a slot is the release of the odd one, so it also identifies the pair. The slots
   * differ in the lower word of their fingerprints only: they are in one segment, under one lock, and in one frame of the
   * journal.
   */
  #openStrict(entry: Entry, duration: number, now: number): void {
    const table = this.#table;
    const { strict, slots, low, high } = entry;
    const length = subWindow(duration);
    strict.begin(duration);
    for (let i = 0; i < STRICT_SLOTS; i++) {
      const slot = table.find(lowOf(low, i), high);
      slots[i] = slot;
      if (slot === -1) continue;
      const end = table.endOf(slot);
      if (end <= now) continue;
      const odd = (end + 1 - duration) / length - 1;
      strict.add(odd - 1, table.currentOf(slot));
      strict.add(odd, table.previousOf(slot));
    }
    strict.open(now);
    const pair = Math.floor(strict.current / 2);
    entry.low = lowOf(low, pair % STRICT_SLOTS);
    entry.slot = slots[pair % STRICT_SLOTS]!;
    entry.end = releaseOf(2 * pair + 1, duration);
    entry.used = strict.used;
    if (strict.moved > 0) this.#moveStrict(entry, duration);
  }

  /**
   * Writes the slots of a counter that was moved. Those without counts get a later pair of the same place, so that they end in
   * the future too and the journal replaces their former records.
   */
  #moveStrict({ strict, slots }: Entry, duration: number): void {
    const table = this.#table;
    const newest = Math.floor(strict.current / 2);
    for (let i = 0; i < STRICT_SLOTS; i++) {
      const slot = slots[i]!;
      if (slot === -1 || table.endOf(slot) === 0) continue;
      let pair = newest - ((newest - i) % STRICT_SLOTS);
      const even = strict.at(2 * pair);
      const odd = strict.at(2 * pair + 1);
      if (even + odd === 0) pair += STRICT_SLOTS;
      table.write(slot, releaseOf(2 * pair + 1, duration), even, odd);
      table.mark(slot);
    }
  }

  #writeStrict({ strict, slot, end, total }: Entry): void {
    const isOdd = strict.current % 2 === 1;
    const even = isOdd ? strict.current - 1 : strict.current;
    const current = increase(strict.at(even), isOdd ? 0 : total);
    this.#table.write(slot, end, current, increase(strict.at(even + 1), isOdd ? total : 0));
  }

  #tagOf(owner: string | undefined): number {
    if (owner === undefined) return 0;
    let tag = this.#tags.get(owner);
    if (tag === undefined) {
      this.#fingerprint.of(owner, 0);
      tag = this.#table.tagOf(this.#fingerprint.low);
      if (this.#tags.size === OWNERS_CACHED_MAX) this.#tags.clear();
      this.#tags.set(owner, tag);
    }
    return tag;
  }

  #abandonClaims(count: number): void {
    for (let k = 0; k < count; k++) {
      const { isClaimed, slot } = this.#entries[k]!;
      if (isClaimed) this.#table.abandon(slot);
    }
  }

  /** Ensures a slot for each counter that will be charged, or for none. Returns the reason of a failure. */
  #claim(charges: readonly Charge[], now: number): ChargeResult | undefined {
    const table = this.#table;
    const entries = this.#entries;
    // An expired slot is free, so it is renewed before a new counter of this call can claim it.
    for (let i = 0; i < charges.length; i++) {
      const entry = entries[i]!;
      if (entry.first !== i || entry.total === 0 || entry.slot === -1 || table.endOf(entry.slot) > now) continue;
      const owner = this.#tagOf(charges[i]!.owner);
      if (!table.mayClaim(owner)) {
        this.#abandonClaims(charges.length);
        return shareExceeded;
      }
      table.renew(entry.slot, entry.end, owner);
      entry.isClaimed = true;
    }
    for (let i = 0; i < charges.length; i++) {
      const entry = entries[i]!;
      if (entry.first !== i || entry.total === 0 || entry.slot !== -1) continue;
      const owner = this.#tagOf(charges[i]!.owner);
      if (!table.mayClaim(owner)) {
        this.#abandonClaims(charges.length);
        return shareExceeded;
      }
      entry.slot = table.claim(entry.low, entry.high, entry.end, now, owner);
      if (entry.slot !== -1) {
        entry.isClaimed = true;
        continue;
      }
      if (!table.split(entry.high) && !table.makeRoom(entry.low, entry.high, now, SEARCH_BUCKETS_MAX)) {
        this.#abandonClaims(charges.length);
        return full;
      }
      // The split or the moves may have moved any counter of this call.
      for (let k = 0; k < charges.length; k++) {
        const moved = entries[k]!;
        if (moved.first === k && moved.slot !== -1) moved.slot = table.find(moved.low, moved.high);
      }
      i--;
    }
    return undefined;
  }

  #answer(charges: readonly Charge[], now: number, allowed: boolean, isConsumed: boolean): ChargeResult {
    const limits: LimitState[] = [];
    let retryAfter: number | undefined = 0;
    for (let i = 0; i < charges.length; i++) {
      const { limit, duration, mode, cost, commit } = charges[i]!;
      const { first, before, isAllowed } = this.#entries[i]!;
      const { window, strict, used } = this.#entries[first]!;
      const isStrict = mode === "strict";
      const reset = isStrict ? strict.reset : window.start + duration;
      if (isAllowed) {
        const left = isConsumed ? limit - used - before - (commit === false ? 0 : cost) : limit - used;
        limits.push({ allowed: true, remaining: Math.max(0, left), reset, retryAfter: 0 });
        continue;
      }
      const need = before + cost;
      const wait = isStrict ? strict.wait(limit, need, now) : waitIn(window, duration, limit, need);
      const own = wait === Number.POSITIVE_INFINITY ? undefined : wait;
      limits.push({ allowed: false, remaining: Math.max(0, limit - used), reset, retryAfter: own });
      retryAfter = retryAfter === undefined || own === undefined ? undefined : Math.max(retryAfter, own);
    }
    return { outcome: "decided", at: now, allowed, retryAfter, limits };
  }
}

/** A count after a charge. Only forced charges reach the largest count, with which the arithmetic of windows is exact. */
function increase(count: number, amount: number): number {
  return Math.min(LIMIT_MAX, count + amount);
}

/** A count after a part of it was given back. The largest count may stand for more, so it stays. */
function reduce(count: number, amount: number): number {
  return count === LIMIT_MAX ? count : Math.max(0, count - amount);
}

/** The lower word of the fingerprint of slot `i` of a strict counter. */
function lowOf(low: number, i: number): number {
  return (low + Math.imul(i, 0x9e3779b1)) | 0;
}

/**
 * Asserts that the numbers of a charge are valid. Requests are validated before, so a failure is a bug.
 *
 * @throws {RangeError}
 */
export function assertCharge({ counter, limit, duration, cost }: Charge): void {
  const isWhole = Math.floor(limit) === limit && Math.floor(duration) === duration && Math.floor(cost) === cost;
  const isInside =
    limit >= 0 && limit <= LIMIT_MAX && duration >= 1 && duration <= DURATION_MAX && cost >= 0 && cost <= LIMIT_MAX;
  if (!(isWhole && isInside)) {
    throw new RangeError(
      `Bad charge of ${counter.length} characters: limit ${limit}, duration ${duration}, cost ${cost}`,
    );
  }
}
