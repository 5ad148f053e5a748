import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { SimulatedClock } from "../../../../../engine/src/clock/simulated.ts";
import { SyncMark, ThreadWriteHealth } from "./write-health.ts";

function open() {
  const clock = new SimulatedClock(0);
  const mark = new SyncMark();
  const health = new ThreadWriteHealth(clock, mark);
  /** Looks twice a second, as the service does. */
  const pass = (ms: number) => {
    for (let left = ms; left > 0; left -= 500) {
      clock.advance(500);
      health.observe();
    }
  };
  return { clock, mark, health, pass };
}

describe("the health of writes", () => {
  it("names what SQLite's code says, also an extended one", () => {
    for (const [errcode, trouble] of [
      [13, "full"],
      [8, "read-only"],
      [10 | (12 << 8), "failing"],
      [14, "failing"],
      [5, undefined],
      [19, undefined],
      [undefined, undefined],
    ] as const) {
      const { health } = open();
      health.refuse(errcode);
      assert.deepEqual([health.trouble, health.refused], [trouble, trouble === undefined ? 0 : 1], `${errcode}`);
    }
  });

  it("is in trouble until a write succeeds, and for 30 seconds after the last refusal", () => {
    const { clock, health } = open();
    health.refuse(13);
    clock.advance(3_600_000);
    assert.equal(health.trouble, "full");
    health.recover();
    assert.equal(health.trouble, undefined);
    health.refuse(13);
    health.recover();
    clock.advance(29_999);
    assert.equal(health.trouble, "full");
    clock.advance(1);
    assert.equal(health.trouble, undefined);
  });

  it("is slow while a sync takes a second, although the thread sends nothing, and for 30 seconds after it", () => {
    const { mark, health, pass } = open();
    mark.during(() => pass(1_000));
    assert.deepEqual([health.trouble, health.slowSyncs], [undefined, 0]);
    mark.during(() => {
      pass(1_500);
      assert.deepEqual([health.trouble, health.slowSyncs], ["slow", 1]);
      pass(60_000);
      assert.deepEqual([health.trouble, health.slowSyncs], ["slow", 1]);
    });
    pass(29_500);
    assert.equal(health.trouble, "slow");
    pass(500);
    assert.equal(health.trouble, undefined);
  });

  it("is not slow because of many short syncs, each of which is under way at a look", () => {
    const { clock, mark, health } = open();
    for (let i = 0; i < 20; i++) {
      mark.during(() => health.observe());
      clock.advance(500);
    }
    assert.deepEqual([health.trouble, health.slowSyncs], [undefined, 0]);
  });
});
