import { performance } from "node:perf_hooks";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { Clock, Milliseconds } from "../../../../engine/src/clock/clock.ts";

/** How often a thread looks whether it is at rest. */
const INTERVAL: Milliseconds = 2_000;
/** How much of that time a thread at rest is active at most: with its periodic jobs, and few calls. */
const ACTIVE_MAX = 0.1;
/** A thread that has had calls for so long uses the memory for them. */
const TRIES = 30;

/**
 * Collects the garbage of the calling thread and gives the memory back to the system. Takes about 40 ms of CPU for a heap
 * of 10 MB. V8 does the same at rest, but not as part of Node 24: it waits for a low allocation rate of C++ objects, which
 * it never measures there.
 */
export function collectGarbage(): void {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as (options: { type: "major"; flavor: "last-resort" }) => void;
  // The regular flavor keeps freed pages for the next objects.
  collect({ type: "major", flavor: "last-resort" });
}

export interface StartGarbageOptions {
  clock: Pick<Clock, "schedule">;
  /** The share of the time since the last call in which the thread was active. */
  activity?: () => number;
  collect?: () => void;
}

/**
 * Collects the garbage that the start of the calling thread has left, a quarter to a half of its heap, once the thread is at
 * rest: calls would wait for it. Gives up after a minute with calls.
 */
export function collectStartGarbage({
  clock,
  activity = measureActivity(),
  collect = collectGarbage,
}: StartGarbageOptions): void {
  let tries = 0;
  const look = () => {
    if (activity() <= ACTIVE_MAX) collect();
    else if (++tries < TRIES) clock.schedule(INTERVAL, look);
  };
  clock.schedule(INTERVAL, look);
}

function measureActivity(): () => number {
  let before = performance.eventLoopUtilization();
  return () => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, before);
    before = now;
    return utilization;
  };
}
