import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { isTimeZone, startOfDay } from "./time-zone.ts";

const dayMs = 86_400_000;
const minuteMs = 60_000;

describe("startOfDay", () => {
  it("is the first minute of a day or of a later one, near every change of the clocks", () => {
    const zones = [
      "Africa/Cairo",
      "America/Havana",
      "America/St_Johns",
      "America/Sao_Paulo",
      "Asia/Beirut",
      "Pacific/Apia",
    ];
    for (const timeZone of zones) {
      const offsets = new Intl.DateTimeFormat("en", { timeZone, timeZoneName: "longOffset" });
      const offsetAt = (at: number) => offsets.formatToParts(at).find(({ type }) => type === "timeZoneName")!.value;
      const dates = new Intl.DateTimeFormat("en-CA", { timeZone, year: "numeric", month: "2-digit", day: "2-digit" });
      let changes = 0;
      for (let day = Date.parse("2009-01-01") / dayMs; changes < 7; day++) {
        if (offsetAt(day * dayMs) === offsetAt((day + 1) * dayMs)) continue;
        changes++;
        for (const near of [day, day + 1]) {
          const wanted = new Date(near * dayMs).toISOString().slice(0, 10);
          let at = near * dayMs - 15 * 3_600_000;
          while (dates.format(at) < wanted) at += minuteMs;
          assert.equal(startOfDay(near, timeZone), at, `${wanted} in ${timeZone}`);
        }
      }
    }
  });

  it("is in the order of days", () => {
    const zone = fc.constantFrom(...Intl.supportedValuesOf("timeZone"));
    fc.assert(
      fc.property(zone, fc.integer({ min: 0, max: 30_000 }), (timeZone, day) => {
        const length = startOfDay(day + 1, timeZone) - startOfDay(day, timeZone);
        assert(length >= 0 && length <= 2 * dayMs, `${length} ms`);
      }),
      { numRuns: 300 },
    );
  });

  it("is that of UTC in a zone that this version of Node does not know", () => {
    assert.equal(startOfDay(20_000, "Mars/Olympus_Mons"), 20_000 * dayMs);
  });

  it("of UTC needs no calendar", () => {
    assert.equal(startOfDay(20_000, undefined), 20_000 * dayMs);
    assert.equal(startOfDay(20_000, "UTC"), 20_000 * dayMs);
  });
});

describe("isTimeZone", () => {
  it("accepts names of the IANA database, and no offsets", () => {
    for (const name of ["UTC", "Europe/Berlin", "Asia/Kolkata", "America/Argentina/Buenos_Aires"])
      assert(isTimeZone(name));
    for (const name of ["", "+01:00", "-0800", "Europe/Nowhere", "Berlin", " UTC"]) assert(!isTimeZone(name), name);
  });
});
