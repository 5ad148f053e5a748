import type { Instant, Milliseconds } from "../clock/clock.ts";
import type { IdempotencyRecord } from "../rules/idempotency.ts";
import { SLOTS } from "../rules/slots.ts";
import type { HoldRequest } from "./hold.ts";
import type { LockedBalance } from "./locked-balance.ts";

/** The weight of a call with limits; a call without limits has weight 1. */
const WEIGHT_LIMITED = 4;

const NOT_LOCKED: readonly LockedBalance[] = [];

/** The part of a limit decision that the ledger uses. */
export interface Decision {
  readonly allowed: boolean;
  /** What is needed to correct the charge later, if it was asked for. */
  readonly receipt?: object | undefined;
}

/** A call that costs credits, together with the limits that it charges, which only the limiter interprets. */
export interface Spend<Charges, Limits extends Decision> {
  readonly workspaceId: string;
  /** The ids of its balances, each once, at most 12: the cost is taken from all of them, or from none. */
  readonly balances: readonly string[];
  /** Credits to spend; 0 only reads the balances. */
  readonly cost: number;
  /** Undefined: the call has no limits. */
  readonly charges: Charges | undefined;
  /** Undefined: a repeated call is charged again. `outcome` is the answer to a replay. */
  readonly idempotent?:
    | (Omit<IdempotencyRecord, "outcome" | "workspaceId"> & { outcome(spent: Spent<Limits>): string })
    | undefined;
  /**
   * Whether the records that authorized the call are still current. Checked when its balances are locked and before it is
   * charged. Undefined: always.
   */
  readonly isCurrent?: ((now: Instant) => boolean) | undefined;
  /** The cost is held, and a later settlement says what is spent. Undefined: it is spent. */
  readonly hold?: HoldRequest | undefined;
  /** Those of its balances and slots that must exist. Of others, a missing one is unlimited. Undefined: none must. */
  readonly required?: ReadonlySet<string> | undefined;
  /** What the hold takes a slot of. Undefined: of nothing. */
  readonly slots?: readonly SlotLimit[] | undefined;
}

/** A balance of slots, of which a hold takes one. */
export interface SlotLimit {
  readonly balanceId: string;
  /** How many holds may have one at once. */
  readonly limit: number;
}

/** What each balance of a call has after it, in their order, and then those of slots. Undefined: it is, or has become, unlimited. */
export type Remaining = readonly (number | undefined)[];

/** The credits of open holds of each balance of a call. Absent: none of them has any. */
export type Held = readonly number[];

/** A balance that does not cover a call. */
export interface Lack {
  readonly balanceId: string;
  /** When the balance is refilled; null: it has no refill. */
  readonly refillAt: Instant | null;
  /** Of slots: the time until the first open hold of them expires, or less. */
  readonly retryAfter?: Milliseconds;
}

/** A new hold. */
export interface OpenHold {
  readonly holdId: string;
  readonly expiresAt: Instant;
}

/** A call that was charged. */
export interface Spent<Limits> {
  readonly outcome: "spent";
  readonly remaining: Remaining;
  readonly held?: Held;
  readonly limits: Limits | undefined;
  /** The hold that it made. */
  readonly hold?: OpenHold;
}

/** The outcome of a spend. */
export type SpendOutcome<Limits extends Decision> =
  | Spent<Limits>
  /** A replay: the original call was charged. */
  | { readonly outcome: "repeated"; readonly before: string }
  /** The Idempotency-Key belongs to another call. */
  | { readonly outcome: "mismatched" }
  /** Another node is running a call with this Idempotency-Key. */
  | { readonly outcome: "running" }
  | {
      readonly outcome: "insufficient";
      readonly remaining: Remaining;
      readonly held?: Held;
      readonly lacks: readonly Lack[];
    }
  | {
      readonly outcome: "limited";
      readonly remaining: Remaining;
      readonly held?: Held;
      readonly limits: Limits;
    }
  /** The call is no longer current: no credits were spent. */
  | { readonly outcome: "outdated" }
  /** A required balance does not exist: no credits were spent. */
  | { readonly outcome: "unprepared" };

