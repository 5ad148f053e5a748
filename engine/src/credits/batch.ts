import type { Instant, Milliseconds } from "../clock/clock.ts";
import type { IdempotencyRecord } from "../rules/idempotency.ts";

/** The parameters of a batch. */
export interface LedgerBatch {
  /** The pools whose balances to lock. */
  readonly poolIds: readonly string[];
  /** How long to wait for a lock; undefined: pools that another transaction has locked are skipped. */
  readonly lockTimeout: Milliseconds | undefined;
  readonly now: Instant;
}

/** The first question: which calls does the batch contain? Its balances are locked, except contended ones. */
export interface LockedBatch {
  readonly step: "choose";
  /** Locked balances by pool; pools that are absent are unlimited. */
  readonly balances: readonly { poolId: string; remaining: number }[];
  readonly contended: readonly string[];
}

/** The second question, only if calls have an Idempotency-Key: what do the calls spend? */
export interface EarlierCalls {
  readonly step: "settle";
  /** Records of earlier calls with the scopes of the batch. */
  readonly recorded: ReadonlyMap<string, { fingerprint: string; outcome: string }>;
  /** Scopes that another transaction has claimed and not yet recorded. */
  readonly claimedElsewhere: readonly string[];
  /** Whether the records of the batch fit into the table. */
  readonly hasCapacity: boolean;
}

/** The answer to the first question if calls have an Idempotency-Key: their scopes. */
export interface BatchScopes {
  readonly scopes: readonly string[];
}

/** The last answer: positive amounts to subtract, and outcomes to record. */
export interface SettledBatch {
  readonly spends: readonly { poolId: string; amount: number }[];
  readonly records: readonly IdempotencyRecord[];
}

/** Answers the questions of a batch during its transaction. */
export type BatchAnswers = (question: LockedBatch | EarlierCalls) => BatchScopes | Promise<SettledBatch>;

/** The code of the error of a batch whose wait for a lock exceeded its timeout: the SQLSTATE of PostgreSQL. */
export const LOCK_NOT_AVAILABLE = "55P03";
