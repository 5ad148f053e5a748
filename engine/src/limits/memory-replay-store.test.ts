import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { SimulatedClock } from "../clock/simulated.ts";
import { IdempotencyQuotaExceeded } from "../errors/idempotency.ts";
import { MemoryReplayStore } from "./memory-replay-store.ts";

const MINUTE = 60_000;

describe("MemoryReplayStore", () => {
  it("leaves room for other workspaces when one of them fills its share", () => {
    const clock = new SimulatedClock(0);
    const replays = new MemoryReplayStore(clock);
    const make = (workspaceId: string, i: number) =>
      replays.once(
        { scope: `${workspaceId} ${i}`, fingerprint: "same", workspaceId },
        () => ({ made: true }),
        () => ({ text: "{}", windowMax: MINUTE }),
      );
    /** Adds outcomes until the quota of a workspace is exceeded, and returns their number. */
    const fill = (workspaceId: string) => {
      for (let i = 0; ; i++) {
        try {
          make(workspaceId, i);
        } catch (error) {
          assert(error instanceof IdempotencyQuotaExceeded, String(error));
          return i;
        }
      }
    };
    const alone = fill("first");
    const second = fill("other");
    assert.deepEqual([alone, second], [50_000, 25_000]);
    // A replay still gets its outcome.
    assert.deepEqual(make("first", 1), { replay: "completed", text: "{}" });
    // Expired outcomes free their room.
    clock.advance(2 * MINUTE);
    for (let i = 0; i < 10_000; i++) make("third", i);
    make("first", alone);
  });
});
