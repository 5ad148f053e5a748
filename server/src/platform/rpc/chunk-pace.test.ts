import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ChunkPace } from "./chunk-pace.ts";

/** Chunks of full size, whose time is `fixed` and `perItem` for each item; returns the size that they settle at. */
function settled(pace: ChunkPace, { fixed, perItem }: { fixed: number; perItem: number }): number {
  for (let chunk = 0; chunk < 20; chunk++) pace.record(pace.size, fixed + perItem * pace.size);
  return pace.size;
}

describe("the pace of chunks", () => {
  it("settles where a chunk takes 12 ms, and follows a database that becomes slower or faster", () => {
    const pace = new ChunkPace({ time: 12, min: 200, max: 1_000 });
    assert.equal(settled(pace, { fixed: 4, perItem: 0.02 }), 400);
    assert.equal(settled(pace, { fixed: 4, perItem: 0.03 }), 267);
    assert.equal(settled(pace, { fixed: 2, perItem: 0.02 }), 500);
  });

  it("stays within its bounds", () => {
    const pace = new ChunkPace({ time: 12, min: 200, max: 1_000 });
    assert.equal(settled(pace, { fixed: 0, perItem: 0 }), 1_000);
    assert.equal(settled(pace, { fixed: 100, perItem: 1 }), 200);
  });

  it("halves a size at most, so that one stall costs little", () => {
    const pace = new ChunkPace({ time: 12, min: 200, max: 1_000 });
    settled(pace, { fixed: 4, perItem: 0.02 });
    pace.record(400, 2_000);
    assert.equal(pace.size, 200);
  });

  it("learns from a small chunk only that it took too long", () => {
    const pace = new ChunkPace({ time: 12, min: 200, max: 1_000 });
    pace.record(10, 0.1);
    assert.equal(pace.size, 200);
    settled(pace, { fixed: 4, perItem: 0.02 });
    pace.record(10, 30);
    assert.equal(pace.size, 200);
  });
});
