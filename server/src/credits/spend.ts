import type { Instant, Milliseconds } from "../clock/clock.ts";
import type { IdempotencyRecord } from "../store/idempotency.ts";

/** What the ledger needs to know of a decision about limits. */
export interface Decision {
  readonly allowed: boolean;
}

/** A call that costs credits, together with the limits that it meets: what they are is the limiter's business. */
export interface Spend<Charges, Limits extends Decision> {
  readonly workspaceId: string;
  readonly poolId: string;
  /** Credits that it takes; 0 only looks. */
  readonly cost: number;
  /** Undefined: the call meets no limit. */
  readonly charges: Charges | undefined;
  /** Undefined: whoever repeats the call is charged again. `outcome` is what a repetition is told. */
  readonly idempotent?:
    | (Omit<IdempotencyRecord, "outcome" | "workspaceId"> & { outcome(spent: Spent<Limits>): string })
    | undefined;
  /**
   * Whether everything that the call was allowed on still holds. Looked at when its balance is locked and before it is
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

/** What became of it. `remaining` is the balance after it; undefined: the pool has become unlimited. */
export type SpendOutcome<Limits extends Decision> =
  | Spent<Limits>
  /** It was made before, and charged then. */
  | { readonly outcome: "repeated"; readonly before: string }
  /** Its Idempotency-Key belongs to another call. */
  | { readonly outcome: "mismatched" }
  /** A call with its Idempotency-Key is still running elsewhere. */
  | { readonly outcome: "running" }
  | { readonly outcome: "insufficient"; readonly remaining: number }
  | { readonly outcome: "limited"; readonly remaining: number | undefined; readonly limits: Limits }
  /** It is no longer current: no credits were taken. */
  | { readonly outcome: "outdated" };

/** A call in the ledger, and its result once there is one. */
export interface Call<Charges, Limits extends Decision> extends Spend<Charges, Limits> {
  readonly scope: string | undefined;
  readonly arrivedAt: Milliseconds;
  readonly sequence: number;
  readonly weight: number;
  resolve(outcome: SpendOutcome<Limits>): void;
  reject(error: unknown): void;
  /** What its limits decided, where they were charged. */
  limits: Limits | undefined;
  result: SpendOutcome<Limits> | undefined;
  /** Why it could not be decided. */
  failure: unknown;
  /** What a repetition of it is answered with, once that is recorded. */
  recorded: string | undefined;
}
