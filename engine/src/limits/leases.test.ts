import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { SimulatedClock } from "../clock/simulated.ts";
import { seededRandom } from "../random/seeded.ts";
import { LIMIT_MAX } from "../rules/window.ts";
import { CounterJournal } from "./counter-journal.ts";
import type { Charge, Receipt } from "./counters.ts";
import { FaultyFiles } from "./faulty-files.ts";
import { Leases } from "./leases.ts";
import { assertLeases, type LeaseWorld } from "./leases-model.ts";
import type { KeptReceipt, Lender, LentCharge } from "./lender.ts";
import { MemoryCounters } from "./memory-counters.ts";
import { MemoryLender } from "./memory-lender.ts";
import { MemoryTable, reserveTable, SEGMENT_BYTES } from "./memory-table.ts";

const noon = 1_800_000_000_000;
let processes = 0;

/** What a planted fault makes of a lender. */
type Plant = (counters: MemoryCounters, honest: Lender, now: () => number) => Lender;

/** Counters in memory with their journal, whose process can be killed. */
async function openMemory({ plant, isFlushed = true }: { plant?: Plant; isFlushed?: boolean } = {}) {
  const clock = new SimulatedClock(noon);
  const files = new FaultyFiles();
  const start = async () => {
    const journal = await CounterJournal.open({
      files,
      clock,
      countingClock: clock,
      freshKey: [3, 4],
      onFailure(error) {
        throw error;
      },
    });
    const table = new MemoryTable(reserveTable(SEGMENT_BYTES, false), 1, journal.key);
    await journal.restore(table);
    const counters = new MemoryCounters(table, clock, `process ${processes++}`);
    const flush = () => (isFlushed ? journal.flush() : Promise.resolve());
    const honest = new MemoryLender({ counters, clock, flush });
    return { journal, counters, lender: plant ? plant(counters, honest, () => clock.now()) : honest };
  };
  let process = await start();
  const world: LeaseWorld = {
    get counters() {
      return process.counters;
    },
    get lender() {
      return process.lender;
    },
    now: () => clock.now(),
    advance: (length) => clock.advance(length),
    save: () => process.journal.save(),
    async kill() {
      process = await start();
    },
    close() {},
  };
  return world;
}

describe("Leases over counters in memory that are killed (rules 185, 186, 189)", () => {
  it("never exceed a limit, whatever is granted, spent, returned, lost or repeated", async (t) => {
    const done = await assertLeases(() => openMemory(), 400);
    t.diagnostic(JSON.stringify(done));
    for (const count of Object.values(done)) assert(count > 1_000, JSON.stringify(done));
  });

  /** A lender that keeps receipts by their names, and uses them by `settle`. */
  const keeping =
    (settle: (counters: MemoryCounters, receipt: Receipt, costs: readonly number[], now: number) => void): Plant =>
    (counters, _, now) => {
      const receipts = new Map<string, Receipt>();
      return {
        async lend(charges: readonly Charge[], { name }: KeptReceipt) {
          const result = counters.charge(charges, true);
          if (result.outcome !== "decided") return undefined;
          if (result.receipt) receipts.set(name, result.receipt);
          return result;
        },
        async settle(name: string, charges: readonly LentCharge[], costs: readonly number[]) {
          const receipt = receipts.get(name);
          if (receipt === undefined) return undefined;
          const isNew = !used.has(receipt);
          used.add(receipt);
          settle(counters, receipt, costs, now());
          return isNew ? charges.map(() => true) : undefined;
        },
      };
    };
  const used = new WeakSet<Receipt>();
  const lower = (costs: readonly number[], receipt: Receipt) =>
    receipt.charges.map(({ cost }, i) => Math.min(cost, costs[i] ?? cost));

  const plants: Record<string, { plant?: Plant; isFlushed?: boolean }> = {
    "a lease that is granted without being subtracted": {
      plant: (counters, honest) => ({
        async lend(charges) {
          const result = counters.peek(charges);
          return result.outcome === "decided" ? result : undefined;
        },
        settle: (...args) => honest.settle(...args),
      }),
    },
    "a return that is applied twice": {
      plant: keeping((counters, receipt, costs) => counters.adjust(receipt, lower(costs, receipt))),
    },
    "a return into another window": {
      plant: keeping((counters, receipt, costs, now) => {
        const charges = receipt.charges.map((charge) => ({
          ...charge,
          window: (Math.floor(now / charge.duration) + 2) * charge.duration,
        }));
        if (!returned.has(receipt)) counters.adjust({ ...receipt, charges }, lower(costs, receipt));
        returned.add(receipt);
      }),
    },
    "amounts that are not capped": {
      plant: keeping((counters, receipt, costs) => {
        const charges = receipt.charges.map((charge) => ({ ...charge, cost: 3 * charge.cost }));
        if (!returned.has(receipt)) counters.adjust({ ...receipt, charges }, lower(costs, receipt));
        returned.add(receipt);
      }),
    },
    "a companion that is left out": {
      plant: (_, honest) => ({
        lend: (charges, receipt) =>
          honest.lend(
            charges.map((charge) => (charge.counter.endsWith("\0leased") ? { ...charge, limit: LIMIT_MAX } : charge)),
            receipt,
          ),
        settle: (...args) => honest.settle(...args),
      }),
    },
    "an id that is good for any limit": {
      plant: (_, honest) => {
        const names = new Map<string, LentCharge[]>();
        const idOf = (name: string) => name.slice(name.lastIndexOf(":"));
        return {
          lend: (charges, { name, life }) => {
            names.set(
              idOf(name),
              charges.filter(({ commit }) => commit !== false),
            );
            return honest.lend(charges, { name: idOf(name), life });
          },
          settle: (name, charges, costs) => honest.settle(idOf(name), names.get(idOf(name)) ?? charges, costs),
        };
      },
    },
    "an answer before the journal has the grant": { isFlushed: false },
  };
  const returned = new WeakSet<Receipt>();
  for (const [name, plant] of Object.entries(plants)) {
    it(`finds ${name}`, () =>
      assert.rejects(
        assertLeases(() => openMemory(plant), 400),
        /AssertionError|Property/,
      ));
  }
});

