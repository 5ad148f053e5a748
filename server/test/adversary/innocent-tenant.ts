/**
 * Measures an innocent tenant beside an attack on a real service: the latency of its calls, and the event loop and the
 * memory of the service.
 *
 *     const server = await startMonitored({ directory: makeFolder(t) });
 *     const measured = await measureBeside(server, { operation: "keys.verifyKey", bodies: [{ key }] }, () => attack());
 *     report(t, "what the attack is", measured);
 *     assertUnharmed(measured);
 *
 * The innocent tenant calls at a fixed rate from a thread of its own, first without the attack, then beside it. Its
 * latency is that of calls on connections that it keeps. New connections are only reported: Node accepts one in each
 * iteration of the event loop, so they wait behind those of the attack. The stalls of the event loop and the memory are measured inside the service (`loop-monitor.ts`).
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { setTimeout } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { busyness } from "../busyness.ts";
import { eventually, type ServeOptions, type Server, start } from "../process.ts";
import type { CallerReport, CallerTask } from "./innocent-caller.ts";

const QUIET_MS = 1_500;

/**
 * The longest permitted turn of the event loop, in CPU time of its thread. The promise is 50 ms on a machine of its
 * own; beside other processes that use the same caches, the same work takes up to twice the CPU time.
 */
export const STALL_MAX_MS = 100;
/** The largest permitted growth of an innocent tenant's latency, as a factor. */
const SLOWDOWN_MAX = 3;
/** Calls of which the 99th percentile is judged. Of fewer, it is one or two calls: the median is judged instead. */
const P99_CALLS_MIN = 300;
/** Latencies below this are noise of the machine. */
const NOISE_MS = 40;
/**
 * Longest turn of the event loop in wall time without an attack. Above this, the machine is too busy for latencies to
 * mean anything.
 */
const BUSY_MS = 30;

/** The calls of one tenant during one phase. */
export interface Calls {
  count: number;
  p50Ms: number;
  p99Ms: number;
  /** The longest time of a call on a new connection. */
  newMaxMs: number;
  /** Answers by status; 0: no answer. */
  statuses: Readonly<Record<number, number>>;
  /** The longest delay of a call's start. Above `BUSY_MS` the machine is too busy for latencies to mean anything. */
  latenessMaxMs: number;
}

/** The service's event loop and memory during one phase. */
export interface Loop {
  /** Longest turn of the event loop, in CPU time of its thread. */
  stallCpuMs: number;
  /** The same in wall time, which includes other processes. */
  stallMs: number;
  /** Bytes. */
  rssPeak: number;
}

export interface Measured<R> {
  quiet: Calls & Loop;
  attacked: Calls & Loop;
  /** The result of the attack. */
  result: R;
}

/** The calls of the innocent tenant. */
export interface Innocent {
  operation: string;
  /** Used in turn. */
  bodies: readonly object[];
  /** Null or omitted: none. */
  rootKey?: string | null;
  /** Default: 200. */
  callsPerSecond?: number;
}

/** Starts the service with the monitor loaded. */
export function startMonitored(options: ServeOptions): Promise<Server> {
  const monitor = new URL("./loop-monitor.ts", import.meta.url).href;
  return start({ ...options, environment: { ...options.environment, NODE_OPTIONS: `--import=${monitor}` } });
}

/** The measurements of the event loop since the last call. */
export async function loopOf(server: Server): Promise<Loop> {
  const before = server.stderr.length;
  server.signal("SIGUSR2");
  let line: string | undefined;
  await eventually("the monitor's line", () => {
    line = server.stderr
      .slice(before)
      .split("\n")
      .slice(0, -1)
      .find((text) => text.startsWith('{"loop"'));
    return line !== undefined;
  });
  return JSON.parse(line!).loop;
}

