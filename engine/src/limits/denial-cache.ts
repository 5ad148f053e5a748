import type { Milliseconds } from "../clock/clock.ts";
import { decideStrict, releaseOf, type StrictState, subWindow } from "../rules/strict-window.ts";
import { decide, type WindowState } from "../rules/window.ts";
import type { Charge, LimitDecision } from "./counters.ts";

/** Bytes of an entry besides its key: the string header, the map entry, five numbers. */
const ENTRY_BYTES = 200;
/** Bytes of one count of a strict counter. */
const COUNT_BYTES = 8;

interface Denial {
  readonly state: WindowState | StrictState;
  readonly bytes: number;
  /** The monotonic time until which it is valid. */
  readonly until: Milliseconds;
}

/**
 * A cache of exhausted counters in Redis, each with its state at the time of a denial.
 *
 * Since then other nodes can only have charged the counter; where they can also give back, an entry is valid for a short
 * time. A call that does not fit into the cached state therefore does not fit at all. While the cached state leaves nothing
 * of the limit, no call with this limit can have been charged, so the cached state is exact. From the millisecond at which
 * one unit becomes free, Redis decides again.
 */
export class DenialCache {
  /** Estimated bytes of the entries. */
  bytes = 0;
  readonly #bytesMax: number;
  readonly #denials = new Map<string, Denial>();

  /** Evicts the oldest entries above `bytesMax`. */
  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get size(): number {
    return this.#denials.size;
  }

  /** Adds the state of an exhausted counter, valid until a monotonic time. */
  set(key: string, state: WindowState | StrictState, until: Milliseconds = Number.POSITIVE_INFINITY): void {
    this.delete(key);
    const counts = "counts" in state ? state.counts.length : 0;
    const bytes = ENTRY_BYTES + 2 * key.length + COUNT_BYTES * counts;
    this.#denials.set(key, { state, bytes, until });
    this.bytes += bytes;
    for (const oldest of this.#denials.keys()) {
      if (this.bytes <= this.#bytesMax) break;
      this.delete(oldest);
    }
  }

  /**
   * The denial of a call with one charge, or undefined if Redis must decide. The clock of Redis is between `earliest` and
   * `latest`; the monotonic time is `at`.
   */
  deny(key: string, charge: Charge, earliest: number, latest: number, at: Milliseconds = 0): LimitDecision | undefined {
    const denial = this.#denials.get(key);
    if (!denial) return undefined;
    if (at >= denial.until) {
      this.delete(key);
      return undefined;
    }
    const { state } = denial;
    if (isSetBack(state, charge, latest)) {
      this.delete(key);
      return undefined;
    }
    const decideAt = (time: number) =>
      "counts" in state ? decideStrict(state, charge, time) : decide(state, charge, time);
    const last = decideAt(latest);
    if (last.allowed || last.remaining > 0) {
      if (endOf(state, charge) <= earliest) this.delete(key);
      return undefined;
    }
    // `earliest` gives the later `retryAfter`, at which the call is certainly allowed.
    const { remaining, reset, retryAfter } = earliest === latest ? last : decideAt(earliest);
    return {
      outcome: "decided",
      at: earliest,
      allowed: false,
      retryAfter,
      limits: [{ allowed: false, remaining, reset, retryAfter }],
    };
  }

  delete(key: string): void {
    const denial = this.#denials.get(key);
    if (!denial) return;
    this.#denials.delete(key);
    this.bytes -= denial.bytes;
  }

  clear(): void {
    this.#denials.clear();
    this.bytes = 0;
  }
}

/** The time from which a state has no effect. */
function endOf(state: WindowState | StrictState, { duration }: Charge): number {
  return "counts" in state ? releaseOf(newestOf(state), duration) : state.end;
}

/** Whether the clock of Redis was set back to before the newest window: Redis may have moved the counter since. */
function isSetBack(state: WindowState | StrictState, { duration }: Charge, latest: number): boolean {
  const start = "counts" in state ? newestOf(state) * subWindow(duration) : state.end - 2 * duration;
  return start > latest;
}

function newestOf({ first, counts }: StrictState): number {
  return first + counts.length - 1;
}
