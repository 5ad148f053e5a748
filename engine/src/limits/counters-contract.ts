import assert from "node:assert/strict";
import { afterEach, describe, it } from "node:test";
import fc from "fast-check";
import { DURATION_MAX, LIMIT_MAX } from "../rules/window.ts";
import type { Charge, ChargeResult, Counters, LimitDecision, LimitState, Receipt } from "./counters.ts";
import { CountersModel, type ModelReceipt } from "./counters-model.ts";
import { assertLeases } from "./leases-model.ts";
import type { Lender } from "./lender.ts";

/** Empty counters of one kind, with a clock that the suite moves. */
export interface OpenCounters {
  readonly counters: Counters;
  /** Lends from them. */
  readonly lender: Lender;
  /** The time of the counters' own clock. */
  now(): number;
  /** Lets `length` milliseconds pass, or, when it is negative, steps the clock back. */
  advance(length: number): void;
  /** Loses all counts, as a crash or an emptied Redis does. */
  lose?(): Promise<void>;
  close(): void | Promise<void>;
}

/** The test suite of all kinds of counters. `open` returns empty counters. */
export function describeCounters(name: string, open: () => OpenCounters | Promise<OpenCounters>): void {
  describe(`${name} as counters`, () => {
    let opened: OpenCounters[] = [];

    async function openOne(): Promise<OpenCounters> {
      const one = await open();
      opened.push(one);
      return one;
    }

    afterEach(async () => {
      for (const one of opened) await one.close();
      opened = [];
    });

    it("allows a limit to its last unit, then rejects until exactly `retryAfter`", async () => {
      const { counters, advance, now } = await openOne();
      const call = [{ counter: "a", limit: 3, duration: 60_000, cost: 1 }];
      for (const remaining of [2, 1, 0]) {
        const verdict = decided(await counters.charge(call));
        assert.equal(verdict.allowed, true);
        assert.equal(verdict.limits[0].remaining, remaining);
      }
      const denied = deniedBy(await counters.charge(call));
      assert.equal(denied.limits[0].reset, (Math.floor(now() / 60_000) + 1) * 60_000);
      advance(denied.retryAfter - 1);
      assert.equal(decided(await counters.charge(call)).allowed, false);
      advance(1);
      assert.equal(decided(await counters.charge(call)).allowed, true);
    });

    it("charges all limits of a call or none", async () => {
      const { counters } = await openOne();
      const small = { counter: "small", limit: 1, duration: 60_000, cost: 1 };
      const large = { counter: "large", limit: 10, duration: 3_600_000, cost: 4 };
      assert.deepEqual(states(await counters.charge([large, small])), [true, 6, true, 0]);
      for (let again = 0; again < 3; again++) {
        assert.deepEqual(states(await counters.charge([large, small])), [true, 6, false, 0]);
        assert.deepEqual(states(await counters.charge([small, large])), [false, 0, true, 6]);
      }
      assert.deepEqual(states(await counters.charge([large])), [true, 2]);
    });

    it("adds up charges of one call that name the same counter", async () => {
      const { counters } = await openOne();
      const charge = { counter: "a", limit: 10, duration: 60_000, cost: 4 };
      assert.deepEqual(states(await counters.charge([charge, charge, charge])), [true, 10, true, 10, false, 10]);
      assert.equal(decided(await counters.charge([charge, charge, charge])).retryAfter, undefined);
      assert.deepEqual(states(await counters.charge([charge, charge])), [true, 6, true, 2]);
      const other = { ...charge, duration: 120_000 };
      assert.deepEqual(states(await counters.charge([other, charge])), [true, 10, false, 2]);
    });

    it("checks a charge that does not commit like any other, and consumes nothing for it", async () => {
      const { counters } = await openOne();
      const named = { counter: "named", limit: 10, duration: 60_000, cost: 1 };
      const checked = { counter: "checked", limit: 2, duration: 60_000, cost: 1, commit: false };
      for (let i = 1; i <= 3; i++) {
        assert.deepEqual(states(await counters.charge([checked, named])), [true, 2, true, 10 - i]);
      }
      await counters.charge([{ ...checked, cost: 2, commit: true }]);
      assert.deepEqual(states(await counters.charge([checked, named])), [false, 0, true, 7]);
    });

    it("allows a cost of 0 within the limit, and consumes nothing", async () => {
      const { counters } = await openOne();
      const charge = { counter: "a", limit: 2, duration: 60_000, cost: 2 };
      const look = { ...charge, cost: 0 };
      assert.deepEqual(states(await counters.charge([look])), [true, 2]);
      await counters.charge([charge]);
      assert.deepEqual(states(await counters.charge([look])), [true, 0]);
      assert.deepEqual(states(await counters.charge([{ ...look, limit: 1 }])), [false, 0]);
    });

    it("has no `retryAfter` for a cost that can never be allowed", async () => {
      const { counters } = await openOne();
      const charge = { counter: "a", limit: 5, duration: 60_000, cost: 6 };
      for (const never of [charge, { ...charge, limit: 0, cost: 1 }, { ...charge, limit: 0, cost: 0 }]) {
        const verdict = decided(await counters.charge([{ ...charge, cost: 1, commit: false }, never]));
        assert.equal(verdict.allowed, false);
        assert.equal(verdict.retryAfter, undefined);
        const [, state] = verdict.limits;
        assert.deepEqual([state?.retryAfter, state?.remaining], [undefined, never.limit]);
      }
    });

    it("keeps the count when the limit changes, and starts another when the duration does", async () => {
      const { counters } = await openOne();
      const charge = { counter: "a", limit: 10, duration: 60_000, cost: 4 };
      await counters.charge([charge]);
      assert.deepEqual(states(await counters.charge([{ ...charge, limit: 5 }])), [false, 1]);
      assert.deepEqual(states(await counters.charge([{ ...charge, limit: 3 }])), [false, 0]);
      assert.deepEqual(states(await counters.charge([{ ...charge, duration: 59_999 }])), [true, 6]);
      assert.deepEqual(states(await counters.charge([{ ...charge, counter: "A" }])), [true, 6]);
    });

    it("stops the time of a counter while the clock is behind its newest window", async () => {
      const { counters, advance, now } = await openOne();
      const charge = { counter: "a", limit: 2, duration: 60_000, cost: 2 };
      advance(60_000 - (now() % 60_000) + 10);
      const reset = decided(await counters.charge([charge])).limits[0].reset;
      advance(-60_010);
      const denied = deniedBy(await counters.charge([charge]));
      assert.equal(denied.limits[0].reset, reset);
      advance(denied.retryAfter - 1);
      assert.equal(decided(await counters.charge([charge])).allowed, false);
      advance(1);
      assert.equal(decided(await counters.charge([charge])).allowed, true);
    });

    it("moves a counter that is far ahead to the current window, with its counts", async () => {
      const day = 86_400_000;
      const { counters, advance, now } = await openOne();
      const charge = { counter: "a", limit: 5, duration: 60_000, cost: 5 };
      advance(day);
      await counters.charge([charge]);
      advance(-day);
      const denied = deniedBy(await counters.peek([charge]));
      assert.equal(denied.limits[0].reset, (Math.floor(now() / 60_000) + 1) * 60_000);
      assert.ok(denied.retryAfter <= 2 * 60_000, `${denied.retryAfter}`);
      advance(denied.retryAfter - 1);
      assert.equal(decided(await counters.charge([charge])).allowed, false);
      advance(1);
      assert.equal(decided(await counters.charge([charge])).allowed, true);
    });

    it("keeps each charge of a strict limit when the clock is set back far, twice", async () => {
      const { counters, advance, now } = await openOne();
      const model = new CountersModel();
      const charge = { counter: "a", limit: 1, duration: 15, cost: 1, mode: "strict" } as const;
      for (const [pass, change] of [
        [-19, {}],
        [19, {}],
        [-18, { cost: 0 }],
        [-18, { limit: 2 }],
        [0, { cost: 0 }],
      ] as const) {
        advance(pass);
        const call = [{ ...charge, ...change }];
        assert.deepEqual(await counters.charge(call), model.charge(call, now()));
      }
    });

    for (const mode of ["standard", "strict"] as const) {
      it(`answers a ${mode} limit like the exact model after a denied call of several moved its counter`, async () => {
        const { counters, advance, now } = await openOne();
        const model = new CountersModel();
        const charge = { counter: "a", limit: 1, duration: 16, cost: 1, mode };
        const charges = (pass: number, ...call: Charge[]) => ({ pass, call });
        for (const { pass, call } of [
          charges(16 - (now() % 16), charge),
          charges(0, charge),
          charges(-19, { ...charge, cost: 0 }, { ...charge, counter: "b", cost: 2 }),
          charges(19, charge),
        ]) {
          advance(pass);
          assert.deepEqual(await counters.charge(call), model.charge(call, now()));
        }
      });
    }

    it("counts strict limits exactly with the largest allowed numbers", async () => {
      const { counters, advance, now } = await openOne();
      const charge = { counter: "a", limit: LIMIT_MAX, duration: DURATION_MAX, mode: "strict", cost: 1 } as const;
      const model = new CountersModel();
      for (let i = 0; i < 40; i++) {
        const call = [{ ...charge, cost: i % 3 === 0 ? LIMIT_MAX / 4 : 98_765_432_109 }];
        assert.deepEqual(await counters.charge(call), model.charge(call, now()));
        advance(Math.floor(DURATION_MAX / 19));
      }
    });

    it("counts exactly with the largest allowed numbers", async () => {
      const { counters, advance, now } = await openOne();
      const charge = { counter: "a", limit: LIMIT_MAX, duration: DURATION_MAX, cost: LIMIT_MAX };
      advance(DURATION_MAX - (now() % DURATION_MAX));
      await counters.charge([charge]);
      advance(DURATION_MAX + 1_234_567_891);
      const model = new CountersModel();
      model.charge([charge], now() - 1_234_567_891 - DURATION_MAX);
      for (const cost of [1, 7, 39_042_123_456, 500_000_000_001, LIMIT_MAX]) {
        const verdict = decided(await counters.peek([{ ...charge, cost }]));
        assert.deepEqual(verdict, model.peek([{ ...charge, cost }], now()));
        if (verdict.allowed) continue;
        const { retryAfter } = deniedBy(verdict);
        advance(retryAfter - 1);
        assert.equal(decided(await counters.peek([{ ...charge, cost }])).allowed, false);
        advance(1);
        assert.equal(decided(await counters.peek([{ ...charge, cost }])).allowed, true);
        advance(-retryAfter);
      }
    });

    it("answers every call like the exact model", async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 40 }), async (steps) => {
          const { counters, advance, now, close } = await open();
          const model = new CountersModel();
          for (const { pass, charges, isPeek, retries } of steps) {
            advance(pass);
            const verdict = isPeek ? await counters.peek(charges) : await counters.charge(charges);
            assert.deepEqual(verdict, isPeek ? model.peek(charges, now()) : model.charge(charges, now()));
            const { allowed, retryAfter } = decided(verdict);
            if (allowed || retryAfter === undefined || !retries) continue;
            // The call is rejected one millisecond before `retryAfter`, and allowed at it.
            advance(retryAfter - 1);
            assert.equal(decided(await counters.charge(charges)).allowed, false);
            advance(1);
            assert.equal(decided(await counters.charge(charges)).allowed, true);
            model.charge(charges, now());
          }
          await close();
        }),
        { numRuns: 500 },
      );
    });

    it("answers calls of strict limits at short times like the exact model", async () => {
      const shortStep = fc.record({
        pass: fc.oneof(fc.nat(3), fc.nat(40), fc.integer({ min: -300, max: 300 })),
        charges: fc.array(
          fc.record({
            counter: fc.constantFrom("a", "b"),
            duration: fc.constantFrom(1, 7, 15, 16, 17, 100),
            limit: fc.integer({ min: 1, max: 9 }),
            cost: fc.nat(4),
            mode: fc.constantFrom("strict" as const, "strict" as const, undefined),
          }),
          { minLength: 1, maxLength: 3 },
        ),
      });
      await fc.assert(
        fc.asyncProperty(fc.array(shortStep, { minLength: 10, maxLength: 100 }), async (steps) => {
          const { counters, advance, now, close } = await open();
          const model = new CountersModel();
          for (const { pass, charges } of steps) {
            advance(pass);
            assert.deepEqual(await counters.charge(charges), model.charge(charges, now()));
          }
          await close();
        }),
        { numRuns: 100 },
      );
    });

    it("is independent of the order of different limits", async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 20 }), async (steps) => {
          const one = await open();
          const other = await open();
          one.advance(other.now() - one.now());
          for (const { pass, charges } of steps) {
            const distinct = charges.filter((charge, i) => charges.findIndex((c) => isSameCounter(c, charge)) === i);
            one.advance(pass);
            other.advance(pass);
            const forwards = decided(await one.counters.charge(distinct));
            const backwards = decided(await other.counters.charge(distinct.toReversed()));
            assert.deepEqual({ ...backwards, limits: backwards.limits.toReversed() }, forwards);
          }
          await one.close();
          await other.close();
        }),
        { numRuns: 50 },
      );
    });

    it("keeps every aligned window within the limit, and every trailing duration within twice of it", async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.record({
            limit: fc.integer({ min: 1, max: 30 }),
            duration: fc.integer({ min: 1, max: 60 }),
            calls: fc.array(fc.record({ pass: fc.nat(12), cost: fc.nat(12) }), { maxLength: 150 }),
          }),
          async ({ limit, duration, calls }) => {
            const { counters, advance, now, close } = await open();
            const log: { at: number; cost: number }[] = [];
            for (const { pass, cost } of calls) {
              advance(pass);
              const verdict = decided(await counters.charge([{ counter: "a", limit, duration, cost }]));
              if (!verdict.allowed) continue;
              log.push({ at: now(), cost });
              const start = Math.floor(now() / duration) * duration;
              const rest = start + duration - now();
              assert.ok(sum(log, (entry) => entry.at >= start) <= limit);
              // Twice the limit itself is reached only where floor(limit × rest ÷ duration) is 0, in a window's last part.
              const bound = 2 * limit - Math.floor((limit * rest) / duration);
              assert.ok(sum(log, (entry) => entry.at > now() - duration) <= bound);
            }
            await close();
          },
        ),
        { numRuns: 100 },
      );
    });

    it("keeps every trailing duration of a strict limit within the limit, and rejects for at most a sub-window longer", async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.record({
            limit: fc.integer({ min: 1, max: 30 }),
            duration: fc.integer({ min: 1, max: 200 }),
            calls: fc.array(fc.record({ pass: fc.nat(40), cost: fc.nat(12) }), { maxLength: 150 }),
          }),
          async ({ limit, duration, calls }) => {
            const { counters, advance, now, close } = await open();
            const log: { at: number; cost: number }[] = [];
            const granularity = Math.ceil(duration / 16);
            for (const { pass, cost } of calls) {
              advance(pass);
              const charge = { counter: "a", limit, duration, mode: "strict", cost } as const;
              const { allowed } = decided(await counters.charge([charge]));
              if (allowed) {
                log.push({ at: now(), cost });
                assert.ok(sum(log, ({ at }) => at > now() - duration) <= limit);
              } else {
                assert.ok(sum(log, ({ at }) => at > now() - duration - granularity + 1) + cost > limit);
              }
            }
            await close();
          },
        ),
        { numRuns: 200 },
      );
    });

    it("keeps a charge of a strict limit for its duration when the clock is set back far, also between sub-windows", async () => {
      const { counters, advance, now } = await openOne();
      const charge = { counter: "a", limit: 2, duration: 160, cost: 1, mode: "strict" } as const;
      const isAllowed = async () => decided(await counters.charge([charge])).allowed;
      advance(10 - (now() % 10) + 9);
      // The first charge at the end of a sub-window, the second at the start of one, and the clock then at an end.
      assert.equal(await isAllowed(), true);
      advance(91);
      assert.equal(await isAllowed(), true);
      advance(-171);
      for (let passed = 91; passed < 160; passed++) {
        assert.equal(await isAllowed(), false, `${passed} ms after the first charge`);
        advance(1);
      }
    });

    it("counts a released charge of a strict limit again when the clock is set back within a sub-window", async () => {
      const { counters, advance, now } = await openOne();
      const model = new CountersModel();
      const call = [{ counter: "a", limit: 2, duration: 160, cost: 1, mode: "strict" } as const];
      advance(10 - (now() % 10));
      for (const pass of [0, 160, 9, 0, -4, 4]) {
        advance(pass);
        assert.deepEqual(await counters.charge(call), model.charge(call, now()));
      }
    });

    it("keeps every trailing duration of a strict limit within the limit while the clock is set back", async () => {
      const steps = fc.record({
        pass: fc.oneof(fc.nat(4), fc.nat(60)),
        back: fc.oneof(fc.constant(0), fc.constant(0), fc.nat(300)),
        cost: fc.nat(4),
      });
      await fc.assert(
        fc.asyncProperty(
          fc.constantFrom(1, 17, 33, 100),
          fc.array(steps, { minLength: 10, maxLength: 60 }),
          async (duration, calls) => {
            const { counters, advance, close } = await open();
            const log: { at: number; cost: number }[] = [];
            // The time that has passed, which no step of the clock changes.
            let at = 0;
            for (const { pass, back, cost } of calls) {
              advance(pass - back);
              at += pass;
              const charge = { counter: "a", limit: 4, duration, mode: "strict", cost } as const;
              if (decided(await counters.charge([charge])).allowed) log.push({ at, cost });
              assert.ok(sum(log, (entry) => entry.at > at - duration) <= 4);
            }
            await close();
          },
        ),
        { numRuns: 60 },
      );
    });

    it("resets a strict limit when its oldest charge has left the trailing duration", async () => {
      const { counters, advance, now } = await openOne();
      const charge = { counter: "a", limit: 3, duration: 1600, mode: "strict", cost: 1 } as const;
      advance(100 - (now() % 100));
      const begin = now();
      const resetOf = async (cost: number) => decided(await counters.charge([{ ...charge, cost }])).limits[0].reset;
      assert.equal(await resetOf(0), begin + 1699);
      // Charges in one sub-window leave together, with its last millisecond.
      assert.equal(await resetOf(1), begin + 1699);
      advance(99);
      assert.equal(await resetOf(1), begin + 1699);
      advance(1);
      assert.equal(await resetOf(1), begin + 1699);
      const denied = decided(await counters.charge([{ ...charge, cost: 2 }]));
      assert.equal(denied.limits[0].retryAfter, 1599);
      assert.equal(decided(await counters.peek([{ ...charge, cost: 3 }])).retryAfter, 1699);
      advance(1599);
      assert.deepEqual(states(await counters.charge([{ ...charge, cost: 2 }])), [true, 0]);
      assert.equal(await resetOf(0), begin + 1799);
      advance(1700);
      assert.deepEqual(states(await counters.peek([charge])), [true, 3]);
      assert.equal(await resetOf(0), begin + 4999);
    });

    it("counts strict and standard charges of one name apart", async () => {
      const { counters } = await openOne();
      const standard = { counter: "a", limit: 3, duration: 60_000, cost: 2 };
      const strict = { ...standard, mode: "strict" } as const;
      assert.deepEqual(states(await counters.charge([standard, strict])), [true, 1, true, 1]);
      // If one mode denies, neither is charged.
      assert.deepEqual(states(await counters.charge([{ ...standard, cost: 1 }, strict])), [true, 1, false, 1]);
      assert.deepEqual(states(await counters.charge([standard, { ...strict, cost: 1 }])), [false, 1, true, 1]);
      assert.deepEqual(states(await counters.charge([{ ...standard, cost: 1 }])), [true, 0]);
      assert.deepEqual(states(await counters.charge([{ ...strict, cost: 1, limit: 4 }])), [true, 1]);
      assert.deepEqual(states(await counters.charge([{ ...strict, cost: 1, duration: 60_001 }])), [true, 2]);
    });

    it("moves a strict counter that is far ahead back to the present, with its counts", async () => {
      const day = 86_400_000;
      const { counters, advance } = await openOne();
      const charge = { counter: "a", limit: 5, duration: 60_000, mode: "strict", cost: 1 } as const;
      advance(day);
      for (let i = 0; i < 5; i++) {
        await counters.charge([charge]);
        advance(4_000);
      }
      advance(-day - 20_000);
      const denied = deniedBy(await counters.peek([charge]));
      assert.ok(denied.retryAfter <= 3 * 60_000, `${denied.retryAfter}`);
      advance(denied.retryAfter - 1);
      assert.equal(decided(await counters.charge([charge])).allowed, false);
      advance(1);
      assert.equal(decided(await counters.charge([charge])).allowed, true);
      assert.equal(decided(await counters.charge([charge])).allowed, false);
    });

    it("lets a forced charge exceed the limit, and denies all others then", async () => {
      for (const mode of ["standard", "strict"] as const) {
        const { counters } = await openOne();
        const charge = { counter: "a", limit: 10, duration: 60_000, mode, cost: 4 };
        const forced = { ...charge, cost: 9, force: true };
        await counters.charge([charge]);
        assert.deepEqual(states(await counters.peek([forced])), [true, 6]);
        assert.deepEqual(states(await counters.charge([forced])), [true, 0]);
        assert.deepEqual(states(await counters.charge([{ ...charge, cost: 0 }])), [false, 0]);
        assert.deepEqual(states(await counters.peek([{ ...charge, limit: 20, cost: 0 }])), [true, 7]);
        // Again, although Redis may have told this node that the counter is exhausted.
        assert.deepEqual(states(await counters.charge([forced])), [true, 0]);
        assert.deepEqual(states(await counters.peek([{ ...charge, limit: 30, cost: 0 }])), [true, 8]);
      }
    });

    it("charges nothing for a forced charge in a call that another limit denies", async () => {
      const { counters } = await openOne();
      const charge = { counter: "a", limit: 10, duration: 60_000, cost: 11 };
      assert.deepEqual(states(await counters.charge([{ ...charge, force: true, counter: "b" }, charge])), [
        true,
        10,
        false,
        10,
      ]);
      assert.deepEqual(states(await counters.peek([{ ...charge, cost: 0, counter: "b" }])), [true, 10]);
    });

    it("stops a count of forced charges at the largest limit, from which nothing is given back", async () => {
      for (const mode of ["standard", "strict"] as const) {
        const { counters } = await openOne();
        const charge = { counter: "a", limit: LIMIT_MAX, duration: 60_000, mode, cost: 5 };
        const receipt = receiptOf(await counters.charge([charge], true));
        for (let i = 0; i < 3; i++) await counters.charge([{ ...charge, cost: LIMIT_MAX, force: true }]);
        await counters.adjust(receipt, [0]);
        assert.deepEqual(states(await counters.charge([{ ...charge, cost: 1 }])), [false, 0]);
      }
    });

    it("gives a receipt only to a call that asks for it and is allowed", async () => {
      const { counters } = await openOne();
      const charge = { counter: "a", limit: 10, duration: 60_000, cost: 6 };
      const looked = { ...charge, counter: "looked", commit: false };
      assert.equal(decided(await counters.charge([charge])).receipt, undefined);
      assert.equal(decided(await counters.charge([charge], true)).receipt, undefined);
      const receipt = receiptOf(
        await counters.charge([looked, { ...charge, cost: 0 }, { ...charge, counter: "b" }], true),
      );
      assert.deepEqual(
        receipt.charges.map(({ counter, cost }) => [counter, cost]),
        [
          ["a", 0],
          ["b", 6],
        ],
      );
    });

    it("corrects a call to what it did cost, by a receipt that was stored", async () => {
      for (const mode of ["standard", "strict"] as const) {
        const { counters } = await openOne();
        const charge = (counter: string, cost: number) => ({ counter, limit: 10, duration: 60_000, mode, cost });
        const all = (cost: number) => ["lower", "same", "higher", "free"].map((counter) => charge(counter, cost));
        await counters.charge(all(2));
        // The order of first charges of counters is not that of the call.
        const call = [
          charge("free", 0),
          { ...charge("higher", 1), commit: false },
          ...all(3).slice(0, 3),
          charge("lower", 1),
        ];
        const receipt = receiptOf(await counters.charge(call, true));
        const stored = JSON.parse(JSON.stringify(receipt)) as Receipt;
        const corrected = await counters.adjust(stored, [4, 1, undefined, 9, 1]);
        assert.deepEqual(corrected, [true, true, true, true, true]);
        const used = decided(await counters.peek(all(0))).limits.map(({ remaining }) => 10 - remaining);
        assert.deepEqual(used, [2 + 1 + 1, 2 + 3, 10, 2 + 4]);
        const exceeded = await counters.peek([{ ...charge("higher", 0), limit: 20 }]);
        assert.deepEqual(states(exceeded), [true, 20 - 2 - 9]);
      }
    });

    it("gives back only in the window of the charge, and forces what is more in the present one", async () => {
      for (const mode of ["standard", "strict"] as const) {
        const { counters, advance, now } = await openOne();
        const charge = { counter: "a", limit: 100, duration: 60_000, mode, cost: 40 };
        const usedNow = async () => 100 - decided(await counters.peek([{ ...charge, cost: 0 }])).limits[0].remaining;
        const ask = async (cost: number) => receiptOf(await counters.charge([{ ...charge, cost }], true));
        advance(60_000 - (now() % 60_000));
        const [first, second] = [await ask(40), await ask(40)];
        advance(90_000);
        // 80 weigh half, or not at all.
        const third = await ask(5);
        assert.equal(await usedNow(), mode === "strict" ? 5 : 45);
        const isStandard = mode === "standard";
        assert.deepEqual(await counters.adjust(first, [0]), [isStandard]);
        assert.equal(await usedNow(), isStandard ? 25 : 5);
        advance(60_000);
        const rest = await usedNow();
        await ask(1);
        assert.deepEqual(await counters.adjust(second, [50]), [true]);
        assert.equal(await usedNow(), rest + 1 + 10);
        advance(600_000);
        await ask(7);
        assert.deepEqual(await counters.adjust(third, [0]), [false]);
        assert.equal(await usedNow(), 7);
      }
    });

    it("never takes away what others have charged when the clock was set back", async () => {
      for (const mode of ["standard", "strict"] as const) {
        const day = 86_400_000;
        const { counters, advance } = await openOne();
        const charge = { counter: "a", limit: 100, duration: 60_000, mode, cost: 40 };
        advance(day);
        const receipt = receiptOf(await counters.charge([charge], true));
        advance(-day);
        await counters.charge([{ ...charge, cost: 30 }]);
        await counters.adjust(receipt, [0]);
        const { remaining } = decided(await counters.peek([{ ...charge, cost: 0 }])).limits[0];
        assert.ok(remaining <= 70, `${remaining}`);
      }
    });

    it("corrects calls like the exact model", () => assertCorrections(open, 60));

    it("lends what a charge allows, all or nothing, and takes back the rest once (rules 185, 186)", async () => {
      const { counters, lender } = await openOne();
      const charge = (counter: string, limit: number, cost: number) => ({ counter, limit, duration: 60_000, cost });
      const [a, b] = [charge("key\0k\0a", 100, 30), charge("key\0k\0b", 40, 30)];
      const looked = { ...a, cost: 40, commit: false };
      const usedOf = async () => {
        const states = decided(await counters.peek([a, b].map((one) => ({ ...one, cost: 0 })))).limits;
        return states.map(({ remaining }, i) => ([a, b][i]?.limit ?? 0) - remaining);
      };
      const first = await lender.lend([a, b, looked], { name: "first", life: 600_000 });
      assert.deepEqual(states(first ?? { outcome: "outage" }), [true, 70, true, 10, true, 70]);
      assert.equal(first?.receipt, undefined);
      const denied = await lender.lend([a, b], { name: "second", life: 600_000 });
      assert.deepEqual(states(denied ?? { outcome: "outage" }), [true, 70, false, 10]);
      const exceeding = await lender.lend(
        [
          { ...a, cost: 20 },
          { ...looked, cost: 51 },
        ],
        { name: "third", life: 600_000 },
      );
      assert.equal(exceeding?.allowed, false);
      assert.deepEqual(await usedOf(), [30, 30]);
      assert.deepEqual(await lender.settle("second", [a, b], [0, 0]), undefined);
      assert.deepEqual(await lender.settle("first", [a, b], [12, 0]), [true, true]);
      assert.deepEqual(await usedOf(), [12, 0]);
      assert.equal(await lender.settle("first", [a, b], [0, 0]), undefined);
      assert.deepEqual(await usedOf(), [12, 0]);
      // Never more than was lent.
      await lender.lend([a, b], { name: "fourth", life: 600_000 });
      assert.deepEqual(await lender.settle("fourth", [a, b], [LIMIT_MAX, LIMIT_MAX]), [true, true]);
      assert.deepEqual(await usedOf(), [42, 30]);
    });

    it("takes back only in the window of the grant, and keeps all of it elsewhere (rule 186)", async () => {
      const { counters, lender, advance, now } = await openOne();
      const charge = { counter: "key\0k\0a", limit: 1_000, duration: 60_000, cost: 100 };
      const usedNow = async () => 1_000 - decided(await counters.peek([{ ...charge, cost: 0 }])).limits[0].remaining;
      advance(60_000 - (now() % 60_000));
      for (const name of ["early", "late"]) await lender.lend([charge], { name, life: 600_000 });
      advance(90_000);
      assert.equal(await usedNow(), 100);
      assert.deepEqual(await lender.settle("early", [charge], [10]), [true]);
      assert.equal(await usedNow(), 55);
      advance(60_000);
      await counters.charge([charge]);
      assert.deepEqual(await lender.settle("late", [charge], [0]), [false]);
      assert.equal(await usedNow(), 100);
    });

    it("keeps leases within their limits like the exact model (rule 185)", async (t) => {
      const openKeeping = async () => {
        // How counts are lost depends on the kind of counters.
        const { lose: _, ...world } = await open();
        return world;
      };
      t.diagnostic(JSON.stringify(await assertLeases(openKeeping, 40)));
    });

    it("admits exactly the limit of a thousand concurrent calls", async () => {
      const { counters } = await openOne();
      const call = [{ counter: "a", limit: 100, duration: 60_000, cost: 1 }];
      const verdicts = await Promise.all(
        Array.from({ length: 1000 }, async () => decided(await counters.charge(call))),
      );
      assert.equal(verdicts.filter((verdict) => verdict.allowed).length, 100);
    });
  });
}

