import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { type Instant, instantAt } from "../clock/clock.ts";
import { lastDue, nextDue, type Refill, refillIntervals, type StoredBalance, withDueRefill } from "./refill.ts";

const daily: Refill = { interval: "daily", amount: 100 };
const monthly = (refillDay: number): Refill => ({ interval: "monthly", amount: 100, refillDay });
const weekly = (refillDay: number): Refill => ({ interval: "weekly", amount: 100, refillDay });
const yearly = (refillMonth: number, refillDay: number): Refill => ({
  interval: "yearly",
  amount: 100,
  refillMonth,
  refillDay,
});
const hourly: Refill = { interval: "hourly", amount: 100 };
const at = (text: string): Instant => instantAt(Date.parse(text));
const dayMs = 86_400_000;

describe("lastDue and nextDue", () => {
  const table: [refill: Refill, now: string, last: string, next: string][] = [
    [daily, "2025-06-15T12:34:56.789Z", "2025-06-15", "2025-06-16"],
    [daily, "2025-06-15T00:00:00.000Z", "2025-06-15", "2025-06-16"],
    [daily, "2025-06-14T23:59:59.999Z", "2025-06-14", "2025-06-15"],
    [daily, "2025-12-31T23:59:59.999Z", "2025-12-31", "2026-01-01"],
    [daily, "2024-02-28T01:00:00.000Z", "2024-02-28", "2024-02-29"],
    [daily, "1970-01-01T00:00:00.000Z", "1970-01-01", "1970-01-02"],

    [monthly(1), "2025-06-15T12:00:00.000Z", "2025-06-01", "2025-07-01"],
    [monthly(15), "2025-06-15T00:00:00.000Z", "2025-06-15", "2025-07-15"],
    [monthly(15), "2025-06-14T23:59:59.999Z", "2025-05-15", "2025-06-15"],
    [monthly(15), "2025-01-10T00:00:00.000Z", "2024-12-15", "2025-01-15"],
    [monthly(15), "2025-12-20T00:00:00.000Z", "2025-12-15", "2026-01-15"],

    // The month is shorter than the refill day.
    [monthly(31), "2025-04-30T00:00:00.000Z", "2025-04-30", "2025-05-31"],
    [monthly(31), "2025-04-29T23:59:59.999Z", "2025-03-31", "2025-04-30"],
    [monthly(31), "2025-02-15T00:00:00.000Z", "2025-01-31", "2025-02-28"],
    [monthly(30), "2025-02-28T00:00:00.000Z", "2025-02-28", "2025-03-30"],
    [monthly(31), "2025-03-01T00:00:00.000Z", "2025-02-28", "2025-03-31"],
    [monthly(31), "2025-01-30T00:00:00.000Z", "2024-12-31", "2025-01-31"],

    // Leap years: 2024 and 2000 are, 2100 is not.
    [monthly(29), "2024-02-29T00:00:00.000Z", "2024-02-29", "2024-03-29"],
    [monthly(31), "2024-02-28T23:59:59.999Z", "2024-01-31", "2024-02-29"],
    [monthly(29), "2025-02-28T00:00:00.000Z", "2025-02-28", "2025-03-29"],
    [monthly(29), "2000-03-01T00:00:00.000Z", "2000-02-29", "2000-03-29"],
    [monthly(29), "2100-03-01T00:00:00.000Z", "2100-02-28", "2100-03-29"],

    [hourly, "2025-06-15T12:34:56.789Z", "2025-06-15T12:00:00Z", "2025-06-15T13:00:00Z"],
    [hourly, "2025-06-15T23:00:00.000Z", "2025-06-15T23:00:00Z", "2025-06-16"],

    // 2025-06-16 is a Monday.
    [weekly(1), "2025-06-15T23:59:59.999Z", "2025-06-09", "2025-06-16"],
    [weekly(1), "2025-06-16T00:00:00.000Z", "2025-06-16", "2025-06-23"],
    [weekly(7), "2025-06-15T00:00:00.000Z", "2025-06-15", "2025-06-22"],
    [weekly(7), "2025-06-14T23:59:59.999Z", "2025-06-08", "2025-06-15"],
    [weekly(4), "1970-01-01T00:00:00.000Z", "1970-01-01", "1970-01-08"],

    [yearly(1, 1), "2025-06-15T12:00:00.000Z", "2025-01-01", "2026-01-01"],
    [yearly(12, 31), "2025-12-31T00:00:00.000Z", "2025-12-31", "2026-12-31"],
    [yearly(2, 29), "2025-06-15T12:00:00.000Z", "2025-02-28", "2026-02-28"],
    [yearly(2, 29), "2024-02-28T12:00:00.000Z", "2023-02-28", "2024-02-29"],
    [yearly(4, 31), "2025-04-30T00:00:00.000Z", "2025-04-30", "2026-04-30"],

    // Local midnight, in winter and in summer.
    [{ ...daily, timeZone: "Europe/Berlin" }, "2025-01-15T12:00:00Z", "2025-01-14T23:00:00Z", "2025-01-15T23:00:00Z"],
    [{ ...daily, timeZone: "Europe/Berlin" }, "2025-03-30T12:00:00Z", "2025-03-29T23:00:00Z", "2025-03-30T22:00:00Z"],
    [{ ...daily, timeZone: "Asia/Kolkata" }, "2025-01-15T12:00:00Z", "2025-01-14T18:30:00Z", "2025-01-15T18:30:00Z"],
    [
      { ...monthly(1), timeZone: "Pacific/Kiritimati" },
      "2025-01-31T09:59:59.999Z",
      "2024-12-31T10:00:00Z",
      "2025-01-31T10:00:00Z",
    ],
    [
      { ...yearly(1, 1), timeZone: "America/Los_Angeles" },
      "2026-01-01T07:59:59.999Z",
      "2025-01-01T08:00:00Z",
      "2026-01-01T08:00:00Z",
    ],
    // Clocks that skip midnight: Cairo goes from 00:00 to 01:00.
    [{ ...daily, timeZone: "Africa/Cairo" }, "2025-04-25T00:00:00Z", "2025-04-24T22:00:00Z", "2025-04-25T21:00:00Z"],
    // Midnight twice: Havana goes from 01:00 back to 00:00, St. John's in 2010 from 00:01 back to 23:01.
    [{ ...daily, timeZone: "America/Havana" }, "2025-11-02T05:30:00Z", "2025-11-02T04:00:00Z", "2025-11-03T05:00:00Z"],
    [
      { ...daily, timeZone: "America/St_Johns" },
      "2010-11-07T02:45:00Z",
      "2010-11-07T02:30:00Z",
      "2010-11-08T03:30:00Z",
    ],
    // A day that does not exist: Samoa had no 2011-12-30.
    [{ ...daily, timeZone: "Pacific/Apia" }, "2011-12-30T09:59:59Z", "2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z"],
    [{ ...daily, timeZone: "Pacific/Apia" }, "2011-12-30T10:00:00Z", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z"],
    [
      { ...monthly(30), timeZone: "Pacific/Apia" },
      "2011-12-31T00:00:00Z",
      "2011-12-30T10:00:00Z",
      "2012-01-29T10:00:00Z",
    ],
  ];
  for (const [refill, now, last, next] of table) {
    const { interval, amount: _, ...when } = refill;
    it(`${[interval, ...Object.values(when)].join(" ")} at ${now}: ${last}, ${next}`, () => {
      assert.equal(lastDue(refill, at(now)), at(last));
      assert.equal(nextDue(refill, at(now)), at(next));
    });
  }

  it("do not depend on the machine's time zone", (test) => {
    const zone = process.env.TZ;
    test.after(() => {
      if (zone === undefined) delete process.env.TZ;
      else process.env.TZ = zone;
    });
    for (process.env.TZ of ["Pacific/Kiritimati", "Pacific/Pago_Pago"]) {
      for (const now of ["2025-03-01T05:00:00Z", "2025-02-28T20:00:00Z"]) {
        assert.equal(nextDue(monthly(1), at(now)), at(now < "2025-03" ? "2025-03-01" : "2025-04-01"));
        assert.equal(lastDue(monthly(1), at(now)), at(now < "2025-03" ? "2025-02-01" : "2025-03-01"));
      }
    }
  });

  const refill: fc.Arbitrary<Refill> = fc
    .record({
      interval: fc.constantFrom(...refillIntervals.filter((interval) => interval !== "hourly")),
      amount: fc.constant(100),
      refillDay: fc.integer({ min: 1, max: 31 }),
      refillMonth: fc.integer({ min: 1, max: 12 }),
    })
    .map((refill) =>
      refill.interval === "weekly" ? { ...refill, refillDay: ((refill.refillDay - 1) % 7) + 1 } : refill,
    );
  const moment = fc.integer({ min: Date.parse("1999-12-01"), max: Date.parse("2105-01-01") });
  const now = fc
    .oneof(
      moment,
      // Midnights and the times next to them, where errors are likely.
      fc.tuple(moment, fc.integer({ min: -1, max: 1 })).map(([ms, near]) => Math.floor(ms / dayMs) * dayMs + near),
    )
    .map(instantAt);

  it("equal a walk from day to day", () => {
    fc.assert(
      fc.property(refill, now, (refill, now) => {
        let last = Math.floor(now / dayMs) * dayMs;
        while (!isDueOn(refill, last)) last -= dayMs;
        let next = (Math.floor(now / dayMs) + 1) * dayMs;
        while (!isDueOn(refill, next)) next += dayMs;
        assert.equal(lastDue(refill, now), last);
        assert.equal(nextDue(refill, now), next);
      }),
      { numRuns: 2_000 },
    );
  });

  it("have no other refill between them", () => {
    fc.assert(
      fc.property(refill, now, (refill, now) => {
        const last = lastDue(refill, now);
        const next = nextDue(refill, now);
        assert.ok(last <= now && now < next);
        assert.equal(nextDue(refill, last), next);
        assert.equal(lastDue(refill, next), next);
        assert.equal(lastDue(refill, instantAt(next - 1)), last);
      }),
      { numRuns: 2_000 },
    );
  });
});

/** Whether a refill is due at a midnight: on the refill day, or on the last day of a shorter month. */
function isDueOn({ interval, refillDay = 1, refillMonth = 1 }: Refill, midnight: number): boolean {
  if (interval === "daily") return true;
  const date = new Date(midnight);
  const day = date.getUTCDate();
  if (interval === "weekly") return (date.getUTCDay() || 7) === refillDay;
  if (interval === "yearly" && date.getUTCMonth() + 1 !== refillMonth) return false;
  const isLastOfMonth = new Date(midnight + dayMs).getUTCDate() === 1;
  return day === refillDay || (isLastOfMonth && day < refillDay);
}

describe("withDueRefill", () => {
  const balanceOf = (refill: Refill, remaining: number, now: Instant): StoredBalance => ({
    remaining,
    refill_interval: refill.interval,
    refill_amount: refill.amount,
    refill_day: refill.refillDay ?? null,
    refill_month: refill.refillMonth ?? null,
    refill_zone: refill.timeZone ?? null,
    refill_rollover: refill.rollover ?? null,
    refill_due_at: nextDue(refill, now),
    refill_mark: null,
  });
  const start = at("2025-03-30T00:10:00Z");

  it("sets the balance to the amount, whatever was left or missed", () => {
    for (const remaining of [0, 99, 5_000]) {
      const after = withDueRefill(balanceOf(daily, remaining, start), at("2025-04-03T12:00:00Z"));
      assert.deepEqual([after.remaining, after.refill_due_at], [100, at("2025-04-04")]);
    }
  });

  it("with rollover adds the amount for each period to at most as much of the balance", () => {
    const after = (rollover: number, remaining: number, now: string) =>
      withDueRefill(balanceOf({ ...daily, rollover }, remaining, start), at(now)).remaining;
    assert.equal(after(50, 20, "2025-03-30T23:59:59Z"), 20);
    assert.equal(after(50, 20, "2025-03-31"), 120);
    assert.equal(after(50, 80, "2025-03-31"), 150);
    assert.equal(after(50, 20, "2025-04-01"), 150);
    assert.equal(after(1_000, 20, "2025-04-02"), 320);
    assert.equal(after(1_000, 20, "2035-04-02"), 1_100);
    assert.equal(after(1e15 - 100, 20, "2025-04-02"), 320);
  });

  const refill: fc.Arbitrary<Refill> = fc
    .record(
      {
        interval: fc.constantFrom(...refillIntervals),
        amount: fc.constant(1),
        refillDay: fc.integer({ min: 1, max: 7 }),
        timeZone: fc.constantFrom("Europe/Berlin", "America/Havana", "Pacific/Apia", "Africa/Cairo"),
        rollover: fc.constant(1e9),
      },
      { requiredKeys: ["interval", "amount"] },
    )
    .map((refill) => (refill.interval === "hourly" ? { ...refill, timeZone: "UTC" } : refill));
  /** Steps of a clock in hours; those back are corrections of what ran ahead. */
  const steps = fc.array(fc.oneof(fc.integer({ min: -300, max: 400 }), fc.integer({ min: -20_000, max: 20_000 })), {
    minLength: 1,
    maxLength: 30,
  });
  const begin = fc.integer({ min: Date.parse("2011-12-20"), max: Date.parse("2026-01-01") });

  it("applies each due time at most once, and with rollover each one, wherever the clock jumps", () => {
    fc.assert(
      fc.property(refill, begin, steps, (refill, begin, steps) => {
        let balance = balanceOf(refill, 0, instantAt(begin));
        let now = begin;
        let latest = begin;
        const applied = new Set<number>();
        for (const hours of steps) {
          now = Math.max(begin, now + hours * 3_600_000 + 1);
          latest = Math.max(latest, now);
          const spent = { ...balance, remaining: refill.rollover === undefined ? 0 : balance.remaining };
          balance = withDueRefill(spent, instantAt(now));
          if (refill.rollover !== undefined || balance.remaining === 0) continue;
          const due = lastDue(refill, instantAt(now));
          assert(!applied.has(due), `${new Date(due).toISOString()} was applied twice`);
          applied.add(due);
        }
        if (refill.rollover === undefined) return;
        const dues = new Set<number>();
        for (let due = nextDue(refill, instantAt(begin)); due <= latest; due = nextDue(refill, due)) dues.add(due);
        assert.equal(balance.remaining, dues.size);
      }),
      {
        numRuns: 200,
        examples: [[{ interval: "hourly", amount: 1, timeZone: "UTC" }, 1324339200000, [95, -2, 3, -96, 95, 0]]],
      },
    );
  });

  it("does not repeat at its own due time what another node, with other time zones, had due earlier", () => {
    const due = instantAt(at("2025-03-31") - 7_200_000);
    const applied = withDueRefill({ ...balanceOf(daily, 3, start), refill_due_at: due }, due);
    assert.deepEqual([applied.remaining, applied.refill_due_at], [100, at("2025-03-31")]);
    const later = withDueRefill({ ...applied, remaining: 7 }, at("2025-03-31"));
    assert.deepEqual([later.remaining, later.refill_due_at], [7, at("2025-04-01")]);
    assert.equal(withDueRefill(later, at("2025-04-01")).remaining, 100);
  });

  it("corrects a due time that a clock left years ahead, once", () => {
    const ahead = withDueRefill(balanceOf(daily, 3, start), at("2029-03-30T00:10:00Z"));
    const back = withDueRefill({ ...ahead, remaining: 7 }, start);
    assert.deepEqual([back.remaining, back.refill_due_at, back.refill_mark], [7, at("2025-03-31"), at("2029-03-30")]);
    const next = withDueRefill(back, at("2025-03-31"));
    assert.deepEqual([next.remaining, next.refill_due_at], [100, at("2025-04-01")]);
    const reached = withDueRefill({ ...next, remaining: 7, refill_due_at: at("2029-03-30") }, at("2029-03-30"));
    assert.deepEqual([reached.remaining, reached.refill_mark], [7, null]);
  });
});