/** Measures without the attack, then beside it. The attack must end by itself. */
export async function measureBeside<R>(
  server: Server,
  { operation, bodies, rootKey = null, callsPerSecond = 200 }: Innocent,
  attack: () => Promise<R>,
): Promise<Measured<R>> {
  const task: CallerTask = {
    address: server.address,
    operation,
    bodies: bodies.map((body) => JSON.stringify(body)),
    rootKey,
    callsPerSecond,
  };
  const worker = new Worker(new URL("./innocent-caller.ts", import.meta.url), { workerData: task });
  const reported = async (message: "report" | "stop") => {
    worker.postMessage(message);
    const [report] = (await once(worker, "message")) as [CallerReport];
    return summary(report);
  };
  try {
    await once(worker, "online");
    // Opens the connections and compiles the code before the measurement.
    await setTimeout(QUIET_MS / 3);
    await reported("report");
    await loopOf(server);
    await setTimeout(QUIET_MS);
    const quiet = { ...(await reported("report")), ...(await loopOf(server)) };
    const result = await attack();
    const attacked = { ...(await reported("stop")), ...(await loopOf(server)) };
    return { quiet, attacked, result };
  } finally {
    await worker.terminate();
  }
}

/** Prints the measurements. */
export function report(
  t: { diagnostic(message: string): void },
  what: string,
  { quiet, attacked }: Pick<Measured<unknown>, "quiet" | "attacked">,
): void {
  const line = ({
    count,
    p50Ms,
    p99Ms,
    newMaxMs,
    latenessMaxMs,
    stallCpuMs,
    stallMs,
    rssPeak,
    statuses,
  }: Calls & Loop) =>
    `p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms of ${count} calls ${JSON.stringify(statuses)}, on new connections at most ${newMaxMs.toFixed(0)} ms; ` +
    `${latenessMaxMs.toFixed(0)} ms late at most; longest turn of the loop ${stallCpuMs.toFixed(0)} ms CPU (${stallMs.toFixed(0)} ms wall); ` +
    `peak RSS ${(rssPeak / 1024 ** 2).toFixed(0)} MiB`;
  t.diagnostic(`without ${what}: ${line(quiet)}`);
  t.diagnostic(`beside ${what}: ${line(attacked)}`);
}

/**
 * Asserts that there was no stall, no status other than 200, no more memory than `rssGrowthMax`, and, if the service and
 * the caller each had a core, no longer 99th percentile (of few calls: median) than `SLOWDOWN_MAX` times the one without the
 * attack, and longer by as much as the machine is busier than its cores.
 *
 * @param rssGrowthMax in bytes.
 * @param busy how much longer work takes than on a quiet machine.
 */
export function assertUnharmed(
  { quiet, attacked }: Pick<Measured<unknown>, "quiet" | "attacked">,
  { rssGrowthMax = 256 * 1024 ** 2, busy = busyness() }: { rssGrowthMax?: number; busy?: number } = {},
): void {
  assert(attacked.count > 0, "The innocent tenant made no call during the attack, which was too short.");
  assert.deepEqual(Object.keys(attacked.statuses), ["200"], "The innocent tenant got a status other than 200.");
  assert(
    attacked.stallCpuMs <= STALL_MAX_MS,
    `A turn of the event loop took ${attacked.stallCpuMs.toFixed(0)} ms of CPU.`,
  );
  const [judged, name] =
    attacked.count >= P99_CALLS_MIN ? (["p99Ms", "99th percentile"] as const) : (["p50Ms", "median"] as const);
  const slowdown = attacked[judged] / Math.max(NOISE_MS, quiet[judged]);
  const callerHadItsCore = Math.max(quiet.latenessMaxMs, attacked.latenessMaxMs) <= BUSY_MS;
  if (callerHadItsCore && quiet.stallMs <= BUSY_MS && attacked.stallMs <= BUSY_MS + 3 * attacked.stallCpuMs) {
    assert(slowdown <= SLOWDOWN_MAX * busy, `The ${name} went from ${quiet[judged]} ms to ${attacked[judged]} ms.`);
  }
  const growth = attacked.rssPeak - quiet.rssPeak;
  assert(growth <= rssGrowthMax, `Memory grew by ${(growth / 1024 ** 2).toFixed(0)} MiB.`);
}

function summary({ latenciesMs, newLatenciesMs, statuses, latenessMaxMs }: CallerReport): Calls {
  const sorted = latenciesMs.toSorted((a, b) => a - b);
  const at = (part: number) => sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? Number.NaN;
  return {
    count: sorted.length,
    p50Ms: at(0.5),
    p99Ms: at(0.99),
    newMaxMs: Math.max(0, ...newLatenciesMs),
    statuses,
    latenessMaxMs,
  };
}
