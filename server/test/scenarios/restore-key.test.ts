import assert from "node:assert/strict";
import { it } from "node:test";
import { sql } from "kysely";
import { describeOnStores, TestServer, VAULT_KEY } from "../harness.ts";

const MINUTE = 60_000;

describeOnStores("keys.restoreKey", tests, { VAULT_KEY });

function tests(server: TestServer, store: "sqlite" | "postgres"): void {
  const full = {
    name: "full",
    externalId: "restore_owner",
    permissions: ["restore.read"],
    roles: ["restore_role"],
    credits: { remaining: 3 },
    ratelimits: [{ name: "requests", limit: 5, duration: MINUTE, autoApply: true }],
    meta: { plan: "pro" },
    recoverable: true,
  };
  const deletedKey = async (more: object = {}, apiId?: string) => {
    const created = await server.createKey(apiId ?? (await server.createApi()), more);
    await server.ok("keys.deleteKey", { keyId: created.keyId });
    return created;
  };

  it("has a role to assign", () => server.createRole("restore_role", "restore.write"));

  it("brings back a key with everything that it had (rule 85)", async () => {
    const apiId = await server.createApi();
    const { keyId, key } = await server.createKey(apiId, full);
    await server.verify(key);
    const before = await server.getKey(keyId);
    await server.ok("keys.deleteKey", { keyId });
    assert.deepEqual(await server.verify(key), { valid: false, code: "NOT_FOUND" });
    const { deletedAt, ...deleted } = await server.ok("keys.getKey", { keyId, deleted: true, decrypt: true });
    assert.equal(deletedAt, server.clock.now());
    assert.deepEqual(deleted, before);
    await server.advance(1_000);

    assert.deepEqual(await server.ok("keys.restoreKey", { keyId }), { enabled: true });
    const { code, credits, identity, permissions, roles } = await server.verify(key);
    assert.deepEqual(
      [code, credits, identity.externalId, permissions, roles],
      ["VALID", 1, "restore_owner", ["restore.read", "restore.write"], ["restore_role"]],
    );
    const after = await server.getKey(keyId);
    assert.equal(after.deletedAt, undefined);
    assert.deepEqual([after.name, after.meta, after.ratelimits], [before.name, before.meta, before.ratelimits]);
    assert.equal((await server.ok("keys.getKey", { keyId, decrypt: true })).plaintext, key);
    assert.deepEqual(
      (await server.ok("apis.listKeys", { apiId })).map((listed: { keyId: string }) => listed.keyId),
      [keyId],
    );

    const [entry] = await server.ok("audit.listEvents", { target: keyId, action: "keys.restoreKey" });
    assert.deepEqual([entry.action, entry.meta], ["keys.restoreKey", { deletedAt, enabled: true }]);
    const events = await server.ok("events.listEvents", { types: ["key.restored"] });
    const { actor: _, ...data } = events.at(-1).data;
    assert.deepEqual(data, { keyId, apiId, externalId: "restore_owner", enabled: true });
  });

  it("finds what can be restored, by page and by filter (rule 85)", async () => {
    const apiId = await server.createApi();
    const names = ["bravo", "alpha", "charlie"];
    for (const name of names) {
      await deletedKey({ name, externalId: `owner_of_${name}`, recoverable: true }, apiId);
      await server.advance(1);
    }
    await server.createKey(apiId, { name: "alive" });
    const list = async (more: object = {}, caller: object = {}) =>
      (await server.ok("apis.listKeys", { apiId, deleted: true, ...more }, caller)).map(
        ({ name }: { name: string }) => name,
      );
    assert.deepEqual(await list(), names);
    assert.deepEqual(await list({ order: "desc" }), names.toReversed());
    assert.deepEqual(await list({ orderBy: "name" }), names.toSorted());
    // Ids are searched too: three letters can be in one by chance.
    assert.deepEqual(await list({ search: "LPHA" }), ["alpha"]);
    assert.deepEqual(await list({ externalId: "owner_of_bravo" }), ["bravo"]);
    assert.deepEqual(await list({ state: "disabled" }), []);
    assert.deepEqual(await server.ok("apis.countKeys", { apiId, deleted: true }), { count: 3, isComplete: true });
    assert.deepEqual(await server.ok("apis.countKeys", { apiId }), { count: 1, isComplete: true });
    assert.deepEqual(
      (await server.ok("apis.listKeys", { apiId })).map(({ name }: { name: string }) => name),
      ["alive"],
    );
    const first = await server.call("apis.listKeys", { apiId, deleted: true, limit: 2 });
    assert.equal(first.body.pagination.hasMore, true);
    assert.deepEqual(await list({ limit: 2, cursor: first.body.pagination.cursor }), ["charlie"]);
    const [{ keyId, deletedAt, plaintext }] = await server.ok("apis.listKeys", { apiId, deleted: true, decrypt: true });
    assert.deepEqual([typeof deletedAt, plaintext], ["number", undefined]);

    await server.ok("keys.restoreKey", { keyId });
    assert.deepEqual(await list(), ["alpha", "charlie"]);
    const { key: as } = await server.grant("apis.other.read_key", "apis.other.read_api");
    await server.rejected("apis.listKeys", { apiId, deleted: true }, "api_not_found", { as });
  });

  it("restores only what is deleted and kept", async () => {
    const { keyId, key } = await deletedKey();
    await server.ok("keys.restoreKey", { keyId });
    const writes = await server.writes();
    await server.rejected("keys.restoreKey", { keyId }, "key_not_deleted");
    assert.deepEqual(await server.writes(), writes);
    await server.ok("keys.deleteKey", { keyId, permanent: true });
    await server.rejected("keys.restoreKey", { keyId }, "key_not_found");
    await server.rejected("keys.getKey", { keyId, deleted: true }, "key_not_found");
    assert.equal((await server.verify(key)).code, "NOT_FOUND");

    const apiId = await server.createApi();
    const [ofApi, live] = [await deletedKey({}, apiId), await server.createKey(apiId)];
    await server.ok("apis.deleteApi", { apiId });
    for (const { keyId } of [ofApi, live]) {
      const { detail } = await server.rejected("keys.restoreKey", { keyId }, "api_not_found");
      assert.match(detail, /The API of the key, 'api_\w+', was deleted/);
      await server.rejected("keys.getKey", { keyId, deleted: true }, "key_not_found");
    }
    // Retention is about to forget this one.
    const marked = await deletedKey();
    await server.change([], ({ db }) =>
      sql`insert into purged_keys select hash, workspace_id, 0 from keys where id = ${marked.keyId}`.execute(db),
    );
    await server.rejected("keys.restoreKey", { keyId: marked.keyId }, "key_not_found");
  });

  it("needs a permission of its own, after the key was looked up (rule 5)", async () => {
    const apiId = await server.createApi();
    const { keyId } = await deletedKey({}, apiId);
    const actions = ["create_key", "read_key", "update_key", "delete_key"];
    const { key: as } = await server.grant(...actions.map((action) => `apis.*.${action}`));
    await server.rejected("keys.restoreKey", { keyId }, "insufficient_permissions", { as });
    await server.rejected("keys.restoreKey", { keyId: "key_never0existed000" }, "key_not_found", { as });
    const { key: restorer } = await server.grant(`apis.${apiId}.restore_key`);
    await server.ok("keys.restoreKey", { keyId }, { as: restorer });
    await server.ok("keys.deleteKey", { keyId });
    const { key: reader } = await server.grant("apis.other.read_key");
    await server.rejected("keys.getKey", { keyId, deleted: true }, "insufficient_permissions", { as: reader });
  });

  it("leaves out a role and an identity that were deleted meanwhile", async () => {
    const { roleId } = await server.ok("permissions.createRole", { name: "restored away", permissions: ["away.read"] });
    const { keyId, key } = await deletedKey({
      ...full,
      externalId: "restore_away",
      roles: ["restored away"],
      permissions: ["restore.read"],
    });
    await server.ok("permissions.deleteRole", { role: roleId });
    await server.ok("identities.deleteIdentity", { identity: "restore_away" });
    await server.ok("identities.createIdentity", { externalId: "restore_away" });
    await server.ok("keys.restoreKey", { keyId });
    const { code, identity, permissions, roles } = await server.verify(key);
    assert.deepEqual([code, identity, permissions, roles ?? []], ["VALID", undefined, ["restore.read"], []]);
  });

  it("restores a key disabled that was reported as leaked, before its deletion or after it", async () => {
    const leak = async (key: string) => {
      await server.ok("keys.reportLeak", { key }, { as: null });
      await server.store.settled();
    };
    const before = await server.createKey(await server.createApi());
    await leak(before.key);
    await server.ok("keys.deleteKey", { keyId: before.keyId });
    const after = await deletedKey();
    await leak(after.key);
    for (const { keyId, key } of [before, after]) {
      assert.deepEqual(await server.ok("keys.restoreKey", { keyId }), { enabled: false });
      assert.equal((await server.verify(key)).code, "DISABLED");
      assert.equal((await server.getKey(keyId)).enabled, false);
    }
    const off = await deletedKey({ enabled: false });
    assert.deepEqual(await server.ok("keys.restoreKey", { keyId: off.keyId }), { enabled: false });
    const expired = await deletedKey({ expires: server.clock.now() + 1 });
    await server.advance(1);
    await server.ok("keys.restoreKey", { keyId: expired.keyId });
    assert.equal((await server.verify(expired.key)).code, "EXPIRED");
  });

  it("applies on other nodes, which have cached that there is no such key", async (t) => {
    // Nodes share PostgreSQL.
    if (store === "sqlite") return;
    const other = new TestServer({ store, beside: server, settings: { VAULT_KEY } });
    await other.open();
    t.after(() => other.close());
    const { keyId, key } = await server.createKey(await server.createApi());
    await server.ok("keys.deleteKey", { keyId });
    assert.equal((await other.verify(key)).code, "NOT_FOUND");
    await server.ok("keys.restoreKey", { keyId });
    await other.pass(1_000);
    assert.equal((await other.verify(key)).code, "VALID");
    await server.ok("keys.deleteKey", { keyId });
    await other.pass(1_000);
    assert.equal((await other.verify(key)).code, "NOT_FOUND");
  });
}