/**
 * Compares random charges, forced charges, corrections and losses with the exact model. Time only passes: how far a set-back
 * clock moves counts differs between counters.
 */
export async function assertCorrections(
  open: () => Omit<OpenCounters, "lender"> | Promise<Omit<OpenCounters, "lender">>,
  runs: number,
): Promise<void> {
  await fc.assert(
    fc.asyncProperty(fc.array(correctionStep, { minLength: 5, maxLength: 40 }), async (steps) => {
      const { counters, advance, now, lose, close } = await open();
      let model = new CountersModel();
      const receipts: { own: Receipt; ofModel: ModelReceipt | undefined }[] = [];
      for (const { pass, action, charges, chosen, costs } of steps) {
        advance(pass);
        if (action === "lose" && lose) {
          await lose();
          model = new CountersModel();
          for (const one of receipts) one.ofModel = undefined;
        }
        const [one] = action === "adjust" ? receipts.splice(chosen % (receipts.length + 1), 1) : [];
        if (one) {
          const corrected = await counters.adjust(one.own, costs);
          const expected = one.ofModel && model.adjust(one.ofModel, costs, now());
          for (const [i, { cost }] of one.own.charges.entries()) {
            if ((costs[i] ?? cost) === cost) continue;
            if (!expected) assert.equal(corrected[i], false);
            else if (expected[i]) assert.equal(corrected[i], true);
          }
        }
        const { receipt, ...verdict } = decided(await counters.charge(charges, true));
        assert.deepEqual(verdict, model.charge(charges, now()));
        if (receipt) receipts.push({ own: receipt, ofModel: model.receiptOf(charges, now()) });
      }
      await close();
    }),
    { numRuns: runs },
  );
}

