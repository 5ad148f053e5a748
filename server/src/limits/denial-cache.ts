import type { Milliseconds } from "../clock/clock.ts";
import { decide, type WindowState } from "../rules/window.ts";
import type { Charge, LimitDecision } from "./counters.ts";

/** Bytes of an entry besides its key: the string header, the map entry, five numbers. */
const ENTRY_BYTES = 200;

interface Denial {
  readonly state: WindowState;
  readonly bytes: number;
  /** The monotonic time until which it is valid. */
  readonly until: Milliseconds;
}

/**
 * A cache of exhausted counters in Redis, each with its state at the time of a denial.
 *
 * Since then other nodes can only have charged the counter; where they can also give back, an entry is valid for a short
 * time. A call that does not fit into the cached state therefore does
 * not fit at all. While the cached state leaves nothing of the limit, no call with this limit can have been charged, so
 * the cached state is exact. From the millisecond at which one unit becomes free, Redis decides again.
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
  set(key: string, state: WindowState, until: Milliseconds = Number.POSITIVE_INFINITY): void {
    this.delete(key);
    const bytes = ENTRY_BYTES + 2 * key.length;
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
    const { end, current, previous } = denial.state;
    const behind = end - 2 * charge.duration - latest;
    // The clock of Redis was set back: by more than a window, or before one whose counter does not exist (a limit of 0).
    if (behind > charge.duration || (behind > 0 && current === 0 && previous === 0)) {
      this.delete(key);
      return undefined;
    }
    const last = decide(denial.state, charge, latest);
    if (last.allowed || last.remaining > 0) {
      if (denial.state.end <= earliest) this.delete(key);
      return undefined;
    }
    // `earliest` gives the later `retryAfter`, at which the call is certainly allowed.
    const { remaining, reset, retryAfter } = earliest === latest ? last : decide(denial.state, charge, earliest);
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
