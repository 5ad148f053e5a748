import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { seededRandom } from "../../../../engine/src/random/seeded.ts";
import { CollectedBytes } from "./collected-bytes.ts";

describe("collected bytes", () => {
  it("are those of all chunks", () => {
    const random = seededRandom(1);
    for (let run = 0; run < 300; run++) {
      const lengthMax = [10, 1_000, 10_000][run % 3] ?? 1;
      const collected = new CollectedBytes();
      const chunks = Array.from({ length: random.below(60) }, () =>
        Buffer.alloc(random.below(lengthMax), random.below(256)),
      );
      const sent = chunks.map((chunk) => Buffer.from(chunk));
      for (const chunk of chunks) collected.append(chunk);
      assert.equal(collected.length, Buffer.concat(sent).length);
      assert.deepEqual(collected.all(), Buffer.concat(sent));
      assert.deepEqual(chunks, sent, "a chunk was changed");
    }
  });

  it("take about their own memory, also in chunks of one byte", () => {
    const BYTES = 200_000;
    const chunk = Buffer.from("a");
    const before = process.memoryUsage();
    const collected = new CollectedBytes();
    for (let i = 0; i < BYTES; i++) collected.append(chunk);
    const after = process.memoryUsage();
    assert(after.arrayBuffers - before.arrayBuffers <= 2 * BYTES);
    assert.equal(collected.all().length, BYTES);
  });

  it("are none after they are cleared", () => {
    const collected = new CollectedBytes();
    assert.equal(collected.all().length, 0);
    for (const text of ["a", "b"]) collected.append(Buffer.from(text));
    collected.clear();
    assert.equal(collected.all().length, 0);
    for (const text of ["c", "d"]) collected.append(Buffer.from(text));
    assert.equal(collected.all().toString(), "cd");
  });
});
