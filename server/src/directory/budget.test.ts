import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { SimulatedClock } from "../clock/simulated.ts";
import { LookupBudget, LookupsExhausted } from "./budget.ts";

const nothing = async () => null;
const something = async () => "a record";

/** How many of so many look-ups, all at once, were allowed. */
async function allowed(budget: LookupBudget, count: number, lookup: () => Promise<string | null> = nothing) {
  const results = await Promise.allSettled(Array.from({ length: count }, () => budget.spend(lookup)));
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
    for (let i = 0; i < 100; i++) assert.equal(await budget.spend(something), "a record");
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
      budget.spend(() => Promise.reject(new Error("away"))),
      /away/,
    );
    assert.equal(await allowed(budget, 1), 0);
  });
});
