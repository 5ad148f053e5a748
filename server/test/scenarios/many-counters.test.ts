/** A workspace with more identifiers than its share of the memory for counters. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { openTestServer } from "../harness.ts";

describe("a workspace with too many counters", () => {
  it("gets 429 for new ones until others have ended, and nothing is charged", async () => {
    const server = await openTestServer({ settings: { COUNTER_BYTES: "1m" } });
    try {
      const one = { namespace: "many", limit: 10, duration: 60_000 };
      let rejected: Awaited<ReturnType<typeof server.call>> | undefined;
      for (let first = 0; rejected === undefined; first += 100) {
        assert.ok(first < 32_768);
        const entries = Array.from({ length: 100 }, (_, i) => ({ ...one, identifier: `user ${first + i}` }));
        const reply = await server.call("ratelimits.multiLimit", entries);
        if (reply.status !== 200) rejected = reply;
      }
      assert.equal(rejected.problem, "too_many_counters");
      assert.equal(rejected.headers["retry-after"], "10");
      // There may be room for up to a hundred more.
      let reply = rejected;
      for (let i = 0; reply.status === 200 || i === 0; i++) {
        assert.ok(i <= 100);
        reply = await server.call("ratelimits.limit", { ...one, identifier: `single ${i}` });
      }
      assert.equal(reply.problem, "too_many_counters");
      assert.equal((await server.ok("ratelimits.limit", { ...one, identifier: "user 7" })).remaining, 8);
      // After two windows, and the time to free the memory.
      await server.pass(121_000);
      assert.equal((await server.ok("ratelimits.limit", { ...one, identifier: "later" })).remaining, 9);
    } finally {
      await server.close();
    }
  });
});
