import { once } from "node:events";
import { Worker } from "node:worker_threads";

/** What the thread is told at its start. */
export interface MomentsData {
  perSecond: number;
  seconds: number;
}

/**
 * Calls back at random moments (Poisson) with the moment that was due, by `sharedNow`, until the seconds are over or the
 * signal comes. A thread of its own sleeps until each of them: the timers of an event loop only know whole milliseconds,
 * and a loop that watches the clock instead would keep a core from everybody else.
 */
export async function atRandomMoments(data: MomentsData, signal: AbortSignal, onDue: (at: number) => void) {
  if (signal.aborted) return;
  const thread = new Worker(new URL("moments-thread.ts", import.meta.url), { workerData: data });
  const exited = once(thread, "exit");
  const end = () => void thread.terminate();
  signal.addEventListener("abort", end);
  thread.on("message", (at: number) => {
    if (!signal.aborted) onDue(at);
  });
  await exited;
  signal.removeEventListener("abort", end);
}

/** Milliseconds of a clock that all threads share. */
export function sharedNow(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
