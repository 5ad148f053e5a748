import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { instantAt } from "../clock/clock.ts";
import {
  type BookedBalance,
  changeBooks,
  fall,
  nextThreshold,
  openBooks,
  refillBooks,
  spentInPeriod,
} from "./books.ts";
import { type StoredBalance, withDueRefill } from "./refill.ts";

type Balance = BookedBalance & { refill_amount: number | null; low_at: number | null };

const budget = (
  remaining: number,
  thresholds: readonly number[] = [],
  refill_amount: number | null = null,
): Balance => {
  const books = openBooks(remaining);
  return { ...books, refill_amount, low_at: nextThreshold(thresholds, books) };
};
const spend = (balance: Balance, amount: number): Balance => ({
  ...balance,
  remaining: balance.remaining - amount,
  spent: balance.spent + amount,
});
const MAX = 1e15;

describe("the books of a budget", () => {
  it("add up, in exact integers, after any changes", () => {
    const amount = fc.oneof(
      fc.nat(1_000),
      fc.maxSafeNat().map((n) => n % MAX),
      fc.constantFrom(0, 1, MAX),
    );
    const step = fc.record({
      kind: fc.constantFrom("spend", "refill", "carry", "set", "increment", "decrement"),
      amount,
    });
    fc.assert(
      fc.property(amount, fc.boolean(), fc.array(step, { maxLength: 60 }), (first, isWatched, steps) => {
        let balance = budget(first);
        for (const { kind, amount } of steps) {
          const { remaining } = balance;
          if (kind === "spend" && (isWatched ? remaining - amount >= -MAX : remaining >= amount)) {
            balance = spend(balance, amount);
          }
          if (kind === "refill") balance = refillBooks(balance, amount, amount);
          if (kind === "carry") {
            const kept = Math.min(Math.max(0, remaining), MAX - amount);
            balance = refillBooks(balance, kept + amount, amount);
          }
          if (kind === "set") balance = changeBooks(balance, amount);
          if (kind === "increment") balance = changeBooks(balance, Math.min(MAX, remaining + amount));
          if (kind === "decrement")
            balance = changeBooks(balance, Math.min(remaining, Math.max(0, remaining - amount)));
          const { granted, spent, lapsed, spent_before } = balance;
          for (const number of [granted, spent, lapsed, spent_before])
            assert(Number.isSafeInteger(number), `${number}`);
          assert.equal(BigInt(granted), BigInt(spent) + BigInt(balance.remaining) + BigInt(lapsed));
          assert(lapsed >= 0 && spentInPeriod(balance) >= 0);
          if (!isWatched) assert(balance.remaining >= 0);
        }
      }),
      { numRuns: 2_000 },
    );
  });

  it("count what a refill replaces as lapsed, and what was overspent as granted", () => {
    const books = ({ granted, spent, lapsed, period }: BookedBalance) => ({ granted, spent, lapsed, period });
    assert.deepEqual(books(refillBooks(spend(budget(10), 3), 20, 20)), { granted: 30, spent: 3, lapsed: 7, period: 1 });
    assert.deepEqual(books(refillBooks(spend(budget(10), 15), 20, 20)), {
      granted: 35,
      spent: 15,
      lapsed: 0,
      period: 1,
    });
    assert.deepEqual(books(refillBooks(spend(budget(10), 3), 25, 20)), { granted: 30, spent: 3, lapsed: 2, period: 1 });
  });

  it("change once with each due refill; balances without books count their periods only", () => {
    const at = (text: string) => instantAt(Date.parse(text));
    const refill = {
      refill_interval: "daily",
      refill_amount: 10,
      refill_day: null,
      refill_month: null,
      refill_zone: null,
      refill_rollover: 5,
      refill_due_at: at("2026-01-02"),
      refill_mark: null,
    } as const;
    const stored = { ...refill, ...openBooks(30) };
    const after = withDueRefill<StoredBalance & BookedBalance>(stored, at("2026-01-04"));
    assert.deepEqual([after.remaining, after.granted, after.lapsed, after.period], [15, 40, 25, 1]);
    assert.equal(withDueRefill(after, at("2026-01-04T12:00:00Z")), after);
    const overspent = { ...stored, remaining: -10, spent: 40 };
    const debt = withDueRefill<StoredBalance & BookedBalance>(overspent, at("2026-01-02"));
    assert.deepEqual([debt.remaining, debt.granted, debt.spent], [10, 50, 40]);
    const plain = withDueRefill<StoredBalance>({ ...refill, remaining: 30 }, at("2026-01-04"));
    assert.deepEqual(Object.keys(plain).sort(), [...Object.keys(refill), "remaining", "period"].sort());
    assert.equal(plain.period, 1);
  });
});

describe("the thresholds of a budget", () => {
  it("are each reached once in a period, by the spend that reaches them", () => {
    const thresholds = fc.uniqueArray(fc.integer({ min: 1, max: 100 }), { maxLength: 10 });
    const amounts = fc.array(fc.nat(40), { maxLength: 40 });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 500 }), thresholds, amounts, (first, thresholds, amounts) => {
        let balance = budget(first, thresholds);
        const seen: number[] = [];
        for (const amount of amounts) {
          const after = spend(balance, amount);
          const { reached, low_at } = fall(thresholds, balance, after);
          if (reached.length > 0) assert(balance.low_at !== null && after.remaining <= balance.low_at);
          seen.push(...reached);
          balance = { ...after, low_at };
          const expected = thresholds.filter((percent) => 100 * spentInPeriod(balance) >= percent * first);
          assert.deepEqual([...seen].sort(), expected.sort());
        }
      }),
      { numRuns: 1_000 },
    );
  });

  it("are exact in large budgets, and none is reached in an empty one", () => {
    const large = budget(MAX - 1, [33]);
    assert.equal(BigInt(large.low_at ?? 0), ((BigInt(MAX) - 1n) * 67n) / 100n);
    assert.equal(budget(0, [1, 100]).low_at, null);
    const debt = changeBooks(spend(budget(10, [50]), 60), -30);
    assert.equal(nextThreshold([1, 50, 100], debt), null);
  });

  it("can be reached again after credits were added", () => {
    const first = spend(budget(100, [50]), 60);
    assert.deepEqual(fall([50], budget(100, [50]), first), { reached: [50], low_at: null });
    const raised = changeBooks(first, 140);
    const low_at = nextThreshold([50], raised);
    assert.equal(low_at, 70);
    assert.deepEqual(fall([50], { ...raised, low_at }, spend(raised, 70)).reached, [50]);
  });
});
