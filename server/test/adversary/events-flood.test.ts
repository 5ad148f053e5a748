/** A hostile tenant fills the disk with events no faster than with entries of the audit log. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { EXCEEDED_PER_MINUTE } from "../../../engine/src/limits/exceeded-limits.ts";
import { describeOnStores } from "../harness.ts";

const bytesOf = (rows: readonly unknown[]) => rows.reduce<number>((sum, row) => sum + JSON.stringify(row).length, 0);

describeOnStores("a tenant that wants many events", (server) => {
  it("gets less of them from its best call than entries of the audit log from another one", async () => {
    const { key: as } = await server.workspace("hostile");
    const { apiId } = await server.ok("apis.createApi", { name: "hostile" }, { as });
    const long = (letter: string) => letter.repeat(255);
    const bytes = async () => ({
      audit: bytesOf(await server.rowsOf("audit_events")) + bytesOf(await server.rowsOf("audit_targets")),
      events: bytesOf(await server.rowsOf("events")) + bytesOf(await server.rowsOf("event_outbox")),
    });
    const written: { audit: number; events: number }[] = [];
    const attack = async (name: string, body: object) => {
      const before = await bytes();
      const answer = await server.ok(name, body, { as });
      const after = await bytes();
      written.push({ audit: after.audit - before.audit, events: after.events - before.events });
      return answer;
    };
    const permissions = Array.from({ length: 100 }, (_, i) => `p${i}.${"x".repeat(90)}`);
    const meta = (letter: string) => ({ [letter]: letter.repeat(5_000) });
    const { keyId } = await attack("keys.createKey", {
      apiId,
      name: long("n"),
      externalId: long("e"),
      meta: meta("a"),
      credits: { remaining: 6 },
    });
    await attack("keys.updateKey", {
      keyId,
      name: long("m"),
      externalId: long("f"),
      meta: meta("b"),
      permissions,
      enabled: false,
      expires: server.clock.now() + 3_600_000,
      credits: { remaining: 0 },
      ratelimits: [],
    });
    await attack("keys.rerollKey", { keyId, expiration: 3_600_000 });
    await attack("keys.updateCredits", { keyId, operation: "set", value: 6 });
    await attack("keys.updateCredits", { keyId, operation: "decrement", value: 5 });
    await attack("keys.deleteKey", { keyId });
    const keys = Array.from({ length: 20 }, (_, i) => ({
      hash: i.toString(16).padStart(64, "f"),
      externalId: long("g"),
    }));
    await attack("keys.migrateKeys", { migrationId: long("i"), apiId, keys });
    const most = (kind: "audit" | "events") => Math.max(...written.map((one) => one[kind]));
    assert(written.every(({ events }) => events > 0));
    assert(most("events") <= most("audit"), JSON.stringify(written));
  });

  it("gets a bounded number of them from rejected calls, and the calls are answered as before", async () => {
    const { key: as } = await server.workspace("denied");
    for (let i = 0; i < 300; i++) {
      const count = { namespace: "logins", identifier: `user_${i}`, limit: 1, cost: 2, duration: 3_600_000 };
      assert.equal((await server.ok("ratelimits.limit", count, { as })).success, false);
    }
    await server.pass(5_000);
    const events = await server.ok("events.listEvents", { types: ["limit.exceeded"] }, { as });
    assert.equal(events.length, EXCEEDED_PER_MINUTE);
    assert.match(await server.scrape(), /^latchkey_limit_events_dropped_total 240$/m);
  });
});
