import assert from "node:assert/strict";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import fc from "fast-check";
import { SimulatedClock } from "../clock/simulated.ts";
import { seededRandom } from "../random/seeded.ts";
import { type CounterFiles, counterFilesIn } from "./counter-files.ts";
import { CounterJournal } from "./counter-journal.ts";
import type { ChargeResult, LimitDecision } from "./counters.ts";
import { FaultyFiles } from "./faulty-files.ts";
import { MemoryCounters } from "./memory-counters.ts";
import { MemoryTable, reserveTable, SEGMENT_BYTES } from "./memory-table.ts";

const noon = 1_800_000_000_000;
const minute = 60_000;

let processes = 0;

async function start(files: CounterFiles, clock: SimulatedClock, segments = 8) {
  const failures: unknown[] = [];
  const journal = await CounterJournal.open({
    files,
    clock,
    countingClock: clock,
    freshKey: [3, 4],
    segmentsPerSecond: 10,
    onFailure: (error) => failures.push(error),
  });
  const table = new MemoryTable(reserveTable(segments * SEGMENT_BYTES, false), 1, journal.key);
  const restored = await journal.restore(table);
  const counters = new MemoryCounters(table, clock, `process ${processes++}`);
  const spend = (counter: string, cost = 1, duration = minute): number => {
    const verdict = counters.charge([{ counter, limit: 1000, duration, cost }]);
    return verdict.outcome === "decided" ? verdict.limits[0]!.remaining : -1;
  };
  const left = (counter: string, duration = minute): number => spend(counter, 0, duration);
  return { journal, restored, failures, spend, left, counters, table };
}

/** Whether the first limit of a call is allowed, and what remains. */
function outcomeOf(result: ChargeResult): [boolean, number] {
  assert(result.outcome === "decided");
  const { allowed, remaining } = result.limits[0]!;
  return [allowed, remaining];
}

