import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { SimulatedClock } from "../clock/simulated.ts";
import { seededRandom } from "../random/seeded.ts";
import type { Charge, Counters, LimitDecision, Receipt, ReceiptCharge } from "./counters.ts";
import { assertCorrections, describeCounters } from "./counters-contract.ts";
import { CountersModel } from "./counters-model.ts";
import { MemoryCounters } from "./memory-counters.ts";
import { MemoryLender } from "./memory-lender.ts";
import { MemoryTable, reserveTable, SEGMENT_BYTES } from "./memory-table.ts";

const noon = 1_800_000_000_000;

let epochs = 0;

function openMemory(segments: number, shared = false) {
  const clock = new SimulatedClock(noon);
  const table = new MemoryTable(reserveTable(segments * SEGMENT_BYTES, shared), 1, [17, -4]);
  const counters = new MemoryCounters(table, clock, `epoch ${epochs++}`);
  return { counters, table, clock };
}

/** Counters that can lose their counts. `adjust` uses receipts otherwise than it should. */
function openLosing(
  adjust = (inner: MemoryCounters, ...args: Parameters<Counters["adjust"]>) => inner.adjust(...args),
) {
  const { clock, ...opened } = openMemory(4);
  let inner = opened.counters;
  return {
    counters: {
      charge: (charges: readonly Charge[], asksReceipt?: boolean) => inner.charge(charges, asksReceipt),
      peek: (charges: readonly Charge[]) => inner.peek(charges),
      adjust: (receipt: Receipt, costs: readonly (number | undefined)[]) => adjust(inner, receipt, costs),
    },
    now: () => clock.now(),
    advance: (length: number) => clock.step(length),
    async lose() {
      const table = new MemoryTable(reserveTable(4 * SEGMENT_BYTES, false), 1, [17, -4]);
      inner = new MemoryCounters(table, clock, `epoch ${epochs++}`);
    },
    close() {},
  };
}

for (const shared of [false, true]) {
  describeCounters(shared ? "Shared memory" : "Memory", () => {
    // So many segments that no two counters of the suite have a bucket in common: an expired counter whose slot was reused
    // does not count again when the clock steps back.
    const { counters, clock } = openMemory(64, shared);
    const lender = new MemoryLender({ counters, clock, flush: async () => {} });
    return { counters, lender, now: () => clock.now(), advance: (length) => clock.step(length), close() {} };
  });
}

