import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { SimulatedClock } from "../clock/simulated.ts";
import { LookupBudget, LookupsExhausted } from "./budget.ts";

const findNothing = async (): Promise<string | null> => null;
const findRecord = async () => "a record";

/** The number of look-ups that were allowed, of `count` concurrent ones. */
async function allowed(budget: LookupBudget, count: number, lookup = findNothing, source = "ws_1") {
  const results = await Promise.allSettled(Array.from({ length: count }, () => budget.spend(source, lookup)));
  for (const result of results) if (result.status === "rejected") assert(result.reason instanceof LookupsExhausted);
  return results.filter(({ status }) => status === "fulfilled").length;
}

describe("LookupBudget", () => {
  it("allows its rate of unsuccessful look-ups and counts the rejected ones", async () => {
    const budget = new LookupBudget(new SimulatedClock(0), 10);
    assert.equal(await allowed(budget, 25), 10);
    assert.equal(budget.rejected, 15);
  });

  it("refills over time, up to the tokens of one second", async () => {
    const clock = new SimulatedClock(0);
    const budget = new LookupBudget(clock, 10);
    await allowed(budget, 10);
    clock.advance(99);
    assert.equal(await allowed(budget, 1), 0);
    clock.advance(1);
    assert.equal(await allowed(budget, 2), 1);
    clock.advance(3_600_000);
    assert.equal(await allowed(budget, 25), 10);
  });

  it("charges nothing for successful look-ups", async () => {
    const budget = new LookupBudget(new SimulatedClock(0), 10);
    for (let i = 0; i < 100; i++) assert.equal(await budget.spend("ws_1", findRecord), "a record");
    assert.equal(await allowed(budget, 25), 10);
  });

  it("bounds concurrent look-ups, successful or not", async () => {
    const budget = new LookupBudget(new SimulatedClock(0), 10);
    assert.equal(await allowed(budget, 25, findRecord), 10);
    assert.equal(await allowed(budget, 25), 10);
  });

  it("does not refund a failed look-up", async () => {
    const budget = new LookupBudget(new SimulatedClock(0), 1);
    await assert.rejects(
      budget.spend("ws_1", () => Promise.reject(new Error("away"))),
      /away/,
    );
    assert.equal(await allowed(budget, 1), 0);
  });

  it("keeps the share of a source with few look-ups while another floods", async () => {
    const clock = new SimulatedClock(0);
    const budget = new LookupBudget(clock, 100);
    assert.equal(await allowed(budget, 1_000, findNothing, "flood"), 100);
    assert.equal(await allowed(budget, 50, findNothing, "other"), 50);
    for (let second = 0; second < 5; second++) {
      let flood = 0;
      let other = 0;
      for (let tenth = 0; tenth < 10; tenth++) {
        clock.advance(100);
        flood += await allowed(budget, 100, findNothing, "flood");
        other += await allowed(budget, 3, findNothing, "other");
      }
      assert.equal(other, 30);
      assert(flood <= 51, `the flood made ${flood} look-ups in second ${second}`);
    }
  });

  it("bounds the total of any number of sources", async () => {
    const clock = new SimulatedClock(0);
    const budget = new LookupBudget(clock, 100);
    const round = async () => {
      let all = 0;
      for (let i = 0; i < 1_000; i++) all += await allowed(budget, 2, findNothing, `source ${i}`);
      return all;
    };
    // Each new source may make one look-up at once.
    assert((await round()) <= 1_500);
    for (let second = 0; second < 20; second++) {
      clock.advance(1_000);
      const all = await round();
      assert(all <= 1_000, `${all} in second ${second}`);
    }
    let later = 0;
    for (let second = 0; second < 20; second++) {
      clock.advance(1_000);
      later += await round();
    }
    assert(later <= 20 * 110, `${later} in 20 seconds`);
  });

  it("tracks a bounded number of sources", async () => {
    const budget = new LookupBudget(new SimulatedClock(0), 100_000);
    let all = 0;
    for (let i = 0; i < 20_000; i++) all += await allowed(budget, 1, findNothing, `source ${i}`);
    assert(all > 16_384);
    assert.equal(await allowed(budget, 1_000, findNothing, "one more"), 0);
  });
});
