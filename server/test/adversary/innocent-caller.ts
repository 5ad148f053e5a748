/** The thread of `innocent-tenant.ts` that makes the calls, apart from the thread that makes the attack. */
import { Agent, request } from "node:http";
import { parentPort, workerData } from "node:worker_threads";

/** What to call, and how often. */
export interface CallerTask {
  address: string;
  operation: string;
  /** JSON texts, taken in turn. */
  bodies: readonly string[];
  rootKey: string | null;
  callsPerSecond: number;
}

/** What came of the calls of one phase. */
export interface CallerReport {
  latenciesMs: number[];
  /** Answers by status; 0: none came. */
  statuses: Record<number, number>;
  /** How late this thread began a call, at most: what the machine took from it, not the service. */
  latenessMaxMs: number;
}

/** Calls that may be under way; further ones are left out rather than queued in here. */
const UNDER_WAY_MAX = 64;

const { address, operation, bodies, rootKey, callsPerSecond } = workerData as CallerTask;
const agent = new Agent({ keepAlive: true });
const headers = {
  "content-type": "application/json",
  ...(rootKey !== null && { authorization: `Bearer ${rootKey}` }),
};
const intervalMs = 1_000 / callsPerSecond;
let report = emptyReport();
let calledAt = performance.now();
let underWay = 0;
let made = 0;

function emptyReport(): CallerReport {
  return { latenciesMs: [], statuses: {}, latenessMaxMs: 0 };
}

function call(): void {
  const late = performance.now() - calledAt - intervalMs;
  calledAt += intervalMs + late;
  report.latenessMaxMs = Math.max(report.latenessMaxMs, late);
  if (underWay >= UNDER_WAY_MAX) return;
  const current = report;
  underWay++;
  const startedAt = performance.now();
  const done = (status: number) => {
    underWay--;
    current.statuses[status] = (current.statuses[status] ?? 0) + 1;
    current.latenciesMs.push(performance.now() - startedAt);
  };
  const body = bodies[made++ % bodies.length]!;
  request(`${address}/v2/${operation}`, { method: "POST", agent, headers }, (response) => {
    response.resume();
    response.once("end", () => done(response.statusCode!));
  })
    .once("error", () => done(0))
    .end(body);
}

const timer = setInterval(call, intervalMs);
parentPort!.on("message", (message: "report" | "stop") => {
  parentPort!.postMessage(report);
  report = emptyReport();
  if (message === "stop") {
    clearInterval(timer);
    agent.destroy();
    parentPort!.close();
  }
});
