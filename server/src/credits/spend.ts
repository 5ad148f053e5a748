import type { Instant, Milliseconds } from "../clock/clock.ts";
import type { IdempotencyRecord } from "../store/idempotency.ts";

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

/** A call in the ledger, and its result when it has been decided. */
export interface Call<Charges, Limits extends Decision> extends Spend<Charges, Limits> {
  readonly scope: string | undefined;
  readonly arrivedAt: Milliseconds;
  readonly sequence: number;
  readonly weight: number;
  resolve(outcome: SpendOutcome<Limits>): void;
  reject(error: unknown): void;
  /** The decision of its limits, if they were charged. */
  limits: Limits | undefined;
  result: SpendOutcome<Limits> | undefined;
  /** Why the call could not be decided. */
  failure: unknown;
  /** The answer to a replay of the call, when it has been recorded. */
  recorded: string | undefined;
}