/** So long that the receipts in Redis, which last as long as the charges by its own clock, outlive a test. */
const correctionStep = fc.record({
  pass: fc.oneof(fc.constant(0), fc.nat(2_000), fc.nat(40_000), fc.nat(150_000)),
  action: fc.constantFrom("charge", "charge", "adjust", "adjust", "adjust", "lose"),
  charges: fc.array(
    fc.record({
      counter: fc.constantFrom("a", "b"),
      duration: fc.constantFrom(60_000, 90_000),
      limit: fc.constantFrom(12, 30, LIMIT_MAX),
      cost: fc.oneof(fc.nat(6), fc.nat(6), fc.nat(6), fc.constant(LIMIT_MAX)),
      mode: fc.constantFrom("standard" as const, "strict" as const),
      force: fc.constantFrom(false, false, true),
      commit: fc.constantFrom(true, true, true, false),
    }),
    { minLength: 1, maxLength: 4 },
  ),
  chosen: fc.nat(5),
  costs: fc.array(fc.option(fc.nat(9), { nil: undefined }), { maxLength: 4 }),
});

/** Few counters and durations, so that calls collide. Amounts range from 0 to the maximum. */
const charge: fc.Arbitrary<Charge> = fc
  .record({
    counter: fc.constantFrom("a", "b", "ü\u0000c"),
    duration: fc.constantFrom(1, 7, 1000, 60_000, DURATION_MAX),
    limit: fc.oneof(fc.nat(12), fc.constantFrom(LIMIT_MAX - 1, LIMIT_MAX), fc.integer({ min: 0, max: LIMIT_MAX })),
    cost: fc.oneof(fc.nat(5), fc.nat(5), fc.integer({ min: 0, max: LIMIT_MAX })),
    commit: fc.constantFrom(true, true, false, undefined),
    mode: fc.constantFrom("standard" as const, "strict" as const, undefined),
  })
  .map(({ commit, ...rest }) => (commit === undefined ? rest : { ...rest, commit }));

