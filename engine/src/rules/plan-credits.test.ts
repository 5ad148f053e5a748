import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { instantAt } from "../clock/clock.ts";
import { adoptedColumns, type CreditsVersion, type PlanCredits, withPlanVersions } from "./plan-credits.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const daily = (amount: number): PlanCredits => ({ amount, refill: { interval: "daily" } });
const hourly = (amount: number): PlanCredits => ({ amount, refill: { interval: "hourly" } });
const version = (number: number, since: number, credits: PlanCredits | null): CreditsVersion => ({
  version: number,
  since: instantAt(since),
  credits,
});
const balance = (credits: PlanCredits, at: number, remaining = credits.amount) => ({
  remaining,
  ...adoptedColumns(credits, instantAt(at), null),
  plan_version: 1,
});

describe("the versions of a plan", () => {
  it("apply in order, each with the refills that were due in its time", () => {
    const seen: [number, number][] = [];
    const current = withPlanVersions(
      balance(daily(100), HOUR, 7),
      [version(2, 2 * HOUR, daily(50)), version(3, DAY + HOUR, daily(900)), version(4, DAY + 2 * HOUR, daily(3))],
      instantAt(DAY + 3 * HOUR),
      (before, after) => seen.push([before.plan_version, after.remaining]),
    );
    // The refill at midnight was that of version 2, although nobody asked until version 4.
    assert.deepEqual(seen, [[2, 50]]);
    assert.deepEqual([current.remaining, current.refill_amount, current.plan_version], [50, 3, 4]);
  });

  it("begin another schedule when the period that runs has ended", () => {
    const changed = withPlanVersions(
      balance(daily(100), HOUR, 7),
      [version(2, 2 * HOUR, hourly(10))],
      instantAt(5 * HOUR),
    );
    assert.deepEqual([changed.remaining, changed.refill_due_at], [7, DAY]);
    const back = withPlanVersions(changed, [version(3, 6 * HOUR, daily(100))], instantAt(7 * HOUR));
    assert.deepEqual([back.remaining, back.refill_due_at], [7, DAY]);
  });

  it("remember the end of a period while the plan has no refill", () => {
    const once = withPlanVersions(
      balance(daily(100), HOUR, 7),
      [version(2, 2 * HOUR, { amount: 5 })],
      instantAt(3 * HOUR),
    );
    assert.equal(once.refill_due_at, null);
    const again = withPlanVersions(once, [version(3, 4 * HOUR, hourly(10))], instantAt(10 * HOUR));
    assert.deepEqual([again.remaining, again.refill_due_at], [7, DAY]);
  });

  it("leave a balance as it is while the plan has no credits", () => {
    const none = withPlanVersions(balance(daily(100), HOUR, 7), [version(2, 2 * HOUR, null)], instantAt(3 * HOUR));
    assert.deepEqual([none.remaining, none.refill_amount, none.plan_version], [7, 100, 2]);
  });
});
