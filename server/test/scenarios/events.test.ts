import assert from "node:assert/strict";
import { it } from "node:test";
import { StoreUnavailable } from "../../../engine/src/errors/store-unavailable.ts";
import { insertEvents, type NewEvent } from "../../src/platform/store/events/events.ts";
import { describeOnStores, openTestServer } from "../harness.ts";

interface Event {
  id: string;
  type: string;
  version: number;
  createdAt: number;
  data: Record<string, unknown>;
}

describeOnStores("events.listEvents", (server, store) => {
  const list = async (as: string, body: object = {}): Promise<{ data: Event[]; pagination: { cursor?: string } }> =>
    (await server.call("events.listEvents", body, { as })).body;
  /** The types and the data of events. */
  const told = async (as: string, body: object = {}) =>
    (await list(as, body)).data.map(({ type, data }) => [type, data] as const);

  it("has the events of every change, in the order in which they happened", async () => {
    const { key: as, rootKeyId: actor } = await server.workspace("every");
    const ok = (name: string, body: object) => server.ok(name, body, { as });
    const last = (await list(as)).data.at(-1)!.id;
    /** The events of one call, and of nothing before it. */
    let seen = last;
    const of = async (name: string, body: object) => {
      const answer = await ok(name, body);
      const { data } = await list(as, { after: seen });
      seen = data.at(-1)?.id ?? seen;
      return { answer, events: data.map(({ type, data }) => [type, data]) };
    };
    const { apiId } = (await of("apis.createApi", { name: "payments" })).answer;
    const created = await of("keys.createKey", { apiId, name: "one", externalId: "acme", expires: 1_900_000_000_000 });
    const { keyId } = created.answer;
    const key = { keyId, apiId, externalId: "acme" };
    const [owner, [type, data]] = created.events as [
      [string, Record<string, unknown>],
      [string, Record<string, unknown>],
    ];
    assert.equal(created.events.length, 2);
    assert.deepEqual([owner[0], owner[1].externalId], ["identity.created", "acme"]);
    assert.equal(type, "key.created");
    const { start, ...rest } = data;
    assert.deepEqual(rest, { ...key, name: "one", expires: 1_900_000_000_000, actor });
    assert(!JSON.stringify(data).includes(created.answer.key));
    assert(created.answer.key.startsWith(start));

    const eventsOf = async (name: string, body: object) => (await of(name, body)).events;
    assert.deepEqual(await eventsOf("keys.updateKey", { keyId, name: "two", meta: { a: 1 } }), [
      ["key.updated", { ...key, changed: ["name", "meta"], actor }],
    ]);
    assert.deepEqual(await eventsOf("keys.updateKey", { keyId, name: "two" }), [], "nothing differs");
    assert.deepEqual(await eventsOf("keys.updateKey", { keyId, enabled: false }), [
      ["key.disabled", { ...key, actor }],
    ]);
    assert.deepEqual(await eventsOf("keys.updateKey", { keyId, enabled: true, name: "three" }), [
      ["key.updated", { ...key, changed: ["name"], actor }],
      ["key.enabled", { ...key, actor }],
    ]);
    await ok("permissions.createRole", { name: "reader" });
    seen = (await list(as, { order: "desc", limit: 1 })).data[0]!.id;
    assert.deepEqual(await eventsOf("keys.addRoles", { keyId, roles: ["reader"] }), [
      ["key.updated", { ...key, changed: ["roles"], actor }],
    ]);
    assert.deepEqual(await eventsOf("keys.updateCredits", { keyId, operation: "set", value: 10 }), [
      ["key.updated", { ...key, changed: ["credits"], actor }],
    ]);
    const rerolled = await of("keys.rerollKey", { keyId, expiration: 0 });
    const newKeyId = rerolled.answer.keyId;
    assert.deepEqual(
      rerolled.events.map(([type, data]) => [type, (data as Record<string, unknown>).keyId]),
      [
        ["key.rerolled", keyId],
        ["key.created", newKeyId],
      ],
    );
    assert.equal((rerolled.events[0]![1] as Record<string, unknown>).newKeyId, newKeyId);
    assert.equal((rerolled.events[1]![1] as Record<string, unknown>).rerolledFrom, keyId);
    assert.deepEqual(await eventsOf("keys.deleteKey", { keyId, permanent: true }), [
      ["key.deleted", { ...key, permanent: true, actor }],
    ]);
    assert.deepEqual(await eventsOf("apis.deleteApi", { apiId }), [
      ["api.deleted", { apiId, name: "payments", actor }],
    ]);
  });

  it("has no event of a change that failed", async () => {
    const { key: as } = await server.workspace("failed");
    const { apiId } = await server.ok("apis.createApi", { name: "payments" }, { as });
    const before = await told(as);
    const failed = await server.call("keys.createKey", { apiId, externalId: "acme", roles: ["none"] }, { as });
    assert.equal(failed.problem, "role_not_found");
    assert.deepEqual(await told(as), before);
  });

  it("filters by type, object and time, and pages in both orders", async () => {
    const { key: as } = await server.workspace("filters");
    const { apiId } = await server.ok("apis.createApi", { name: "payments" }, { as });
    await server.advance(1_000);
    const from = server.clock.now();
    const ids: string[] = [];
    for (let i = 0; i < 5; i++) ids.push((await server.ok("keys.createKey", { apiId }, { as })).keyId);
    await server.advance(1_000);
    const { identityId } = await server.ok("identities.createIdentity", { externalId: "acme" }, { as });

    const objects = async (body: object) => (await told(as, body)).map(([, data]) => data.keyId ?? data.identityId);
    assert.deepEqual(await objects({ types: ["key.created"] }), ids);
    assert.deepEqual(await objects({ types: ["key.created", "identity.created"], order: "desc" }), [
      identityId,
      ...ids.toReversed(),
    ]);
    assert.deepEqual(await objects({ objectId: ids[2]! }), [ids[2]]);
    assert.deepEqual(await objects({ start: from, end: from + 1_000 }), ids);
    for (const order of ["asc", "desc"]) {
      const paged: Event[][] = [];
      for (let cursor: string | undefined; ; ) {
        const { data, pagination } = await list(as, {
          order,
          types: ["key.created"],
          limit: 2,
          ...(cursor && { cursor }),
        });
        paged.push(data);
        if (pagination.cursor === undefined) break;
        cursor = pagination.cursor;
      }
      assert.deepEqual(
        paged.map((page) => page.map(({ data }) => data.keyId)),
        order === "asc"
          ? [ids.slice(0, 2), ids.slice(2, 4), ids.slice(4)]
          : [[ids[4], ids[3]], [ids[2], ids[1]], [ids[0]]],
      );
    }
  });

  it("is read with a permission of its own, in one workspace", async () => {
    const { key: as } = await server.workspace("mine");
    const { apiId } = await server.ok("apis.createApi", { name: "payments" }, { as });
    const { key: auditor } = await server.ok(
      "rootKeys.createRootKey",
      { name: "auditor", permissions: ["audit.*.read_event"] },
      { as },
    );
    assert.equal((await server.call("events.listEvents", {}, { as: auditor })).problem, "insufficient_permissions");
    const { key: other } = await server.workspace("other");
    assert.deepEqual(await told(other, { objectId: apiId }), []);
    const [event] = (await list(as, { objectId: apiId })).data;
    assert.equal(
      (await server.call("events.listEvents", { after: event!.id }, { as: other })).problem,
      "invalid_input",
    );
  });

  it("ends before the event of a transaction in progress, which later ones do not overtake", {
    skip: store === "sqlite",
  }, async () => {
    const { key: as, workspaceId } = await server.workspace("horizon");
    const event = (name: string): NewEvent => ({
      id: `evt_${name}00000000000`,
      workspaceId,
      type: "permission.created",
      objectId: name,
      at: server.clock.now(),
      data: { permissionId: name, slug: name, actor: "cli" },
    });
    const slow = await server.openTransaction([], (sql) => insertEvents(sql, [event("first")]));
    await server.change([], (sql) => insertEvents(sql, [event("second")]));
    const slugs = async () => (await told(as, { types: ["permission.created"] })).map(([, { slug }]) => slug);
    assert.deepEqual(await slugs(), []);
    await slow.commit();
    assert.deepEqual(await slugs(), ["first", "second"]);
  });

  it("gives an import one event for each chunk", async () => {
    const { key: as, rootKeyId: actor } = await server.workspace("imported");
    const { apiId } = await server.ok("apis.createApi", { name: "payments" }, { as });
    const keys = Array.from({ length: 600 }, (_, i) => ({ hash: i.toString(16).padStart(64, "0") }));
    const { migrated } = await server.ok("keys.migrateKeys", { migrationId: "old", apiId, keys }, { as });
    const events = await told(as, { types: ["keys.imported", "key.created"] });
    assert(events.length > 1);
    for (const [, { keyIds, ...rest }] of events) {
      assert((keyIds as string[]).length <= 500);
      assert.deepEqual(rest, { apiId, migrationId: "old", actor });
    }
    const ids = events.flatMap(([, { keyIds }]) => keyIds as string[]);
    assert.deepEqual(
      ids,
      migrated.map(({ keyId }: { keyId: string }) => keyId),
    );
  });

  it("reports the first call that a limit rejects in a window, of keys, identities and namespaces", async () => {
    const { key: as } = await server.workspace("exceeded");
    const { apiId } = await server.ok("apis.createApi", { name: "payments" }, { as });
    const shared = { name: "shared", limit: 3, duration: 3_600_000, autoApply: true };
    const { identityId } = await server.ok(
      "identities.createIdentity",
      { externalId: "acme", ratelimits: [shared] },
      { as },
    );
    const own = { name: "requests", limit: 1, duration: 60_000, autoApply: true };
    const { keyId, key } = await server.ok(
      "keys.createKey",
      { apiId, externalId: "acme", ratelimits: [own], credits: { remaining: 100 } },
      { as },
    );
    const events = async () => {
      await server.pass(3_000);
      return (await told(as, { types: ["limit.exceeded"] })).map(([, data]) => data);
    };
    const about = { keyId, apiId, externalId: "acme" };
    const end = (duration: number) => (Math.floor(server.clock.now() / duration) + 1) * duration;
    for (let i = 0; i < 4; i++) await server.ok("keys.verifyKey", { key }, { as });
    const first = { ...about, name: "requests", limit: 1, duration: 60_000, windowEnd: end(60_000) };
    assert.deepEqual(await events(), [first]);
    await server.advance(120_000);
    await server.ok("keys.verifyKey", { key }, { as });
    await server.ok("keys.verifyKey", { key }, { as });
    assert.deepEqual((await events()).slice(1), [{ ...first, windowEnd: end(60_000) }]);
    await server.advance(120_000);
    await server.ok("keys.verifyKey", { key }, { as });
    await server.ok(
      "keys.verifyKey",
      {
        key,
        ratelimits: [
          { name: "shared", cost: 1 },
          { name: "requests", cost: 0 },
        ],
      },
      { as },
    );
    assert.deepEqual(
      (await events()).slice(2).map(({ name, identityId, windowEnd }) => [name, identityId, windowEnd]),
      [["shared", identityId, end(3_600_000)]],
    );

    const count = { namespace: "logins", identifier: "user_1", limit: 1, duration: 60_000 };
    for (let i = 0; i < 3; i++) await server.ok("ratelimits.limit", count, { as });
    const [, , , ofNamespace] = await events();
    const { namespaceId, ...rest } = ofNamespace!;
    assert.match(namespaceId as string, /^rlns_/);
    assert.deepEqual(rest, { identifier: "user_1", limit: 1, duration: 60_000, windowEnd: end(60_000) });
  });

  it("reports balances at a fifth and at 0, and refills, with the keys that share them", async () => {
    const { key: as } = await server.workspace("credits");
    const { apiId } = await server.ok("apis.createApi", { name: "payments" }, { as });
    const { keyId, key } = await server.ok(
      "keys.createKey",
      { apiId, externalId: "acme", credits: { remaining: 10 } },
      { as },
    );
    const about = { keyId, apiId, externalId: "acme", keyIds: [keyId] };
    const spend = (cost: number) => server.ok("keys.verifyKey", { key, credits: { cost } }, { as });
    const low = async () => (await told(as, { types: ["credits.low"] })).map(([, data]) => data);
    await spend(7);
    assert.deepEqual(await low(), []);
    await spend(1);
    assert.deepEqual(await low(), [{ ...about, remaining: 2, threshold: 2 }]);
    await spend(1);
    assert.equal((await low()).length, 1, "once for each threshold");
    await spend(1);
    assert.deepEqual((await low())[1], { ...about, remaining: 0, threshold: 0 });
    await spend(1);
    assert.equal((await low()).length, 2, "a rejected call spends nothing");
    // A top-up sets the threshold anew.
    await server.ok("keys.updateCredits", { keyId, operation: "increment", value: 100 }, { as });
    await server.ok("keys.updateCredits", { keyId, operation: "decrement", value: 85 }, { as });
    assert.deepEqual((await low())[2], { ...about, remaining: 15, threshold: 20 });

    const { keyId: refilled } = await server.ok(
      "keys.createKey",
      { apiId, credits: { remaining: 3, refill: { interval: "daily", amount: 50 } } },
      { as },
    );
    // A refill is due at midnight, twelve hours later.
    server.clock.step(12 * 3_600_000);
    await server.ok("keys.updateCredits", { keyId: refilled, operation: "decrement", value: 1 }, { as });
    assert.deepEqual(
      (await told(as, { types: ["credits.refilled"] })).map(([, data]) => data),
      [{ keyId: refilled, apiId, keyIds: [refilled], remaining: 50, before: 3 }],
    );
  });
});

it("a stop while the database does not answer loses the events of exceeded limits, and succeeds", async (t) => {
  const server = await openTestServer();
  t.after(() => server.close());
  const count = { namespace: "logins", identifier: "u_1", limit: 1, cost: 2, duration: 3_600_000 };
  assert.equal((await server.ok("ratelimits.limit", count)).success, false);
  server.store.interception = (name, proceed) =>
    name === "recordExceeded" ? Promise.reject(new StoreUnavailable("The database is away")) : proceed();
  await server.service.stop();
  const lost = server.logged.filter(({ message }) => message.includes("events of exceeded limits are lost"));
  assert.deepEqual(
    lost.map(({ level, fields }) => [level, (fields as { count: number }).count]),
    [["warn", 1]],
  );
});
