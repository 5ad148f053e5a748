/** All keys of an API that match a filter are changed: `apis.updateKeys` and `apis.deleteKeys`. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { describeOnStores, type TestServer } from "../harness.ts";

/** An API with 25 keys of acme and 5 of globex. */
async function someKeys(server: TestServer, more: object = {}) {
  const apiId = await server.createApi();
  const keys: { keyId: string; key: string }[] = [];
  for (let index = 0; index < 30; index++) {
    const externalId = index % 6 === 0 ? "globex" : "acme";
    keys.push(await server.createKey(apiId, { externalId, ...more }));
    await server.advance(1);
  }
  const count = async (filter: object) => (await server.ok("apis.countKeys", { apiId, ...filter })).count;
  return { apiId, keys, count };
}

describeOnStores("the keys of an API that match", (server) => {
  it("are updated in steps, each of which is one entry of the audit log", async () => {
    const { apiId, keys, count } = await someKeys(server);
    const input = { apiId, externalId: "acme", state: "active", enabled: false, limit: 10 };
    const first = await server.ok("apis.updateKeys", input);
    assert.deepEqual([first.changed, first.failed], [10, []]);
    // What is created meanwhile is not changed.
    const later = await server.createKey(apiId, { externalId: "acme" });
    const second = await server.ok("apis.updateKeys", { ...input, cursor: first.cursor });
    const third = await server.ok("apis.updateKeys", { ...input, cursor: second.cursor });
    assert.deepEqual([second.changed, third], [10, { changed: 5, failed: [] }]);
    assert.deepEqual([await count({ state: "disabled" }), await count({ state: "active" })], [25, 6]);
    assert.equal((await server.verify(keys[1]!.key)).code, "DISABLED");
    assert.equal((await server.verify(keys[0]!.key)).code, "VALID");
    assert.equal((await server.verify(later.key)).code, "VALID");

    const entries = await server.ok("audit.listEvents", { action: "apis.updateKeys", target: apiId });
    assert.deepEqual(entries.map(({ meta }: { meta: { keys: number } }) => meta.keys).sort(), [10, 10, 5]);
    const [entry] = await server.ok("audit.listEvents", { target: keys[1]!.keyId, action: "apis.updateKeys" });
    const { change } = entry.meta.changes.find(({ keyId }: { keyId: string }) => keyId === keys[1]!.keyId);
    assert.deepEqual([change.before, change.after], [{ enabled: true }, { enabled: false }]);
    const events = await server.ok("events.listEvents", { objectId: keys[1]!.keyId, types: ["key.disabled"] });
    assert.equal(events.length, 1);
  });

  it("get an expiry, roles, permissions and credits, and those that cannot are named", async () => {
    const { apiId, keys } = await someKeys(server);
    await server.createRole("batch");
    const of = (keyId: string) => server.ok("keys.getKey", { keyId });
    const expires = server.clock.now() + 60_000;
    for (const change of [{ expires }, { addRoles: ["batch"] }, { addPermissions: ["documents.batch"] }]) {
      assert.equal((await server.ok("apis.updateKeys", { apiId, externalId: "globex", ...change })).changed, 5);
    }
    const key = await of(keys[6]!.keyId);
    assert.deepEqual([key.expires, key.roles, key.permissions], [expires, ["batch"], ["documents.batch"]]);
    assert.equal((await of(keys[7]!.keyId)).roles, undefined);

    await server.ok("keys.updateKey", { keyId: keys[0]!.keyId, credits: { remaining: 3 } });
    const { changed, failed } = await server.ok("apis.updateKeys", { apiId, externalId: "globex", addCredits: 4 });
    assert.deepEqual([changed, failed.length], [1, 4]);
    assert.match(failed[0].detail, /unlimited credits/);
    assert.equal((await of(keys[0]!.keyId)).credits.remaining, 7);
  });

  it("are not changed by a call that fails, nor by who may not", async () => {
    const { apiId, count } = await someKeys(server);
    await server.rejected("apis.updateKeys", { apiId, addRoles: ["nobody"] }, "role_not_found");
    for (const change of [{}, { enabled: false, expires: null }]) {
      const { detail } = await server.rejected("apis.updateKeys", { apiId, ...change }, "invalid_input");
      assert.match(detail, /exactly one of/);
    }
    const { key: reader } = await server.grant("apis.*.read_key", "apis.*.read_api");
    const { key: writer } = await server.grant("apis.*.update_key", "apis.*.delete_key");
    for (const [operation, change] of [
      ["apis.updateKeys", { enabled: false }],
      ["apis.deleteKeys", {}],
    ] as const) {
      for (const externalId of ["acme", "nobody"]) {
        const body = { apiId, externalId, ...change };
        await server.rejected(operation, body, "insufficient_permissions", { as: reader });
        // Who may not list the keys learns nothing of them.
        await server.rejected(operation, body, "api_not_found", { as: writer });
      }
    }
    assert.equal(await count({ state: "active" }), 30);
  });

  it("are counted if they changed, in the answer as in the audit log", async () => {
    const { apiId, keys } = await someKeys(server);
    await server.createRole("counted");
    const { keyId } = keys[0]!;
    const filter = { apiId, externalId: "globex" };
    const expires = server.clock.now() + 60_000;
    await server.ok("keys.updateKey", { keyId, enabled: false, expires });
    await server.ok("keys.addRoles", { keyId, roles: ["counted"] });
    await server.ok("keys.addPermissions", { keyId, permissions: ["counted"] });
    const entries = async () => {
      const list = await server.ok("audit.listEvents", { action: "apis.updateKeys", target: apiId });
      return list.map(({ meta }: { meta: { keys: number } }) => meta.keys);
    };
    const changes = [{ enabled: false }, { expires }, { addRoles: ["counted"] }, { addPermissions: ["counted"] }];
    for (const change of changes) {
      assert.deepEqual(await server.ok("apis.updateKeys", { ...filter, ...change }), { changed: 4, failed: [] });
    }
    assert.deepEqual(await entries(), [4, 4, 4, 4]);
    const before = await server.rows();
    for (const change of changes) {
      assert.deepEqual(await server.ok("apis.updateKeys", { ...filter, ...change }), { changed: 0, failed: [] });
    }
    assert.deepEqual(await server.rows(), before);
  });

  it("that share a balance get credits once, over all calls, and also if one is rerolled meanwhile", async () => {
    const apiId = await server.createApi();
    const credits = { remaining: 0 };
    const create = async () => (await server.createKey(apiId, { credits })).keyId as string;
    const reroll = async (keyId: string) => {
      await server.advance(1);
      return (await server.ok("keys.rerollKey", { keyId, expiration: 60_000 })).keyId as string;
    };
    const [first, second] = [await create(), await create()];
    const chain = await reroll(await reroll(first));
    const page = (cursor?: string) =>
      server.ok("apis.updateKeys", { apiId, addCredits: 10, limit: 1, ...(cursor && { cursor }) });
    // The newest of the chain, then the others, one per call. The last key is rerolled before its turn.
    let { changed, cursor } = await page();
    const meanwhile = await reroll(second);
    while (cursor !== undefined) {
      const next = await page(cursor);
      changed += next.changed;
      ({ cursor } = next);
    }
    assert.equal(changed, 2);
    for (const keyId of [chain, meanwhile]) assert.equal((await server.getKey(keyId)).credits.remaining, 10, keyId);

    // Of the keys that match: the newest of the chain is disabled, the one before it is not.
    await server.ok("keys.updateKey", { keyId: chain, enabled: false });
    const { changed: active } = await server.ok("apis.updateKeys", { apiId, addCredits: 10, state: "active" });
    assert.deepEqual([active, (await server.getKey(chain)).credits.remaining], [2, 20]);
  });

  it("that refuse permissions leave none of them behind", async () => {
    const apiId = await server.createApi();
    const permissions = Array.from({ length: 1_000 }, (_, i) => `full.${i}`);
    await server.createKey(apiId, { permissions });
    const answer = await server.ok("apis.updateKeys", { apiId, addPermissions: ["left.behind", "full.1"] });
    assert.deepEqual([answer.changed, answer.failed.length], [0, 1]);
    assert.match(answer.failed[0].detail, /at most 1000 permissions; this would make 1001/);
    await server.rejected("permissions.getPermission", { permission: "left.behind" }, "permission_not_found");
  });

  it("are fewer per call the more each of them gets, with a short entry in the audit log", async () => {
    const { apiId, keys } = await someKeys(server);
    const slugs = (count: number) => Array.from({ length: count }, (_, i) => `wide.${i}.`.padEnd(128, "x"));
    const step = async (addPermissions: string[], more: object = {}) => {
      const { changed, cursor } = await server.ok("apis.updateKeys", { apiId, addPermissions, ...more });
      assert(cursor !== undefined);
      return [changed, cursor] as const;
    };
    const [changed, cursor] = await step(slugs(1_000));
    assert.equal(changed, 1);
    assert.equal((await server.getKey(keys[29]!.keyId)).permissions.length, 1_000);
    assert.equal((await step(slugs(1_000), { cursor }))[0], 1);
    await server.advance(1);
    // Of 11 keys, one has them.
    assert.equal((await step(slugs(90), { cursor }))[0], 10);

    const { permissions } = await server.getKey(keys[0]!.keyId);
    assert.equal(permissions, undefined);
    await server.ok("keys.setPermissions", { keyId: keys[0]!.keyId, permissions: slugs(1_000) });
    await server.createRole("wide", ...slugs(500));
    for (const row of await server.rowsOf("audit_events")) {
      const { action, meta } = row as { action: string; meta: string };
      assert(meta.length < 10_000, `${action}: ${meta.length} characters`);
    }
    const [{ meta }] = await server.ok("audit.listEvents", { target: apiId, action: "apis.updateKeys" });
    assert.deepEqual([meta.keys, meta.change.length], [10, JSON.stringify({ addPermissions: slugs(90) }).length]);
    assert.equal(meta.changes[0].keyId, keys[27]!.keyId);
  });

  it("are fewer per call the more permissions they have", async () => {
    const apiId = await server.createApi();
    const permissions = Array.from({ length: 1_000 }, (_, i) => `held.${i}`);
    for (let i = 0; i < 12; i++) await server.createKey(apiId, { permissions });
    const { changed, cursor } = await server.ok("apis.updateKeys", { apiId, enabled: false });
    assert.deepEqual([changed, typeof cursor], [10, "string"]);
    const rest = await server.ok("apis.updateKeys", { apiId, enabled: false, cursor });
    assert.deepEqual(rest, { changed: 2, failed: [] });
  });

  it("are deleted", async () => {
    const { apiId, keys, count } = await someKeys(server);
    const first = await server.ok("apis.deleteKeys", { apiId, externalId: "acme", limit: 20 });
    assert.equal(first.changed, 20);
    const { cursor } = first;
    assert.deepEqual(await server.ok("apis.deleteKeys", { apiId, externalId: "acme", limit: 20, cursor }), {
      changed: 5,
      failed: [],
    });
    assert.equal(await count({}), 5);
    assert.equal((await server.verify(keys[1]!.key)).code, "NOT_FOUND");
    await server.ok("keys.restoreKey", { keyId: keys[1]!.keyId });
    assert.equal((await server.verify(keys[1]!.key)).code, "VALID");
  });
});
