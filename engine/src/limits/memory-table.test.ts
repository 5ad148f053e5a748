import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { seededRandom } from "../random/seeded.ts";
import { MemoryTable, reserveTable, SEGMENT_BYTES, SLOT_BYTES } from "./memory-table.ts";

const now = 1_800_000_000_000;
const end = now + 1000;

function openTable(segments: number, shared = false, owner = 1) {
  const buffer = reserveTable(segments * SEGMENT_BYTES, shared);
  return { buffer, table: new MemoryTable(buffer, owner, [1, 2]) };
}

function* fingerprints(seed: number) {
  const random = seededRandom(seed);
  for (;;) yield { low: random.below(2 ** 32) | 0, high: random.below(2 ** 32) | 0 };
}

/** Fills the table until it needs a split. Returns its counters and the first one that does not fit. */
function fillUp(table: MemoryTable, seed: number) {
  const held: { low: number; high: number }[] = [];
  for (const name of fingerprints(seed)) {
    if (table.find(name.low, name.high) !== -1) continue;
    const slot = table.claim(name.low, name.high, end, now);
    if (slot === -1) return { held, next: name };
    table.write(slot, end, held.length + 1, 5);
    held.push(name);
  }
  throw new Error("unreachable");
}

function assertHolds(table: MemoryTable, held: readonly { low: number; high: number }[]) {
  for (const [i, { low, high }] of held.entries()) {
    const slot = table.find(low, high);
    assert.ok(slot !== -1);
    assert.deepEqual([table.endOf(slot), table.currentOf(slot), table.previousOf(slot)], [end, i + 1, 5]);
  }
}

describe("MemoryTable", () => {
  it("fills a segment to about 80 % before a split", () => {
    const { table } = openTable(1);
    const { held, next } = fillUp(table, 1);
    assert.ok(held.length > 0.75 * 8192, `${held.length}`);
    assert.equal(table.split(next.high), false);
    assertHolds(table, held);
  });

  it("keeps all counters when a segment splits", () => {
    const { table } = openTable(3);
    const { held, next } = fillUp(table, 2);
    assert.equal(table.split(next.high), true);
    assertHolds(table, held);
    assert.deepEqual(table.segments, { used: 3, max: 3 });
    assert.equal(table.split(next.high), false);
  });

  it("finishes the split of a dead thread when its lock is released", () => {
    for (const isRepeated of [false, true]) {
      const { buffer, table } = openTable(5, true);
      const dying = new MemoryTable(buffer, 2, [0, 0]);
      const { held, next } = fillUp(table, 3);
      const stripe = dying.stripeOf(next.high);
      dying.lock(stripe);
      dying.beginSplit(next.high);
      if (isRepeated) dying.finishSplit(stripe);
      table.releaseLocksOf(2);
      assert.equal(table.lock(stripe), true);
      assertHolds(table, held);
      assert.notEqual(table.claim(next.low, next.high, end, now), -1);
      assertHolds(table, held);
    }
  });

  it("collects marked counters once, and all counters always", () => {
    const { table } = openTable(2);
    const { held } = fillUp(table, 4);
    const target = new Uint8Array(SEGMENT_BYTES);
    const records = (which: "all" | "marked", at: number) =>
      [0, 1].reduce((sum, segment) => sum + table.collect(segment, target, 0, at, which) / SLOT_BYTES, 0);
    assert.equal(records("marked", now), 0);
    assert.equal(records("all", now), held.length);
    for (const { low, high } of held.slice(0, 100)) table.mark(table.find(low, high));
    assert.equal(records("marked", now), 100);
    assert.equal(records("marked", now), 0);
    assert.equal(records("all", end), 0);
  });

  it("keeps marks when a segment splits", () => {
    const { table } = openTable(3);
    const { held, next } = fillUp(table, 5);
    for (const { low, high } of held) table.mark(table.find(low, high));
    table.split(next.high);
    const target = new Uint8Array(SEGMENT_BYTES);
    let records = 0;
    for (let segment = 0; segment < 3; segment++) {
      records += table.collect(segment, target, 0, now, "marked") / SLOT_BYTES;
    }
    assert.equal(records, held.length);
  });

  it("rejects a buffer that is not from reserveTable", () => {
    assert.throws(() => new MemoryTable(new ArrayBuffer(1024), 1, [1, 2]), RangeError);
    assert.throws(() => openTable(1, true, 0), RangeError);
  });
});
