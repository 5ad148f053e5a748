/**
 * Credits under faults and deaths, from one seed each: `SEED=17 npm test -- credits/simulation` replays one, `SEEDS=5000`
 * tries more.
 */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { isSumOfSome, mutants, Template, World } from "./world.ts";

const STEPS = 300;
const seeds = process.env.SEED
  ? [Number(process.env.SEED)]
  : Array.from({ length: Number(process.env.SEEDS ?? 50) }, (_, i) => i + 1);

describe("credits in a world of faults", () => {
  let template: Template;
  before(async () => {
    template = await Template.make();
  });
  after(() => template.remove());

  it(`keep their books: what was acknowledged stays spent, what was not happened entirely or not at all, ${seeds.length} seeds`, async (t) => {
    const sum = { valid: 0, denied: 0, failed: 0, doubtful: 0, deaths: 0, refills: 0 };
    for (const seed of seeds) {
      try {
        const report = await new World(template, seed).run(STEPS);
        for (const name of Object.keys(sum) as (keyof typeof sum)[]) sum[name] += report[name];
      } catch (cause) {
        throw new Error(`Seed ${seed} failed: replay it with SEED=${seed}`, { cause });
      }
    }
    t.diagnostic(JSON.stringify(sum));
    if (seeds.length < 50) return;
    // A world in which nothing happens proves nothing.
    for (const [what, count] of Object.entries(sum)) assert(count > 100, `only ${count} ${what}`);
  });

  for (const mutant of mutants) {
    it(`would show that ${mutant}`, async () => {
      for (let seed = 1; seed <= 20; seed++) {
        const caught = await new World(template, seed, mutant).run(STEPS).then(
          () => false,
          (error: Error) => error instanceof assert.AssertionError || Promise.reject(error),
        );
        if (caught) return;
      }
      assert.fail("No seed of 20 has caught it.");
    });
  }

  it("replays a seed step by step", async () => {
    const reports = [await new World(template, 7).run(STEPS), await new World(template, 7).run(STEPS)];
    assert.deepEqual(reports[0], reports[1]);
  });
});

describe("isSumOfSome", () => {
  it("finds sums of some of the numbers", () => {
    for (const sum of [0, 2, 3, 5, 7, 9, 10, 12]) assert(isSumOfSome([2, 3, 7], sum));
    for (const sum of [-1, 1, 4, 8, 13]) assert(!isSumOfSome([2, 3, 7], sum));
  });
});
