import type { Clock } from "../clock/clock.ts";
import { Overloaded } from "../log/overloaded.ts";

/** The budget for look-ups of unknown keys is exhausted. The caller should retry later. */
export class LookupsExhausted extends Overloaded {
  constructor() {
    super("Too many unknown keys are being looked up at the moment", "lookups");
    this.name = "LookupsExhausted";
  }
}

/** Sources with a share of their own. Further sources have one share together. */
const SOURCES_MAX = 16_384;
const OTHERS = "";

/** The part of the budget of one source. */
export interface Share {
  left: number;
  /** Monotonic time at which `left` was computed. */
  at: number;
}

/**
 * Rate limit for look-ups of uncached names: a number of unsuccessful look-ups per second, divided evenly among the
 * active sources. Successful look-ups are free, so that a node can fill its cache quickly after a start. Cached names
 * need no look-up.
 *
 * Each source has a token bucket that holds its share of one second. With n active sources the share is 1/n of the whole
 * rate, so a flood from one source does not use up the share of another. A source is active until its bucket is full.
 */
export class LookupBudget {
  readonly #clock: Clock;
  readonly #perSecond: number;
  /** Least recently used first. */
  readonly #shares = new Map<string, Share>();
  /** Look-ups that were rejected, for the metrics. */
  rejected = 0;

  constructor(clock: Clock, perSecond: number) {
    this.#clock = clock;
    this.#perSecond = perSecond;
  }

  /**
   * Runs a look-up.
   *
   * @param source the workspace of the caller, or the network address of a caller without a root key.
   * @throws {LookupsExhausted}
   */
  async spend<R>(source: string, lookup: () => Promise<R | null>): Promise<R | null> {
    // Deducted before the look-up, because otherwise a thousand concurrent ones would pass.
    const share = this.take(source);
    const found = await lookup();
    if (found !== null) this.giveBack(share);
    return found;
  }

  /**
   * Deducts a look-up.
   *
   * @throws {LookupsExhausted}
   */
  take(source: string): Share {
    const share = this.#shareOf(source);
    if (share.left < 1) {
      this.rejected++;
      throw new LookupsExhausted();
    }
    share.left--;
    return share;
  }

  /** Returns the look-up of a name that exists. */
  giveBack(share: Share): void {
    share.left++;
  }

  /** Finds the bucket of a source and refills it for the time since its last use. */
  #shareOf(source: string): Share {
    const now = this.#clock.monotonic();
    const shares = this.#shares;
    // A share below one token per second takes more than a second to fill.
    const fullAfter = 1_000 * Math.max(1, shares.size / this.#perSecond);
    for (const [name, { at }] of shares) {
      if (now - at < fullAfter) break;
      shares.delete(name);
    }
    const name = shares.has(source) || shares.size < SOURCES_MAX ? source : OTHERS;
    const before = shares.get(name);
    shares.delete(name);
    const perSecond = this.#perSecond / (shares.size + 1);
    const capacity = Math.max(1, perSecond);
    const left = before ? Math.min(capacity, before.left + ((now - before.at) / 1_000) * perSecond) : capacity;
    // The same object is kept: look-ups in progress return their tokens to it.
    const share = before ?? { left, at: now };
    share.left = left;
    share.at = now;
    shares.set(name, share);
    return share;
  }
}
