import type { Clock } from "../clock/clock.ts";

/** The budget for unknown keys is used up: whoever asks for another one has to come back. */
export class LookupsExhausted extends Error {
  constructor() {
    super("Too many unknown keys are being looked up at the moment");
    this.name = "LookupsExhausted";
  }
}

/** Sources that have a share of their own; further ones share one. */
const SOURCES_MAX = 16_384;
const OTHERS = "";

interface Share {
  left: number;
  /** Monotonic time at which `left` was computed. */
  at: number;
}

/**
 * What look-ups of unknown names may cost: so many a second that find nothing, divided evenly among the sources that
 * make any. Those that find something are free, so a node that has just started fills itself as fast as it can. Known
 * names never come here.
 *
 * Each source has a token bucket of one second's share. With n active sources the share is the whole divided by n, so
 * the source of a flood uses up its own part and no other's. A source is active until its bucket is full again.
 */
export class LookupBudget {
  readonly #clock: Clock;
  readonly #perSecond: number;
  /** Least recently used first. */
  readonly #shares = new Map<string, Share>();
  /** Look-ups that were refused. */
  refused = 0;

  constructor(clock: Clock, perSecond: number) {
    this.#clock = clock;
    this.#perSecond = perSecond;
  }

  /**
   * Runs a look-up.
   *
   * @param source who makes it: a workspace, or the network address of a caller without one.
   * @throws {LookupsExhausted}
   */
  async spend<R>(source: string, lookup: () => Promise<R | null>): Promise<R | null> {
    const share = this.#shareOf(source);
    if (share.left < 1) {
      this.refused++;
      throw new LookupsExhausted();
    }
    // Taken before it is known what is found, or a thousand at once would slip through.
    share.left--;
    const found = await lookup();
    if (found !== null) share.left++;
    return found;
  }

  /** The bucket of a source, filled up to the moment. */
  #shareOf(source: string): Share {
    const now = this.#clock.monotonic();
    const shares = this.#shares;
    // A share of less than one a second takes longer to fill.
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
    // The same object, to which look-ups that are under way give back.
    const share = before ?? { left, at: now };
    share.left = left;
    share.at = now;
    shares.set(name, share);
    return share;
  }
}
