import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { parseStringList } from "../../server/test/structured-fields.ts";
import { type LimitState, limitHeaders, limitsOf } from "../src/limit-headers.ts";

const { now, cases } = JSON.parse(readFileSync(new URL("limit-headers.json", import.meta.url), "utf8")) as {
  now: number;
  cases: { name: string; limits: LimitState[]; headers: Record<string, string> }[];
};

describe("the headers about limits", () => {
  for (const { name, limits, headers } of cases) {
    it(`have ${name}`, async () => {
      assert.deepEqual(await limitHeaders(limits, now), headers);
      for (const text of Object.values(headers)) assert.equal(parseStringList(text).length, limits.length);
    });
  }

  it("need one digest for each key and identity of late, of a bounded number", async (t) => {
    const digest = t.mock.method(crypto.subtle, "digest");
    const headersOf = (partition: string) =>
      limitHeaders([{ name: "calls", limit: 9, exceeded: false, remaining: 8, partition }], now);
    const first = await headersOf("key_first");
    assert.deepEqual(await headersOf("key_first"), first);
    assert.equal(digest.mock.callCount(), 1);
    for (let i = 0; i < 10_000; i++) await headersOf(`other_${i}`);
    await headersOf("other_9999");
    assert.equal(digest.mock.callCount(), 10_001);
    assert.deepEqual(await headersOf("key_first"), first);
    assert.equal(digest.mock.callCount(), 10_002);
    // An identifier of `ratelimit` can be as long as a request.
    for (let i = 0; i < 2; i++) await headersOf("i".repeat(1_000));
    assert.equal(digest.mock.callCount(), 10_004);
  });

  it("say of a verification which limits are those of the key and of the identity", () => {
    const limit = {
      id: "rl_1",
      name: "requests",
      limit: 9,
      duration: 1_000,
      autoApply: true,
      remaining: 8,
      reset: now,
    };
    const slots = { name: "streams", limit: 2, inUse: 3, exceeded: true, retryAfter: 5 };
    const found = limitsOf({
      valid: false,
      code: "RATE_LIMITED",
      keyId: "key_1",
      identity: { id: "id_1", externalId: "acme", meta: {}, ratelimits: [] },
      ratelimits: [
        { ...limit, exceeded: false, retryAfter: 0 },
        { ...limit, exceeded: false, retryAfter: 0, from: "identity" },
      ],
      concurrency: [
        { ...slots, from: "key" },
        { ...slots, from: "identity", inUse: 1, exceeded: false },
      ],
    });
    assert.deepEqual(
      found.map(({ name, partition, remaining, unit }) => [name, partition, remaining, unit]),
      [
        ["requests", "key_1", 8, undefined],
        ["requests", "id_1", 8, undefined],
        ["streams", "key_1", 0, "concurrent-requests"],
        ["streams", "id_1", 1, "concurrent-requests"],
      ],
    );
  });
});
