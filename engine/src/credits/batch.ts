import type { Instant, Milliseconds } from "../clock/clock.ts";
import type { IdempotencyRecord } from "../rules/idempotency.ts";
import type { HoldState, OnExpiry, Uncovered } from "./hold.ts";

/** The parameters of a batch. */
export interface LedgerBatch {
  /** The balances to lock; those that another transaction has locked are skipped. With `lockTimeout` it is one. */
  readonly balanceIds: readonly string[];
  /**
   * How long to wait for the lock of the balance. When it is granted, the batch asks for the others, which it does not wait for:
   * a transaction that waits has no lock, and one that has a lock does not wait. Undefined: it waits for none.
   */
  readonly lockTimeout: Milliseconds | undefined;
  /**
   * How long to wait for its turn, which one batch of all nodes has at a time, in the order of requests. When it has it, it asks
   * for the other balances before it waits for the first one. Undefined: it takes no turn.
   */
  readonly turnTimeout: Milliseconds | undefined;
  readonly now: Instant;
}

/** The question of a batch that has its turn, or has waited for a balance and locked it: which others does it need? */
export interface GrantedBalance {
  readonly step: "join";
  /** Whether another batch had the turn, or waited for it. */
  readonly hasWaited: boolean;
}

/** The answer: further balances to lock. */
export interface JoinedBalances {
  readonly balanceIds: readonly string[];
}

/** A balance in a transaction that has locked it. */
export interface BalanceState {
  readonly id: string;
  readonly remaining: number;
  /** Whether it counts and never denies. Absent: no. */
  readonly isWatched?: boolean;
  /** When it is refilled. */
  readonly refillAt?: Instant | null;
  /** The credits of its open holds. Absent: 0. */
  readonly held?: number;
  /** No open hold ends earlier. Absent or null: it has none. */
  readonly nextExpiryAt?: Instant | null;
  /** Increases with each refill. Absent: 0. */
  readonly period?: number;
  /** Up to which balance it takes what a hold of an ended period gives back. Absent: it takes nothing. */
  readonly keepsUpTo?: number;
}

/** A balance of a hold. */
export interface HeldBalance {
  readonly id: string;
  /** That of the balance when the credits were held. */
  readonly period: number;
  /** Whether it has slots: the hold has one of them, whatever it costs. Absent: it has credits. */
  readonly slot?: true;
}

/** A hold as it is stored. */
export interface StoredHold {
  readonly id: string;
  readonly workspaceId: string;
  /** What it took from each of its balances. */
  readonly cost: number;
  readonly balances: readonly HeldBalance[];
  readonly onExpiry: OnExpiry;
  readonly state: HoldState;
  readonly charged: number;
  readonly lacks: readonly Uncovered[];
  readonly settlement: string | null;
  readonly createdAt: Instant;
  readonly expiresAt: Instant;
}

/**
 * A `StoredHold` with JSON of its lists. Rows of holds are values without names: a batch has hundreds, and the names would be
 * most of what is copied to the thread of the database and back.
 */
export type StoredHoldRow = readonly [
  id: string,
  workspaceId: string,
  cost: number,
  balances: string,
  onExpiry: OnExpiry,
  state: HoldState,
  charged: number,
  lacks: string | null,
  settlement: string | null,
  createdAt: number,
  expiresAt: number,
];

/** The first question of other batches: which calls does the batch contain? Its balances are locked, except contended ones. */
export interface LockedBatch {
  readonly step: "choose";
  /** Locked balances; those that are absent here and not contended are unlimited. */
  readonly balances: readonly BalanceState[];
  readonly contended: readonly string[];
  /** Absent: the batch reads the holds that it changes, and the time of holds. */
  readonly holds?: CurrentHolds | undefined;
}

/** What a batch knows of all holds, where no other process changes them. */
export interface CurrentHolds {
  /** The time by their clock. */
  readonly at: Instant;
  /** Another one than after the last batch if anything else may have changed a hold since. */
  readonly version: string;
}

