/**
 * Preloaded into a service (`NODE_OPTIONS=--import …`): faults of worker threads. A worker ends inside a charge, while it
 * holds the lock of the counter, when the count becomes a multiple of `ENDING_COUNT` or `FILLING_COUNT`. `SIGUSR2` ends one
 * worker at any point.
 */
import { isMainThread, type Worker } from "node:worker_threads";
import { MemoryTable } from "../../../engine/src/limits/memory-table.ts";

/** The count at which a worker calls `process.exit`. */
export const ENDING_COUNT = 1_009;
/** The count at which a worker fills its heap. */
export const FILLING_COUNT = 2_003;

/** The variable that preloads this file. */
export const threadFaults = { NODE_OPTIONS: `--import ${import.meta.url}` };

if (isMainThread) {
  const workers = new Set<Worker>();
  process.on("worker", (worker) => {
    if (!worker.threadName?.startsWith("worker-")) return;
    workers.add(worker);
    worker.once("exit", () => workers.delete(worker));
  });
  process.on("SIGUSR2", () => {
    for (const worker of workers) {
      void worker.terminate();
      break;
    }
  });
} else {
  const { write } = MemoryTable.prototype;
  MemoryTable.prototype.write = function (slot, end, current, previous) {
    if (current > 0 && current % ENDING_COUNT === 0) process.exit(7);
    if (current > 0 && current % FILLING_COUNT === 0) fillHeap();
    write.call(this, slot, end, current, previous);
  };
}

function fillHeap(): void {
  const kept: number[][] = [];
  for (;;) kept.push(new Array<number>(100_000).fill(kept.length));
}
