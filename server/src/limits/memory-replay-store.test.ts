import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { SimulatedClock } from "../clock/simulated.ts";
import { IdempotencyQuotaExceeded } from "../store/idempotency.ts";
import { MemoryReplayStore } from "./memory-replay-store.ts";

const MINUTE = 60_000;

describe("outcomes in memory", () => {
  it("leave room for other workspaces, however many one of them has", () => {
    const clock = new SimulatedClock(0);
    const replays = new MemoryReplayStore(clock);
    const make = (workspaceId: string, i: number) =>
      replays.once(
        { scope: `${workspaceId} ${i}`, fingerprint: "same", workspaceId },
        () => ({ made: true }),
        () => ({ text: "{}", windowMax: MINUTE }),
      );
    /** How many a workspace has when it is told that it may have no more. */
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
    const alone = fill("hog");
    const second = fill("other");
    assert.deepEqual([alone, second], [50_000, 25_000]);
    // A repetition is known all the same.
    assert.deepEqual(make("hog", 1), { replay: "completed", text: "{}" });
    // What has expired makes room again.
    clock.advance(2 * MINUTE);
    for (let i = 0; i < 10_000; i++) make("third", i);
    make("hog", alone);
  });
});
