/** `system.search`: everything of a workspace is found by what it is called. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { describeOnStores, type TestServer, VAULT_KEY } from "../harness.ts";
import { createResources } from "../samples.ts";

interface Found {
  kind: string;
  id: string;
  name?: string;
  isExact: boolean;
}

describeOnStores("system.search", tests, { VAULT_KEY });

function tests(server: TestServer): void {
  /** A workspace with one object of each kind. */
  async function filled(mark: string) {
    const { workspaceId, key: as } = await server.workspace(mark);
    const things = await createResources(server, as, workspaceId, mark);
    const search = async (query: string, more: object = {}, by = as): Promise<Found[]> =>
      (await server.ok("system.search", { query, ...more }, { as: by })).results;
    return { as, things, search };
  }

  it("finds an object of each kind by its id, first and alone", async () => {
    const { things, search } = await filled("ids");
    const ids = {
      key: things.keyId,
      identity: things.identityId,
      api: things.apiId,
      budget: things.budgetId,
      namespace: things.namespaceId,
      webhook: things.webhookId,
      role: things.roleId,
      permission: things.permissionId,
      rootKey: things.rootKeyId,
    };
    for (const [kind, id] of Object.entries(ids)) {
      const found = await search(` ${id} `);
      assert.deepEqual(
        found.map((one) => [one.kind, one.id, one.isExact]),
        [[kind, id, true]],
      );
    }
  });

  it("finds objects by parts of their names in any order and case, whole names first", async () => {
    const { things, search } = await filled("Names");
    const ids = async (query: string) => (await search(query)).map(({ id }) => id);
    assert.deepEqual((await search("NAMES")).map(({ kind }) => kind).sort(), [
      "api",
      "budget",
      "identity",
      "key",
      "namespace",
      "permission",
      "role",
      "rootKey",
      "webhook",
    ]);
    assert.deepEqual(await ids("EDIT nam"), [things.roleId]);
    assert.deepEqual(await ids("names emails"), [things.namespaceId]);
    assert.deepEqual(await ids("budget NAMES"), [things.budgetId]);
    assert.deepEqual(await ids("rogram names"), [things.rootKeyId]);
    assert.deepEqual(await ids("receiver.invalid"), [things.webhookId]);
    assert.deepEqual(await ids("webhook names"), [things.webhookId]);
    assert.deepEqual(await ids("documents"), [things.permissionId]);
    const [identity, ...others] = await search(things.externalId);
    assert.deepEqual([identity!.id, identity!.isExact], [things.identityId, true]);
    // Its keys are found by their owner.
    assert.deepEqual(
      others.map(({ id, isExact }) => [id, isExact]),
      [[things.keyId, false]],
    );
    assert.deepEqual(await ids("%"), []);
    assert.deepEqual(await ids("names_e"), []);
    assert.deepEqual(await ids("nothing"), []);
    assert.deepEqual(await ids("  "), []);
  });

  it("finds keys by words of their name, owner and API, the newest first", async () => {
    const { as, search } = await filled("words");
    const ok = (name: string, body: object) => server.ok(name, body, { as });
    const { apiId } = await ok("apis.createApi", { name: "Transfers" });
    const add = async (name: string, externalId?: string) => {
      await server.advance(1);
      return (await ok("keys.createKey", { apiId, name, ...(externalId && { externalId }) })).keyId;
    };
    const first = await add("Production 1", "bank-of-acme");
    const second = await add("production 2", "bank-of-acme");
    await add("staging", "bank-of-acme");
    await add("production", "shop");
    const keys = async (query: string, more = {}) =>
      (await search(query, more)).filter(({ kind }) => kind === "key").map(({ id }) => id);
    assert.deepEqual(await keys("bank prod"), [second, first]);
    assert.deepEqual(await keys("PROD transf bank"), [second, first]);
    assert.deepEqual(await keys("bank prod", { limit: 1 }), [second]);
    // The name of the API alone finds the API.
    assert.deepEqual(await keys("transfers"), []);
    await ok("keys.deleteKey", { keyId: second });
    assert.deepEqual(await keys("bank prod"), [first]);
    assert.deepEqual(await keys(second), []);
    await ok("apis.deleteApi", { apiId });
    assert.deepEqual(await keys("bank prod"), []);
    assert.deepEqual(await keys(first), []);
  });

  it("finds a key and a root key by their strings, which it compares with nothing else", async () => {
    const { as, things, search } = await filled("strings");
    const [found, ...others] = await search(things.key);
    assert.deepEqual([found!.kind, found!.id, found!.isExact, others], ["key", things.keyId, true, []]);
    assert.deepEqual(
      (await search(as)).map(({ kind, isExact }) => [kind, isExact]),
      [["rootKey", true]],
    );
    // A key that is named after its string is not found by a string that does not exist.
    await server.ok("keys.createKey", { apiId: things.apiId, name: `${things.key} ${as}x` }, { as });
    assert.deepEqual(await search(`${as}x`), []);
    assert.equal(JSON.stringify(await search(things.key)).includes(things.key), false);
  });

  it("returns only what the root key may read", async () => {
    const { as, things, search } = await filled("some");
    const other = (await server.ok("apis.createApi", { name: "some other" }, { as })).apiId;
    await server.ok("keys.createKey", { apiId: other, name: "some key 2" }, { as });
    const reader = async (...permissions: string[]) => {
      const { key } = await server.ok("rootKeys.createRootKey", { name: "reader", permissions }, { as });
      return async (query: string) => (await search(query, {}, key)).map(({ id }) => id);
    };
    const ofApi = await reader(`apis.${things.apiId}.read_api`, `apis.${things.apiId}.read_key`);
    assert.deepEqual(await ofApi("some"), [things.keyId, things.apiId]);
    const { importedKey: _, ...others } = things;
    for (const query of Object.values(others)) {
      const found = await ofApi(query);
      assert(
        found.every((id) => id === things.keyId || id === things.apiId),
        query,
      );
    }
    const ofApiAlone = await reader(`apis.${things.apiId}.read_api`);
    assert.deepEqual(await ofApiAlone("some"), [things.apiId]);
    assert.deepEqual(await ofApiAlone(things.key), []);
    const ofIdentity = await reader(`identities.${things.identityId}.read_identity`, "permissions.*.read_role");
    assert.deepEqual(await ofIdentity("some"), [things.identityId, things.roleId]);
    assert.deepEqual(await ofIdentity(things.slug), []);
    const ofBudget = await reader(`budgets.${things.budgetId}.read_budget`);
    await server.ok("budgets.createBudget", { name: "some other budget", remaining: 0 }, { as });
    assert.deepEqual(await ofBudget("some"), [things.budgetId]);
    await server.rejected("system.search", { query: "some" }, "insufficient_permissions", {
      as: (await server.ok("rootKeys.createRootKey", { name: "none", permissions: ["apis.*.create_key"] }, { as })).key,
    });
  });
}
