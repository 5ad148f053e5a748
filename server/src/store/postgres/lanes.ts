import type { Milliseconds } from "../../clock/clock.ts";
import type { LaneName } from "../store.ts";

/** A small pool of connections for one kind of work, so that no other kind delays it. */
export interface LaneSettings {
  /** Connections at most. They are opened on demand. */
  connectionsMax: number;
  /** The server cancels a statement that runs for longer. */
  statementTimeout: Milliseconds;
  /** The server cancels a statement that waits longer for a lock; 0: no limit of its own. */
  lockTimeout: Milliseconds;
  /** How long work waits for a connection, new or in use. */
  connectTimeout: Milliseconds;
  /** How long an unused connection stays open; 0: for ever. */
  idleTimeout: Milliseconds;
}

const IDLE: Milliseconds = 30_000;

/** `resolve` finds out what became of a COMMIT whose answer was lost. */
export type InternalLaneName = LaneName | "resolve";

/** Connections of one node: 23 at most, plus those of the analytics (3) and the claim (1). */
export const laneSettings: Readonly<Record<InternalLaneName, LaneSettings>> = {
  feed: { connectionsMax: 1, statementTimeout: 1_500, lockTimeout: 1_000, connectTimeout: 2_000, idleTimeout: 0 },
  lookup: { connectionsMax: 3, statementTimeout: 2_000, lockTimeout: 1_000, connectTimeout: 2_000, idleTimeout: IDLE },
  ledger: { connectionsMax: 6, statementTimeout: 3_500, lockTimeout: 3_000, connectTimeout: 2_000, idleTimeout: IDLE },
  metered: { connectionsMax: 2, statementTimeout: 3_500, lockTimeout: 3_000, connectTimeout: 2_000, idleTimeout: IDLE },
  control: {
    connectionsMax: 8,
    statementTimeout: 30_000,
    lockTimeout: 5_000,
    connectTimeout: 5_000,
    idleTimeout: IDLE,
  },
  maintenance: {
    connectionsMax: 1,
    statementTimeout: 600_000,
    lockTimeout: 0,
    connectTimeout: 5_000,
    idleTimeout: IDLE,
  },
  resolve: { connectionsMax: 2, statementTimeout: 2_500, lockTimeout: 2_000, connectTimeout: 2_000, idleTimeout: IDLE },
};

/**
 * The server ends a transaction whose client sends nothing for this long: a node that is frozen or gone keeps no lock
 * for longer.
 */
export const IDLE_IN_TRANSACTION_TIMEOUT: Milliseconds = 2_000;
