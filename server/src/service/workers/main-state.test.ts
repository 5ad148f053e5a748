import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Worker } from "node:worker_threads";
import { SimulatedClock } from "../../../../engine/src/clock/simulated.ts";
import { CountingClock } from "../../../../engine/src/limits/counting-clock.ts";
import { FollowingClock, SharedMainState } from "./main-state.ts";
import { SharedNumbers } from "./shared-numbers.ts";

const noon = 1_800_000_000_000;

describe("SharedNumbers", () => {
  it("gives the numbers of one write while another thread writes", async () => {
    const shared = SharedNumbers.of(6);
    const module = new URL("./shared-numbers.ts", import.meta.url).href;
    const code = `import(${JSON.stringify(module)}).then(({ SharedNumbers }) => {
      const { buffer, end } = require("node:worker_threads").workerData;
      const numbers = new SharedNumbers(buffer);
      for (let n = 1; Atomics.load(end, 0) === 0; n++) numbers.write(Array(6).fill(n));
    });`;
    const end = new Int32Array(new SharedArrayBuffer(4));
    const thread = new Worker(code, { eval: true, workerData: { buffer: shared.buffer, end } });
    const exited = new Promise<void>((resolve) => thread.once("exit", () => resolve()));
    let [reads, changes, last] = [0, 0, 0];
    // However seldom this thread gets a core beside the other one.
    while (changes < 1_000) {
      const numbers = [...shared.read()];
      assert.equal(new Set(numbers).size, 1, numbers.join(" "));
      assert(numbers[0]! >= last);
      if (numbers[0] !== last) changes++;
      last = numbers[0]!;
      reads++;
      // The thread cannot start or fail while this one never returns to its event loop.
      if (reads % 1_000 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    Atomics.store(end, 0, 1);
    await exited;
  });
});

describe("FollowingClock", () => {
  const open = () => {
    const clock = new SimulatedClock(noon);
    const main = new CountingClock(clock, () => {});
    const state = new SharedMainState();
    const publish = () =>
      state.write({
        readAt: { monotonic: 0, wall: noon },
        databaseReachable: true,
        countUntil: 0,
        counting: { time: main.now(), monotonic: clock.monotonic() },
      });
    publish();
    return { clock, main, publish, following: new FollowingClock(clock, state) };
  };

  it("is the wall clock while that runs evenly, between two publications too", () => {
    const { clock, following } = open();
    clock.advance(90);
    assert.equal(following.now(), noon + 90);
  });

  it("ignores a step as long as the main thread does, although this thread sees it later", () => {
    const { clock, main, publish, following } = open();
    clock.step(3_600_000);
    for (let second = 1; second <= 70; second++) {
      clock.advance(1_000);
      publish();
      // This thread has no call until the main thread has followed the step.
      if (second === 30 || second > 61) assert.equal(following.now(), main.now(), `after ${second} s`);
    }
    assert.equal(main.now(), noon + 3_600_000 + 70_000);
  });
});
