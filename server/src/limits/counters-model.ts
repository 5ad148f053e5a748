import type { Charge, LimitDecision, LimitState } from "./counters.ts";

/**
 * The law once more, as directly as it can be said: in BigInt, with the whole history, without any formula for waiting.
 * What the tests hold every kind of counters against.
 */
export class CountersModel {
  /** Per counter and duration: what was charged, by the index of the window. */
  readonly #charged = new Map<string, Map<bigint, bigint>>();

  charge(charges: readonly Charge[], now: number): LimitDecision {
    return this.#decide(charges, now, true);
  }

  peek(charges: readonly Charge[], now: number): LimitDecision {
    return this.#decide(charges, now, false);
  }

  #decide(charges: readonly Charge[], now: number, mayTake: boolean): LimitDecision {
    for (const charge of charges) this.#move(charge, BigInt(now));
    const views = charges.map((charge, i) => {
      const ahead = charges.slice(0, i).filter((other) => nameOf(other) === nameOf(charge) && other.commit !== false);
      const before = ahead.reduce((sum, other) => sum + BigInt(other.cost), 0n);
      const cost = before + BigInt(charge.cost);
      const allowed = charge.limit > 0 && this.#usedAt(charge, BigInt(now)) + cost <= BigInt(charge.limit);
      return { charge, before, cost, allowed };
    });
    const allowed = views.every((view) => view.allowed);
    const takes = allowed && mayTake;
    const limits = views.map(({ charge, before, cost, allowed }): LimitState => {
      const duration = BigInt(charge.duration);
      const left = BigInt(charge.limit) - this.#usedAt(charge, BigInt(now));
      const own = takes ? (charge.commit === false ? before : cost) : 0n;
      return {
        allowed,
        remaining: left - own > 0n ? Number(left - own) : 0,
        reset: Number((this.#momentOf(charge, BigInt(now)) / duration + 1n) * duration),
        retryAfter: allowed ? 0 : this.#search(charge, cost, BigInt(now)),
      };
    });
    if (takes) for (const { charge } of views) this.#take(charge, BigInt(now));
    const waits = limits.map((limit) => limit.retryAfter);
    const retryAfter = waits.includes(undefined) ? undefined : Math.max(0, ...waits.map(Number));
    return { outcome: "decided", at: now, allowed, retryAfter, limits };
  }

  /** What lies more than a duration ahead was charged in the present window and those before. */
  #move(charge: Charge, now: bigint): void {
    const duration = BigInt(charge.duration);
    const ahead = this.#momentOf(charge, now) - now;
    if (ahead <= duration) return;
    const shift = this.#momentOf(charge, now) / duration - now / duration;
    const windows = this.#charged.get(nameOf(charge))!;
    this.#charged.set(nameOf(charge), new Map([...windows].map(([index, charged]) => [index - shift, charged])));
  }

  /** Time stands still for a counter while the clock is behind its newest window. */
  #momentOf(charge: Charge, now: bigint): bigint {
    const newest = [...(this.#charged.get(nameOf(charge))?.keys() ?? [])].reduce((a, b) => (a > b ? a : b), 0n);
    const start = newest * BigInt(charge.duration);
    return now > start ? now : start;
  }

  #usedAt(charge: Charge, now: bigint): bigint {
    const windows = this.#charged.get(nameOf(charge));
    const moment = this.#momentOf(charge, now);
    const duration = BigInt(charge.duration);
    const index = moment / duration;
    const rest = (index + 1n) * duration - moment;
    return (windows?.get(index) ?? 0n) + ((windows?.get(index - 1n) ?? 0n) * rest) / duration;
  }

  #take(charge: Charge, now: bigint): void {
    if (charge.commit === false || charge.cost === 0) return;
    const index = this.#momentOf(charge, now) / BigInt(charge.duration);
    const windows = this.#charged.get(nameOf(charge)) ?? new Map<bigint, bigint>();
    windows.set(index, (windows.get(index) ?? 0n) + BigInt(charge.cost));
    this.#charged.set(nameOf(charge), windows);
  }

  /** The first millisecond at which `cost` would pass, found by halving: use never grows while nobody charges. */
  #search(charge: Charge, cost: bigint, now: bigint): number | undefined {
    const limit = BigInt(charge.limit);
    if (limit === 0n || cost > limit) return undefined;
    let refused = now;
    let passes = this.#momentOf(charge, now) + 2n * BigInt(charge.duration);
    while (passes - refused > 1n) {
      const middle = (passes + refused) / 2n;
      if (this.#usedAt(charge, middle) + cost <= limit) passes = middle;
      else refused = middle;
    }
    return Number(passes - now);
  }
}

function nameOf(charge: Charge): string {
  return `${charge.duration} ${charge.counter}`;
}
