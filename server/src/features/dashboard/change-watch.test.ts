import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { SimulatedClock } from "../../../../engine/src/clock/simulated.ts";
import { ChangeWatch, WAITING_MAX } from "./change-watch.ts";

describe("ChangeWatch", () => {
  it("keeps places for windows of further workspaces, however many wait in some", async () => {
    const watch = new ChangeWatch({ clock: new SimulatedClock(0), read: async () => [] });
    const ended = new AbortController();
    const waiting: Promise<unknown>[] = [];
    const begin = (workspaceId: string, sessionId: string) => {
      const wait = watch.wait({ workspaceId, sessionId, check: async () => {} }, 0, ended.signal);
      waiting.push(wait.catch(() => {}));
      return wait;
    };
    // As many workspaces as could have all places between them.
    for (let workspace = 0; workspace < WAITING_MAX.node / WAITING_MAX.workspace; workspace++) {
      for (let i = 0; i < WAITING_MAX.workspace; i++)
        void begin(`ws_${workspace}`, `${workspace} ${i}`).catch(() => {});
    }
    const before = watch.waiting;
    assert(before > 0.9 * WAITING_MAX.node && before < WAITING_MAX.node, String(before));
    void begin("ws_late", "late");
    assert.equal(watch.waiting, before + 1);
    ended.abort();
    await Promise.all(waiting);
    // Each has given its place back.
    assert.equal(watch.waiting, 0);
    const again = new AbortController();
    const last = watch.wait({ workspaceId: "ws_0", sessionId: "1", check: async () => {} }, 0, again.signal);
    assert.equal(watch.waiting, 1);
    watch.close();
    await last;
  });
});
