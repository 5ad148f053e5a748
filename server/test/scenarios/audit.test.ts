import assert from "node:assert/strict";
import { it } from "node:test";
import { describeOnStores } from "../harness.ts";

interface Event {
  id: string;
  occurredAt: number;
  actor: string;
  action: string;
  targets: string[];
  meta: Record<string, unknown>;
}

describeOnStores("audit.listEvents", (server) => {
  const list = async (as: string, body: object = {}): Promise<{ data: Event[]; pagination: { cursor?: string } }> =>
    (await server.call("audit.listEvents", body, { as })).body;
  const pages = async (as: string, body: object = {}): Promise<Event[][]> => {
    const all: Event[][] = [];
    for (let cursor: string | undefined; ; ) {
      const { data, pagination } = await list(as, { ...body, ...(cursor && { cursor }) });
      all.push(data);
      if (pagination.cursor === undefined) return all;
      cursor = pagination.cursor;
    }
  };

  it("returns actor, action and targets, the newest first, and no secret", async () => {
    const { key: as, rootKeyId } = await server.workspace("events");
    // Events of one time have no order.
    await server.advance(1_000);
    const { apiId } = await server.ok("apis.createApi", { name: "payments" }, { as });
    await server.advance(1_000);
    const { keyId, key } = await server.ok("keys.createKey", { apiId, name: "production" }, { as });
    const program = await server.ok(
      "rootKeys.createRootKey",
      { name: "ci", permissions: ["apis.*.update_api", "audit.*.read_event"] },
      { as },
    );
    await server.advance(1_000);
    await server.ok("apis.updateApi", { apiId, prefix: "pay", allowedIps: null }, { as: program.key });

    const { data } = await list(as);
    const events = data.map(({ actor, action, targets }) => ({ actor, action, targets }));
    assert.deepEqual(events[0], { actor: program.rootKeyId, action: "apis.updateApi", targets: [apiId] });
    assert.deepEqual(data[0]!.meta, {
      prefix: "pay",
      allowedIps: null,
      before: { prefix: null },
      after: { prefix: "pay" },
    });
    assert.equal(data[0]!.occurredAt, server.clock.now());
    for (const event of [
      { actor: rootKeyId, action: "keys.createKey", targets: [keyId, apiId] },
      { actor: rootKeyId, action: "rootKeys.createRootKey", targets: [program.rootKeyId] },
    ]) {
      assert(events.slice(1, 3).some((one) => JSON.stringify(one) === JSON.stringify(event)));
    }
    assert.deepEqual(events[3], { actor: rootKeyId, action: "apis.createApi", targets: [apiId] });
    assert.deepEqual(events[4], { actor: "cli", action: "rootKeys.createRootKey", targets: [rootKeyId] });
    assert.equal(data.length, 5);
    for (const secret of [as, key, program.key]) assert(!JSON.stringify(data).includes(secret));
    assert.deepEqual((await list(program.key)).data, data);
  });

  it("has the former and the new values of an update, of members that differ", async () => {
    const { key: as } = await server.workspace("compared");
    const ok = (name: string, body: object) => server.ok(name, body, { as });
    const values = async () => {
      const { changed, before, after } = (await list(as, { limit: 1 })).data[0]!.meta;
      return { ...(changed !== undefined && { changed }), before, after };
    };
    /** Each change happens later than the one before. */
    const change = async (name: string, body: object) => {
      await server.advance(1);
      await ok(name, body);
      return values();
    };
    const { apiId } = await ok("apis.createApi", { name: "payments" });
    await ok("permissions.createRole", { name: "reader", permissions: ["documents.read"] });
    const limit = { name: "requests", limit: 10, duration: 60_000, autoApply: true };
    const { keyId, key } = await ok("keys.createKey", {
      apiId,
      name: "old",
      externalId: "acme",
      permissions: ["b.read", "a.read"],
      credits: { remaining: 5 },
      ratelimits: [limit],
      meta: { plan: "free" },
    });
    const refill = { interval: "monthly", amount: 100 };
    const all = await change("keys.updateKey", {
      keyId,
      name: "new",
      externalId: null,
      meta: { plan: "pro" },
      expires: 4e12,
      enabled: false,
      credits: { refill },
      ratelimits: [{ ...limit, limit: 20 }],
      roles: ["reader"],
      permissions: ["a.read"],
    });
    assert.deepEqual(all.before, {
      name: "old",
      externalId: "acme",
      meta: { plan: "free" },
      expires: null,
      enabled: true,
      credits: { remaining: 5 },
      ratelimits: [limit],
      roles: [],
      permissions: ["a.read", "b.read"],
    });
    assert.deepEqual(all.after, {
      name: "new",
      externalId: null,
      meta: { plan: "pro" },
      expires: 4e12,
      enabled: false,
      credits: { remaining: 5, refill: { ...refill, refillDay: 1 } },
      ratelimits: [{ ...limit, limit: 20 }],
      roles: ["reader"],
      permissions: ["a.read"],
    });
    assert.deepEqual(await change("keys.updateKey", { keyId, name: "new", permissions: ["a.read"], credits: null }), {
      changed: ["name", "credits", "permissions"],
      before: { credits: all.after!.credits },
      after: { credits: null },
    });
    assert.deepEqual(await change("keys.updateKey", { keyId, name: "new" }), {
      changed: ["name"],
      before: undefined,
      after: undefined,
    });
    const long = { text: "x".repeat(2_000) };
    const beginning = JSON.stringify(long).slice(0, 1_000);
    assert.deepEqual((await change("keys.updateKey", { keyId, meta: long })).after, {
      meta: { beginning, length: 2_011 },
    });
    await change("keys.updateCredits", { keyId, operation: "set", value: 7 });
    assert.deepEqual(await change("keys.updateCredits", { keyId, operation: "decrement", value: 9 }), {
      before: 7,
      after: 0,
    });
    assert.deepEqual(await change("identities.updateIdentity", { identity: "acme", meta: { a: 1 }, ratelimits: [] }), {
      changed: ["meta", "ratelimits"],
      before: { meta: {} },
      after: { meta: { a: 1 } },
    });
    assert.deepEqual(await change("permissions.updateRole", { role: "reader", name: "viewer", description: "Views" }), {
      before: { name: "reader", description: null },
      after: { name: "viewer", description: "Views" },
    });
    assert.deepEqual(await change("permissions.updatePermission", { permission: "a.read", slug: "a.view" }), {
      before: { slug: "a.read" },
      after: { slug: "a.view" },
    });
    const { rootKeyId } = await ok("rootKeys.createRootKey", { name: "ci", permissions: ["apis.*.read_api"] });
    const permissions = ["apis.*.read_key"];
    assert.deepEqual(await change("rootKeys.updateRootKey", { rootKeyId, name: "ci", permissions, expires: 4e12 }), {
      before: { permissions: ["apis.*.read_api"], expires: null },
      after: { permissions, expires: 4e12 },
    });
    await ok("ratelimits.limit", { namespace: "emails", identifier: "a", limit: 1, duration: 60_000 });
    const override = { namespace: "emails", identifier: "a*", limit: 5, duration: 60_000 };
    assert.deepEqual(await change("ratelimits.setOverride", override), { before: undefined, after: undefined });
    assert.deepEqual(await change("ratelimits.setOverride", { ...override, limit: 6 }), {
      before: { limit: 5 },
      after: { limit: 6 },
    });
    const { data } = await list(as, { limit: 100 });
    assert(!JSON.stringify(data).includes(key));
    const created = data.find(({ action }) => action === "keys.createKey");
    assert.deepEqual(created!.meta.credits, { remaining: 5 });
  });

  it("has the former and the new values of a workspace", async () => {
    const { workspaceId } = await server.workspace("renamed");
    await server.ok("workspaces.updateWorkspace", { workspaceId, name: "other", requestsPerMinute: 10 });
    const { data } = await list(server.rootKey, { target: workspaceId, action: "workspaces.updateWorkspace" });
    assert.deepEqual(data[0]!.meta, {
      name: "other",
      requestsPerMinute: 10,
      before: { name: "renamed", requestsPerMinute: null },
      after: { name: "other", requestsPerMinute: 10 },
    });
  });

  it("filters by actor, action, target and time, and by all of them", async () => {
    const { key: as, rootKeyId } = await server.workspace("filtered");
    const begun = server.clock.now();
    const [one, two] = [
      (await server.ok("apis.createApi", { name: "1" }, { as })).apiId,
      (await server.ok("apis.createApi", { name: "2" }, { as })).apiId,
    ];
    await server.advance(10);
    const { keyId } = await server.ok("keys.createKey", { apiId: one }, { as });
    await server.advance(10);
    await server.ok("keys.deleteKey", { keyId }, { as });

    const actions = async (body: object) => (await list(as, body)).data.map(({ action }) => action);
    assert.deepEqual(await actions({ actor: "cli" }), ["rootKeys.createRootKey"]);
    assert.equal((await actions({ actor: rootKeyId })).length, 4);
    assert.deepEqual(await actions({ action: "keys.deleteKey" }), ["keys.deleteKey"]);
    assert.deepEqual(await actions({ target: one }), ["keys.deleteKey", "keys.createKey", "apis.createApi"]);
    assert.deepEqual(await actions({ target: two }), ["apis.createApi"]);
    assert.deepEqual(await actions({ target: keyId }), ["keys.deleteKey", "keys.createKey"]);
    // The start is inclusive, the end is exclusive.
    assert.deepEqual(await actions({ start: begun + 10 }), ["keys.deleteKey", "keys.createKey"]);
    assert.deepEqual(await actions({ start: begun + 10, end: begun + 20 }), ["keys.createKey"]);
    assert.deepEqual(await actions({ target: keyId, start: begun + 11, end: begun + 21 }), ["keys.deleteKey"]);
    assert.deepEqual(await actions({ target: keyId, end: begun + 20, actor: rootKeyId }), ["keys.createKey"]);
    assert.deepEqual(await actions({ target: keyId, actor: "cli" }), []);
    for (const body of [{ actor: "unknown" }, { action: "%" }, { target: "'; --" }, { end: 1 }]) {
      assert.deepEqual(await actions(body), []);
    }
    for (const [start, end] of [
      [5, 5],
      [6, 5],
    ]) {
      await server.rejected("audit.listEvents", { start, end }, "invalid_input");
    }
  });

  it("pages through all entries without gaps or duplicates while entries are added", async () => {
    const { key: as } = await server.workspace("paged");
    const target = (await server.ok("apis.createApi", { name: "0" }, { as })).apiId;
    for (let i = 0; i < 11; i++) {
      // Several in the same millisecond, so that their ids decide the order.
      if (i % 4 === 0) await server.advance(1);
      await server.ok("apis.updateApi", { apiId: target, name: String(i) }, { as });
    }
    const everything = (await list(as)).data;
    assert.equal(everything.length, 13);
    const order = (event: Event) => `${event.occurredAt} ${event.id}`;
    assert.deepEqual(everything.map(order), everything.map(order).sort().reverse());
    for (const limit of [1, 3, 4, 13, 100]) {
      const found = await pages(as, { limit });
      assert.deepEqual(found.flat(), everything);
      assert.equal(found.length, Math.ceil(13 / limit));
      const ofTarget = await pages(as, { limit, target });
      assert.deepEqual(
        ofTarget.flat(),
        everything.filter(({ targets }) => targets.includes(target)),
      );
      assert.equal(ofTarget.length, Math.ceil(12 / limit));
    }
    const { pagination } = await list(as, { limit: 5 });
    await server.advance(1);
    await server.ok("apis.updateApi", { apiId: target, name: "meanwhile" }, { as });
    assert.deepEqual((await list(as, { cursor: pagination.cursor })).data, everything.slice(5));
  });

  it("returns nothing of another workspace, for any cursor or target", async () => {
    const [mine, theirs] = [await server.workspace("mine"), await server.workspace("theirs")];
    const { apiId } = await server.ok("apis.createApi", { name: "theirs" }, { as: theirs.key });
    const own = (await list(mine.key)).data;
    assert.deepEqual(
      own.map(({ targets }) => targets),
      [[mine.rootKeyId]],
    );
    const { pagination } = await list(theirs.key, { limit: 1 });
    const ids = new Set((await list(theirs.key)).data.map(({ id }) => id));
    for (const cursor of [pagination.cursor, ""]) {
      assert((await list(mine.key, { cursor })).data.every(({ id }) => !ids.has(id)));
    }
    for (const cursor of ["garbage", "ключ", Buffer.from("9 x").toString("base64url")]) {
      await server.rejected("audit.listEvents", { cursor }, "invalid_input", { as: mine.key });
    }
    assert.deepEqual((await list(mine.key, { target: apiId })).data, []);
    assert.deepEqual((await list(mine.key, { actor: theirs.rootKeyId })).data, []);
  });

  it("returns changes of workspaces in the default workspace, from the API and the command line", async () => {
    const { workspaceId, rootKeyId, key } = await server.ok("workspaces.createWorkspace", { name: "managed" });
    await server.ok("workspaces.updateWorkspace", { workspaceId, requestsPerMinute: 5 });
    const act = { now: server.clock.now(), actor: "cli", workspaceId };
    await server.store.transact("setWorkspaceEnabled", { ...act, enabled: true });
    const events = (await list(server.rootKey, { target: workspaceId })).data;
    assert.deepEqual(
      events.map(({ action, actor }) => [action, actor === "cli"].join(" ")).sort(),
      [
        "workspaces.createWorkspace false",
        "workspaces.updateWorkspace false",
        "workspaces.updateWorkspace true",
      ].sort(),
    );
    assert.deepEqual((await list(server.rootKey, { target: rootKeyId })).data.length, 1);
    assert.deepEqual((await list(key)).data, []);
  });

  it("needs read_event", async () => {
    const { key: as } = await server.grant("audit.evt_1.read_event", "apis.*.*");
    const error = await server.rejected("audit.listEvents", {}, "insufficient_permissions", { as });
    assert.equal(error.detail, "Missing permission: 'audit.*.read_event'");
  });
});