const step = fc.record({
  pass: fc.oneof(
    fc.nat(10),
    fc.nat(2000),
    fc.integer({ min: 0, max: 150_000 }),
    fc.integer({ min: -70_000, max: 0 }),
    fc.integer({ min: 0, max: 2 * DURATION_MAX }),
  ),
  charges: fc.array(charge, { minLength: 1, maxLength: 5 }),
  isPeek: fc.integer({ min: 0, max: 3 }).map((n) => n === 0),
  retries: fc.boolean(),
});

/** A decision on at least one limit. */
type Decided = LimitDecision & { readonly limits: readonly [LimitState, ...LimitState[]] };

function decided(verdict: ChargeResult): Decided {
  assert(verdict.outcome === "decided" && verdict.limits.length > 0);
  return verdict as Decided;
}

function receiptOf(verdict: ChargeResult): Receipt {
  const { receipt } = decided(verdict);
  assert(receipt !== undefined);
  return receipt;
}

/** The decision on a call that is allowed later. */
function deniedBy(verdict: ChargeResult): Decided & { readonly retryAfter: number } {
  const { retryAfter, ...decision } = decided(verdict);
  assert(!decision.allowed && retryAfter !== undefined);
  return { ...decision, retryAfter };
}

/** `allowed` and `remaining` of each limit, as a flat list. */
function states(verdict: ChargeResult): (boolean | number)[] {
  return decided(verdict).limits.flatMap((limit) => [limit.allowed, limit.remaining]);
}

function isSameCounter(a: Charge, b: Charge): boolean {
  return a.counter === b.counter && a.duration === b.duration && (a.mode === "strict") === (b.mode === "strict");
}

function sum(log: readonly { at: number; cost: number }[], counts: (entry: { at: number; cost: number }) => boolean) {
  return log.filter(counts).reduce((total, entry) => total + entry.cost, 0);
}
