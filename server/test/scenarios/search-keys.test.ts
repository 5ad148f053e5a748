/** Keys of an API are found by what an operator knows about them: `apis.listKeys` and `apis.countKeys` with filters. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { sql as kysely } from "kysely";
import { KEYS_EXAMINED_MAX } from "../../src/features/keys/statements/key-search.ts";
import { describeOnStores, type TestServer } from "../harness.ts";
import { numbersTo } from "../numbers.ts";

const DAY = 86_400_000;

/** An API with one key of each kind. */
async function someKeys(server: TestServer) {
  const apiId = await server.createApi();
  const ids: Record<string, string> = {};
  const strings: Record<string, string> = {};
  const add = async (name: string, more: object = {}) => {
    const { keyId, key } = await server.createKey(apiId, { name, ...more });
    [ids[name], strings[name]] = [keyId, key];
    await server.advance(1);
  };
  await server.createRole(`Reader of ${apiId}`);
  await add("Ålesund, production", { prefix: "live", externalId: "acme.corp" });
  await add("staging", { prefix: "live_eu", roles: [`Reader of ${apiId}`] });
  await add("trial", { expires: server.clock.now() + 10 * DAY });
  await add("expired", { expires: server.clock.now() + 1 });
  await add("off", { enabled: false, expires: server.clock.now() + 1 });
  await add("100%_sure", { externalId: "globex" });
  const names = async ({
    orderBy,
    order,
    ...filter
  }: {
    orderBy?: string;
    order?: string;
    [member: string]: unknown;
  }) => {
    const listed = await server.ok("apis.listKeys", { apiId, ...filter, orderBy, order });
    const { count, isComplete } = await server.ok("apis.countKeys", { apiId, ...filter });
    assert.deepEqual({ count, isComplete }, { count: listed.length, isComplete: true });
    return listed.map(({ name }: { name: string }) => name);
  };
  return { apiId, ids, strings, names };
}

