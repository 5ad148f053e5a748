import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { SimulatedClock } from "../clock/simulated.ts";
import { seededRandom } from "../random/seeded.ts";
import type { Charge } from "./counters.ts";
import { describeCounters } from "./counters-contract.ts";
import { CountersModel } from "./counters-model.ts";
import { MemoryCounters } from "./memory-counters.ts";
import { MemoryTable, reserveTable, SEGMENT_BYTES } from "./memory-table.ts";

const noon = 1_800_000_000_000;

function openMemory(segments: number, shared = false) {
  const clock = new SimulatedClock(noon);
  const table = new MemoryTable(reserveTable(segments * SEGMENT_BYTES, shared), 1, [17, -4]);
  const counters = new MemoryCounters(table, clock);
  return { counters, table, clock };
}

for (const shared of [false, true]) {
  describeCounters(shared ? "Shared memory" : "Memory", () => {
    const { counters, clock } = openMemory(1, shared);
    return { counters, now: () => clock.now(), advance: (length) => clock.step(length), close() {} };
  });
}

describe("MemoryCounters", () => {
  it("loses nothing while segments split", () => {
    const { counters, table } = openMemory(128);
    const chargeOf = (i: number) => ({ counter: `id ${i}`, limit: 9, duration: 60_000, cost: 1 });
    const total = 600_000;
    // Many in one call, so that a split moves counters that the same call has found or placed already.
    for (let i = 0; i < total; i += 100) counters.charge(Array.from({ length: 100 }, (_, k) => chargeOf(i + k)));
    assert.ok(table.segments.used > 100);
    for (let i = 0; i < total; i++) {
      const verdict = counters.charge([chargeOf(i)]);
      assert.ok(verdict.outcome === "decided" && verdict.limits[0]!.remaining === 7, `id ${i}`);
    }
    const estimate = table.estimateUsed(noon);
    assert.ok(Math.abs(estimate / total - 1) < 0.1, `estimated ${estimate}`);
  });

  it("says full rather than forget a window that still counts, and takes nothing then", () => {
    const { counters, table, clock } = openMemory(2);
    const charge = (i: number, limit = 9): Charge => ({ counter: `id ${i}`, limit, duration: 60_000, cost: 1 });
    const kept: number[] = [];
    const refused: number[] = [];
    for (let i = 0; i < 20_000; i++) {
      const { outcome } = counters.charge([charge(i)]);
      (outcome === "full" ? refused : kept).push(i);
    }
    assert.ok(refused.length > 3000 && kept.length > 13_000);
    assert.equal(table.rejections, refused.length);
    // A known counter is charged together with one that finds no room: neither is.
    assert.equal(counters.charge([charge(kept[0]!), charge(refused[0]!)]).outcome, "full");
    assert.equal(counters.charge([charge(refused[0]!), charge(kept[0]!)]).outcome, "full");
    // Nor is anything left of a new one that would have found room beside one that does not.
    const slotsTaken = () =>
      [0, 1].reduce((sum, segment) => sum + table.collect(segment, new Uint8Array(SEGMENT_BYTES), 0, noon, "all"), 0);
    const before = slotsTaken();
    for (let i = 20_000; i < 20_100; i++) {
      assert.equal(counters.charge([charge(i), charge(refused[0]!)]).outcome, "full");
    }
    assert.equal(slotsTaken(), before);
    // What would be refused, or only looked at, needs no room.
    assert.equal(counters.charge([charge(refused[0]!, 0)]).outcome, "decided");
    assert.equal(counters.peek([charge(refused[0]!)]).outcome, "decided");
    for (const i of kept) {
      const verdict = counters.peek([charge(i)]);
      assert.ok(verdict.outcome === "decided" && verdict.limits[0]!.remaining === 8, `id ${i}`);
    }
    // In the next window they count as the previous ones; after it they are free where they lie.
    clock.advance(60_000);
    assert.equal(counters.charge([charge(refused[0]!)]).outcome, "full");
    clock.advance(60_000);
    for (const i of refused) assert.equal(counters.charge([charge(i)]).outcome, "decided");
  });

  it("keeps counters of one call apart when one takes the slot that the other's end has freed", () => {
    const { counters, clock } = openMemory(1);
    const random = seededRandom(4);
    const model = new CountersModel();
    for (let call = 0; call < 4000; call++) {
      const charges = Array.from({ length: 12 }, () => ({
        counter: `id ${random.below(6000)}`,
        limit: 50,
        duration: 1000,
        cost: 1 + random.below(3),
      }));
      assert.deepEqual(counters.charge(charges), model.charge(charges, clock.now()));
      clock.advance(random.below(10));
    }
  });

  it("treats as a bug what the door should have refused", () => {
    const { counters } = openMemory(1);
    const charge = { counter: "a", limit: 5, duration: 60_000, cost: 1 };
    for (const bad of [{ cost: -1 }, { cost: 1.5 }, { limit: 1e12 + 1 }, { duration: 0 }, { cost: Number.NaN }]) {
      assert.throws(() => counters.charge([{ ...charge, ...bad }]), RangeError);
    }
  });
});
