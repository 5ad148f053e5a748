import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { type Instant, instantAt } from "../../../../engine/src/clock/clock.ts";
import { nextAttempt, RETRY_WINDOW } from "./retries.ts";

const START = 1_768_478_400_000;
const DEADLINE = START + RETRY_WINDOW;

describe("nextAttempt", () => {
  it("waits longer after each attempt, up to 4 hours", () => {
    const delays = [1, 2, 3, 4, 8, 9, 100].map(
      (attempts) => nextAttempt(attempts, instantAt(START), DEADLINE, 0.5)! - START,
    );
    assert.deepEqual(delays, [5_000, 15_000, 45_000, 135_000, 10_935_000, 14_400_000, 14_400_000]);
  });

  it("makes the last attempt at the deadline, for any chance", () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ min: 0, max: 0.999, noNaN: true }), { minLength: 60, maxLength: 60 }),
        (chances) => {
          let at: number | null = START;
          const times: number[] = [];
          for (let attempts = 1; at !== null; attempts++) {
            times.push(at);
            assert.ok(attempts < 60);
            at = nextAttempt(attempts, at as Instant, DEADLINE, chances[attempts - 1]!);
          }
          assert.equal(times.at(-1), DEADLINE);
          assert.ok(times.length > 18 && times.every((time, i) => i === 0 || time > times[i - 1]!));
        },
      ),
    );
  });

  it("stays within a fifth of its delay", () => {
    assert.equal(nextAttempt(1, instantAt(START), DEADLINE, 0), START + 4_000);
    assert.equal(nextAttempt(1, instantAt(START), DEADLINE, 0.999999), START + 6_000);
  });
});