/** The next question, only if the batch has needs: what do the calls spend? */
export interface EarlierCalls {
  readonly step: "settle";
  /** Records of earlier calls with the scopes of the batch. */
  readonly recorded: ReadonlyMap<string, { fingerprint: string; outcome: string }>;
  /** Claims that another transaction has. */
  readonly claimedElsewhere: readonly string[];
  /** Whether the records of the batch fit into the table. */
  readonly hasCapacity: boolean;
  /** Undefined: the batch neither makes nor changes holds. */
  readonly holds?: EarlierHolds | undefined;
}

export interface EarlierHolds {
  /** The time by the clock of the database. */
  readonly at: Instant;
  /** The holds that the batch asked for. */
  readonly stored: readonly StoredHoldRow[];
}

/** The answer to `choose` if calls have an Idempotency-Key, or make or change holds. */
export interface BatchNeeds {
  readonly scopes: readonly string[];
  /** What no lock of a balance protects from other transactions: the scopes, and the holds of which no balance is locked. */
  readonly claims: readonly string[];
  /** The ids of the holds that it changes and does not know. Undefined: it neither makes nor changes holds. */
  readonly holdIds: readonly string[] | undefined;
}

/** The last answer: positive amounts to subtract, and outcomes to record. */
export interface SettledBatch {
  readonly spends: readonly { balanceId: string; amount: number }[];
  readonly records: readonly IdempotencyRecord[];
  /** Undefined: no hold was made or changed. */
  readonly holds?: HoldWrites | undefined;
  /** Balances that do not cover calls of the batch, and of which holds may have expired. Their expired holds are the result. */
  readonly due?: readonly string[] | undefined;
}

/** What the holds of a batch write. */
export interface HoldWrites {
  readonly balances: readonly BalanceChange[];
  readonly opened: readonly OpenedHoldRow[];
  readonly extended: readonly ExtendedHoldRow[];
  readonly closed: readonly ClosedHoldRow[];
  readonly at: Instant;
}

/** A new hold, with JSON of its balances and of the receipt of its limits. */
export type OpenedHoldRow = readonly [
  id: string,
  workspaceId: string,
  keyId: string,
  apiId: string,
  cost: number,
  balances: string,
  onExpiry: OnExpiry,
  limits: string | null,
  subject: string | null,
  createdAt: Instant,
  expiresAt: Instant,
];

/** An open hold with another expiry. */
export type ExtendedHoldRow = readonly [id: string, expiresAt: Instant];

/** A hold that was closed, with JSON of what its balances did not have. `former`: its state before the batch. */
export type ClosedHoldRow = readonly [
  id: string,
  former: HoldState,
  state: HoldState,
  charged: number,
  uncovered: number,
  lacks: string | null,
  settlement: string | null,
];

/** A balance after a batch that made or changed holds of it. */
export interface BalanceChange {
  readonly balanceId: string;
  readonly remaining: number;
  readonly held: number;
  /** Null: it has no open hold. */
  readonly nextExpiryAt: Instant | null;
  /** How much more was spent; negative: less. */
  readonly spent: number;
  /** How much was given back to ended periods. */
  readonly lapsed: number;
}

/** What a batch leaves to its ledger after the commit. */
export interface CommittedBatch {
  /** The expired holds of balances that are due. */
  readonly due: readonly ExpiredHold[];
  /** The version of the holds, with what the batch wrote, where no other process changes them. */
  readonly holdsVersion?: string | undefined;
}

/** A new hold. */
export interface OpenedHold extends StoredHold {
  readonly keyId: string;
  readonly apiId: string;
  readonly subject: string | null;
  /** JSON of the receipt of its limits; null: there is none. */
  readonly limits: string | null;
}

/** A hold whose time has passed. */
export interface ExpiredHold {
  readonly id: string;
  readonly workspaceId: string;
  readonly balances: readonly string[];
}

export type BatchQuestion = GrantedBalance | LockedBatch | EarlierCalls;
export type BatchAnswer = JoinedBalances | BatchNeeds | SettledBatch;

/** Answers the questions of a batch during its transaction. */
export type BatchAnswers = (question: BatchQuestion) => BatchAnswer | Promise<BatchAnswer>;

/** The code of the error of a batch whose wait for its turn or a lock exceeded its timeout: the SQLSTATE of PostgreSQL. */
export const LOCK_NOT_AVAILABLE = "55P03";
