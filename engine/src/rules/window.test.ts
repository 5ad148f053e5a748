import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { DURATION_MAX, decide, LIMIT_MAX, multiplyDivide, unused, type WindowState } from "./window.ts";

const minute = 60_000;
const noon = 1_800_000_000_000;

describe("decide", () => {
  it("counts the current window fully and the previous one in proportion to its remaining time", () => {
    const state: WindowState = { end: noon + minute, current: 9, previous: 3 };
    // `current` was charged in the window that ended at noon; a third of the present window has passed.
    const decision = decide(state, { limit: 10, duration: minute, cost: 2 }, noon + minute / 3);
    assert.deepEqual(decision, {
      allowed: true,
      remaining: 2,
      reset: noon + minute,
      retryAfter: 0,
      next: { end: noon + 2 * minute, current: 2, previous: 9 },
    });
  });

  it("returns the time at which a rejected cost fits, and keeps the state", () => {
    const state: WindowState = { end: noon + minute, current: 9, previous: 3 };
    const decision = decide(state, { limit: 10, duration: minute, cost: 5 }, noon + minute / 3);
    // At most 5 of the 9 may still count: 9 × rest < 6 × 60,000, so rest is at most 39,999.
    assert.equal(decision.retryAfter, 1);
    assert.equal(decision.remaining, 4);
    assert.equal(decision.next, state);
  });

  it("ignores charges that are two windows old", () => {
    const state: WindowState = { end: noon, current: 9, previous: 9 };
    assert.equal(decide(state, { limit: 10, duration: minute, cost: 1 }, noon).remaining, 9);
  });

  it("denies everything at a limit of 0, and a cost over the limit, without a retryAfter", () => {
    for (const charge of [
      { limit: 0, duration: minute, cost: 0 },
      { limit: 0, duration: minute, cost: 1 },
      { limit: 4, duration: minute, cost: 5 },
    ]) {
      const { allowed, remaining, retryAfter, next } = decide(unused, charge, noon);
      assert.deepEqual(
        { allowed, remaining, retryAfter },
        { allowed: false, remaining: charge.limit, retryAfter: undefined },
      );
      assert.equal(next, unused);
    }
  });

  it("changes nothing with a cost of 0", () => {
    const state: WindowState = { end: noon + 2 * minute, current: 10, previous: 0 };
    const decision = decide(state, { limit: 10, duration: minute, cost: 0 }, noon);
    assert.equal(decision.allowed, true);
    assert.equal(decision.next, state);
    assert.equal(decide(state, { limit: 9, duration: minute, cost: 0 }, noon).allowed, false);
  });

  it("stops the time while the clock is behind the newest window", () => {
    const state: WindowState = { end: noon + 2 * minute, current: 5, previous: 5 };
    const charge = { limit: 10, duration: minute, cost: 1 };
    const behind = decide(state, charge, noon - 12_345);
    assert.equal(behind.allowed, false);
    assert.equal(behind.reset, noon + minute);
    assert.equal(behind.retryAfter, 12_345 + decide(state, charge, noon).retryAfter!);
  });

  it("equals the formula in BigInt for all numbers", () => {
    fc.assert(
      fc.property(situation, ({ state, charge, now }) => {
        const used = usedExactly(state, charge.duration, now);
        const decision = decide(state, charge, now);
        const allowed = charge.limit > 0 && used + BigInt(charge.cost) <= BigInt(charge.limit);
        const left = BigInt(charge.limit) - used - (allowed ? BigInt(charge.cost) : 0n);
        assert.equal(decision.allowed, allowed);
        assert.equal(decision.remaining, left > 0n ? Number(left) : 0);
      }),
      { numRuns: 5000 },
    );
  });

  it("gives the exact retryAfter: denied one millisecond earlier, allowed at it", () => {
    fc.assert(
      fc.property(situation, ({ state, charge, now }) => {
        const { allowed, retryAfter } = decide(state, charge, now);
        if (allowed || retryAfter === undefined) return;
        const passesAt = (moment: number) =>
          usedExactly(state, charge.duration, moment) + BigInt(charge.cost) <= BigInt(charge.limit);
        assert.equal(passesAt(now + retryAfter - 1), false);
        assert.equal(passesAt(now + retryAfter), true);
        assert.equal(decide(state, charge, now + retryAfter - 1).allowed, false);
        assert.equal(decide(state, charge, now + retryAfter).allowed, true);
      }),
      { numRuns: 5000 },
    );
  });

  it("gives the first possible retryAfter, checked exhaustively for small numbers", () => {
    for (let duration = 1; duration <= 5; duration++) {
      for (let limit = 1; limit <= 4; limit++) {
        for (let counts = 0; counts < 36; counts++) {
          const current = counts % 6;
          const state = { end: 10 * duration, current, previous: Math.floor(counts / 6) };
          for (let now = 7 * duration; now < 10 * duration; now++) {
            for (let cost = 0; cost <= limit; cost++) {
              const { retryAfter } = decide(state, { limit, duration, cost }, now);
              let wait = 0;
              while (usedExactly(state, duration, now + wait) + BigInt(cost) > BigInt(limit)) wait++;
              assert.equal(retryAfter, wait);
            }
          }
        }
      }
    }
  });
});

