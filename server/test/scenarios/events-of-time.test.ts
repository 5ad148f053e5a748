/** Events that no call makes: of keys that expire, have expired, are used for the first time, or are not used any more. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { describeOnStores, openTestServer } from "../harness.ts";

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;

interface Event {
  type: string;
  data: Record<string, unknown>;
}

describeOnStores("events of time", (server, store) => {
  /** Lets the sweep run, and periodic writes before it. */
  const sweep = async () => {
    // Its timer, and the pauses between its steps.
    for (const length of [30_000, 1_000, 1_000, 1_000, 1_000]) {
      await server.advance(length);
      await server.store.settled();
      await server.analytics.settled();
    }
  };
  const later = async (length: number) => {
    server.clock.step(length);
    await sweep();
  };
  const events = async (types: string[], as: string = server.rootKey): Promise<Event[]> =>
    server.ok("events.listEvents", { types }, { as });
  const ofExpiry = async (as: string) =>
    (await events(["key.expiring", "key.expired"], as)).map(({ type, data: { keyId, days } }) => [type, keyId, days]);

  it("report a key 7 days and 1 day before it expires, and when it has expired, once each", async () => {
    const { key: as } = await server.workspace("expiring");
    const { apiId } = await server.ok("apis.createApi", { name: "payments" }, { as });
    await sweep();
    const expires = server.clock.now() + 8 * DAY;
    const create = (body: object) => server.ok("keys.createKey", { apiId, ...body }, { as });
    const { keyId } = await create({ expires, externalId: "acme" });
    const { keyId: deleted } = await create({ expires });
    await create({ expires: expires + 300 * DAY });
    await create({});
    await sweep();
    assert.deepEqual(await ofExpiry(as), []);
    await server.ok("keys.deleteKey", { keyId: deleted }, { as });
    await later(DAY + MINUTE);
    const week = ["key.expiring", keyId, 7];
    assert.deepEqual(await ofExpiry(as), [week]);
    await later(5 * DAY);
    assert.deepEqual(await ofExpiry(as), [week]);
    await later(DAY);
    assert.deepEqual(await ofExpiry(as), [week, ["key.expiring", keyId, 1]]);
    await later(DAY);
    await later(DAY);
    assert.deepEqual(await ofExpiry(as), [week, ["key.expiring", keyId, 1], ["key.expired", keyId, undefined]]);
    const [{ data }] = (await events(["key.expired"], as)) as [Event];
    assert.deepEqual(data, { keyId, apiId, externalId: "acme", expires });
  });

  it("report the days that an API chose, and again after a new expiry", async () => {
    const { key: as } = await server.workspace("chosen");
    const { apiId } = await server.ok("apis.createApi", { name: "payments" }, { as });
    const { apiId: silent } = await server.ok("apis.createApi", { name: "silent" }, { as });
    await server.ok("apis.updateApi", { apiId, expiryNotices: [30, 3] }, { as });
    await server.ok("apis.updateApi", { apiId: silent, expiryNotices: [] }, { as });
    assert.deepEqual((await server.ok("apis.getApi", { apiId }, { as })).expiryNotices, [30, 3]);
    await sweep();
    const expires = server.clock.now() + 31 * DAY;
    const { keyId } = await server.ok("keys.createKey", { apiId, expires }, { as });
    await server.ok("keys.createKey", { apiId: silent, expires }, { as });
    await later(DAY + MINUTE);
    await later(27 * DAY);
    assert.deepEqual(await ofExpiry(as), [
      ["key.expiring", keyId, 30],
      ["key.expiring", keyId, 3],
    ]);
    await server.ok("keys.updateKey", { keyId, expires: server.clock.now() + 4 * DAY }, { as });
    await later(2 * DAY);
    assert.deepEqual((await ofExpiry(as)).slice(2), [["key.expiring", keyId, 3]]);
  });

  it("are complete for more keys with one expiry than a step has", async () => {
    const { key: as } = await server.workspace("many");
    const { apiId } = await server.ok("apis.createApi", { name: "payments" }, { as });
    await sweep();
    const expires = server.clock.now() + MINUTE;
    const keys = Array.from({ length: 450 }, (_, i) => ({ hash: (i + 1_000).toString(16).padStart(64, "0"), expires }));
    const { migrated } = await server.ok("keys.migrateKeys", { migrationId: "old", apiId, keys }, { as });
    await later(MINUTE);
    await sweep();
    const told = new Set<unknown>();
    let count = 0;
    for (let after: string | undefined; ; ) {
      const page = await server.ok("events.listEvents", { types: ["key.expired"], ...(after && { after }) }, { as });
      for (const { data } of page) told.add(data.keyId);
      count += page.length;
      if (page.length === 0) break;
      after = page.at(-1).id;
    }
    assert.deepEqual([count, told], [450, new Set(migrated.map(({ keyId }: { keyId: string }) => keyId))]);
  });

  it("report the first use of a key, and no later one", async () => {
    const { key: as } = await server.workspace("first");
    const { apiId } = await server.ok("apis.createApi", { name: "payments" }, { as });
    const { keyId, key } = await server.ok("keys.createKey", { apiId, externalId: "acme" }, { as });
    await server.ok("keys.createKey", { apiId }, { as });
    const usedAt = server.clock.now();
    for (let i = 0; i < 3; i++) {
      await server.ok("keys.verifyKey", { key }, { as });
      await sweep();
    }
    assert.deepEqual(
      (await events(["key.first_used"], as)).map(({ data }) => data),
      [{ keyId, apiId, externalId: "acme", usedAt }],
    );
  });

  it("report a key that was not used for 90 days, once until it is used again", async () => {
    const { key: as } = await server.workspace("unused");
    const { apiId } = await server.ok("apis.createApi", { name: "payments" }, { as });
    await sweep();
    const { keyId, key } = await server.ok("keys.createKey", { apiId }, { as });
    const { keyId: never } = await server.ok("keys.createKey", { apiId }, { as });
    await later(DAY);
    const usedAt = server.clock.now();
    await server.ok("keys.verifyKey", { key }, { as });
    await sweep();
    const unused = async () =>
      (await events(["key.unused"], as)).map(({ data: { keyId, lastUsedAt } }) => [keyId, lastUsedAt]);
    await later(88 * DAY);
    assert.deepEqual(await unused(), []);
    await later(DAY + MINUTE);
    await later(DAY);
    assert.deepEqual(await unused(), [
      [never, null],
      [keyId, usedAt],
    ]);
    await server.ok("keys.verifyKey", { key }, { as });
    const again = server.clock.now();
    await sweep();
    await later(92 * DAY);
    // After the notices of keys of other tests, which the sweep takes first.
    await sweep();
    // The events before may have been deleted by now: they are stored for 30 days.
    assert.deepEqual((await unused()).at(-1), [keyId, again]);
  });

  it("are recorded once by two nodes", { skip: store === "sqlite" }, async (t) => {
    const { key: as } = await server.workspace("two");
    const { apiId } = await server.ok("apis.createApi", { name: "payments" }, { as });
    const other = await openTestServer({ store, beside: server });
    t.after(() => other.close());
    await sweep();
    const { keyId } = await server.ok("keys.createKey", { apiId, expires: server.clock.now() + MINUTE }, { as });
    server.clock.step(MINUTE);
    for (let i = 0; i < 6; i++) {
      await server.pass(30_000);
      await other.store.settled();
    }
    assert.deepEqual(await ofExpiry(as), [["key.expired", keyId, undefined]]);
  });

  it("are deleted after their retention, and a program that stopped before learns that it missed some", async () => {
    const { key: as } = await server.workspace("old");
    const { apiId } = await server.ok("apis.createApi", { name: "payments" }, { as });
    const [{ id: after }] = await server.ok("events.listEvents", { objectId: apiId }, { as });
    await later(31 * DAY);
    // Retention waits for an hour after such a step.
    for (let passed = 0; passed < 60 * MINUTE; passed += 30_000) await sweep();
    await server.ok("apis.updateApi", { apiId, name: "orders" }, { as });
    for (let i = 0; i < 3; i++) await sweep();
    assert.deepEqual(
      (await server.ok("events.listEvents", {}, { as })).map(({ type }: Event) => type),
      ["api.updated"],
    );
    await server.rejected("events.listEvents", { after }, "invalid_input", { as });
    const numbers = new Set(((await server.rowsOf("events")) as { number: number }[]).map(({ number }) => number));
    for (const { number } of (await server.rowsOf("event_outbox")) as { number: number }[]) assert(numbers.has(number));
  });
});
