import type { Milliseconds } from "../clock/clock.ts";

/** How long an outcome is stored. */
export const IDEMPOTENCY_RETENTION: Milliseconds = 24 * 3_600_000;

/** Identifies an idempotent call. Contains only hashes of the Idempotency-Key. */
export interface IdempotencyScope {
  /** Hash of workspace, operation, caller and Idempotency-Key. */
  scope: string;
  /** Hash of the body. The same key with another body is an error. */
  fingerprint: string;
  /** The workspace has its maximum number of records: the call is answered only if it is a replay. */
  isOverQuota?: boolean | undefined;
}

export interface IdempotencyRecord extends IdempotencyScope {
  workspaceId: string;
  /** The result of the call. If it contains a secret, it is sealed under a key that only the caller can derive. */
  outcome: string;
  /** The key or root key that the outcome contains. The outcome is erased together with it. */
  keyId: string | null;
}
