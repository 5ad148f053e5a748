/** The thread of `innocent-tenant.ts` that makes the calls. The attack runs on another thread. */
import { Agent, request } from "node:http";
import { parentPort, workerData } from "node:worker_threads";

/** The operation to call, and the rate. */
export interface CallerTask {
  address: string;
  operation: string;
  /** JSON texts, used in turn. */
  bodies: readonly string[];
  rootKey: string | null;
  callsPerSecond: number;
}

/** The results of the calls of one phase. */
export interface CallerReport {
  /** Of calls on connections that were kept open. */
  latenciesMs: number[];
  /** Of calls on new connections. */
  newLatenciesMs: number[];
  /** Answers by status; 0: no answer. */
  statuses: Record<number, number>;
  /**
   * The longest delay between the scheduled and the actual start of a call, which the machine causes, not the service.
   */
  latenessMaxMs: number;
}

/** Connections that are opened at the start and kept. */
const KEPT_CONNECTIONS = 32;
/** Calls in progress; further calls are skipped instead of being queued here. */
const UNDER_WAY_MAX = KEPT_CONNECTIONS;
/** Each call of this number is made on a new connection. */
const NEW_EVERY = 20;

const { address, operation, bodies, rootKey, callsPerSecond } = workerData as CallerTask;
const agent = new Agent({ keepAlive: true, maxSockets: KEPT_CONNECTIONS, maxFreeSockets: KEPT_CONNECTIONS });
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
  return { latenciesMs: [], newLatenciesMs: [], statuses: {}, latenessMaxMs: 0 };
}

function callOnTime(): void {
  const late = performance.now() - calledAt - intervalMs;
  calledAt += intervalMs + late;
  report.latenessMaxMs = Math.max(report.latenessMaxMs, late);
  if (underWay < UNDER_WAY_MAX) call(made % NEW_EVERY === 0);
}

function call(isNew: boolean): void {
  const current = report;
  underWay++;
  const startedAt = performance.now();
  const done = (status: number) => {
    underWay--;
    current.statuses[status] = (current.statuses[status] ?? 0) + 1;
    (isNew ? current.newLatenciesMs : current.latenciesMs).push(performance.now() - startedAt);
  };
  const body = bodies[made++ % bodies.length]!;
  request(`${address}/v2/${operation}`, { method: "POST", agent: isNew ? false : agent, headers }, (response) => {
    response.resume();
    response.once("end", () => done(response.statusCode!));
  })
    .once("error", () => done(0))
    .end(body);
}

for (let i = 0; i < KEPT_CONNECTIONS; i++) call(false);
const timer = setInterval(callOnTime, intervalMs);
parentPort!.on("message", (message: "report" | "stop") => {
  parentPort!.postMessage(report);
  report = emptyReport();
  if (message === "stop") {
    clearInterval(timer);
    agent.destroy();
    parentPort!.close();
  }
});