describe("MemoryCounters", () => {
  it("loses no counter while segments split", () => {
    const { counters, table } = openMemory(128);
    const chargeOf = (i: number) => ({ counter: `id ${i}`, limit: 9, duration: 60_000, cost: 1 });
    const total = 600_000;
    // Many charges per call, so that a split moves counters that the same call has already found or inserted.
    for (let i = 0; i < total; i += 100) counters.charge(Array.from({ length: 100 }, (_, k) => chargeOf(i + k)));
    assert.ok(table.segments.used > 100);
    for (let i = 0; i < total; i++) {
      const verdict = counters.charge([chargeOf(i)]);
      assert.ok(verdict.outcome === "decided" && verdict.limits[0]!.remaining === 7, `id ${i}`);
    }
    const estimate = table.estimateUsed(noon);
    assert.ok(Math.abs(estimate / total - 1) < 0.1, `estimated ${estimate}`);
  });

  it("returns `full` instead of evicting a counter that still counts, and consumes nothing", () => {
    const { counters, table, clock } = openMemory(2);
    const charge = (i: number, limit = 9): Charge => ({ counter: `id ${i}`, limit, duration: 60_000, cost: 1 });
    const kept: number[] = [];
    const rejected: number[] = [];
    for (let i = 0; i < 20_000; i++) {
      const { outcome } = counters.charge([charge(i)]);
      (outcome === "full" ? rejected : kept).push(i);
    }
    assert.ok(rejected.length > 3000 && kept.length > 13_000);
    assert.equal(table.rejections, rejected.length);
    // An existing counter and one without room in one call: neither is charged.
    assert.equal(counters.charge([charge(kept[0]!), charge(rejected[0]!)]).outcome, "full");
    assert.equal(counters.charge([charge(rejected[0]!), charge(kept[0]!)]).outcome, "full");
    // A new counter with room is not inserted together with one without room.
    const slotsTaken = () =>
      [0, 1].reduce((sum, segment) => sum + table.collect(segment, new Uint8Array(SEGMENT_BYTES), 0, noon, "all"), 0);
    const before = slotsTaken();
    for (let i = 20_000; i < 20_100; i++) {
      assert.equal(counters.charge([charge(i), charge(rejected[0]!)]).outcome, "full");
    }
    assert.equal(slotsTaken(), before);
    // Rejected charges and peeks need no room.
    assert.equal(counters.charge([charge(rejected[0]!, 0)]).outcome, "decided");
    assert.equal(counters.peek([charge(rejected[0]!)]).outcome, "decided");
    for (const i of kept) {
      const verdict = counters.peek([charge(i)]);
      assert.ok(verdict.outcome === "decided" && verdict.limits[0]!.remaining === 8, `id ${i}`);
    }
    // In the next window they count as the previous window; after that their slots are free.
    clock.advance(60_000);
    assert.equal(counters.charge([charge(rejected[0]!)]).outcome, "full");
    clock.advance(60_000);
    for (const i of rejected) assert.equal(counters.charge([charge(i)]).outcome, "decided");
  });

  it("never gives the expired slot of one counter to another counter of the same call", () => {
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

  it("counts each slot of a strict counter for the share of its owner", () => {
    const { counters, table, clock } = openMemory(2);
    const charge = (i: number, owner: string): Charge => ({
      counter: `${owner} ${i}`,
      limit: 1_000,
      duration: 3_600_000,
      mode: "strict",
      cost: 1,
      owner,
    });
    const outcomes: string[] = [];
    // 1,500 identifiers that are charged all the time need nine slots each, of 16,384.
    for (let part = 0; part < 9; part++) {
      for (let i = 0; i < 1_500; i++) outcomes.push(counters.charge([charge(i, "hostile")]).outcome);
      clock.advance(3_600_000 / 8);
    }
    const taken = outcomes.filter((outcome) => outcome === "decided").length;
    assert.ok(taken > 11_000 && taken < 0.75 * 16_384, `${taken} slots`);
    assert.deepEqual([...new Set(outcomes)], ["decided", "share"]);
    assert.ok(table.estimateUsed(clock.now()) < 0.8 * 16_384);
    for (let i = 0; i < 500; i++) assert.equal(counters.charge([charge(i, "other")]).outcome, "decided", `${i}`);
    // A counter whose next sub-window has no slot is not charged, and denies nobody who only looks.
    assert.equal(counters.peek([charge(0, "hostile")]).outcome, "decided");
  });

  it("corrects calls like the exact model, and none that was counted before a loss", () =>
    assertCorrections(openLosing, 300));

  it("is found wrong by the model if a receipt is used twice, for another window or after a loss", async () => {
    const probe = (inner: MemoryCounters, charge: ReceiptCharge): ReceiptCharge => {
      const decision = inner.charge([{ ...charge, limit: 1, cost: 0, force: true }], true) as LimitDecision;
      return decision.receipt!.charges[0]!;
    };
    const faults: Record<string, NonNullable<Parameters<typeof openLosing>[0]>> = {
      twice: (inner, receipt, costs) => {
        inner.adjust(receipt, costs);
        return inner.adjust(receipt, costs);
      },
      "for another window": (inner, { charges }, costs) =>
        inner.adjust({ charges: charges.map((one) => ({ ...one, window: probe(inner, one).window! })) }, costs),
      "after a loss": (inner, { charges }, costs) =>
        inner.adjust({ charges: charges.map((one) => ({ ...one, epoch: probe(inner, one).epoch })) }, costs),
    };
    for (const [name, fault] of Object.entries(faults)) {
      const isMismatch = ({ cause }: Error) => (cause as NodeJS.ErrnoException).code === "ERR_ASSERTION";
      await assert.rejects(
        assertCorrections(() => openLosing(fault), 300),
        isMismatch,
        name,
      );
    }
  });

  it("throws on invalid numbers", () => {
    const { counters } = openMemory(1);
    const charge = { counter: "a", limit: 5, duration: 60_000, cost: 1 };
    for (const bad of [{ cost: -1 }, { cost: 1.5 }, { limit: 1e12 + 1 }, { duration: 0 }, { cost: Number.NaN }]) {
      assert.throws(() => counters.charge([{ ...charge, ...bad }]), RangeError);
    }
  });
});