describeOnStores("keys of an API", (server) => {
  it("are found by name, owner, id and start, in any case", async () => {
    const { ids, strings, names } = await someKeys(server);
    assert.deepEqual(await names({ search: "åLESUND" }), ["Ålesund, production"]);
    assert.deepEqual(await names({ search: " STAG " }), ["staging"]);
    assert.deepEqual(await names({ search: "ACME.c" }), ["Ålesund, production"]);
    assert.deepEqual(await names({ search: ids.trial!.toUpperCase() }), ["trial"]);
    assert.deepEqual(await names({ search: strings.staging!.slice(0, 12) }), ["staging"]);
    // Not wildcards.
    assert.deepEqual(await names({ search: "%_" }), ["100%_sure"]);
    assert.deepEqual(await names({ search: "nobody" }), []);
    assert.equal((await names({ search: "" })).length, 6);
  });

  it("are filtered by state, expiry, prefix, owner and role, all together", async () => {
    const { apiId, names } = await someKeys(server);
    assert.deepEqual(await names({ state: "active" }), ["Ålesund, production", "staging", "trial", "100%_sure"]);
    assert.deepEqual(await names({ state: "expired" }), ["expired"]);
    assert.deepEqual(await names({ state: "disabled" }), ["off"]);
    const soon = server.clock.now() + 14 * DAY;
    assert.deepEqual(await names({ expiresBefore: soon }), ["trial", "expired", "off"]);
    assert.deepEqual(await names({ expiresBefore: soon, state: "active" }), ["trial"]);
    assert.deepEqual(await names({ prefix: "live" }), ["Ålesund, production", "staging"]);
    assert.deepEqual(await names({ prefix: "live_eu" }), ["staging"]);
    assert.deepEqual(await names({ prefix: "liv" }), []);
    assert.deepEqual(await names({ externalId: "globex" }), ["100%_sure"]);
    assert.deepEqual(await names({ role: `READER of ${apiId}` }), ["staging"]);
    assert.deepEqual(await names({ role: "none" }), []);
    assert.deepEqual(await names({ role: `Reader of ${apiId}`, state: "disabled" }), []);
  });

  it("are filtered by their budget, not that of their identity", async () => {
    const { ids, names } = await someKeys(server);
    const { budgetId } = await server.ok("budgets.createBudget", { name: "team", remaining: 1 });
    const other = await server.ok("budgets.createBudget", { name: "other", remaining: 1 });
    for (const name of ["trial", "off", "100%_sure"]) {
      await server.ok("keys.updateKey", { keyId: ids[name], budgetId });
    }
    await server.ok("keys.updateKey", { keyId: ids.staging, budgetId: other.budgetId });
    await server.ok("identities.updateIdentity", { identity: "acme.corp", budgetId });
    const { apiId } = await server.ok("apis.createApi", { name: "elsewhere" });
    const { keyId } = await server.createKey(apiId, { name: "elsewhere", budgetId });
    assert.deepEqual(await names({ budgetId }), ["trial", "off", "100%_sure"]);
    assert.deepEqual(await names({ budgetId, orderBy: "name" }), ["100%_sure", "off", "trial"]);
    assert.deepEqual(await names({ budgetId, state: "active" }), ["trial", "100%_sure"]);
    assert.deepEqual(await names({ budgetId, externalId: "globex" }), ["100%_sure"]);
    assert.deepEqual(await names({ budgetId: "bud_never0existed000" }), []);
    const [only] = await server.ok("apis.listKeys", { apiId, budgetId });
    assert.equal(only.keyId, keyId);
    const { key: as } = await server.workspace("stranger");
    const own = await server.ok("apis.createApi", { name: "own" }, { as });
    assert.deepEqual(await server.ok("apis.listKeys", { apiId: own.apiId, budgetId }, { as }), []);
  });

  it("stay current when a key is renamed", async () => {
    const { ids, names } = await someKeys(server);
    await server.ok("keys.updateKey", { keyId: ids.staging, name: "Øresund" });
    assert.deepEqual(await names({ search: "øresund" }), ["Øresund"]);
    assert.deepEqual(await names({ search: "staging" }), []);
    await server.ok("keys.updateKey", { keyId: ids.staging, name: null });
    assert.deepEqual(await names({ search: "øresund" }), []);
  });

  it("are found by their owner among more identities than one call examines", async () => {
    const { names } = await someKeys(server);
    await insertIdentities(server, KEYS_EXAMINED_MAX + 1);
    assert.deepEqual(await names({ search: "ACME.c" }), ["Ålesund, production"]);
    assert.deepEqual(await names({ search: "obod" }), []);
  });

  it("are listed the newest first, page by page", async () => {
    const { apiId, names } = await someKeys(server);
    const ascending = await names({});
    const seen: string[] = [];
    for (let cursor: string | undefined; ; ) {
      const { body } = await server.call("apis.listKeys", {
        apiId,
        order: "desc",
        limit: 4,
        ...(cursor && { cursor }),
      });
      seen.push(...body.data.map(({ name }: { name: string }) => name));
      cursor = body.pagination.cursor;
      if (!body.pagination.hasMore) break;
    }
    assert.deepEqual(seen, ascending.toReversed());
  });

  it("are listed by name, expiry and last use, both ways, page by page, with filters", async () => {
    const { apiId, names, strings } = await someKeys(server);
    await server.createKey(apiId, {});
    for (const name of ["staging", "trial"]) {
      await server.verify(strings[name]!);
      await server.pass(60_000);
    }
    const listed = async (orderBy: string, order: string, limit: number) => {
      const seen: (string | undefined)[] = [];
      for (let cursor: string | undefined; ; ) {
        const { body } = await server.call("apis.listKeys", { apiId, orderBy, order, limit, cursor });
        seen.push(...body.data.map(({ name }: { name?: string }) => name));
        cursor = body.pagination.cursor;
        if (cursor === undefined) return seen;
      }
    };
    const byName = [undefined, "100%_sure", "expired", "off", "staging", "trial", "Ålesund, production"];
    for (const limit of [1, 3, 100]) {
      assert.deepEqual(await listed("name", "asc", limit), byName);
      assert.deepEqual(await listed("name", "desc", limit), byName.toReversed());
      assert.deepEqual((await listed("expires", "asc", limit)).slice(0, 3), ["expired", "off", "trial"]);
      assert.deepEqual((await listed("lastUsedAt", "desc", limit)).slice(0, 2), ["trial", "staging"]);
      assert.deepEqual(new Set(await listed("lastUsedAt", "asc", limit)).size, 7);
    }
    assert.deepEqual(await names({ state: "active", orderBy: "name", order: "desc" }), [
      "Ålesund, production",
      "trial",
      "staging",
      "100%_sure",
      undefined,
    ]);
    const { cursor } = (await server.call("apis.listKeys", { apiId, orderBy: "expires", limit: 1 })).body.pagination;
    for (const orderBy of ["createdAt", "name", "lastUsedAt"]) {
      const { detail } = await server.rejected("apis.listKeys", { apiId, orderBy, cursor }, "invalid_input");
      assert.match(detail, /a list in another order/);
    }
  });

  it("are examined in bounded steps, each of which ends in a page", async () => {
    const apiId = await server.createApi();
    const { budgetId } = await server.ok("budgets.createBudget", { name: "large", remaining: 1 });
    const { keyId } = await server.createKey(apiId, { name: "needle", externalId: "haystack", budgetId });
    await server.advance(1);
    await insertCopies(server, keyId, KEYS_EXAMINED_MAX);
    const first = (await server.call("apis.listKeys", { apiId, search: "NEEDLE", order: "desc" })).body;
    assert.deepEqual([first.data, first.pagination.hasMore], [[], true]);
    const { cursor } = first.pagination;
    const second = (await server.call("apis.listKeys", { apiId, search: "NEEDLE", order: "desc", cursor })).body;
    assert.deepEqual([second.data[0].keyId, second.pagination], [keyId, { hasMore: false }]);
    const ofOwner = { apiId, externalId: "haystack", state: "disabled", order: "desc" };
    const none = (await server.call("apis.listKeys", ofOwner)).body;
    assert.deepEqual([none.data, none.pagination.hasMore], [[], true]);
    for (const more of [{}, { externalId: "haystack" }, { budgetId }]) {
      const { detail } = await server.rejected("apis.listKeys", { apiId, orderBy: "name", ...more }, "invalid_input");
      assert.match(detail, /An API with more than 100000 keys is listed in order of creation/);
    }
    for (const filter of [{}, { externalId: "haystack" }, { budgetId }, { search: "STACK" }]) {
      const counted = await server.ok("apis.countKeys", { apiId, ...filter });
      assert.deepEqual(counted, { count: KEYS_EXAMINED_MAX, isComplete: false });
    }
  });
});

/** Copies a key many times under other names. */
async function insertCopies(server: TestServer, keyId: string, copies: number): Promise<void> {
  await server.change([], async ({ db, dialect }) => {
    await kysely`
      insert into keys (id, workspace_id, api_id, pool_id, hash, hash_version, start, name, name_folded, enabled,
        recoverable, identity_id, budget_id, created_at)
      select 'key_copy' || s.n, k.workspace_id, k.api_id, 'key_copy' || s.n, 'copy' || s.n, 1, '', 'hay ' || s.n,
        'hay ' || s.n, 1, 0, k.identity_id, k.budget_id, k.created_at + 1
      from (${numbersTo(copies, dialect.name)}) as s cross join keys as k where k.id = ${keyId}`.execute(db);
  });
}

async function insertIdentities(server: TestServer, count: number): Promise<void> {
  await server.change([], async ({ db, dialect }) => {
    await kysely`
      insert into identities (id, workspace_id, external_id, created_at)
      select 'id_copy' || s.n, ${server.workspaceId}, 'nobody ' || s.n, 0 from (${numbersTo(count, dialect.name)}) as s`.execute(
      db,
    );
  });
}