describe("MemoryLender", () => {
  const limit = { counter: "key\0pool\0a", limit: 1_000, duration: 60_000, owner: "ws" };

  function open(receiptsMax: { perOwner: number; all: number }, flush = async () => {}) {
    const clock = new SimulatedClock(noon);
    const table = new MemoryTable(reserveTable(SEGMENT_BYTES, false), 1, [3, 4]);
    const counters = new MemoryCounters(table, clock, `process ${processes++}`);
    const lender = new MemoryLender({ counters, clock, flush, receiptsMax });
    const usedOf = (one = limit) => {
      const looked = counters.peek([{ ...one, cost: 0 }]);
      return looked.outcome === "decided" ? one.limit - (looked.limits[0]?.remaining ?? 0) : Number.NaN;
    };
    return { clock, counters, lender, leases: new Leases(lender, seededRandom(36)), usedOf };
  }

  it("keeps so many receipts per owner and in all, and drops the oldest of the owner with the most", async () => {
    const { leases, lender } = open({ perOwner: 3, all: 5 });
    const of = (owner: string) => ({ ...limit, counter: `key\0${owner}\0a`, owner, limit: 100_000 });
    const ids: string[] = [];
    for (let i = 0; i < 4; i++) ids.push((await leases.grant(of("one"), 5))?.id ?? "");
    assert.equal(lender.receipts, 3);
    for (const owner of ["two", "three", "four"]) assert(await leases.grant(of(owner), 5));
    assert.equal(lender.receipts, 5);
    const found = [];
    for (const id of ids) found.push(await leases.takeBack(of("one"), id, 0));
    assert.deepEqual(found, [false, false, true, true]);
    assert.equal(lender.receipts, 3);
  });

  it("forgets a receipt when its life is over", async () => {
    const { leases, lender, clock } = open({ perOwner: 3, all: 5 });
    const lease = await leases.grant(limit, 5);
    clock.advance(120_000);
    assert.equal(await leases.takeBack(limit, lease?.id ?? "", 0), false);
    assert.equal(lender.receipts, 0);
  });

  it("lends nothing and counts nothing while the journal cannot be written (rule 189)", async () => {
    let isBroken = true;
    const { leases, lender, usedOf } = open({ perOwner: 3, all: 5 }, async () => {
      if (isBroken) throw new Error("ENOSPC");
    });
    assert.equal(await leases.grant(limit, 50), null);
    assert.deepEqual([usedOf(), usedOf({ ...limit, counter: `${limit.counter}\0leased` }), lender.receipts], [0, 0, 0]);
    isBroken = false;
    assert.equal((await leases.grant(limit, 50))?.amount, 50);
    assert.equal(usedOf(), 50);
  });
});