/**
 * A call in the ledger, and its result when it has been decided.
 *
 * A class, and not an object literal: of literals that often survive a garbage collection, V8 allocates the next ones in
 * the old generation. There, answered calls keep everything that they refer to alive until the next full collection.
 */
export class Call<Charges, Limits extends Decision> implements Spend<Charges, Limits> {
  readonly workspaceId: string;
  /** Those of its credits, then those of its slots. */
  readonly balances: readonly string[];
  /** The lane in which it waits: calls of the same balances share one. */
  readonly lane: string;
  readonly cost: number;
  readonly charges: Charges | undefined;
  readonly idempotent: Spend<Charges, Limits>["idempotent"];
  readonly isCurrent: Spend<Charges, Limits>["isCurrent"];
  readonly hold: HoldRequest | undefined;
  /** The limits of the balances of which it takes a slot. */
  readonly #slots: ReadonlyMap<string, number> | undefined;
  readonly #required: ReadonlySet<string> | undefined;
  readonly scope: string | undefined;
  readonly arrivedAt: Milliseconds;
  readonly sequence: number;
  readonly weight: number;
  readonly resolve: (outcome: SpendOutcome<Limits>) => void;
  readonly reject: (error: unknown) => void;
  /** Its balances in the batch that decides it. */
  locked: readonly LockedBalance[] = NOT_LOCKED;
  /** The decision of its limits, if they were charged. */
  limits: Limits | undefined = undefined;
  result: SpendOutcome<Limits> | undefined = undefined;
  /** Why the call could not be decided. */
  failure: unknown = undefined;
  /** The answer to a replay of the call, when it has been recorded. */
  recorded: string | undefined = undefined;

  constructor(
    spend: Spend<Charges, Limits>,
    arrival: { readonly arrivedAt: Milliseconds; readonly sequence: number },
    { resolve, reject }: PromiseWithResolvers<SpendOutcome<Limits>>,
  ) {
    this.workspaceId = spend.workspaceId;
    const { slots } = spend;
    this.#slots = slots && new Map(slots.map(({ balanceId, limit }) => [balanceId, limit]));
    this.balances = slots ? [...spend.balances, ...slots.map(({ balanceId }) => balanceId)] : spend.balances;
    this.lane = (this.balances.length === 1 ? this.balances[0] : undefined) ?? this.balances.join(" ");
    this.cost = spend.cost;
    this.charges = spend.charges;
    this.idempotent = spend.idempotent;
    this.isCurrent = spend.isCurrent;
    this.hold = spend.hold;
    this.#required = spend.required;
    this.scope = spend.idempotent?.scope;
    this.arrivedAt = arrival.arrivedAt;
    this.sequence = arrival.sequence;
    this.weight = spend.charges === undefined ? 1 : WEIGHT_LIMITED;
    this.resolve = resolve;
    this.reject = reject;
  }

  get isChange(): false {
    return false;
  }

  /** Whether a balance that it requires does not exist. */
  get lacksBalance(): boolean {
    const required = this.#required;
    return (
      required !== undefined && this.locked.some(({ id, remaining }) => remaining === undefined && required.has(id))
    );
  }

  /** Whether it takes a slot of the balance, and not its cost. */
  takesSlot({ id }: Pick<LockedBalance, "id">): boolean {
    return this.#slots?.has(id) === true;
  }

  /** What it takes from a balance. */
  amountOf(balance: LockedBalance): number {
    return this.takesSlot(balance) ? 1 : this.cost;
  }

  /** What a balance must have for it. Of slots, those above the limit stay unused. */
  needOf({ id }: LockedBalance): number {
    const limit = this.#slots?.get(id);
    return limit === undefined ? this.cost : SLOTS - limit + 1;
  }

  answer(): void {
    if (this.failure === undefined && this.result) this.resolve(this.result);
    else this.reject(this.failure);
  }
}
