import type { Instant, Milliseconds } from "../clock/clock.ts";

/** What becomes of the credits of a hold that nobody closes: they are given back, or charged. */
export const onExpiries = ["release", "charge"] as const;
export type OnExpiry = (typeof onExpiries)[number];

/** `open` becomes one of the others; of these, only `expired` becomes `settled`. */
export const holdStates = ["open", "settled", "released", "expired"] as const;
export type HoldState = (typeof holdStates)[number];

/** How long a hold can be open in all, also with extensions. */
export const HOLD_AGE_MAX: Milliseconds = 86_400_000;

/** The most limits that a call with a hold charges, because each hold stores what it has charged of them. */
export const HOLD_LIMITS_MAX = 10;
/** The most characters that the names of these limits have together. */
export const HOLD_LIMIT_NAMES_MAX = 1_000;

/** What a call holds instead of spending it. */
export interface HoldRequest {
  readonly holdId: string;
  /** How long it stays open. */
  readonly ttl: Milliseconds;
  readonly onExpiry: OnExpiry;
  readonly keyId: string;
  readonly apiId: string;
  /** JSON of what the record of its settlement needs to name. */
  readonly subject?: string | undefined;
}

/** How a hold is closed or kept open. */
export type HoldAction =
  /** `settlement` is a digest of all amounts: a repetition has the same. */
  | { readonly kind: "settle"; readonly amount: number; readonly settlement: string }
  | { readonly kind: "release" }
  | { readonly kind: "extend"; readonly ttl: Milliseconds }
  /** Does nothing to a hold that is closed, or whose time has not come. */
  | { readonly kind: "expire" };

/** A change of a hold. */
export interface HoldChange {
  readonly workspaceId: string;
  readonly holdId: string;
  /** The ids of its balances, as they are stored with it. */
  readonly balances: readonly string[];
  readonly action: HoldAction;
  /** Whether its caller is still what it was when the change was asked for. Absent: nobody's permission matters. */
  readonly isCurrent?: ((now: Instant) => boolean) | undefined;
}

/** How much of a charge a balance did not have. */
export interface Uncovered {
  readonly balanceId: string;
  readonly lack: number;
}

/** A hold after a change. */
export interface ChangedHold {
  readonly outcome: "changed";
  readonly state: HoldState;
  /** What was charged, without what no balance covered; 0 while it is open. */
  readonly charged: number;
  /** The largest of `lacks`. */
  readonly uncovered: number;
  readonly lacks: readonly Uncovered[];
  readonly expiresAt: Instant;
  /** What it was before this change. */
  readonly former: { readonly state: HoldState; readonly charged: number };
  /** Whether the same change was made before: nothing has changed now. */
  readonly isRepeated: boolean;
}

export type ChangeOutcome =
  | ChangedHold
  /** The hold is closed, and not by the same change. */
  | { readonly outcome: "conflict"; readonly state: HoldState; readonly settlement: string | null }
  /** There is no such hold, or not any more. */
  | { readonly outcome: "gone" }
  /** Nothing was changed, because the caller is not what it was. */
  | { readonly outcome: "outdated" };
