/**
 * Credits under faults and crashes, simulated from seeds: `SEED=17 npm test -- credits/simulation` replays one,
 * `SEEDS=5000` tries more.
 */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { isSumOfSome, LedgerSimulation, mutants, Template } from "./ledger-simulation.ts";

const STEPS = 300;
const seeds = process.env.SEED
  ? [Number(process.env.SEED)]
  : Array.from({ length: Number(process.env.SEEDS ?? 50) }, (_, i) => i + 1);

describe("credits in a simulation with faults", () => {
  let template: Template;
  before(async () => {
    template = await Template.make();
  });
  after(() => template.remove());

  it(`stay exact: acknowledged spends stay spent, others happened entirely or not at all, ${seeds.length} seeds`, async (t) => {
    const sum = { valid: 0, denied: 0, failed: 0, uncertain: 0, crashes: 0, refills: 0 };
    for (const seed of seeds) {
      try {
        const report = await new LedgerSimulation(template, seed).run(STEPS);
        for (const name of Object.keys(sum) as (keyof typeof sum)[]) sum[name] += report[name];
      } catch (cause) {
        throw new Error(`Seed ${seed} failed: replay it with SEED=${seed}`, { cause });
      }
    }
    t.diagnostic(JSON.stringify(sum));
    if (seeds.length < 50) return;
    // A simulation without events would prove nothing.
    for (const [what, count] of Object.entries(sum)) assert(count > 100, `only ${count} ${what}`);
  });

  for (const mutant of mutants) {
    it(`would detect that ${mutant}`, async () => {
      for (let seed = 1; seed <= 20; seed++) {
        const caught = await new LedgerSimulation(template, seed, mutant).run(STEPS).then(
          () => false,
          (error: Error) => error instanceof assert.AssertionError || Promise.reject(error),
        );
        if (caught) return;
      }
      assert.fail("None of 20 seeds detected it.");
    });
  }

  it("replays a seed step by step", async () => {
    const reports = [
      await new LedgerSimulation(template, 7).run(STEPS),
      await new LedgerSimulation(template, 7).run(STEPS),
    ];
    assert.deepEqual(reports[0], reports[1]);
  });
});

describe("isSumOfSome", () => {
  it("finds sums of some of the numbers", () => {
    for (const sum of [0, 2, 3, 5, 7, 9, 10, 12]) assert(isSumOfSome([2, 3, 7], sum));
    for (const sum of [-1, 1, 4, 8, 13]) assert(!isSumOfSome([2, 3, 7], sum));
  });
});
