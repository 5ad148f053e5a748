import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { SimulatedClock } from "../clock/simulated.ts";
import type { Counters, CountersUnavailable } from "./counters.ts";
import { Limiter, LimiterUnavailable } from "./limiter.ts";

const noon = 1_800_000_000_000;
const undecided = (outcome: CountersUnavailable["outcome"]): Counters => ({
  charge: () => ({ outcome }),
  peek: () => ({ outcome }),
});

describe("Limiter", () => {
  it("allows undecided calls under the policy open, in the current window of the clock", () => {
    const limiter = new Limiter(undecided("outage"), "open", new SimulatedClock(noon + 12_345));
    assert.deepEqual(limiter.charge([{ counter: "a", limit: 10, duration: 60_000, cost: 3 }]), {
      outcome: "decided",
      at: noon + 12_345,
      allowed: true,
      retryAfter: 0,
      limits: [{ allowed: true, remaining: 7, reset: noon + 60_000, retryAfter: 0 }],
    });
    assert.equal(limiter.undecided, 1);
  });

  it("rejects undecided calls under the policy closed", () => {
    for (const outcome of ["outage", "late", "full", "blocked"] as const) {
      const limiter = new Limiter(undecided(outcome), "closed", new SimulatedClock(noon));
      assert.throws(
        () => limiter.peek([{ counter: "a", limit: 10, duration: 60_000, cost: 3 }]),
        (error: Error) => error instanceof LimiterUnavailable,
      );
    }
  });
});
