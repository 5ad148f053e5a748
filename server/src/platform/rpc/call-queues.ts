import { FairQueue } from "./fair-queue.ts";

// Reads and writes together use the 8 connections to PostgreSQL of their pool.
// Calls of end users count for their workspace: some hundreds load their keys and their usage in one second.
const READING = { runningMax: 3, runningPerWorkspaceMax: 2, waitingPerWorkspaceMax: 5_000 };
const WRITING = { runningMax: 5, runningPerWorkspaceMax: 3, waitingPerWorkspaceMax: 1_000 };
const READING_BODIES = { runningMax: 2, runningPerWorkspaceMax: 1, waitingPerWorkspaceMax: 20 };

// Metered calls that each need a transaction of their own. On PostgreSQL they have two connections, whose queue knows no turns.
const METERED = { runningMax: 2, runningPerWorkspaceMax: 2, waitingPerWorkspaceMax: 5_000 };

/** The queues in which calls wait for the database and for the validation of long bodies. */
export class CallQueues {
  readonly reads = new FairQueue(READING);
  readonly writes = new FairQueue(WRITING);
  readonly metered = new FairQueue(METERED);
  readonly longBodies = new FairQueue(READING_BODIES);
}
