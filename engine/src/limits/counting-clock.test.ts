import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { SimulatedClock } from "../clock/simulated.ts";
import { CountingClock } from "./counting-clock.ts";
import { MemoryCounters } from "./memory-counters.ts";
import { MemoryTable, reserveTable, SEGMENT_BYTES } from "./memory-table.ts";

const noon = 1_800_000_000_000;
const day = 86_400_000;
const hour = 3_600_000;
const minute = 60_000;

function open() {
  const clock = new SimulatedClock(noon);
  const steps: number[] = [];
  const counting = new CountingClock(clock, (difference) => steps.push(difference));
  const table = new MemoryTable(reserveTable(SEGMENT_BYTES, false), 1, [17, -4]);
  const counters = new MemoryCounters(table, counting);
  const spend = (duration: number, limit = 10) => {
    const verdict = counters.charge([{ counter: "a", limit, duration, cost: 1 }]);
    assert.equal(verdict.outcome, "decided");
    return verdict.outcome === "decided" && verdict.allowed;
  };
  return { clock, counting, steps, spend };
}

describe("CountingClock", () => {
  it("equals the wall clock while that runs steadily", () => {
    const { clock, counting, steps } = open();
    for (const pass of [0, 1, 500, 999, 1000, minute, hour, 0, 30 * day]) {
      clock.advance(pass);
      assert.equal(counting.now(), clock.now());
    }
    // NTP slews the clock.
    for (let second = 0; second < 5000; second++) {
      clock.advance(1000);
      clock.step(second % 2 === 0 ? 1 : 0);
      assert.equal(counting.now(), clock.now());
    }
    assert.deepEqual(steps, []);
  });

  it("never goes back for a small step, and stops for at most that step", () => {
    const { clock, counting } = open();
    clock.advance(5000);
    const before = counting.now();
    clock.step(-700);
    assert.equal(counting.now(), before);
    clock.advance(699);
    assert.equal(counting.now(), before);
    clock.advance(2);
    assert.equal(counting.now(), clock.now());
  });

  it("ignores a wall clock that is a day ahead for one second", () => {
    for (const duration of [1000, 10_000, minute, hour, day, 30 * day]) {
      const { clock, counting, steps, spend } = open();
      for (let i = 0; i < 10; i++) assert.equal(spend(duration), true);
      clock.step(day);
      assert.equal(spend(duration), false);
      clock.advance(500);
      assert.equal(spend(duration), false);
      clock.advance(500);
      clock.step(-day);
      clock.advance(2 * duration);
      assert.equal(spend(duration), true);
      assert.equal(counting.now(), clock.now());
      assert.deepEqual(steps, []);
    }
  });

  it("follows a lasting step after a minute, and reports it", () => {
    for (const step of [day, hour, -hour, -day]) {
      const { clock, counting, steps } = open();
      clock.step(step);
      for (let passed = 0; passed < minute; passed += 1000) {
        assert.equal(counting.now(), noon + passed);
        clock.advance(1000);
      }
      assert.equal(counting.now(), noon + minute + step);
      assert.equal(counting.now(), clock.now());
      assert.deepEqual(steps, [step]);
    }
  });

  it("blocks no counter for longer than a window after a step back by an hour, and admits no more than usual", () => {
    const limit = 10;
    for (const duration of [1000, minute, hour, day]) {
      for (const phase of [0, 0.5, 0.999]) {
        const { clock, spend } = open();
        clock.advance(Math.floor(duration * phase));
        const admitted: number[] = [];
        const tick = Math.max(50, duration / 100);
        const go = (length: number) => {
          for (let passed = 0; passed < length; passed += tick) {
            while (spend(duration, limit)) admitted.push(clock.monotonic());
            clock.advance(tick);
          }
        };
        go(duration);
        clock.step(-hour);
        go(Math.max(3 * duration, 5 * minute));
        // Never more than twice the limit in any trailing duration, as without steps.
        let first = 0;
        for (const [i, at] of admitted.entries()) {
          while (admitted[first]! <= at - duration) first++;
          assert.ok(i - first + 1 <= 2 * limit, `${duration} ${phase}: ${i - first + 1}`);
        }
        const gaps = admitted.map((at, i) => at - (admitted[i - 1] ?? at));
        const longest = Math.max(...gaps, clock.monotonic() - admitted.at(-1)!);
        assert.ok(longest <= 2 * duration + tick, `${duration} ${phase}: ${longest}`);
      }
    }
  });
});
