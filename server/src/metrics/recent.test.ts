import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { LATENCY_BOUNDS_MS, quantile } from "./histogram.ts";
import { RecentRise } from "./recent.ts";

describe("RecentRise", () => {
  it("counts since so many intervals, and within each", () => {
    const values = [100, 7];
    const recent = new RecentRise(() => [...values], 3, 1_000);
    values[0]! += 5;
    assert.deepEqual(recent.rise(2), { since: 1_000, values: [5, 0] });
    for (const now of [2_000, 3_000, 4_000]) {
      recent.mark(now);
      values[0]! += 1;
      values[1]! += 10;
    }
    assert.deepEqual(recent.rise(2), { since: 2_000, values: [3, 30] });
    assert.deepEqual(recent.rise(1), { since: 3_000, values: [2, 20] });
    assert.deepEqual(recent.rises(), [
      { since: 2_000, values: [1, 10] },
      { since: 3_000, values: [1, 10] },
      { since: 4_000, values: [1, 10] },
    ]);
  });
});

describe("quantile", () => {
  const bounds = LATENCY_BOUNDS_MS;

  it("lies in the bucket of the value of that rank", () => {
    const value = fc.double({ min: 0.001, max: bounds.at(-1)!, noNaN: true });
    const share = fc.double({ min: 0.01, max: 1, noNaN: true });
    fc.assert(
      fc.property(fc.array(value, { minLength: 1 }), share, (values, part) => {
        const cumulated = bounds.map((bound) => values.filter((one) => one <= bound).length);
        const ranked = values.toSorted((a, b) => a - b)[Math.ceil(part * values.length) - 1]!;
        const bucket = bounds.findIndex((bound) => ranked <= bound);
        const answer = quantile([...cumulated, values.length], part)!;
        assert(answer <= bounds[bucket]! && answer >= (bounds[bucket - 1] ?? 0), `${answer} of ${ranked}`);
      }),
    );
  });

  it("is the highest bound for values above it, and undefined without values", () => {
    assert.equal(quantile([...bounds.map(() => 0), 3], 0.5), bounds.at(-1));
    assert.equal(quantile([...bounds.map(() => 0), 0], 0.5), undefined);
  });
});
