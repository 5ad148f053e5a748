import { Problem } from "./problems.ts";

export interface FairQueueLimits {
  /** Concurrent work of all workspaces. */
  runningMax: number;
  /** Concurrent work of one workspace. It is less, so that one workspace cannot use the whole resource. */
  runningPerWorkspaceMax: number;
  /** Waiting work of one workspace. */
  waitingPerWorkspaceMax: number;
}

export interface QueuedWork {
  /** Runs before other waiting work of the workspace. For revoking access, which a flood of calls must not delay. */
  isUrgent?: boolean;
  /** The next step of admitted work: it waits, but is not rejected. */
  isContinuation?: boolean;
}

interface Waiting {
  start(): void;
}

interface Line {
  running: number;
  readonly urgent: Waiting[];
  readonly usual: Waiting[];
}

/**
 * A queue for a shared resource, with one line per workspace, served round-robin. A workspace waits for at most one unit
 * of work of each other workspace, however long their lines are. Work beyond the limit of a line is rejected with 429.
 *
 * Waiting work begins when other work ends. Where none of it has to wait for anything, a whole line would run in one turn of
 * the event loop, so no more of it begins in a turn than may run at once.
 */
export class FairQueue {
  readonly #limits: FairQueueLimits;
  /** Workspaces with waiting or running work, in round-robin order. */
  readonly #lines = new Map<string, Line>();
  #running = 0;
  /** Work that has begun in this turn after it waited. */
  #begunInTurn = 0;
  /** Rejected work, for the metrics. */
  rejected = 0;

  constructor(limits: FairQueueLimits) {
    this.#limits = limits;
  }

  /** Waiting work of all workspaces. */
  get waiting(): number {
    let count = 0;
    for (const { urgent, usual } of this.#lines.values()) count += urgent.length + usual.length;
    return count;
  }

  /**
   * Runs the work as soon as the limits allow. `hasWaited`: data that was read before may be outdated.
   *
   * Rejects with the problem `workspace_busy` if the line of the workspace is full.
   */
  run<T>(workspaceId: string, work: (hasWaited: boolean) => Promise<T>, queued: QueuedWork = {}): Promise<T> {
    const line = this.#line(workspaceId);
    if (this.#mayStart(line) && line.urgent.length + line.usual.length === 0) {
      return this.#start(workspaceId, line, () => work(false));
    }
    const waiting = queued.isUrgent ? line.urgent : line.usual;
    if (waiting.length >= this.#limits.waitingPerWorkspaceMax && !queued.isContinuation) {
      this.rejected++;
      return Promise.reject(new Problem("workspace_busy", undefined, { headers: { "retry-after": "1" } }));
    }
    return new Promise((resolve, reject) => {
      waiting.push({
        start: () => void this.#start(workspaceId, line, () => work(true)).then(resolve, reject),
      });
    });
  }

  #line(workspaceId: string): Line {
    let line = this.#lines.get(workspaceId);
    if (line === undefined) {
      line = { running: 0, urgent: [], usual: [] };
      this.#lines.set(workspaceId, line);
    }
    return line;
  }

  #mayStart({ running }: Line): boolean {
    return !this.#isFull && running < this.#limits.runningPerWorkspaceMax;
  }

  get #isFull(): boolean {
    return Math.max(this.#running, this.#begunInTurn) >= this.#limits.runningMax;
  }

  async #start<T>(workspaceId: string, line: Line, work: () => Promise<T>): Promise<T> {
    this.#running++;
    line.running++;
    try {
      return await work();
    } finally {
      this.#running--;
      line.running--;
      if (line.running === 0 && line.urgent.length + line.usual.length === 0) this.#lines.delete(workspaceId);
      this.#next();
    }
  }

  /** Begins one piece of work that waits; false: none may. */
  #next(): boolean {
    for (const [workspaceId, line] of this.#lines) {
      if (this.#isFull) return false;
      if (!this.#mayStart(line)) continue;
      const waiting = line.urgent.shift() ?? line.usual.shift();
      if (waiting === undefined) continue;
      // Moves the workspace to the end of the round.
      this.#lines.delete(workspaceId);
      this.#lines.set(workspaceId, line);
      if (this.#begunInTurn++ === 0) setImmediate(() => this.#beginTurn());
      waiting.start();
      return true;
    }
    return false;
  }

  #beginTurn(): void {
    this.#begunInTurn = 0;
    while (this.#next());
  }
}
