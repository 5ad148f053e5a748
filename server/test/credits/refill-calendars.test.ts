import assert from "node:assert/strict";
import { it } from "node:test";
import { sql as raw } from "kysely";
import { describeOnStores, type TestServer } from "../harness.ts";

const HOUR = 3_600_000;
const SWEEP_INTERVAL = 60_000;

function goTo(server: TestServer, moment: string | number): void {
  const at = typeof moment === "number" ? moment : Date.parse(moment);
  server.clock.step(at - server.clock.now());
}

/** A key with a refill and a balance of 3. */
async function refilled(server: TestServer, refill: object) {
  return server.createKey(await server.createApi(), { credits: { remaining: 3, refill } });
}

describeOnStores("a refill of an earlier release", (server, store) => {
  const weekly = { interval: "weekly", amount: 10 };

  it("is the only one that can be stored beside that release, which misreads others", async () => {
    const api = await server.createApi();
    const { keyId } = await server.createKey(api, { credits: { remaining: 3 } });
    const others = [
      weekly,
      { interval: "daily", amount: 10, timeZone: "UTC" },
      { interval: "monthly", amount: 10, rollover: 1 },
    ];
    const key = { hash: "aa".repeat(32), credits: { remaining: 3, refill: weekly } };
    const migration = { migrationId: "calendars", apiId: api, keys: [key] };
    if (store === "postgres") {
      await server.besideEarlierRelease(async () => {
        for (const refill of others) {
          const credits = { remaining: 3, refill };
          const error = await server.rejected("keys.createKey", { apiId: api, credits }, "precondition_failed");
          assert.match(error.detail, /Upgrade every node/);
          await server.rejected("keys.updateKey", { keyId, credits: { refill } }, "precondition_failed");
        }
        await server.rejected("keys.migrateKeys", migration, "precondition_failed");
        for (const interval of ["daily", "monthly"]) {
          await server.ok("keys.updateKey", { keyId, credits: { refill: { interval, amount: 5 } } });
        }
      });
    }
    await server.ok("keys.migrateKeys", { ...migration, dryRun: true });
    const needs = () =>
      server.change([], async ({ db }) => {
        const { rows } = await raw<{ needs: number }>`select max(needs) as needs from schema_steps`.execute(db);
        return Number(rows[0]!.needs);
      });
    assert.equal(await needs(), 0, "an earlier release may still be started");
    assert.deepEqual((await server.ok("keys.migrateKeys", migration)).failed, []);
    assert.equal(await needs(), 34, "it may not any more");
    for (const refill of others) await server.ok("keys.updateKey", { keyId, credits: { refill } });
  });
});

