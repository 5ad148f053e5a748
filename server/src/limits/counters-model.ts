import type { Charge, LimitDecision, LimitState } from "./counters.ts";

/**
 * A reference model of the sliding window, as simple as possible: in BigInt, with the whole history, and with a search
 * instead of a formula for `retryAfter`. The tests compare all kinds of counters with it.
 */
export class CountersModel {
  /** Charged amounts per counter and duration, by the index of the window. */
  readonly #charged = new Map<string, Map<bigint, bigint>>();

  charge(charges: readonly Charge[], now: number): LimitDecision {
    return this.#decide(charges, now, true);
  }

  peek(charges: readonly Charge[], now: number): LimitDecision {
    return this.#decide(charges, now, false);
  }

  #decide(charges: readonly Charge[], now: number, mayConsume: boolean): LimitDecision {
    for (const charge of charges) this.#move(charge, BigInt(now));
    const views = charges.map((charge, i) => {
      const ahead = charges
        .slice(0, i)
        .filter((other) => counterKey(other) === counterKey(charge) && other.commit !== false);
      const before = ahead.reduce((sum, other) => sum + BigInt(other.cost), 0n);
      const cost = before + BigInt(charge.cost);
      const allowed = charge.limit > 0 && this.#usedAt(charge, BigInt(now)) + cost <= BigInt(charge.limit);
      return { charge, before, cost, allowed };
    });
    const allowed = views.every((view) => view.allowed);
    const consumes = allowed && mayConsume;
    const limits = views.map(({ charge, before, cost, allowed }): LimitState => {
      const duration = BigInt(charge.duration);
      const left = BigInt(charge.limit) - this.#usedAt(charge, BigInt(now));
      const own = consumes ? (charge.commit === false ? before : cost) : 0n;
      return {
        allowed,
        remaining: left - own > 0n ? Number(left - own) : 0,
        reset: Number((this.#timeOf(charge, BigInt(now)) / duration + 1n) * duration),
        retryAfter: allowed ? 0 : this.#search(charge, cost, BigInt(now)),
      };
    });
    if (consumes) for (const { charge } of views) this.#consume(charge, BigInt(now));
    const waits = limits.map((limit) => limit.retryAfter);
    const retryAfter = waits.includes(undefined) ? undefined : Math.max(0, ...waits.map(Number));
    return { outcome: "decided", at: now, allowed, retryAfter, limits };
  }

  /** If the newest window is more than a duration ahead of the clock, moves the counts to the current window. */
  #move(charge: Charge, now: bigint): void {
    const duration = BigInt(charge.duration);
    const ahead = this.#timeOf(charge, now) - now;
    if (ahead <= duration) return;
    const shift = this.#timeOf(charge, now) / duration - now / duration;
    const windows = this.#charged.get(counterKey(charge))!;
    this.#charged.set(counterKey(charge), new Map([...windows].map(([index, charged]) => [index - shift, charged])));
  }

  /** The time of a counter: it stops while the clock is behind the newest window. */
  #timeOf(charge: Charge, now: bigint): bigint {
    const newest = [...(this.#charged.get(counterKey(charge))?.keys() ?? [])].reduce((a, b) => (a > b ? a : b), 0n);
    const start = newest * BigInt(charge.duration);
    return now > start ? now : start;
  }

  #usedAt(charge: Charge, now: bigint): bigint {
    const windows = this.#charged.get(counterKey(charge));
    const time = this.#timeOf(charge, now);
    const duration = BigInt(charge.duration);
    const index = time / duration;
    const rest = (index + 1n) * duration - time;
    return (windows?.get(index) ?? 0n) + ((windows?.get(index - 1n) ?? 0n) * rest) / duration;
  }

  #consume(charge: Charge, now: bigint): void {
    if (charge.commit === false || charge.cost === 0) return;
    const index = this.#timeOf(charge, now) / BigInt(charge.duration);
    const windows = this.#charged.get(counterKey(charge)) ?? new Map<bigint, bigint>();
    windows.set(index, (windows.get(index) ?? 0n) + BigInt(charge.cost));
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

function counterKey(charge: Charge): string {
  return `${charge.duration} ${charge.counter}`;
}
