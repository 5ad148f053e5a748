import { type Instant, instantAt } from "../clock/clock.ts";
import type { BalanceChange, BalanceState } from "./batch.ts";

/** A watched balance counts down to this, so that every number is exact. */
const WATCHED_MIN = -1_000_000_000_000_000;

/** Whether free credits cover a cost. Undefined: they are unlimited. A cost of 0 is covered by a balance below 0, too. */
export function covers(free: number | undefined, cost: number): boolean {
  return free === undefined || free >= cost || cost === 0;
}

/** The most that a balance has, so that every number is exact. */
const REMAINING_MAX = 1_000_000_000_000_000;
/** A balance whose open holds have this gets no further one. A batch can pass it by what the balance has. */
const HELD_MAX = 1_000_000_000_000_000;

/** What a call has taken from a balance, and how: held, charged at its expiry, or given back at its expiry. */
export interface Portion {
  readonly from: "held" | "spent" | "returned";
  readonly amount: number;
  /** That of the balance when it was held. */
  readonly period: number;
}

/**
 * More refills than a balance has between a hold and its last settlement: at most one an hour, for a day until the hold expires
 * and as long as expired holds can be stored.
 */
const REFILLS_MAX = 800;

/** A balance during the batch that has locked it. */
export class LockedBalance {
  readonly id: string;
  /** After the decided calls. Undefined: unlimited. */
  remaining: number | undefined;
  /** Credits that no call of the batch has reserved; infinite if the balance denies no call. */
  free: number;
  /** The sum that the batch spends. */
  spent = 0;
  readonly refillAt: Instant | null;
  readonly nextExpiryAt: Instant | null;
  /** The credits of its open holds. */
  held: number;
  /** That of its present credits. */
  readonly period: number;
  readonly #keepsUpTo: number;
  #isChanged = false;
  #lapsed = 0;
  #firstExpiry: Instant | null = null;

  /** @param state undefined: the balance is unlimited. */
  constructor(id: string, state: BalanceState | undefined) {
    this.id = id;
    this.remaining = state?.remaining;
    this.free = state === undefined || state.isWatched === true ? Infinity : state.remaining;
    this.refillAt = state?.refillAt ?? null;
    this.nextExpiryAt = state?.nextExpiryAt ?? null;
    this.held = state?.held ?? 0;
    this.period = state?.period ?? 0;
    this.#keepsUpTo = state?.keepsUpTo ?? 0;
  }

  covers(cost: number): boolean {
    return covers(this.free, cost);
  }

  /** Returns whether it counts the cost. */
  spend(cost: number): boolean {
    if (this.remaining === undefined || this.remaining - cost < WATCHED_MIN) return false;
    this.remaining -= cost;
    this.spent += cost;
    return true;
  }

  /** Whether it may have another open hold. */
  mayHold(cost: number): boolean {
    return this.remaining === undefined || this.held + cost <= HELD_MAX;
  }

  /** Returns whether it counts the cost. */
  hold(cost: number, expiresAt: Instant): boolean {
    if (this.remaining === undefined || this.remaining - cost < WATCHED_MIN) return false;
    this.remaining -= cost;
    this.held += cost;
    this.#isChanged = true;
    if (this.#firstExpiry === null || expiresAt < this.#firstExpiry) this.#firstExpiry = expiresAt;
    return true;
  }

  /**
   * Whether it is the balance that the portion was taken from. An open hold leaves a balance that is removed; one that has
   * expired does not. If the balance is made again, its periods begin at that time in milliseconds.
   */
  hasTaken({ from, period }: Portion): boolean {
    if (from === "held") return true;
    return this.remaining !== undefined && this.period >= period && this.period - period < REFILLS_MAX;
  }

  /**
   * Replaces a portion by what the call really cost. What comes back is free; what it lacks is taken as far as it is there.
   * Only before any call of the batch has reserved credits. Returns how much is missing.
   */
  settle({ from, amount, period }: Portion, actual: number): number {
    if (this.remaining === undefined) return 0;
    this.#isChanged = true;
    // A balance that was deleted and exists again has not held it.
    const had = { held: Math.min(amount, this.held), spent: amount, returned: 0 }[from];
    const used = Math.min(actual, had);
    if (from === "held") this.held -= had;
    else this.spent -= had;
    this.spent += used;
    const back = had - used;
    const kept = Math.min(back, this.#roomFor(period, this.remaining));
    this.remaining += kept;
    this.#lapsed += back - kept;
    const isWatched = this.free === Infinity;
    const more = actual - used;
    const taken = Math.min(more, Math.max(0, this.remaining - (isWatched ? WATCHED_MIN : 0)));
    this.remaining -= taken;
    this.spent += taken;
    if (!isWatched) this.free = this.remaining;
    return isWatched ? 0 : more - taken;
  }

  /** How much it takes back of what was held in a period; the rest lapses. */
  #roomFor(period: number, remaining: number): number {
    const keepsUpTo = period === this.period ? REMAINING_MAX : this.#keepsUpTo;
    return Math.max(0, Math.min(keepsUpTo, REMAINING_MAX) - remaining);
  }

  /** No open hold of it ends earlier. Null: it has none. */
  get expiresAt(): Instant | null {
    const expiries = [this.nextExpiryAt, this.#firstExpiry].filter((expiry) => expiry !== null);
    return this.held === 0 || expiries.length === 0 ? null : instantAt(Math.min(...expiries));
  }

  /** What is written of it if holds of it were made or changed. */
  get change(): BalanceChange | undefined {
    if (!this.#isChanged || this.remaining === undefined) return undefined;
    return {
      balanceId: this.id,
      remaining: this.remaining,
      held: this.held,
      nextExpiryAt: this.expiresAt,
      spent: this.spent,
      lapsed: this.#lapsed,
    };
  }
}

/** A call with its balances. */
export interface LockedCall {
  readonly locked: readonly LockedBalance[];
  /** What a balance must have for the call: as a rule its cost. */
  needOf(balance: LockedBalance): number;
}

/** The first balance that does not have what a call needs. */
export function firstLacking(call: LockedCall): LockedBalance | undefined {
  for (const balance of call.locked) if (!balance.covers(call.needOf(balance))) return balance;
  return undefined;
}
