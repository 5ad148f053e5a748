import type { Clock } from "../clock/clock.ts";
import { Fingerprint } from "../crypto/fingerprint.ts";
import { DURATION_MAX, fits, LIMIT_MAX, openWindow, usedIn, Window, waitIn } from "../rules/window.ts";
import type { Charge, ChargeResult, Counters, LimitState } from "./counters.ts";
import type { MemoryTable } from "./memory-table.ts";

/** Owners whose tags are cached. */
const OWNERS_CACHED_MAX = 10_000;

/** Buckets that a full table searches for a counter to move: few enough for one call, and nearly all counters fit. */
const SEARCH_BUCKETS_MAX = 64;

const full: ChargeResult = { outcome: "full" };
const shareExceeded: ChargeResult = { outcome: "share" };
const blocked: ChargeResult = { outcome: "blocked" };

/** Working state of one charge of a call. Entries are reused for all calls, so that a call allocates none. */
class Entry {
  low = 0;
  high = 0;
  /** Index of the first entry of the call with the same counter, which can be this entry. */
  first = 0;
  slot = -1;
  /** Whether this call has inserted the counter into the table. */
  isClaimed = false;
  window = new Window();
  used = 0;
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

  constructor(table: MemoryTable, clock: Pick<Clock, "now">) {
    this.#table = table;
    this.#clock = clock;
    this.#fingerprint = new Fingerprint(table.key);
  }

  charge(charges: readonly Charge[]): ChargeResult {
    return this.#decide(charges, true);
  }

  peek(charges: readonly Charge[]): ChargeResult {
    return this.#decide(charges, false);
  }

  #decide(charges: readonly Charge[], mayConsume: boolean): ChargeResult {
    this.#identify(charges);
    const now = this.#clock.now();
    if (!this.#table.isShared) return this.#decideLocked(charges, now, mayConsume);
    if (!this.#lock(charges.length)) return blocked;
    try {
      return this.#decideLocked(charges, now, mayConsume);
    } finally {
      for (let i = this.#stripes.length - 1; i >= 0; i--) this.#table.unlock(this.#stripes[i]!);
    }
  }

  #identify(charges: readonly Charge[]): void {
    const entries = this.#entries;
    while (entries.length < charges.length) entries.push(new Entry());
    for (let i = 0; i < charges.length; i++) {
      const charge = charges[i]!;
      assertCharge(charge);
      const entry = entries[i]!;
      this.#fingerprint.of(charge.counter, charge.duration);
      entry.low = this.#fingerprint.low;
      entry.high = this.#fingerprint.high;
      entry.first = i;
      for (let k = 0; k < i; k++) {
        if (entries[k]!.low === entry.low && entries[k]!.high === entry.high) {
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
      const { limit, duration, cost, commit } = charges[i]!;
      const entry = entries[i]!;
      const first = entries[entry.first]!;
      entry.isClaimed = false;
      if (entry === first) {
        entry.total = 0;
        entry.slot = table.find(entry.low, entry.high);
        if (entry.slot === -1) openWindow(entry.window, 0, 0, 0, duration, now);
        else {
          const slot = entry.slot;
          openWindow(entry.window, table.endOf(slot), table.currentOf(slot), table.previousOf(slot), duration, now);
          if (entry.window.isMoved) {
            const { start, current, previous } = entry.window;
            table.write(slot, start + 2 * duration, current, previous);
            table.mark(slot);
          }
        }
        entry.used = usedIn(entry.window, duration);
      }
      entry.before = first.total;
      if (!fits(first.used, entry.before + cost, limit)) allowed = false;
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
        const { duration } = charges[i]!;
        const { start, current, previous } = entry.window;
        table.write(entry.slot, start + 2 * duration, current + entry.total, previous);
        table.mark(entry.slot);
      }
    }
    return this.#answer(charges, now, allowed, consumes);
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
    for (let k = 0; k < count; k++) if (this.#entries[k]!.isClaimed) this.#table.abandon(this.#entries[k]!.slot);
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
      table.renew(entry.slot, entry.window.start + 2 * charges[i]!.duration, owner);
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
      entry.slot = table.claim(entry.low, entry.high, entry.window.start + 2 * charges[i]!.duration, now, owner);
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
      const { limit, duration, cost, commit } = charges[i]!;
      const { first, before } = this.#entries[i]!;
      const { window, used } = this.#entries[first]!;
      const reset = window.start + duration;
      if (fits(used, before + cost, limit)) {
        const left = isConsumed ? limit - used - before - (commit === false ? 0 : cost) : limit - used;
        limits.push({ allowed: true, remaining: left, reset, retryAfter: 0 });
        continue;
      }
      const wait = waitIn(window, duration, limit, before + cost);
      const own = wait === Number.POSITIVE_INFINITY ? undefined : wait;
      limits.push({ allowed: false, remaining: Math.max(0, limit - used), reset, retryAfter: own });
      retryAfter = retryAfter === undefined || own === undefined ? undefined : Math.max(retryAfter, own);
    }
    return { outcome: "decided", at: now, allowed, retryAfter, limits };
  }
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
