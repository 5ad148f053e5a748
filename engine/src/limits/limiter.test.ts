import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { SimulatedClock } from "../clock/simulated.ts";
import type { Counters, CountersUnavailable } from "./counters.ts";
import { Limiter, LimiterUnavailable } from "./limiter.ts";
import { MemoryCounters } from "./memory-counters.ts";
import { MemoryTable, reserveTable, SEGMENT_BYTES } from "./memory-table.ts";

const noon = 1_800_000_000_000;
const undecided = (outcome: CountersUnavailable["outcome"]): Counters => ({
  charge: () => ({ outcome }),
  peek: () => ({ outcome }),
  adjust: ({ charges }) => charges.map(() => false),
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

  it("says in the receipt of a call that only the policy has allowed that it was not counted", async () => {
    const limiter = new Limiter(undecided("outage"), "open", new SimulatedClock(noon));
    const charge = { counter: "a", limit: 10, duration: 60_000, cost: 3 };
    const decision = await limiter.charge([charge, { ...charge, commit: false }], true);
    const { limit: _, ...charged } = charge;
    assert.deepEqual(JSON.parse(JSON.stringify(decision.receipt)), { charges: [{ ...charged, epoch: "" }] });
    // Its epoch is not that of counters that give no receipts.
    const table = new MemoryTable(reserveTable(SEGMENT_BYTES, false), 1, [17, -4]);
    const later = new Limiter(new MemoryCounters(table, new SimulatedClock(noon)), "open", new SimulatedClock(noon));
    assert.deepEqual(await later.adjust(decision.receipt!, [9]), [false]);
  });

  it("counts the costs that were corrected, and those that were not", async () => {
    const adjust = () => [true, false, true];
    const limiter = new Limiter({ ...undecided("full"), adjust }, "closed", new SimulatedClock(noon));
    const charge = { counter: "a", duration: 60_000, cost: 3, epoch: "" };
    assert.deepEqual(await limiter.adjust({ charges: [charge, charge, charge] }, [2, 5, 3]), adjust());
    assert.deepEqual([limiter.corrected, limiter.uncorrected], [1, 1]);
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
