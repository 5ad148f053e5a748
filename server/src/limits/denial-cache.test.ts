import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { DenialCache } from "./denial-cache.ts";

const noon = 1_800_000_000_000;
const call = { counter: "a", limit: 10, duration: 60_000, cost: 1 };
/** Exhausted in this window; nothing in the one before. */
const exhausted = { end: noon + 120_000, current: 10, previous: 0 };

describe("DenialCache", () => {
  it("refuses until a unit is free again, with the figures of that moment", () => {
    const denials = new DenialCache(10_000);
    assert.equal(denials.recall("a", call, noon, noon), undefined);
    denials.remember("a", exhausted);
    // A tenth of the former window has gone 6 s into the next one, and one unit with its first millisecond.
    const state = { allowed: false, remaining: 0, reset: noon + 60_000, retryAfter: 60_001 };
    assert.deepEqual(denials.recall("a", call, noon, noon), {
      outcome: "decided",
      at: noon,
      allowed: false,
      retryAfter: 60_001,
      limits: [state],
    });
    assert.equal(denials.recall("a", call, noon + 60_000, noon + 60_000)!.retryAfter, 1);
    assert.equal(denials.recall("a", call, noon + 60_001, noon + 60_001), undefined);
    // Nine units of cost wait longer, but others may have taken the one that is free.
    assert.equal(denials.recall("a", { ...call, cost: 9 }, noon + 60_001, noon + 60_001), undefined);
    assert.equal(denials.size, 1);
    assert.equal(denials.recall("a", call, noon + 120_000, noon + 120_000), undefined);
    assert.equal(denials.size, 0);
  });

  it("asks where a larger limit may leave room, and refuses a smaller one", () => {
    const denials = new DenialCache(10_000);
    denials.remember("a", exhausted);
    assert.equal(denials.recall("a", { ...call, limit: 11 }, noon, noon), undefined);
    assert.equal(denials.recall("a", { ...call, limit: 11, cost: 5 }, noon, noon), undefined);
    assert.equal(denials.recall("a", { ...call, limit: 5 }, noon, noon)!.allowed, false);
  });

  it("errs towards asking, and promises the later moment, when the time is known roughly", () => {
    const denials = new DenialCache(10_000);
    denials.remember("a", exhausted);
    assert.equal(denials.recall("a", call, noon + 59_990, noon + 60_001), undefined);
    assert.equal(denials.recall("a", call, noon + 59_980, noon + 60_000)!.retryAfter, 21);
  });

  it("takes no more memory than it may, and forgets the oldest first", () => {
    const denials = new DenialCache(100_000);
    for (let i = 0; i < 10_000; i++) denials.remember(`${i} ${"x".repeat(i % 600)}`, exhausted);
    assert.ok(denials.bytes <= 100_000 && denials.bytes > 95_000);
    assert.ok(denials.size < 250);
    assert.equal(denials.recall("0 ", call, noon, noon), undefined);
    assert.notEqual(denials.recall(`9999 ${"x".repeat(399)}`, call, noon, noon), undefined);
    for (let i = 0; i < 10_000; i++) denials.forget(`${i} ${"x".repeat(i % 600)}`);
    assert.equal(denials.bytes, 0);
  });
});