describeOnStores("a refill by the calendar", (server) => {
  it("returns what was stored, and when it is due", async () => {
    goTo(server, "2026-01-15T12:00:00Z");
    for (const [refill, stored, nextAt] of [
      [{ interval: "hourly" }, {}, "2026-01-15T13:00:00Z"],
      [{ interval: "daily", timeZone: "Europe/Berlin" }, {}, "2026-01-15T23:00:00Z"],
      [{ interval: "weekly" }, { refillDay: 1 }, "2026-01-19T00:00:00Z"],
      [{ interval: "weekly", refillDay: 7, timeZone: "America/New_York" }, {}, "2026-01-18T05:00:00Z"],
      [{ interval: "monthly", timeZone: "Asia/Kolkata" }, { refillDay: 1 }, "2026-01-31T18:30:00Z"],
      [{ interval: "yearly" }, { refillDay: 1, refillMonth: 1 }, "2027-01-01T00:00:00Z"],
      [{ interval: "yearly", refillDay: 29, refillMonth: 2, rollover: 50 }, {}, "2026-02-28T00:00:00Z"],
    ] as const) {
      const { keyId } = await refilled(server, { ...refill, amount: 10 });
      const expected = { amount: 10, ...refill, ...stored };
      assert.deepEqual((await server.getKey(keyId)).credits.refill, expected);
      const { credits } = await server.ok("keys.explainVerification", { keyId });
      assert.deepEqual(credits.refill, { ...expected, nextAt: Date.parse(nextAt) });
    }
  });

  it("is applied at local midnight, by a call or by the sweep", async () => {
    goTo(server, "2026-03-27T12:00:00Z");
    const refill = { interval: "daily", amount: 10, timeZone: "Europe/Berlin" };
    const [used, idle] = [await refilled(server, refill), await refilled(server, refill)];
    // Summer time begins on March 29 at 01:00 UTC.
    for (const [due, left] of [
      ["2026-03-27T23:00:00Z", 3],
      ["2026-03-28T23:00:00Z", 9],
      ["2026-03-29T22:00:00Z", 9],
    ] as const) {
      goTo(server, Date.parse(due) - 1);
      assert.equal((await server.verify(used.key, { credits: { cost: 0 } })).credits, left);
      goTo(server, due);
      assert.equal((await server.verify(used.key)).credits, 9);
    }
    await server.pass(SWEEP_INTERVAL);
    const refills = await server.ok("audit.listEvents", { target: idle.keyId, action: "credits.refill" });
    assert.deepEqual(
      refills.map(({ meta }: { meta: { dueAt: number } }) => meta.dueAt),
      [Date.parse("2026-03-29T22:00:00Z")],
    );
  });

  it("with rollover keeps the balance up to a maximum, and counts each missed refill", async () => {
    goTo(server, "2026-04-10T12:00:00Z");
    const { keyId, key } = await refilled(server, { interval: "daily", amount: 10, rollover: 25 });
    goTo(server, "2026-04-11");
    assert.equal((await server.verify(key, { credits: { cost: 0 } })).credits, 13);
    goTo(server, "2026-04-13");
    assert.equal((await server.verify(key, { credits: { cost: 0 } })).credits, 33);
    goTo(server, "2026-04-14");
    assert.equal((await server.verify(key, { credits: { cost: 0 } })).credits, 35);
    await server.ok("keys.updateKey", { keyId, credits: { refill: { interval: "daily", amount: 10 } } });
    goTo(server, "2026-04-15");
    assert.equal((await server.verify(key, { credits: { cost: 0 } })).credits, 10);
  });

  it("is applied at most once for each due time after a clock that ran ahead", async () => {
    goTo(server, "2026-05-10T12:30:00Z");
    const start = server.clock.now();
    const replaced = await refilled(server, { interval: "hourly", amount: 10 });
    const added = await refilled(server, { interval: "hourly", amount: 1, rollover: 1_000 });
    const applied: number[] = [];
    const visit = async (hours: number) => {
      goTo(server, start + hours * HOUR);
      await server.verify(added.key, { credits: { cost: 0 } });
      const { code } = await server.verify(replaced.key, { credits: { cost: 10 } });
      if (code === "VALID") applied.push(Math.floor(server.clock.now() / HOUR));
    };
    for (const hours of [1, 30, 2, 3, 29, 5, 30, 31, 4, 32]) await visit(hours);
    assert.deepEqual(
      applied.filter((hour, i) => applied.indexOf(hour) !== i),
      [],
    );
    assert.equal((await server.getKey(added.keyId)).credits.remaining, 3 + 32);
  });

  it("is rejected where its members do not belong together", async () => {
    const apiId = await server.createApi();
    const { keyId } = await server.createKey(apiId, { credits: { remaining: 3 } });
    for (const [refill, message] of [
      [{ interval: "hourly", refillDay: 1 }, /refillDay must not be provided when the refill interval is hourly/],
      [{ interval: "monthly", refillMonth: 1 }, /refillMonth must not be provided when the refill interval is monthly/],
      [{ interval: "hourly", timeZone: "UTC" }, /timeZone must not be provided when the refill interval is hourly/],
      [{ interval: "weekly", refillDay: 8 }, /1 \(Monday\) to 7/],
      [{ interval: "daily", timeZone: "+01:00" }, /IANA/],
      [{ interval: "daily", timeZone: "Europe/Nowhere" }, /IANA/],
      [{ interval: "daily", rollover: 1e15 }, /maximum of a balance/],
    ] as const) {
      const credits = { remaining: 3, refill: { amount: 10, ...refill } };
      for (const [operation, input] of [
        ["keys.createKey", { apiId, credits }],
        ["keys.updateKey", { keyId, credits }],
      ] as const) {
        assert.match((await server.rejected(operation, input, "invalid_input")).detail, message);
      }
    }
    assert.deepEqual((await server.getKey(keyId)).credits, { remaining: 3 });
  });
});
