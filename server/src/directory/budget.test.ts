import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { SimulatedClock } from "../clock/simulated.ts";
import { LookupBudget, LookupsExhausted } from "./budget.ts";

const nothing = async (): Promise<string | null> => null;
const something = async () => "a record";

/** How many of so many look-ups, all at once, were allowed. */
async function allowed(budget: LookupBudget, count: number, lookup = nothing, source = "ws_1") {
  const results = await Promise.allSettled(Array.from({ length: count }, () => budget.spend(source, lookup)));
  for (const result of results) if (result.status === "rejected") assert(result.reason instanceof LookupsExhausted);
  return results.filter(({ status }) => status === "fulfilled").length;
}

describe("LookupBudget", () => {
  it("lets as many through that find nothing as it was made for, and counts the rest", async () => {
    const budget = new LookupBudget(new SimulatedClock(0), 10);
    assert.equal(await allowed(budget, 25), 10);
    assert.equal(budget.refused, 15);
  });

  it("fills itself as time passes, and never beyond one second's worth", async () => {
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

  it("asks nothing for what is found, one after another", async () => {
    const budget = new LookupBudget(new SimulatedClock(0), 10);
    for (let i = 0; i < 100; i++) assert.equal(await budget.spend("ws_1", something), "a record");
    assert.equal(await allowed(budget, 25), 10);
  });

  it("bounds what is under way, whatever it will find", async () => {
    const budget = new LookupBudget(new SimulatedClock(0), 10);
    assert.equal(await allowed(budget, 25, something), 10);
    assert.equal(await allowed(budget, 25), 10);
  });

  it("does not give back what a look-up that failed has cost", async () => {
    const budget = new LookupBudget(new SimulatedClock(0), 1);
    await assert.rejects(
      budget.spend("ws_1", () => Promise.reject(new Error("away"))),
      /away/,
    );
    assert.equal(await allowed(budget, 1), 0);
  });

  it("keeps the share of a source that makes a few look-ups from one that makes many", async () => {
    const clock = new SimulatedClock(0);
    const budget = new LookupBudget(clock, 100);
    assert.equal(await allowed(budget, 1_000, nothing, "flood"), 100);
    assert.equal(await allowed(budget, 50, nothing, "innocent"), 50);
    for (let second = 0; second < 5; second++) {
      let flood = 0;
      let innocent = 0;
      for (let tenth = 0; tenth < 10; tenth++) {
        clock.advance(100);
        flood += await allowed(budget, 100, nothing, "flood");
        innocent += await allowed(budget, 3, nothing, "innocent");
      }
      assert.equal(innocent, 30);
      assert(flood <= 51, `the flood made ${flood} look-ups in second ${second}`);
    }
  });

  it("bounds the look-ups of any number of sources together", async () => {
    const clock = new SimulatedClock(0);
    const budget = new LookupBudget(clock, 100);
    const round = async () => {
      let all = 0;
      for (let i = 0; i < 1_000; i++) all += await allowed(budget, 2, nothing, `source ${i}`);
      return all;
    };
    // Each new one may make one at once.
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

  it("remembers a bounded number of sources", async () => {
    const budget = new LookupBudget(new SimulatedClock(0), 100_000);
    let all = 0;
    for (let i = 0; i < 20_000; i++) all += await allowed(budget, 1, nothing, `source ${i}`);
    assert(all > 16_384);
    assert.equal(await allowed(budget, 1_000, nothing, "one more"), 0);
  });
});
