import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { SimulatedClock } from "../clock/simulated.ts";
import type { Charge, Counters, CountersUnavailable, LimitDecision, LimitState, Receipt } from "./counters.ts";
import { Limiter, LimiterUnavailable } from "./limiter.ts";
import { MemoryCounters } from "./memory-counters.ts";
import { MemoryTable, reserveTable, SEGMENT_BYTES } from "./memory-table.ts";

const noon = 1_800_000_000_000;

/** Counters of their own, whose answers are promises as those of Redis are, or not. */
function open(clock: SimulatedClock, isDistant: boolean): { limiter: Limiter; counters: Counters } {
  const memory = new MemoryCounters(new MemoryTable(reserveTable(SEGMENT_BYTES, false), 1, [17, -4]), clock, "here");
  const counters: Counters = isDistant
    ? {
        charge: async (charges, asksReceipt) => memory.charge(charges, asksReceipt),
        peek: async (charges) => memory.peek(charges),
        adjust: async (receipt, costs) => memory.adjust(receipt, costs),
      }
    : memory;
  return { limiter: new Limiter(counters, "closed", clock), counters };
}

const charge = fc.record({
  counter: fc.constantFrom("a", "b", "c"),
  duration: fc.constantFrom(60_000, 90_000),
  limit: fc.integer({ min: 1, max: 12 }),
  cost: fc.nat(5),
  mode: fc.constantFrom("standard" as const, "strict" as const),
  commit: fc.constantFrom(true, true, true, false),
  shadow: fc.boolean(),
});

const step = fc.record({
  pass: fc.oneof(fc.constant(0), fc.nat(5_000), fc.nat(150_000)),
  isPeek: fc.nat(4).map((n) => n === 0),
  // Limits that are in force and those that are not have counters of their own, so that each can be followed alone.
  charges: fc
    .array(charge, { maxLength: 5 })
    .map((all) => all.map((one): Charge => ({ ...one, counter: `${one.counter} ${one.shadow}` }))),
  settles: fc.option(fc.array(fc.nat(6), { minLength: 5, maxLength: 5 }), { nil: undefined }),
});

const plain = ({ shadow: _, ...rest }: Charge): Charge => rest;

describe("limits in shadow mode", () => {
  for (const isDistant of [false, true]) {
    it(`decide as if they were in force, alone, and change nothing for the others; ${isDistant ? "promises" : "values"}`, async () => {
      let compared = 0;
      let shadowed = 0;
      await fc.assert(
        fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
          const clock = new SimulatedClock(noon);
          const { limiter } = open(clock, isDistant);
          // What is in force alone, and each limit in shadow mode alone.
          const enforced = open(clock, false).limiter;
          const alone = open(clock, false).limiter;
          for (const { pass, isPeek, charges, settles } of steps) {
            clock.advance(pass);
            const decide = async (by: Limiter, some: readonly Charge[], consumes: boolean): Promise<LimitDecision> =>
              consumes ? by.charge(some, true) : by.peek(some);
            const decided = await decide(limiter, charges, !isPeek);
            const inForce = charges.filter(({ shadow }) => !shadow);
            const expected = inForce.length > 0 ? await decide(enforced, inForce, !isPeek) : undefined;
            const consumes = !isPeek && (expected?.allowed ?? true);
            const states = [...(expected?.limits ?? [])];
            const ownReceipts: (Receipt | undefined)[] = [];
            const merged: (LimitState | undefined)[] = [];
            for (const one of charges) {
              if (!one.shadow) {
                merged.push(states.shift());
                continue;
              }
              const own = await decide(alone, [plain(one)], consumes);
              ownReceipts.push(own.receipt);
              merged.push(own.limits[0]);
              if (!own.allowed && consumes) shadowed++;
            }
            assert.deepEqual(decided.limits, merged);
            const [allowed, wait] = expected ? [expected.allowed, expected.retryAfter] : [true, 0];
            assert.deepEqual([decided.allowed, decided.retryAfter], [allowed, wait]);
            const isShadowed = charges.some(({ shadow }, i) => shadow && !merged[i]!.allowed);
            assert.equal(decided.isShadowed === true, isShadowed);
            compared += charges.length;
            if (!consumes || settles === undefined) continue;
            // A settlement finds the charges that commit, in the order of the call, and corrects each where it was counted.
            const committed = charges.filter(({ commit }) => commit !== false);
            const receipt = JSON.parse(JSON.stringify(decided.receipt)) as Receipt;
            assert.deepEqual(
              receipt.charges.map(({ counter, cost }) => [counter, cost]),
              committed.map(({ counter, cost }) => [counter, cost]),
            );
            const costs = committed.map((_, i) => settles[i]);
            await limiter.adjust(receipt, costs);
            if (expected?.receipt) {
              await enforced.adjust(
                expected.receipt,
                costs.filter((_, i) => !committed[i]!.shadow),
              );
            }
            for (const one of charges.filter(({ shadow }) => shadow)) {
              const own = ownReceipts.shift();
              if (own && one.commit !== false) await alone.adjust(own, [costs[committed.indexOf(one)]]);
            }
          }
        }),
        { numRuns: 600, seed: 35 },
      );
      assert(compared > 5_000 && shadowed > 200, `${compared} compared, ${shadowed} would have denied`);
    });
  }

  it("do not deny a call whose counters do not answer, and do not let one pass that others cannot decide", () => {
    const clock = new SimulatedClock(noon);
    for (const outcome of ["outage", "share", "full"] as const) {
      const unavailable = (): CountersUnavailable => ({ outcome });
      const away = { charge: unavailable, peek: unavailable, adjust: () => [] };
      const limiter = new Limiter(away, "closed", clock);
      const one = { counter: "a", limit: 10, duration: 60_000, cost: 3 };
      const { allowed, limits } = limiter.charge([{ ...one, shadow: true }]) as LimitDecision;
      assert.deepEqual(
        [allowed, limits],
        [true, [{ allowed: true, remaining: 7, reset: noon + 60_000, retryAfter: 0 }]],
      );
      assert.throws(
        () => limiter.charge([{ ...one, shadow: true }, one]),
        (error: Error) => error instanceof LimiterUnavailable || error.name === "CounterShareExceeded",
      );
    }
  });
});
