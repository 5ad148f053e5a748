import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { SimulatedClock } from "../clock/simulated.ts";
import { FirstUseWriter } from "./first-uses.ts";
import type { ImportedKeyUse } from "./stored.ts";

const use = (i: number): ImportedKeyUse => ({ keyId: `key_${i}`, start: "k", hash: null });

/** A writer whose writes take this long. */
function open({ writeMs = 5, failing = () => false }: { writeMs?: number; failing?: () => boolean } = {}) {
  const clock = new SimulatedClock(1_700_000_000_000);
  const writes: { at: number; size: number }[] = [];
  const writer = new FirstUseWriter(clock, async (uses) => {
    writes.push({ at: clock.monotonic(), size: uses.length });
    await new Promise<void>((resolve) => clock.schedule(writeMs, resolve));
    if (failing()) throw new Error("for this test");
  });
  const pass = async (ms: number) => {
    for (let i = 0; i <= ms; i++) {
      if (i > 0) clock.advance(1);
      for (let turn = 0; turn < 10; turn++) await null;
    }
  };
  return { clock, writer, writes, pass };
}

describe("the writer of first uses", () => {
  it("writes the first at once, and those of a write and the pause after it together", async () => {
    const { clock, writer, writes, pass } = open();
    const startedAt = clock.monotonic();
    void writer.record(use(0));
    for (let i = 1; i <= 100; i++) {
      await pass(1);
      void writer.record(use(i));
    }
    await pass(100);
    assert.deepEqual(
      writes.slice(0, 3).map(({ at, size }) => [at - startedAt, size]),
      [
        [0, 1],
        [10, 9],
        [20, 10],
      ],
    );
    assert.equal(
      writes.reduce((sum, { size }) => sum + size, 0),
      101,
    );
  });

  it("writes at once where an answer waits", async () => {
    const { clock, writer, writes, pass } = open();
    void writer.record(use(0));
    await pass(8);
    const askedAt = clock.monotonic();
    const written = writer.record(use(1), true);
    await pass(0);
    assert.equal(writes[1]?.at, askedAt);
    await pass(3);
    // It arrives during a write: there is no pause after that one.
    void writer.record(use(2), true);
    await pass(2);
    assert.equal(await written, true);
    assert.equal(writes.length, 3);
  });

  it("says of a wave when it is stored, in parts that leave time to others", async () => {
    const { writer, writes, pass } = open({ writeMs: 10 });
    const all = Promise.all(Array.from({ length: 2_201 }, (_, i) => writer.record(use(i))));
    await pass(400);
    assert.deepEqual(await all, Array(2_201).fill(true));
    assert.deepEqual(
      writes.map(({ size }) => size),
      [1, 1_000, 1_000, 200],
    );
    for (const [i, { at }] of writes.slice(1).entries()) assert(at - writes[i]!.at >= 20);
  });

  it("reports uses that were not written, and goes on", async () => {
    let isFailing = true;
    const { writer, pass } = open({ failing: () => isFailing });
    const first = writer.record(use(0));
    await pass(6);
    assert.equal(await first, false);
    isFailing = false;
    const second = writer.record(use(0));
    await pass(6);
    assert.equal(await second, true);
  });
});
