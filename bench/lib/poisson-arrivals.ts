import { once } from "node:events";
import { Worker } from "node:worker_threads";

/** Options of the thread. */
export interface ArrivalOptions {
  perSecond: number;
  seconds: number;
}

/**
 * Calls `onDue` at the times of a Poisson process, with the time that was due by `sharedNow`, until the seconds are
 * over or the signal aborts. A thread sleeps until each arrival: timers of an event loop have a resolution of whole
 * milliseconds, and a busy loop would take a core.
 */
export async function atPoissonArrivals(options: ArrivalOptions, signal: AbortSignal, onDue: (at: number) => void) {
  if (signal.aborted) return;
  const thread = new Worker(new URL("poisson-arrivals-thread.ts", import.meta.url), { workerData: options });
  const exited = once(thread, "exit");
  const end = () => void thread.terminate();
  signal.addEventListener("abort", end);
  thread.on("message", (arrivals: readonly number[]) => {
    for (const at of arrivals) if (!signal.aborted) onDue(at);
  });
  await exited;
  signal.removeEventListener("abort", end);
}

/** Milliseconds of a clock that is the same in all threads and processes. */
export function sharedNow(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
