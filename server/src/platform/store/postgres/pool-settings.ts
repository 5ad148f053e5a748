import type { Milliseconds } from "../../../../../engine/src/clock/clock.ts";
import type { PoolName } from "../store.ts";

/** A small pool of connections for one kind of work, which other kinds cannot delay. */
export interface PoolSettings {
  /** The most connections, opened on demand. */
  connectionsMax: number;
  /** The server cancels a statement that runs for longer. */
  statementTimeout: Milliseconds;
  /** The server cancels a statement that waits longer for a lock; 0: only the statement timeout applies. */
  lockTimeout: Milliseconds;
  /** How long work waits for a connection, new or in use. */
  connectTimeout: Milliseconds;
  /** How long an unused connection stays open; 0: always. */
  idleTimeout: Milliseconds;
}

const IDLE: Milliseconds = 30_000;

/** `resolve` determines the outcome of a COMMIT whose reply was lost. */
export type InternalPoolName = PoolName | "resolve";

/** One node opens up to 24 of these connections, 3 for analytics and 1 for the claim. */
export const poolSettings: Readonly<Record<InternalPoolName, PoolSettings>> = {
  feed: { connectionsMax: 1, statementTimeout: 1_500, lockTimeout: 1_000, connectTimeout: 2_000, idleTimeout: 0 },
  lookup: { connectionsMax: 3, statementTimeout: 2_000, lockTimeout: 1_000, connectTimeout: 2_000, idleTimeout: IDLE },
  ledger: { connectionsMax: 6, statementTimeout: 3_500, lockTimeout: 3_000, connectTimeout: 2_000, idleTimeout: IDLE },
  metered: { connectionsMax: 2, statementTimeout: 3_500, lockTimeout: 1_000, connectTimeout: 2_000, idleTimeout: IDLE },
  control: { connectionsMax: 8, statementTimeout: 3_000, lockTimeout: 1_000, connectTimeout: 2_000, idleTimeout: IDLE },
  maintenance: {
    connectionsMax: 1,
    statementTimeout: 600_000,
    lockTimeout: 0,
    connectTimeout: 5_000,
    idleTimeout: IDLE,
  },
  // Full-table work while serving.
  layout: { connectionsMax: 1, statementTimeout: 86_400_000, lockTimeout: 0, connectTimeout: 5_000, idleTimeout: IDLE },
  resolve: { connectionsMax: 2, statementTimeout: 2_500, lockTimeout: 2_000, connectTimeout: 2_000, idleTimeout: IDLE },
};

/**
 * For how long transactions of these pools begin again after they have waited too long for a lock. They wait in short turns, so that
 * those of a frozen node leave the queue before the lock that the node holds is released. In one long wait each of them would get
 * the lock and hold it, one after the other, longer than others wait.
 */
export const LOCK_TURNS: Partial<Record<InternalPoolName, Milliseconds>> = { metered: 3_000, control: 3_000 };

/** What replaces the timeouts of its pool for work that may take long: see `Procedures.mayTakeLong`. */
export const LONG_WORK = { statementTimeout: 30_000, lockTimeout: 5_000 } as const;

/**
 * The server ends a transaction whose client sends nothing for this long, so that a frozen or vanished node releases its
 * locks.
 */
export const IDLE_IN_TRANSACTION_TIMEOUT: Milliseconds = 2_000;
