import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { seededRandom } from "../../../engine/src/random/seeded.ts";
import {
  type BudgetRow,
  type BudgetRule,
  charge,
  covers,
  decrement,
  hold,
  type Portion,
  refill,
  setRemaining,
  settle,
} from "./budget-row.ts";

const STEPS = Number(process.env.STEPS ?? 5_000);

interface Hold {
  rows: number[];
  portions: Portion[];
  onExpiry: "release" | "charge";
}

describe("the books of budgets", () => {
  it("add up after each random step, and holds leak nothing", () => {
    for (let seed = 1; seed <= 10; seed++) {
      const random = seededRandom(seed);
      const rules: BudgetRule[] = Array.from({ length: 8 }, (_, i) => ({
        isWatched: i === 7,
        ...(i % 2 === 0 && { amount: 500 }),
        ...(i % 4 === 0 && { rollover: 200 }),
      }));
      let rows: BudgetRow[] = rules.map(() => {
        const remaining = random.below(1_000);
        return { granted: remaining, spent: 0, held: 0, remaining, lapsed: 0, period: 0 };
      });
      const open: Hold[] = [];
      const expired: Hold[] = [];
      let over = 0;
      let expiries = 0;
      for (let step = 0; step < STEPS / 10; step++) {
        const before = rows;
        const chain = [...new Set([random.below(8), random.below(8), random.below(8)])];
        const cost = random.below(300);
        const act = random.below(10);
        const take = (list: Hold[]) => list.splice(random.below(Math.max(1, list.length)), 1)[0];
        const close = (closed: Hold | undefined, amount: (portion: Portion) => number) => {
          if (!closed) return;
          for (const [i, at] of closed.rows.entries()) {
            const portion = closed.portions[i]!;
            const done = settle(rows[at]!, rules[at]!, portion, amount(portion));
            rows = rows.with(at, done.row);
            over += done.uncovered;
          }
        };
        if (act < 4) {
          const isCovered = chain.every((at) => covers(rows[at]!, rules[at]!, cost));
          if (!isCovered) assert.equal(rows, before);
          else {
            for (const at of chain) rows = rows.with(at, (act < 2 ? charge : hold)(rows[at]!, cost));
            if (act >= 2) {
              const portions = chain.map((at) => ({ from: "held" as const, amount: cost, period: before[at]!.period }));
              open.push({ rows: chain, portions, onExpiry: random.below(2) === 0 ? "release" : "charge" });
            }
          }
        } else if (act < 6) close(take(open), () => cost);
        else if (act === 6) {
          const ended = take(open);
          close(ended, ({ amount }) => (ended!.onExpiry === "charge" ? amount : 0));
          if (ended) {
            expiries++;
            const from = ended.onExpiry === "charge" ? ("spent" as const) : ("returned" as const);
            expired.push({ ...ended, portions: ended.portions.map((portion) => ({ ...portion, from })) });
          }
        } else if (act === 7) close(take(expired), () => cost);
        else if (act === 8) {
          const at = chain[0]!;
          if (rules[at]!.amount !== undefined) rows = rows.with(at, refill(rows[at]!, rules[at]!));
        } else {
          const at = chain[0]!;
          const changed = cost % 2 === 0 ? decrement(rows[at]!, cost) : setRemaining(rows[at]!, cost);
          rows = rows.with(at, changed);
        }
        for (const [at, { granted, spent, held, remaining, lapsed }] of rows.entries()) {
          assert.equal(granted, spent + held + remaining + lapsed, `seed ${seed}, step ${step}`);
          assert(spent >= 0 && held >= 0 && lapsed >= 0);
          assert(rules[at]!.isWatched || remaining >= 0);
          const sum = open.reduce((all, { rows, portions }) => all + (portions[rows.indexOf(at)]?.amount ?? 0), 0);
          assert.equal(held, sum, "held is the sum of the open holds");
        }
      }
      assert(over > 0 && expiries > 0, "the steps met what they are to meet");
    }
  });

  it("give back in the same period, let lapse in a later one, and keep what rollover has room for", () => {
    const row = { granted: 100, spent: 0, held: 0, remaining: 100, lapsed: 0, period: 3 };
    const portion = { from: "held" as const, amount: 60, period: 3 };
    const plain = { isWatched: false, amount: 100 };
    const same = settle(hold(row, 60), plain, portion, 10).row;
    assert.deepEqual([same.remaining, same.spent, same.lapsed], [90, 10, 0]);
    const later = settle(refill(hold(row, 60), plain), plain, portion, 10).row;
    assert.deepEqual([later.remaining, later.spent, later.lapsed], [100, 10, 40 + 50]);
    const keeping = { ...plain, rollover: 70 };
    const kept = settle(refill(hold(row, 60), keeping), keeping, portion, 10).row;
    assert.deepEqual([kept.remaining, kept.spent, kept.lapsed], [170, 10, 20]);
    const more = settle(hold(row, 60), plain, portion, 130);
    assert.deepEqual([more.row.remaining, more.row.spent, more.uncovered], [0, 100, 30]);
  });
});