describe("multiplyDivide", () => {
  it("is exact over its whole range", () => {
    const factor = fc.oneof(
      fc.integer({ min: 0, max: 2 ** 40 }),
      fc.nat(70_000),
      fc.constantFrom(2 ** 40, 2 ** 40 - 1),
    );
    fc.assert(
      fc.property(
        fc.oneof(fc.integer({ min: 1, max: 2 ** 48 - 1 }), fc.constantFrom(2 ** 48 - 1, 1, LIMIT_MAX + 1)),
        factor,
        factor.map((divisor) => Math.max(1, divisor)),
        fc.constantFrom(0 as const, -1 as const),
        (count, by, divisor, addend) => {
          const dividend = BigInt(count) * BigInt(by) + BigInt(addend);
          const exact = dividend < 0n ? -1n : dividend / BigInt(divisor);
          fc.pre(exact <= BigInt(Number.MAX_SAFE_INTEGER));
          assert.equal(BigInt(multiplyDivide(count, by, divisor, addend)), exact);
        },
      ),
      { numRuns: 20_000 },
    );
  });
});

/** States as they occur: counts are bounded, and `end` is a whole number of windows before or after the clock. */
const situation = fc
  .record({
    duration: fc.oneof(fc.integer({ min: 1, max: DURATION_MAX }), fc.constantFrom(DURATION_MAX, 1, 1000, minute)),
    windowsAhead: fc.integer({ min: -1, max: 3 }),
    elapsed: fc.double({ min: 0, max: 1, noNaN: true }),
    current: fc.oneof(fc.integer({ min: 0, max: LIMIT_MAX }), fc.nat(20), fc.constant(LIMIT_MAX)),
    previous: fc.oneof(fc.integer({ min: 0, max: LIMIT_MAX }), fc.nat(20), fc.constant(LIMIT_MAX)),
    limit: fc.oneof(fc.integer({ min: 0, max: LIMIT_MAX }), fc.nat(20), fc.constant(LIMIT_MAX)),
    cost: fc.oneof(fc.integer({ min: 0, max: LIMIT_MAX }), fc.nat(20), fc.constant(LIMIT_MAX)),
  })
  .map(({ duration, windowsAhead, elapsed, current, previous, limit, cost }) => {
    const start = Math.floor(noon / duration) * duration;
    const state: WindowState = { end: start + windowsAhead * duration, current, previous };
    return {
      state,
      charge: { limit, duration, cost },
      now: start + Math.min(duration - 1, Math.floor(elapsed * duration)),
    };
  });

/** The formula itself. */
function usedExactly(state: WindowState, durationMs: number, nowMs: number): bigint {
  const duration = BigInt(durationMs);
  const newest = BigInt(state.end) / duration - 2n;
  const now = BigInt(nowMs) > newest * duration ? BigInt(nowMs) : newest * duration;
  const index = now / duration;
  const rest = (index + 1n) * duration - now;
  const countOf = (window: bigint) =>
    window === newest ? BigInt(state.current) : window === newest - 1n ? BigInt(state.previous) : 0n;
  return countOf(index) + (countOf(index - 1n) * rest) / duration;
}
