import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { getHeapStatistics } from "node:v8";
import { keepProcessAlive } from "../../../../engine/src/clock/keep-alive.ts";
import { SimulatedClock } from "../../../../engine/src/clock/simulated.ts";
import { systemClock } from "../../../../engine/src/clock/system.ts";
import { collectGarbage, collectStartGarbage } from "./collect-garbage.ts";

const MIB = 1024 * 1024;

describe("a collection of garbage", () => {
  it("gives memory back, of young and of old objects", () => {
    collectGarbage();
    const resident = () => getHeapStatistics().total_physical_size / MIB;
    const before = resident();
    let objects: object[] = [];
    while (objects.length < 500_000) objects.push({ number: objects.length });
    const full = resident();
    assert(full > before + 20, `${before} MiB, then ${full}`);
    objects = [];
    collectGarbage();
    assert(resident() < before + 5, `${before} MiB, then ${full}, then ${resident()}`);
  });
});

describe("the garbage of a start", () => {
  /** At which seconds it is collected by a thread that is active like this in each two of them, and at rest afterwards. */
  function collectedAt(activities: number[]): number[] {
    const clock = new SimulatedClock(0);
    const seconds: number[] = [];
    collectStartGarbage({
      clock,
      activity: () => activities.shift() ?? 0,
      collect: () => void seconds.push(clock.monotonic() / 1_000),
    });
    clock.advance(600_000);
    return seconds;
  }

  it("is collected once, as soon as the thread is at rest", () => {
    assert.deepEqual(collectedAt([]), [2]);
    assert.deepEqual(collectedAt([0.09]), [2]);
    assert.deepEqual(collectedAt([1, 0.5, 0.11, 0.05, 1]), [8]);
  });

  it("stays after a minute with calls", () => {
    assert.deepEqual(collectedAt(Array(29).fill(0.5)), [60]);
    assert.deepEqual(collectedAt(Array(30).fill(0.5)), []);
  });

  it("is collected in a thread that only waits", async () => {
    const collected = Promise.withResolvers<void>();
    const clock = { schedule: (_: number, task: () => void) => systemClock.schedule(100, task) };
    collectStartGarbage({ clock, collect: collected.resolve });
    const release = keepProcessAlive();
    await collected.promise;
    release();
  });
});
