import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { LackingCalls } from "./lacking-calls.ts";

describe("calls that lack credits", () => {
  it("are taken in the order of arrival, each when the credits cover it", () => {
    const costs = fc.array(fc.nat(20), { minLength: 1, maxLength: 40 });
    const sums = fc.array(fc.nat(25), { maxLength: 60 });
    fc.assert(
      fc.property(costs, sums, (costs, sums) => {
        const calls = new LackingCalls<{ cost: number; id: number }>();
        let left = costs.map((cost, id) => ({ cost, id }));
        for (const call of left) calls.push(call);
        for (const credits of sums) {
          const expected = left.find(({ cost }) => cost <= credits);
          assert.deepEqual(calls.takeFirst(credits), expected);
          left = left.filter((call) => call !== expected);
          assert.deepEqual(calls.rest(), left);
        }
      }),
    );
  });
});
