import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { DenialCache } from "./denial-cache.ts";

const noon = 1_800_000_000_000;
const call = { counter: "a", limit: 10, duration: 60_000, cost: 1 };
/** Exhausted in this window; nothing in the one before. */
const exhausted = { end: noon + 120_000, current: 10, previous: 0 };

describe("DenialCache", () => {
  it("denies until a unit is free again, with the current state", () => {
    const denials = new DenialCache(10_000);
    assert.equal(denials.deny("a", call, noon, noon), undefined);
    denials.set("a", exhausted);
    // The previous window releases its first unit one millisecond into the next window.
    const state = { allowed: false, remaining: 0, reset: noon + 60_000, retryAfter: 60_001 };
    assert.deepEqual(denials.deny("a", call, noon, noon), {
      outcome: "decided",
      at: noon,
      allowed: false,
      retryAfter: 60_001,
      limits: [state],
    });
    assert.equal(denials.deny("a", call, noon + 60_000, noon + 60_000)!.retryAfter, 1);
    assert.equal(denials.deny("a", call, noon + 60_001, noon + 60_001), undefined);
    // A cost of nine waits longer, but other nodes may have charged in the meantime, so Redis must decide.
    assert.equal(denials.deny("a", { ...call, cost: 9 }, noon + 60_001, noon + 60_001), undefined);
    assert.equal(denials.size, 1);
    assert.equal(denials.deny("a", call, noon + 120_000, noon + 120_000), undefined);
    assert.equal(denials.size, 0);
  });

  it("does not decide for a larger limit, and denies a smaller one", () => {
    const denials = new DenialCache(10_000);
    denials.set("a", exhausted);
    assert.equal(denials.deny("a", { ...call, limit: 11 }, noon, noon), undefined);
    assert.equal(denials.deny("a", { ...call, limit: 11, cost: 5 }, noon, noon), undefined);
    assert.equal(denials.deny("a", { ...call, limit: 5 }, noon, noon)!.allowed, false);
  });

  it("leaves the decision to Redis when its clock was set back before the window, because it may have moved the counter", () => {
    const blocked = { ...call, limit: 0 };
    const before = noon - 1;
    for (const state of [exhausted, { end: noon + 120_000, current: 0, previous: 0 }]) {
      const denials = new DenialCache(10_000);
      denials.set("a", state);
      assert.equal(denials.deny("a", blocked, noon, noon)!.limits[0]!.reset, noon + 60_000);
      assert.equal(denials.deny("a", blocked, before, before), undefined);
      assert.equal(denials.size, 0);
    }
  });

  it("forgets a denial after its time", () => {
    const denials = new DenialCache(10_000);
    denials.set("a", exhausted, 1_000);
    assert.equal(denials.deny("a", call, noon, noon, 999)!.allowed, false);
    assert.equal(denials.deny("a", call, noon, noon, 1_000), undefined);
    assert.equal(denials.bytes, 0);
  });

  it("leaves the decision to Redis, and returns the later `retryAfter`, when the time of Redis is uncertain", () => {
    const denials = new DenialCache(10_000);
    denials.set("a", exhausted);
    assert.equal(denials.deny("a", call, noon + 59_990, noon + 60_001), undefined);
    assert.equal(denials.deny("a", call, noon + 59_980, noon + 60_000)!.retryAfter, 21);
  });

  it("stays within its memory bound, and evicts the oldest first", () => {
    const denials = new DenialCache(100_000);
    for (let i = 0; i < 10_000; i++) denials.set(`${i} ${"x".repeat(i % 600)}`, exhausted);
    assert.ok(denials.bytes <= 100_000 && denials.bytes > 95_000);
    assert.ok(denials.size < 250);
    assert.equal(denials.deny("0 ", call, noon, noon), undefined);
    assert.notEqual(denials.deny(`9999 ${"x".repeat(399)}`, call, noon, noon), undefined);
    for (let i = 0; i < 10_000; i++) denials.delete(`${i} ${"x".repeat(i % 600)}`);
    assert.equal(denials.bytes, 0);
  });
});
