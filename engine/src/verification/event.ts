import type { Instant, Milliseconds } from "../clock/clock.ts";

/** An answered verification. */
export interface VerificationEvent {
  /** Time of the call. */
  readonly at: Instant;
  /** Monotonic start time of the call. */
  readonly startedAt: Milliseconds;
  /** The workspace in which the key was looked up. */
  readonly workspaceId: string;
  /** The key; null if it does not exist. */
  readonly key: {
    readonly keyId: string;
    readonly apiId: string;
    readonly identity: { readonly id: string } | null;
    /** The budgets that it spends from, each once. Absent: none. */
    readonly budgets?: readonly { readonly budgetId: string }[];
  } | null;
  readonly code: string;
  readonly tags: readonly string[] | undefined;
  readonly creditsSpent: number;
  /** The credits that the call would have spent; undefined: 1. */
  readonly cost: number | undefined;
  /** The name of the limit that rejected the call; undefined: none did. */
  readonly limit: string | undefined;
  /** The address for the allow-list of the API. */
  readonly address: string;
  readonly requestId: string;
}

/** Credits that a verification held, and that were charged when the cost of its work was known. */
export interface CreditsEvent {
  /** Time of the charge. */
  readonly at: Instant;
  readonly workspaceId: string;
  readonly key: NonNullable<VerificationEvent["key"]>;
  readonly tags: readonly string[] | undefined;
  /** Negative: less than what the expiry of the hold had charged. */
  readonly credits: number;
}

/** A decided rate limit: one entry of a call. */
export interface RatelimitEvent {
  readonly at: Instant;
  /** Monotonic start time of the call. */
  readonly startedAt: Milliseconds;
  readonly workspaceId: string;
  readonly namespaceId: string;
  readonly identifier: string;
  /** Whether this entry alone was allowed. */
  readonly passed: boolean;
  /** The charged cost; 0 if any entry of the call was denied. */
  readonly cost: number;
  /** The cost that the entry asked for, and the limit and the window in milliseconds that it asked them of. */
  readonly asked: { readonly cost: number; readonly limit: number; readonly duration: number };
  /** The caller's address. */
  readonly address: string;
  readonly requestId: string;
}

/** Takes decisions, synchronously and without throwing. */
export interface DecisionRecorder {
  verification(event: VerificationEvent): void;
  ratelimit(event: RatelimitEvent): void;
}
