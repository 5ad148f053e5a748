import { workerData } from "node:worker_threads";
import { SimulatedClock } from "../clock/simulated.ts";
import { Fingerprint } from "../crypto/fingerprint.ts";
import { MemoryCounters } from "./memory-counters.ts";
import { MemoryTable } from "./memory-table.ts";

/** The task of a thread of `memory-threads.test.ts`. */
export type ThreadTask =
  /** Waits until all are ready, then charges one counter of limit 100 `calls` times in each round. Reports admissions by round, then undecided. */
  | { readonly kind: "rush"; readonly threads: number; readonly rounds: number; readonly calls: number }
  /** Acquires the lock of a counter, and releases it after a time; omitted: never. */
  | { readonly kind: "lock"; readonly counter: string; readonly heldForMs?: number }
  /** Charges new counters until it is terminated. Reports the number of acknowledged charges. */
  | { readonly kind: "fill" };

export interface ThreadInput {
  readonly buffer: SharedArrayBuffer;
  /** Word 0: the number of ready threads; from word 1: the report of the task. */
  readonly report: Int32Array;
  readonly owner: number;
  readonly now: number;
  readonly task: ThreadTask;
}

/** The charge of one unit that threads and the test itself make. */
export function unitOf(counter: string) {
  return { counter, limit: 100, duration: 60_000, cost: 1 };
}

if (workerData !== null) {
  const { buffer, report, owner, now, task } = workerData as ThreadInput;
  // A busy machine can stop the holder of a lock for a while. A deadlock lasts.
  const table = new MemoryTable(buffer, owner, [0, 0], task.kind === "rush" ? 10_000 : undefined);
  const counters = new MemoryCounters(table, new SimulatedClock(now));
  if (task.kind === "rush") {
    for (let round = 0; round < task.rounds; round++) {
      const ready = Atomics.add(report, 0, 1) + 1;
      if (ready === task.threads * (round + 1)) Atomics.notify(report, 0);
      // All threads start a round together, so that they compete for the locks.
      for (;;) {
        const seen = Atomics.load(report, 0);
        if (seen >= task.threads * (round + 1)) break;
        Atomics.wait(report, 0, seen, 1);
      }
      for (let call = 0; call < task.calls; call++) {
        // The round's counter, and one of ten that all rounds share, so that calls hold two locks at a time.
        const charges = [unitOf(`round ${round}`), { ...unitOf(`shared ${call % 10}`), limit: 1e12 }];
        const verdict = counters.charge(owner % 2 === 0 ? charges : charges.toReversed());
        if (verdict.outcome !== "decided") Atomics.add(report, 1 + task.rounds, 1);
        else if (verdict.allowed) Atomics.add(report, 1 + round, 1);
      }
    }
  } else if (task.kind === "lock") {
    const fingerprint = new Fingerprint(table.key);
    fingerprint.of(task.counter, unitOf(task.counter).duration);
    const stripe = table.stripeOf(fingerprint.high);
    table.lock(stripe);
    Atomics.store(report, 0, 1);
    Atomics.notify(report, 0);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, task.heldForMs);
    table.unlock(stripe);
  } else {
    Atomics.store(report, 0, 1);
    Atomics.notify(report, 0);
    for (let i = 0; ; i++) {
      const verdict = counters.charge([unitOf(`${owner} ${i}`)]);
      if (verdict.outcome !== "decided") break;
      Atomics.store(report, 1, i + 1);
    }
  }
}