describe("CounterJournal", () => {
  it("gives nothing back after a crash, which may have lost the charge", async () => {
    const files = new FaultyFiles();
    const clock = new SimulatedClock(noon);
    const first = await start(files, clock);
    const others = { counter: "a", limit: 1000, duration: minute, cost: 100 };
    const ask = (cost: number) => first.counters.charge([{ ...others, cost }], true) as LimitDecision;
    const corrected = ask(30).receipt!;
    const kept = ask(20).receipt!;
    first.spend("a", 100);
    await first.journal.save();
    const lost = ask(40).receipt!;
    assert.deepEqual(first.counters.adjust(corrected, [10]), [true]);
    assert.equal(first.left("a"), 1000 - 10 - 20 - 100 - 40);
    const second = await start(files, clock);
    // What the journal had when the process died: without the last charge and the last correction.
    assert.equal(second.left("a"), 1000 - 30 - 20 - 100);
    for (const receipt of [corrected, kept, lost]) assert.deepEqual(second.counters.adjust(receipt, [0]), [false]);
    assert.equal(second.left("a"), 1000 - 30 - 20 - 100);
  });

  it("restores a corrected count", async () => {
    const files = new FaultyFiles();
    const clock = new SimulatedClock(noon);
    const first = await start(files, clock);
    for (const mode of ["standard", "strict"] as const) {
      const charge = { counter: mode, limit: 1000, duration: minute, mode, cost: 30 };
      const { receipt } = first.counters.charge([charge], true) as LimitDecision;
      await first.journal.save();
      first.counters.adjust(receipt!, [10]);
      await first.journal.save();
      const second = await start(files, clock);
      const { limits } = second.counters.peek([{ ...charge, cost: 0 }]) as LimitDecision;
      assert.equal(limits[0]!.remaining, 990);
    }
  });

  it("restores all counters after a stop, from a file that only its owner can read", async () => {
    const folder = await mkdtemp(join(tmpdir(), "counters-"));
    try {
      const clock = new SimulatedClock(noon);
      const first = await start(counterFilesIn(folder), clock);
      for (let i = 0; i < 5000; i++) first.spend(`id ${i}`, 1 + (i % 7), i % 2 === 0 ? minute : 1000);
      await first.journal.save();
      first.spend("id 0", 10);
      await first.journal.stop();
      assert.equal((await stat(join(folder, "counters"))).mode & 0o777, 0o600);
      const second = await start(counterFilesIn(folder), clock);
      assert.deepEqual(second.restored, { records: 5000, dropped: 0, isTorn: false });
      assert.equal(second.left("id 0"), 989);
      for (let i = 1; i < 5000; i++) assert.equal(second.left(`id ${i}`, i % 2 === 0 ? minute : 1000), 999 - (i % 7));
      await second.journal.stop();
      assert.deepEqual(second.failures, []);
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it("loses at most the last second when the process is killed", async () => {
    const clock = new SimulatedClock(noon);
    const files = new FaultyFiles();
    const first = await start(files, clock);
    first.journal.start();
    first.spend("a", 5);
    first.spend("short", 5, 1_000);
    clock.advance(1000);
    await first.journal.save();
    first.spend("a", 1);
    const second = await start(files, clock);
    assert.equal(second.left("a"), 995);
    assert.equal(second.left("short", 1_000), 995);
  });

  it("restores all counters of a table of any fill level, after a stop and after a kill", async () => {
    for (const segments of [1, 3, 12, 64]) {
      for (const fill of segments === 64 ? [0.75] : [0.3, 0.5, 0.7, 0.8, 0.9, 0.97, 1]) {
        for (const isKilled of [false, true]) {
          const clock = new SimulatedClock(noon);
          const files = new FaultyFiles();
          const first = await start(files, clock, segments);
          const kept: string[] = [];
          const goal = Math.round(fill * segments * 8192);
          // Tries more counters than fit: some buckets still have room.
          for (let i = 0; kept.length < goal && i < 1.1 * goal; i++) {
            if (first.spend(`id ${i}`, 1 + (i % 7), 10 * minute) !== -1) kept.push(`id ${i}`);
            if (i === goal >> 1) await first.journal.save();
          }
          await (isKilled ? first.journal.save() : first.journal.stop());
          const second = await start(files, clock, segments);
          assert.equal(second.restored.dropped, 0, `${segments} segments, ${kept.length} counters`);
          for (const name of kept) {
            assert.equal(second.left(name, 10 * minute), 999 - (Number(name.slice(3)) % 7), `${segments} ${name}`);
          }
        }
      }
    }
  });

  it("appends only what changed", async () => {
    const clock = new SimulatedClock(noon);
    const files = new FaultyFiles();
    const { journal, spend } = await start(files, clock);
    for (let i = 0; i < 1000; i++) spend(`id ${i}`);
    await journal.save();
    const before = files.contents.get("counters")!.length;
    await journal.save();
    assert.equal(files.contents.get("counters")!.length, before);
    spend("id 7");
    await journal.save();
    assert.equal(files.contents.get("counters")!.length, before + 8 + 32);
  });

  it("drops expired counters, and keeps those that count in the next window", async () => {
    const clock = new SimulatedClock(noon);
    const files = new FaultyFiles();
    const first = await start(files, clock);
    first.spend("a", 600);
    await first.journal.stop();
    clock.advance(minute);
    const second = await start(files, clock);
    assert.equal(second.left("a"), 400);
    await second.journal.stop();
    clock.advance(minute);
    assert.equal((await start(files, clock)).restored.records, 0);
  });

  it("loses at most the changes of one second to an incomplete write, and reports it", async () => {
    const clock = new SimulatedClock(noon);
    const files = new FaultyFiles();
    const { journal, spend } = await start(files, clock);
    const lengths: number[] = [];
    for (let second = 0; second < 5; second++) {
      spend("a", 10);
      spend(`id ${second}`);
      await journal.save();
      lengths.push(files.contents.get("counters")!.length);
    }
    const whole = files.contents.get("counters")!;
    for (let length = lengths[0]!; length <= whole.length; length++) {
      const torn = new FaultyFiles();
      torn.contents.set("counters", Buffer.from(whole.subarray(0, length)));
      const seconds = lengths.filter((written) => written <= length).length;
      const again = await start(torn, clock);
      assert.equal(again.left("a"), 1000 - 10 * seconds);
      assert.equal(again.restored.isTorn, !lengths.includes(length));
      // The next frame starts where the incomplete write started.
      again.spend("a", 1);
      await again.journal.save();
      assert.equal((await start(torn, clock)).left("a"), 1000 - 10 * seconds - 1);
    }
  });

  it("never restores damaged bytes", async () => {
    const clock = new SimulatedClock(noon);
    const files = new FaultyFiles();
    const { journal, spend } = await start(files, clock);
    for (let second = 1; second <= 4; second++) {
      spend("a", second);
      await journal.save();
    }
    const whole = files.contents.get("counters")!;
    await fc.assert(
      fc.asyncProperty(fc.nat(whole.length - 1), fc.integer({ min: 1, max: 255 }), async (at, flip) => {
        const damaged = new FaultyFiles();
        const bytes = Buffer.from(whole);
        bytes[at]! ^= flip;
        damaged.contents.set("counters", bytes);
        try {
          const again = await start(damaged, clock);
          assert.ok([1000, 999, 997, 994].includes(again.left("a")));
        } catch (error) {
          assert.match(String(error), /has version/);
        }
      }),
    );
  });

  it("retries failed writes until the disk is available again", async () => {
    const random = seededRandom(9);
    for (let run = 0; run < 60; run++) {
      const clock = new SimulatedClock(noon);
      const files = new FaultyFiles();
      const first = await start(files, clock);
      first.spend("a", 10);
      await first.journal.save();
      files.failAfter = random.below(120);
      let failed = 0;
      for (let second = 0; second < 3; second++) {
        first.spend("a", 10);
        first.spend(`id ${second}`, 20);
        await first.journal.save();
        failed = first.failures.length;
      }
      // After a kill now, the file ends with a complete second.
      assert.ok((await start(files, clock)).left("a") % 10 === 0);
      files.failAfter = Number.POSITIVE_INFINITY;
      await first.journal.save();
      assert.equal(first.failures.length, failed);
      const second = await start(files, clock);
      assert.equal(second.restored.isTorn, false);
      assert.equal(second.left("a"), 960);
      for (let i = 0; i < 3; i++) assert.equal(second.left(`id ${i}`), 980);
    }
  });

  it("appends to the old file when `stop` cannot write a new one", async () => {
    const clock = new SimulatedClock(noon);
    const files = new FaultyFiles();
    const first = await start(files, clock);
    for (let i = 0; i < 500; i++) first.spend(`id ${i}`);
    await first.journal.save();
    first.spend("id 3", 100);
    const create = files.create.bind(files);
    files.create = () => Promise.reject(new Error("EMFILE"));
    await first.journal.stop();
    files.create = create;
    assert.equal(first.failures.length, 1);
    assert.equal((await start(files, clock)).left("id 3"), 899);
  });

  it("compacts the file when it has grown, without losing concurrent changes", async () => {
    const clock = new SimulatedClock(noon);
    const files = new FaultyFiles();
    const first = await start(files, clock, 128);
    const random = seededRandom(5);
    const spent = new Map<string, number>();
    let largest = 0;
    for (let second = 0; second < 30; second++) {
      for (let i = 0; i < 20_000; i++) {
        const name = `id ${random.below(30_000)}`;
        first.spend(name);
        spent.set(name, (spent.get(name) ?? 0) + 1);
      }
      await first.journal.save();
      const length = files.contents.get("counters")!.length;
      largest = Math.max(largest, length);
      // After a kill at the end of any second, all counters are in the file.
      if (second % 5 !== 0) continue;
      const again = await start(files, clock, 128);
      for (const [name, count] of spent) assert.equal(again.left(name), 1000 - count);
    }
    assert.ok(files.contents.get("counters")!.length < largest);
    assert.ok(largest < 12 * 1024 * 1024, `${largest}`);
    assert.deepEqual(first.failures, []);
  });

  it("forgets what had expired when the clock is set back, so that it does not replace charges made since", async () => {
    const day = 24 * 60 * minute;
    for (const compacting of [false, true]) {
      const clock = new SimulatedClock(noon + day);
      const files = new FaultyFiles();
      const first = await start(files, clock, 32);
      const charge = { counter: "a", limit: 5, duration: minute, cost: 5, mode: "strict" } as const;
      first.counters.charge([{ ...charge, cost: 1 }]);
      for (let second = 0; second < (compacting ? 8 : 1); second++) {
        if (compacting) for (let i = 0; i < 50_000; i++) first.spend(`id ${i}`, 1, 10 * day);
        await first.journal.save();
      }
      assert.equal(files.contents.has("counters.next"), compacting);
      // Its slot is released, so nothing replaces its record.
      clock.advance(3 * minute);
      first.table.sweep(first.table.segments.used, clock.now());
      // The following charge is in another slot.
      clock.step(-day - 7_500);
      assert.deepEqual(outcomeOf(first.counters.charge([charge])), [true, 0]);
      for (let second = 0; second < 4; second++) await first.journal.save();
      const second = await start(files, clock, 32);
      assert.deepEqual(outcomeOf(second.counters.peek([{ ...charge, cost: 1 }])), [false, 0]);
      // One compaction is enough.
      const { length } = files.contents.get("counters")!;
      await first.journal.save();
      assert.equal(files.contents.get("counters")!.length, length);
    }
  });

  it("starts with empty counters if the header cannot be read, and rejects the file of a newer version", async () => {
    const clock = new SimulatedClock(noon);
    const files = new FaultyFiles();
    files.contents.set("counters", Buffer.from("garbage that is longer than a header"));
    const first = await start(files, clock);
    assert.equal(first.failures.length, 1);
    first.spend("a", 5);
    await first.journal.stop();
    assert.equal((await start(files, clock)).left("a"), 995);
    files.contents.get("counters")!.writeUInt32LE(3, 4);
    await assert.rejects(start(files, clock), /version 3; this program supports 2/);
  });
});
