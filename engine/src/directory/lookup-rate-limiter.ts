import type { Clock } from "../clock/clock.ts";
import { Overloaded } from "../errors/overloaded.ts";

/** The rate limit of look-ups of unknown keys is exceeded. The caller should retry later. */
export class LookupsExhausted extends Overloaded {
  constructor() {
    super("Too many unknown keys are being looked up at the moment", "lookups");
    this.name = "LookupsExhausted";
  }
}

/** Sources with a share of their own. Further sources have one share together. */
const SOURCES_MAX = 16_384;
const OTHERS = "";

/** Look-ups of one source that wait for others of it. Beyond it, further ones are rejected. */
const WAITING_MAX = 16_384;

/** The part of the rate of one source. */
export interface Share {
  left: number;
  /** Look-ups in progress. Each may find nothing, so together they are at most `left`. */
  open: number;
  /** Look-ups that wait until those in progress have ended. */
  readonly waiting: PromiseWithResolvers<Share>[];
  /** Monotonic time at which `left` was computed. */
  at: number;
}

/**
 * Rate limit for look-ups of uncached names: a number of unsuccessful look-ups per second, divided evenly among the
 * active sources. Cached names need no look-up.
 *
 * A look-up is charged when it has found nothing. Those in progress at one moment are as many as the share could pay for
 * if none found anything; further ones wait for them, and are rejected only when the share is used up. So any number of
 * look-ups that find something pass, at once or one after the other, and unknown names never exceed the rate.
 *
 * Each source has a token bucket that holds its share of one second. With n active sources the share is 1/n of the whole
 * rate, so a flood from one source does not use up the share of another. A source is active until its bucket is full.
 */
export class LookupRateLimiter {
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
   * Runs a look-up. One that rejects is not charged, because it does not say that the name is unknown.
   *
   * @param source the workspace of the caller, or the network address of a caller without a root key.
   * @throws {LookupsExhausted}
   */
  async spend<R>(source: string, lookup: () => Promise<R | null>): Promise<R | null> {
    const admitted = this.begin(source);
    const share = admitted instanceof Promise ? await admitted : admitted;
    let isUnknown = false;
    try {
      const found = await lookup();
      isUnknown = found === null;
      return found;
    } finally {
      this.end(share, isUnknown);
    }
  }

  /**
   * Admits a look-up, at once or when others have ended. `end` must follow.
   *
   * @throws {LookupsExhausted} or rejects with it.
   */
  begin(source: string): Share | Promise<Share> {
    const share = this.#shareOf(source);
    if (share.left < 1 || share.waiting.length >= WAITING_MAX) throw this.#rejection();
    if (share.waiting.length === 0 && share.left - share.open >= 1) {
      share.open++;
      return share;
    }
    const waiting = Promise.withResolvers<Share>();
    share.waiting.push(waiting);
    return waiting.promise;
  }

  /** Ends a look-up, and charges it if the name is unknown; one of several names, for each that is. */
  end(share: Share, unknown: boolean | number): void {
    share.open--;
    share.left -= Number(unknown);
    let next = 0;
    // Those that wait are admitted in the order of their arrival.
    while (next < share.waiting.length && share.left - share.open >= 1) {
      share.open++;
      share.waiting[next++]!.resolve(share);
    }
    if (share.left < 1) {
      while (next < share.waiting.length) share.waiting[next++]!.reject(this.#rejection());
    }
    share.waiting.splice(0, next);
  }

  /**
   * Charges a look-up whatever it will find.
   *
   * @throws {LookupsExhausted}
   */
  take(source: string): void {
    const share = this.#shareOf(source);
    if (share.left - share.open < 1) throw this.#rejection();
    share.left--;
  }

  #rejection(): LookupsExhausted {
    this.rejected++;
    return new LookupsExhausted();
  }

  /** Finds the bucket of a source and refills it for the time since its last use. */
  #shareOf(source: string): Share {
    const now = this.#clock.monotonic();
    const shares = this.#shares;
    // A share below one token per second takes more than a second to fill.
    const fullAfter = 1_000 * Math.max(1, shares.size / this.#perSecond);
    for (const [name, share] of shares) {
      if (now - share.at < fullAfter) break;
      shares.delete(name);
      // Look-ups in progress count until they have ended, however long they take.
      if (share.open > 0) shares.set(name, this.#refill(share, now, shares.size + 1));
    }
    const name = shares.has(source) || shares.size < SOURCES_MAX ? source : OTHERS;
    const before = shares.get(name);
    shares.delete(name);
    const active = shares.size + 1;
    const share = before ? this.#refill(before, now, active) : this.#newShare(now, active);
    shares.set(name, share);
    return share;
  }

  #newShare(now: number, active: number): Share {
    return { left: Math.max(1, this.#perSecond / active), open: 0, waiting: [], at: now };
  }

  #refill(share: Share, now: number, active: number): Share {
    const perSecond = this.#perSecond / active;
    share.left = Math.min(Math.max(1, perSecond), share.left + ((now - share.at) / 1_000) * perSecond);
    share.at = now;
    return share;
  }
}
