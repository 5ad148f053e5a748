import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate } from "node:timers/promises";
import { WritePace } from "./write-pace.ts";

const MIB = 1024 * 1024;
const PER_ITERATION = 512 * 1024;

describe("WritePace", () => {
  it("gives the content unchanged, of any length", async () => {
    const pace = new WritePace();
    for (const length of [0, 1, 65_535, 65_536, 65_537, 3 * MIB + 1]) {
      const content = Buffer.from(
        Array.from({ length: Math.ceil(length / 8) }, (_, i) => i.toString(36).padStart(8)).join(""),
      ).subarray(0, length);
      assert.deepEqual(Buffer.concat(await pace.stream(content).toArray()), content);
    }
  });

  it("writes a limited number of bytes in each iteration of the event loop, and serves all streams in turn", async () => {
    const pace = new WritePace();
    const read = Array.from({ length: 20 }, () => 0);
    for (const i of read.keys()) {
      pace.stream(Buffer.alloc(MIB)).on("data", (chunk: Buffer) => {
        read[i]! += chunk.length;
      });
    }
    const sum = () => read.reduce((a, b) => a + b, 0);
    let iterations = 0;
    for (let before = 0; sum() < read.length * MIB; iterations++) {
      await setImmediate();
      // One run of the pace can fall on each side of the measurement.
      assert(sum() - before <= 2 * PER_ITERATION, `${sum() - before} bytes in one iteration`);
      assert(Math.max(...read) - Math.min(...read) <= 2 * PER_ITERATION, String(read));
      before = sum();
      assert(iterations < 1_000, "the streams made no progress");
    }
  });

  it("waits for slow readers without holding up others, and forgets streams that were destroyed", async () => {
    const pace = new WritePace();
    const slow = Array.from({ length: 20 }, () => pace.stream(Buffer.alloc(MIB)));
    for (const stream of slow) stream.read(0);
    const prompt = pace.stream(Buffer.alloc(MIB));
    const content = prompt.toArray();
    for (const stream of slow) stream.destroy();
    assert.equal(Buffer.concat(await content).length, MIB);
  });
});
