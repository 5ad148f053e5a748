import assert from "node:assert/strict";
import { LIMIT_MAX } from "../rules/window.ts";
import type { Charge, LimitDecision, LimitState } from "./counters.ts";

/** What the model remembers of a call, for `adjust`: each charge that commits, and the index of its window or sub-window. */
export type ModelReceipt = readonly { readonly charge: Charge; readonly index: bigint }[];

/**
 * A reference model of both modes, as simple as possible: in BigInt, with the whole history, and with a search instead of a
 * formula for `retryAfter`. The tests compare all kinds of counters with it.
 */
export class CountersModel {
  /** Charged amounts per counter, duration and mode, by the index of the window or sub-window. */
  readonly #charged = new Map<string, Map<bigint, bigint>>();

  charge(charges: readonly Charge[], now: number): LimitDecision {
    return this.#decide(charges, now, true);
  }

  peek(charges: readonly Charge[], now: number): LimitDecision {
    return this.#decide(charges, now, false);
  }

  /** The receipt of a call that has just been allowed. */
  receiptOf(charges: readonly Charge[], now: number): ModelReceipt {
    const committed = charges.filter(({ commit }) => commit !== false);
    return committed.map((charge) => ({ charge, index: this.#timeOf(charge, BigInt(now)) / lengthOf(charge) }));
  }

  /** Corrects a call. The result says for each charge whether it can be corrected. */
  adjust(receipt: ModelReceipt, costs: readonly (number | undefined)[], now: number): boolean[] {
    return receipt.map(({ charge, index }, i) => {
      const cost = costs[i] ?? charge.cost;
      if (cost > charge.cost) this.#consume({ ...charge, cost: cost - charge.cost }, BigInt(now));
      if (cost >= charge.cost) return true;
      const ends = isStrict(charge) ? releaseOf(charge, index) : (index + 2n) * lengthOf(charge);
      if (ends <= BigInt(now)) return false;
      const windows = this.#charged.get(counterKey(charge));
      const count = windows?.get(index) ?? 0n;
      const left = count - BigInt(charge.cost - cost);
      assert(windows && left >= 0n);
      if (count === BigInt(LIMIT_MAX)) return true;
      if (left === 0n) windows.delete(index);
      else windows.set(index, left);
      return true;
    });
  }

  #decide(charges: readonly Charge[], now: number, mayConsume: boolean): LimitDecision {
    for (const charge of charges) this.#move(charge, BigInt(now));
    const views = charges.map((charge, i) => {
      const ahead = charges
        .slice(0, i)
        .filter((other) => counterKey(other) === counterKey(charge) && other.commit !== false);
      const before = ahead.reduce((sum, other) => sum + BigInt(other.cost), 0n);
      const cost = before + BigInt(charge.cost);
      const fits = charge.limit > 0 && this.#usedAt(charge, BigInt(now)) + cost <= BigInt(charge.limit);
      const allowed = fits || charge.force === true;
      return { charge, before, cost, allowed };
    });
    const allowed = views.every((view) => view.allowed);
    const consumes = allowed && mayConsume;
    const states = views.map(({ charge, before, cost, allowed }) => {
      const left = BigInt(charge.limit) - this.#usedAt(charge, BigInt(now));
      const own = consumes ? (charge.commit === false ? before : cost) : 0n;
      return {
        allowed,
        remaining: left - own > 0n ? Number(left - own) : 0,
        retryAfter: allowed ? 0 : this.#search(charge, cost, BigInt(now)),
      };
    });
    if (consumes) for (const { charge } of views) this.#consume(charge, BigInt(now));
    const limits = states.map(
      (state, i): LimitState => ({ ...state, reset: Number(this.#resetOf(charges[i]!, BigInt(now))) }),
    );
    const waits = limits.map((limit) => limit.retryAfter);
    const retryAfter = waits.includes(undefined) ? undefined : Math.max(0, ...waits.map(Number));
    return { outcome: "decided", at: now, allowed, retryAfter, limits };
  }

  /** Moves a counter whose newest window is too far ahead of the clock. */
  #move(charge: Charge, now: bigint): void {
    const length = lengthOf(charge);
    const ahead = this.#timeOf(charge, now) / length - now / length;
    // Standard: to the current window. Strict: by whole rings of 18 sub-windows.
    const isTooFar = isStrict(charge) ? ahead > 18n : this.#timeOf(charge, now) - now > length;
    if (!isTooFar) return;
    const shift = isStrict(charge) ? ((ahead - 1n) / 18n) * 18n : ahead;
    const windows = this.#charged.get(counterKey(charge))!;
    this.#charged.set(counterKey(charge), new Map([...windows].map(([index, charged]) => [index - shift, charged])));
  }

  /** The time of a counter: it stops while the clock is behind the newest window. */
  #timeOf(charge: Charge, now: bigint): bigint {
    const newest = [...(this.#charged.get(counterKey(charge))?.keys() ?? [])].reduce((a, b) => (a > b ? a : b), 0n);
    const start = newest * lengthOf(charge);
    return now > start ? now : start;
  }

  #usedAt(charge: Charge, now: bigint): bigint {
    const windows = this.#charged.get(counterKey(charge));
    const time = this.#timeOf(charge, now);
    const duration = BigInt(charge.duration);
    if (isStrict(charge)) {
      const counting = [...(windows ?? [])].filter(([index]) => releaseOf(charge, index) > time);
      return counting.reduce((sum, [, charged]) => sum + charged, 0n);
    }
    const index = time / duration;
    const rest = (index + 1n) * duration - time;
    return (windows?.get(index) ?? 0n) + ((windows?.get(index - 1n) ?? 0n) * rest) / duration;
  }

  #resetOf(charge: Charge, now: bigint): bigint {
    const time = this.#timeOf(charge, now);
    if (!isStrict(charge)) return (time / BigInt(charge.duration) + 1n) * BigInt(charge.duration);
    const releases = [...(this.#charged.get(counterKey(charge))?.keys() ?? [])]
      .map((index) => releaseOf(charge, index))
      .filter((release) => release > time);
    return releases.reduce((a, b) => (a < b ? a : b), releaseOf(charge, time / lengthOf(charge)));
  }

  #consume(charge: Charge, now: bigint): void {
    if (charge.commit === false || charge.cost === 0) return;
    const index = this.#timeOf(charge, now) / lengthOf(charge);
    const windows = this.#charged.get(counterKey(charge)) ?? new Map<bigint, bigint>();
    const count = (windows.get(index) ?? 0n) + BigInt(charge.cost);
    windows.set(index, count < BigInt(LIMIT_MAX) ? count : BigInt(LIMIT_MAX));
    this.#charged.set(counterKey(charge), windows);
  }

  /** Finds the first millisecond at which `cost` is allowed, by bisection: usage never grows without charges. */
  #search(charge: Charge, cost: bigint, now: bigint): number | undefined {
    const limit = BigInt(charge.limit);
    if (limit === 0n || cost > limit) return undefined;
    let rejectedAt = now;
    let allowedAt = this.#timeOf(charge, now) + 2n * BigInt(charge.duration);
    while (allowedAt - rejectedAt > 1n) {
      const middle = (allowedAt + rejectedAt) / 2n;
      if (this.#usedAt(charge, middle) + cost <= limit) allowedAt = middle;
      else rejectedAt = middle;
    }
    return Number(allowedAt - now);
  }
}

function isStrict(charge: Charge): boolean {
  return charge.mode === "strict";
}

/** The length of a window, or of a sub-window of a strict limit. */
function lengthOf(charge: Charge): bigint {
  return isStrict(charge) ? (BigInt(charge.duration) + 15n) / 16n : BigInt(charge.duration);
}

/** The first time at which a sub-window has left the trailing duration. */
function releaseOf(charge: Charge, index: bigint): bigint {
  return (index + 1n) * lengthOf(charge) - 1n + BigInt(charge.duration);
}

function counterKey(charge: Charge): string {
  return `${charge.duration} ${charge.mode ?? "standard"} ${charge.counter}`;
}
