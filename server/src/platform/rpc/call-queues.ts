import { FairQueue } from "./fair-queue.ts";

// Reads and writes together use the 8 connections to PostgreSQL of their pool.
// Calls of end users count for their workspace: some hundreds load their keys and their usage in one second.
const READING = { runningMax: 3, runningPerWorkspaceMax: 2, waitingPerWorkspaceMax: 5_000 };
const WRITING = { runningMax: 5, runningPerWorkspaceMax: 3, waitingPerWorkspaceMax: 1_000 };
const READING_BODIES = { runningMax: 2, runningPerWorkspaceMax: 1, waitingPerWorkspaceMax: 20 };

/** The queues in which calls wait for the database and for the validation of long bodies. */
export class CallQueues {
  readonly reads = new FairQueue(READING);
  readonly writes = new FairQueue(WRITING);
  readonly longBodies = new FairQueue(READING_BODIES);
}
