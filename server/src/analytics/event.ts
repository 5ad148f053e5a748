import type { Instant, Milliseconds } from "../clock/clock.ts";

/** A verification that was answered, as the analytics see it. */
export interface VerificationEvent {
  /** When the call was made. */
  readonly at: Instant;
  /** Monotonic time at which it began. */
  readonly startedAt: Milliseconds;
  /** The workspace in which the key was looked for. */
  readonly workspaceId: string;
  /** Whose verification it was; null when nobody has such a key. */
  readonly key: {
    readonly keyId: string;
    readonly apiId: string;
    readonly identity: { readonly id: string } | null;
  } | null;
  readonly code: string;
  readonly tags: readonly string[] | undefined;
  readonly creditsSpent: number;
}

/** A rate limit that was decided: one entry of a call. */
export interface RatelimitEvent {
  readonly at: Instant;
  /** Monotonic time at which the call began. */
  readonly startedAt: Milliseconds;
  readonly workspaceId: string;
  readonly namespaceId: string;
  readonly identifier: string;
  /** Whether this entry by itself passed. */
  readonly passed: boolean;
  /** What it took: 0 when any entry of the call was denied. */
  readonly cost: number;
}
