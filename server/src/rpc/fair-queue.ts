import { Problem } from "./problems.ts";

export interface FairQueueBounds {
  /** Work under way at the same time. */
  runningMax: number;
  /** The same, of one workspace: less, so that no workspace alone occupies everything. */
  runningPerWorkspaceMax: number;
  /** Work of one workspace that waits. */
  waitingPerWorkspaceMax: number;
}

export interface QueuedWork {
  /** Before what else of the workspace waits: for taking access away, which a flood of its calls must not delay. */
  isUrgent?: boolean;
  /** The next step of something that was admitted before: it waits for its turn, and is not rejected. */
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
 * Work that waits for a shared resource, in one line per workspace. The lines have their turns one after the other, so
 * that a workspace waits for at most one piece of work of each other one, however much they queue. A line is bounded:
 * what is beyond gets 429 and is not done.
 */
export class FairQueue {
  readonly #bounds: FairQueueBounds;
  /** Workspaces with work that waits or runs. Those with waiting work have their turn in the order of the map. */
  readonly #lines = new Map<string, Line>();
  #running = 0;
  /** Work that was rejected, for the metrics. */
  rejected = 0;

  constructor(bounds: FairQueueBounds) {
    this.#bounds = bounds;
  }

  /** Work that waits. */
  get waiting(): number {
    let count = 0;
    for (const { urgent, usual } of this.#lines.values()) count += urgent.length + usual.length;
    return count;
  }

  /**
   * Does the work when its turn comes; at once when nothing is in the way. `hasWaited` tells it whether anything may
   * have changed since it was asked for.
   *
   * Rejects with the problem `workspace_busy` when the line of the workspace is full.
   */
  run<T>(workspaceId: string, work: (hasWaited: boolean) => Promise<T>, queued: QueuedWork = {}): Promise<T> {
    const line = this.#line(workspaceId);
    if (this.#mayStart(line) && line.urgent.length + line.usual.length === 0) {
      return this.#start(workspaceId, line, () => work(false));
    }
    const waiting = queued.isUrgent ? line.urgent : line.usual;
    if (waiting.length >= this.#bounds.waitingPerWorkspaceMax && !queued.isContinuation) {
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
    return this.#running < this.#bounds.runningMax && running < this.#bounds.runningPerWorkspaceMax;
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

  #next(): void {
    for (const [workspaceId, line] of this.#lines) {
      if (this.#running >= this.#bounds.runningMax) return;
      if (!this.#mayStart(line)) continue;
      const waiting = line.urgent.shift() ?? line.usual.shift();
      if (waiting === undefined) continue;
      // Its next turn comes after those of all others.
      this.#lines.delete(workspaceId);
      this.#lines.set(workspaceId, line);
      waiting.start();
      // Places are freed one at a time, so one start fills the place.
      return;
    }
  }
}
