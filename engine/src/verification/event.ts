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
  } | null;
  readonly code: string;
  readonly tags: readonly string[] | undefined;
  readonly creditsSpent: number;
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
}

/** Takes decisions, synchronously and without throwing. */
export interface DecisionRecorder {
  verification(event: VerificationEvent): void;
  ratelimit(event: RatelimitEvent): void;
}
