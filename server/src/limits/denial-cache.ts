import { decide, type WindowState } from "../rules/window.ts";
import type { Charge, LimitDecision } from "./counters.ts";

/** What an entry takes beside its text, in bytes: its key's header, its place in the map, five numbers. */
const ENTRY_BYTES = 200;

interface Denial {
  readonly state: WindowState;
  readonly bytes: number;
}

/**
 * Exhausted counters that live elsewhere, each as it was when it refused a call.
 *
 * Others can only have charged it since. So what does not fit into the remembered state does not fit at all; and while
 * that state leaves nothing of the limit, nobody with this limit can have charged, and every figure is still exact. From
 * the millisecond at which one unit would be free again the real counter has to be asked.
 */
export class DenialCache {
  /** Bytes of memory that the entries take, estimated. */
  bytes = 0;
  readonly #bytesMax: number;
  readonly #denials = new Map<string, Denial>();

  /** Beyond `bytesMax` the oldest are forgotten. */
  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get size(): number {
    return this.#denials.size;
  }

  /** The counter `key` was exhausted when its state was `state`. */
  remember(key: string, state: WindowState): void {
    this.forget(key);
    const bytes = ENTRY_BYTES + 2 * key.length;
    this.#denials.set(key, { state, bytes });
    this.bytes += bytes;
    for (const oldest of this.#denials.keys()) {
      if (this.bytes <= this.#bytesMax) break;
      this.forget(oldest);
    }
  }

  /**
   * The refusal of a call of one charge, or undefined when the counter has to be asked. The counter's clock shows
   * something from `earliest` to `latest`.
   */
  recall(key: string, charge: Charge, earliest: number, latest: number): LimitDecision | undefined {
    const denial = this.#denials.get(key);
    if (!denial) return undefined;
    if (denial.state.end - latest > 3 * charge.duration) {
      // The counter's clock was set back by more than a window.
      this.forget(key);
      return undefined;
    }
    const last = decide(denial.state, charge, latest);
    if (last.allowed || last.remaining > 0) {
      if (denial.state.end <= earliest) this.forget(key);
      return undefined;
    }
    // The earlier time promises the later moment, at which the call passes for certain.
    const { remaining, reset, retryAfter } = earliest === latest ? last : decide(denial.state, charge, earliest);
    return {
      outcome: "decided",
      at: earliest,
      allowed: false,
      retryAfter,
      limits: [{ allowed: false, remaining, reset, retryAfter }],
    };
  }

  forget(key: string): void {
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
