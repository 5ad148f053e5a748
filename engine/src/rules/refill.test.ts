import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { type Instant, instantAt } from "../clock/clock.ts";
import { lastDue, nextDue, type Refill } from "./refill.ts";

const daily: Refill = { interval: "daily", amount: 100 };
const monthly = (refillDay: number): Refill => ({ interval: "monthly", amount: 100, refillDay });
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
  ];
  for (const [refill, now, last, next] of table) {
    const day = refill.interval === "monthly" ? ` ${refill.refillDay}` : "";
    it(`${refill.interval}${day} at ${now}: ${last}, ${next}`, () => {
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

  const refill = fc.oneof(fc.constant(daily), fc.integer({ min: 1, max: 31 }).map(monthly));
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
function isDueOn(refill: Refill, midnight: number): boolean {
  if (refill.interval === "daily") return true;
  const day = new Date(midnight).getUTCDate();
  const isLastOfMonth = new Date(midnight + dayMs).getUTCDate() === 1;
  return day === refill.refillDay || (isLastOfMonth && day < refill.refillDay);
}
