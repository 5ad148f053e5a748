/**
 * An innocent tenant beside an attack, on a real service: what it notices of the attack, and what the attack costs the
 * service.
 *
 *     const server = await startMonitored({ directory: makeFolder(t) });
 *     const measured = await measureBeside(server, { operation: "keys.verifyKey", bodies: [{ key }] }, () => attack());
 *     report(t, "what the attack is", measured);
 *     assertUnharmed(measured);
 *
 * The calls of the innocent tenant come at a fixed rate from a thread of their own, first alone, then while the attack
 * runs. The event loop's stalls and the memory are measured inside the service (`loop-monitor.ts`).
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { setTimeout } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { eventually, type ServeOptions, type Server, start } from "../process.ts";
import type { CallerReport, CallerTask } from "./innocent-caller.ts";

const QUIET_MS = 1_500;

/**
 * The longest that the event loop may be kept, in CPU time of its thread. The promise is 50 ms on a machine of its own;
 * beside other processes that use the same caches, the same work takes up to twice the CPU time.
 */
export const STALL_MAX_MS = 100;
/** By how much an attack may slow an innocent tenant's 99th percentile. */
export const SLOWDOWN_MAX = 3;
/** Below this a slowdown says more about the machine than about the attack. */
const NOISE_MS = 40;
/** Wall time of the event loop's longest turn without an attack: above this, others have the cores and times say nothing. */
const BUSY_MS = 30;

/** The calls of one tenant during one phase. */
export interface Calls {
  count: number;
  p50Ms: number;
  p99Ms: number;
  /** Answers by status; 0: none came. */
  statuses: Readonly<Record<number, number>>;
  /** How late the calling thread began a call, at most: above `BUSY_MS` the machine kept it, and times say nothing. */
  latenessMaxMs: number;
}

/** What the service's event loop and memory did during one phase. */
export interface Loop {
  /** Longest turn of the event loop, in CPU time of its thread. */
  stallCpuMs: number;
  /** The same in wall time, with what other processes of the machine took. */
  stallMs: number;
  /** Bytes. */
  rssPeak: number;
}

export interface Measured<R> {
  quiet: Calls & Loop;
  attacked: Calls & Loop;
  /** What the attack returned. */
  result: R;
}

/** What the innocent tenant calls. */
export interface Innocent {
  operation: string;
  /** Taken in turn. */
  bodies: readonly object[];
  /** Null or omitted: none. */
  rootKey?: string | null;
  /** 200 when omitted. */
  callsPerSecond?: number;
}

/** Starts the service with the monitor in it. */
export function startMonitored(options: ServeOptions): Promise<Server> {
  const monitor = new URL("./loop-monitor.ts", import.meta.url).href;
  return start({ ...options, environment: { ...options.environment, NODE_OPTIONS: `--import=${monitor}` } });
}

/** What the event loop did since the last call. */
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

/** Calls alone, then beside the attack. The attack has to end by itself. */
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
    // Connections and compiled code come first.
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

/** Prints what was measured beside the test. */
export function report(
  t: { diagnostic(message: string): void },
  what: string,
  { quiet, attacked }: Pick<Measured<unknown>, "quiet" | "attacked">,
): void {
  const line = ({ count, p50Ms, p99Ms, latenessMaxMs, stallCpuMs, stallMs, rssPeak, statuses }: Calls & Loop) =>
    `p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms of ${count} calls ${JSON.stringify(statuses)}; ` +
    `${latenessMaxMs.toFixed(0)} ms late at most; longest turn of the loop ${stallCpuMs.toFixed(0)} ms CPU (${stallMs.toFixed(0)} ms wall); ` +
    `peak RSS ${(rssPeak / 1024 ** 2).toFixed(0)} MiB`;
  t.diagnostic(`without ${what}: ${line(quiet)}`);
  t.diagnostic(`beside ${what}: ${line(attacked)}`);
}

/**
 * No stall, no other answers, bounded memory. With `slowdownMax`, no call is much slower either: judged only where the
 * service and the caller each had a core. Without it, times are printed and not judged.
 *
 * @param rssGrowthMax bytes that the attack may take.
 * @param slowdownMax by how much the 99th percentile may grow.
 */
export function assertUnharmed(
  { quiet, attacked }: Pick<Measured<unknown>, "quiet" | "attacked">,
  {
    rssGrowthMax = 256 * 1024 ** 2,
    slowdownMax = Number.POSITIVE_INFINITY,
  }: { rssGrowthMax?: number; slowdownMax?: number } = {},
): void {
  assert(attacked.count > 0, "The innocent tenant made no call during the attack: it was over too soon.");
  assert.deepEqual(Object.keys(attacked.statuses), ["200"], "The innocent tenant got other answers than 200.");
  assert(
    attacked.stallCpuMs <= STALL_MAX_MS,
    `The event loop was kept for ${attacked.stallCpuMs.toFixed(0)} ms of CPU.`,
  );
  const slowdown = attacked.p99Ms / Math.max(NOISE_MS, quiet.p99Ms);
  const callerHadItsCore = Math.max(quiet.latenessMaxMs, attacked.latenessMaxMs) <= BUSY_MS;
  if (callerHadItsCore && quiet.stallMs <= BUSY_MS && attacked.stallMs <= BUSY_MS + 3 * attacked.stallCpuMs) {
    assert(slowdown <= slowdownMax, `The 99th percentile went from ${quiet.p99Ms} ms to ${attacked.p99Ms} ms.`);
  }
  const growth = attacked.rssPeak - quiet.rssPeak;
  assert(growth <= rssGrowthMax, `Memory grew by ${(growth / 1024 ** 2).toFixed(0)} MiB.`);
}

function summary({ latenciesMs, statuses, latenessMaxMs }: CallerReport): Calls {
  const sorted = latenciesMs.toSorted((a, b) => a - b);
  const at = (part: number) => sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? Number.NaN;
  return { count: sorted.length, p50Ms: at(0.5), p99Ms: at(0.99), statuses, latenessMaxMs };
}
