import type { Instant, Milliseconds } from "../clock/clock.ts";
import type { IdempotencyRecord } from "../rules/idempotency.ts";

/** The weight of a call with limits; a call without limits has weight 1. */
const WEIGHT_LIMITED = 4;

/** The part of a limit decision that the ledger uses. */
export interface Decision {
  readonly allowed: boolean;
}

/** A call that costs credits, together with the limits that it charges, which only the limiter interprets. */
export interface Spend<Charges, Limits extends Decision> {
  readonly workspaceId: string;
  readonly poolId: string;
  /** Credits to spend; 0 only reads the balance. */
  readonly cost: number;
  /** Undefined: the call has no limits. */
  readonly charges: Charges | undefined;
  /** Undefined: a repeated call is charged again. `outcome` is the answer to a replay. */
  readonly idempotent?:
    | (Omit<IdempotencyRecord, "outcome" | "workspaceId"> & { outcome(spent: Spent<Limits>): string })
    | undefined;
  /**
   * Whether the records that authorized the call are still current. Checked when its balance is locked and before it is
   * charged. Undefined: always.
   */
  readonly isCurrent?: ((now: Instant) => boolean) | undefined;
}

/** Whether free credits cover a cost. Undefined: the pool is unlimited. */
export function covers(free: number | undefined, cost: number): boolean {
  return free === undefined || free >= cost;
}

/** A call that was charged. */
export interface Spent<Limits> {
  readonly outcome: "spent";
  readonly remaining: number | undefined;
  readonly limits: Limits | undefined;
}

/** The outcome of a spend. `remaining` is the balance after it; undefined: the pool has become unlimited. */
export type SpendOutcome<Limits extends Decision> =
  | Spent<Limits>
  /** A replay: the original call was charged. */
  | { readonly outcome: "repeated"; readonly before: string }
  /** The Idempotency-Key belongs to another call. */
  | { readonly outcome: "mismatched" }
  /** Another node is running a call with this Idempotency-Key. */
  | { readonly outcome: "running" }
  | { readonly outcome: "insufficient"; readonly remaining: number }
  | { readonly outcome: "limited"; readonly remaining: number | undefined; readonly limits: Limits }
  /** The call is no longer current: no credits were spent. */
  | { readonly outcome: "outdated" };

/**
 * A call in the ledger, and its result when it has been decided.
 *
 * A class, and not an object literal: of literals that often survive a garbage collection, V8 allocates the next ones in
 * the old generation. There, answered calls keep everything that they refer to alive until the next full collection.
 */
export class Call<Charges, Limits extends Decision> implements Spend<Charges, Limits> {
  readonly workspaceId: string;
  readonly poolId: string;
  readonly cost: number;
  readonly charges: Charges | undefined;
  readonly idempotent: Spend<Charges, Limits>["idempotent"];
  readonly isCurrent: Spend<Charges, Limits>["isCurrent"];
  readonly scope: string | undefined;
  readonly arrivedAt: Milliseconds;
  readonly sequence: number;
  readonly weight: number;
  readonly resolve: (outcome: SpendOutcome<Limits>) => void;
  readonly reject: (error: unknown) => void;
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
    this.poolId = spend.poolId;
    this.cost = spend.cost;
    this.charges = spend.charges;
    this.idempotent = spend.idempotent;
    this.isCurrent = spend.isCurrent;
    this.scope = spend.idempotent?.scope;
    this.arrivedAt = arrival.arrivedAt;
    this.sequence = arrival.sequence;
    this.weight = spend.charges === undefined ? 1 : WEIGHT_LIMITED;
    this.resolve = resolve;
    this.reject = reject;
  }
}
