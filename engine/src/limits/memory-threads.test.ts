import assert from "node:assert/strict";
import { once } from "node:events";
import { describe, it } from "node:test";
import { Worker } from "node:worker_threads";
import { SimulatedClock } from "../clock/simulated.ts";
import { MemoryCounters } from "./memory-counters.ts";
import { LOCK_TIMEOUT, MemoryTable, reserveTable, SEGMENT_BYTES } from "./memory-table.ts";
import { type ThreadInput, type ThreadTask, unitOf } from "./memory-threads-worker.ts";

const noon = 1_800_000_000_000;

function openShared(segments: number) {
  const buffer = reserveTable(segments * SEGMENT_BYTES, true) as SharedArrayBuffer;
  const table = new MemoryTable(buffer, 1, [17, -4]);
  const counters = new MemoryCounters(table, new SimulatedClock(noon));
  const startThread = (owner: number, task: ThreadTask, report: Int32Array): Worker => {
    const input: ThreadInput = { buffer, report, owner, now: noon, task };
    return new Worker(new URL("./memory-threads-worker.ts", import.meta.url), { workerData: input });
  };
  return { table, counters, startThread };
}

const newReport = (words: number) => new Int32Array(new SharedArrayBuffer(4 * words));

async function untilReady(report: Int32Array): Promise<void> {
  await Atomics.waitAsync(report, 0, 0).value;
}

describe("MemoryCounters on several threads", () => {
  it("admits exactly 100 of 1,000 concurrent calls of four threads", async () => {
    const rounds = 200;
    const { counters, startThread } = openShared(64);
    const report = newReport(2 + rounds);
    const task: ThreadTask = { kind: "rush", threads: 4, rounds, calls: 250 };
    const threads = [2, 3, 4, 5].map((owner) => startThread(owner, task, report));
    await Promise.all(threads.map((thread) => once(thread, "exit")));
    // No call was undecided, so there was no deadlock between threads with two locks.
    assert.deepEqual([...report.subarray(1)], [...new Array(rounds).fill(100), 0]);
    // Rejected calls have consumed nothing from their other counter.
    let shared = 0;
    for (let i = 0; i < 10; i++) {
      const verdict = counters.peek([{ ...unitOf(`shared ${i}`), limit: 1e12 }]);
      if (verdict.outcome === "decided") shared += 1e12 - verdict.limits[0]!.remaining;
    }
    assert.equal(shared, 100 * rounds);
  });

  it("gives up on the lock of a dead thread, and continues after releaseLocksOf", async () => {
    const { table, counters, startThread } = openShared(64);
    const report = newReport(1);
    const thread = startThread(2, { kind: "lock", counter: "a" }, report);
    await untilReady(report);
    await thread.terminate();
    assert.equal(counters.charge([unitOf("a")]).outcome, "blocked");
    // A call that needs several locks releases those that it has acquired.
    const others = Array.from({ length: 40 }, (_, i) => unitOf(`other ${i}`));
    const startedAt = performance.now();
    assert.equal(counters.charge([...others, unitOf("a")]).outcome, "blocked");
    const waited = performance.now() - startedAt;
    assert(waited < LOCK_TIMEOUT / 2, `a later call waited for ${waited} ms`);
    table.releaseLocksOf(2);
    const verdict = counters.charge([...others, unitOf("a")]);
    assert.ok(verdict.outcome === "decided" && verdict.limits.every((limit) => limit.remaining === 99));
  });

  it("waits for a lock whose holder a busy machine stops for a while", async () => {
    const { counters, startThread } = openShared(64);
    const report = newReport(1);
    const thread = startThread(2, { kind: "lock", counter: "a", heldForMs: 300 }, report);
    const ended = once(thread, "exit");
    await untilReady(report);
    assert.equal(counters.charge([unitOf("a")]).outcome, "decided");
    await ended;
  });

  it("wakes waiting threads when the lock of a dead thread is released", async () => {
    const { table, startThread } = openShared(64);
    const held = newReport(1);
    const holder = startThread(2, { kind: "lock", counter: "round 0" }, held);
    await untilReady(held);
    const report = newReport(3);
    const rush = startThread(3, { kind: "rush", threads: 1, rounds: 1, calls: 250 }, report);
    const finished = once(rush, "exit");
    await untilReady(report);
    await holder.terminate();
    table.releaseLocksOf(2);
    await finished;
    assert.equal(report[1], 100);
    // None gave up.
    assert.equal(report[2], 0);
  });

  it("loses no acknowledged charge when a thread is terminated while it fills the table", async () => {
    const { table, counters, startThread } = openShared(512);
    const acknowledged: number[] = [];
    for (let owner = 2; owner < 10; owner++) {
      const report = newReport(2);
      const thread = startThread(owner, { kind: "fill" }, report);
      await untilReady(report);
      // After some ten thousand counters the thread is usually splitting 64 segments.
      while (Atomics.load(report, 1) < 30_000 + 7_000 * owner) await Atomics.waitAsync(report, 1, -1).value;
      await thread.terminate();
      table.releaseLocksOf(owner);
      acknowledged[owner] = Atomics.load(report, 1);
    }
    for (let owner = 2; owner < 10; owner++) {
      for (let i = 0; i < acknowledged[owner]!; i++) {
        const verdict = counters.peek([unitOf(`${owner} ${i}`)]);
        assert.ok(verdict.outcome === "decided" && verdict.limits[0]!.remaining === 99, `${owner} ${i}`);
      }
    }
  });
});
