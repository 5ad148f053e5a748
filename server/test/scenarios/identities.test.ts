import assert from "node:assert/strict";
import { it } from "node:test";
import { sql } from "kysely";
import { describeOnStores, type TestServer } from "../harness.ts";
import { numbersTo } from "../numbers.ts";

const requests = { name: "requests", limit: 5, duration: 60_000 };

const create = async (server: TestServer, externalId: string, more: object = {}) =>
  (await server.ok("identities.createIdentity", { externalId, ...more })).identityId as string;
const get = (server: TestServer, identity: string) => server.ok("identities.getIdentity", { identity });

describeOnStores("identities.createIdentity", (server) => {
  it("stores its input, and getIdentity finds it by id and external id (rules 50, 52)", async () => {
    const meta = { a: [1, "two", null, { three: 3.5 }], ключ: true, big: 100_000 };
    const id = await create(server, "u", { meta, ratelimits: [{ ...requests, limit: 100_000 }] });
    const identity = await get(server, "u");
    assert.deepEqual(await get(server, id), identity);
    const [{ id: limitId, ...limit }] = identity.ratelimits;
    assert.match(limitId, /^rl_/);
    // Limits of an identity always apply.
    assert.deepEqual(limit, { ...requests, limit: 100_000, autoApply: true });
    assert.deepEqual(identity, { id, externalId: "u", meta, ratelimits: identity.ratelimits });
    assert.deepEqual(await get(server, await create(server, "bare", { meta: {}, unheardOf: 1 })), {
      id: (await get(server, "bare")).id,
      externalId: "bare",
      meta: {},
      ratelimits: [],
    });
  });

  it("rejects invalid identities (rule 50)", async () => {
    for (const body of [
      { externalId: "" },
      {},
      { externalId: "a b" },
      { externalId: "x".repeat(256) },
      { externalId: "wrong", ratelimits: [{ ...requests, name: undefined }] },
      { externalId: "wrong", ratelimits: [{ ...requests, limit: 0 }] },
      { externalId: "wrong", ratelimits: [{ ...requests, limit: -1 }] },
      { externalId: "wrong", ratelimits: [{ ...requests, duration: 999 }] },
      { externalId: "wrong", ratelimits: [requests, requests] },
      { externalId: "wrong", ratelimits: Array.from({ length: 51 }, (_, i) => ({ ...requests, name: `limit_${i}` })) },
      { externalId: "wrong", meta: [] },
    ]) {
      await server.rejected("identities.createIdentity", body, "invalid_input");
    }
    const large = { value: "x".repeat(1024 * 1024) };
    const error = await server.rejected(
      "identities.createIdentity",
      { externalId: "wrong", meta: large },
      "invalid_input",
    );
    assert.match(JSON.stringify(error), /Metadata is too large/);
    await server.rejected("identities.getIdentity", { identity: "wrong" }, "identity_not_found");
    await create(server, "large", { meta: { value: "x".repeat(1024 * 1024 - 20) } });
  });

  it("accepts an external id once until its identity is deleted (rules 50, 51)", async () => {
    const ids = new Set<string>();
    for (let i = 0; i < 3; i++) {
      ids.add(await create(server, "cycle", { ratelimits: [requests] }));
      const error = await server.rejected(
        "identities.createIdentity",
        { externalId: "cycle" },
        "identity_already_exists",
      );
      assert.match(error.detail, /'cycle' already exists/);
      assert.deepEqual(await server.ok("identities.deleteIdentity", { identity: "cycle" }), {});
      await server.rejected("identities.deleteIdentity", { identity: "cycle" }, "identity_not_found");
      await server.rejected("identities.getIdentity", { identity: "cycle" }, "identity_not_found");
    }
    assert.equal(ids.size, 3);
    for (const id of ids) await server.rejected("identities.getIdentity", { identity: id }, "identity_not_found");
    const outcomes = await Promise.all(
      Array.from({ length: 5 }, () => server.call("identities.createIdentity", { externalId: "rivals" })),
    );
    assert.equal(outcomes.filter(({ status }) => status === 200).length, 1);
  });
});

describeOnStores("identities.getIdentity", (server) => {
  it("finds nothing for unusual texts, and checks the permission after the look-up", async () => {
    for (const identity of ["unknown", "x".repeat(5_000), "'; drop table identities", "日本"]) {
      const error = await server.rejected("identities.getIdentity", { identity }, "identity_not_found");
      assert.equal(error.detail, "This identity does not exist.");
    }
    const id = await create(server, "guarded");
    const other = await create(server, "other");
    const { key: as } = await server.grant(`identity.${id}.read_identity`);
    await server.ok("identities.getIdentity", { identity: "guarded" }, { as });
    await server.rejected("identities.getIdentity", { identity: "unknown" }, "identity_not_found", { as });
    const error = await server.rejected("identities.getIdentity", { identity: other }, "insufficient_permissions", {
      as,
    });
    assert.match(error.detail, /identities\.\*\.read_identity/);
  });
});

describeOnStores("identities.listIdentities", (server) => {
  it("is empty for every caller in a workspace without identities", async () => {
    const { key: as } = await server.grant("apis.*.read_api");
    const { body } = await server.call("identities.listIdentities", {}, { as });
    assert.deepEqual([body.data, body.pagination], [[], { hasMore: false }]);
  });

  it("pages without gaps, and searches literally without regard to case (rule 53)", async () => {
    const { key: as } = await server.workspace("listed");
    const { key: stranger } = await server.workspace("stranger");
    await server.ok("identities.createIdentity", { externalId: "Foreign" }, { as: stranger });
    for (let i = 0; i < 7; i++) {
      const body = { externalId: `User_${i}`, ratelimits: [requests] };
      await server.ok("identities.createIdentity", body, { as });
    }
    await server.ok("identities.createIdentity", { externalId: "userX1" }, { as });
    const all = await server.ok("identities.listIdentities", {}, { as });
    assert.equal(all.length, 8);
    const ids = all.map(({ id }: { id: string }) => id);
    assert.deepEqual(ids, ids.toSorted());
    for (const limit of [1, 3, 8]) {
      const paged: object[] = [];
      let cursor: string | undefined;
      do {
        const { body } = await server.call("identities.listIdentities", { limit, cursor }, { as });
        paged.push(...body.data);
        cursor = body.pagination.cursor;
      } while (cursor !== undefined);
      assert.deepEqual(paged, all);
    }
    const byExternalId = all.map(({ externalId }: { externalId: string }) => externalId).sort();
    for (const [input, expected] of [
      [{ orderBy: "externalId" }, byExternalId],
      [{ orderBy: "externalId", order: "desc" }, byExternalId.toReversed()],
      [{ order: "desc" }, all.map(({ externalId }: { externalId: string }) => externalId).reverse()],
    ] as const) {
      const paged: string[] = [];
      let cursor: string | undefined;
      do {
        const { body } = await server.call("identities.listIdentities", { ...input, limit: 3, cursor }, { as });
        paged.push(...body.data.map(({ externalId }: { externalId: string }) => externalId));
        cursor = body.pagination.cursor;
        if (cursor === undefined) continue;
        const other = { ...input, orderBy: "orderBy" in input ? "createdAt" : "externalId", cursor };
        await server.rejected("identities.listIdentities", other, "invalid_input", { as });
      } while (cursor !== undefined);
      assert.deepEqual(paged, expected);
    }
    const found = async (search: string) =>
      (await server.ok("identities.listIdentities", { search }, { as }))
        .map(({ externalId }: { externalId: string }) => externalId)
        .sort();
    assert.deepEqual(await found(" R_1 "), ["User_1"]);
    assert.deepEqual(
      await found("user_"),
      [0, 1, 2, 3, 4, 5, 6].map((i) => `User_${i}`),
    );
    assert.deepEqual(await found("%"), []);
    assert.deepEqual(await found("\\"), []);
    assert.equal((await found(" ")).length, 8);
    assert.equal((await found(ids[3]!.toUpperCase())).length, 1);
    const { body } = await server.call("identities.listIdentities", { search: "USER_", limit: 5 }, { as });
    assert.equal(body.pagination.hasMore, true);
    for (const limit of [0, 101]) await server.rejected("identities.listIdentities", { limit }, "invalid_input");
    await server.rejected("identities.listIdentities", { search: "x".repeat(257) }, "invalid_input");
  });

  it("lists those with a budget, which may be many", async () => {
    const { key: as, workspaceId } = await server.workspace("budgets");
    const { budgetId } = await server.ok("budgets.createBudget", { name: "team", remaining: 1 }, { as });
    for (const externalId of ["team-c", "team-a", "other", "team-b"]) {
      const body = { externalId, ...(externalId !== "other" && { budgetId }) };
      await server.ok("identities.createIdentity", body, { as });
      await server.advance(1);
    }
    const list = async (input: object = {}, by = as): Promise<string[]> => {
      const found: string[] = [];
      let cursor: string | undefined;
      do {
        const { body } = await server.call(
          "identities.listIdentities",
          { budgetId, limit: 2, ...input, cursor },
          { as: by },
        );
        found.push(...body.data.map(({ externalId }: { externalId: string }) => externalId));
        cursor = body.pagination.cursor;
      } while (cursor !== undefined && found.length < 4);
      return found;
    };
    assert.deepEqual(await list(), ["team-c", "team-a", "team-b"]);
    assert.deepEqual(await list({ orderBy: "externalId", order: "desc" }), ["team-c", "team-b", "team-a"]);
    assert.deepEqual(await list({ search: "TEAM-B" }), ["team-b"]);
    assert.deepEqual(await list({ budgetId: "bud_never0existed000" }), []);
    const { key: stranger } = await server.workspace("stranger");
    assert.deepEqual(await list({}, stranger), []);
    await server.change([], async ({ db, dialect }) => {
      await sql`insert into identities (id, workspace_id, external_id, budget_id, created_at)
        select 'id_many' || s.n, ${workspaceId}, 'many ' || s.n, ${budgetId}, 0
        from (${numbersTo(100_000, dialect.name)}) as s`.execute(db);
    });
    assert.deepEqual(await list({ orderBy: "externalId", order: "desc" }), [
      "team-c",
      "team-b",
      "team-a",
      "many 99999",
    ]);
    assert.deepEqual(await list({}, stranger), []);
  });

  it("needs the permission for every identity of the page (rule 53)", async () => {
    const [one, two] = [await create(server, "shown_1"), await create(server, "shown_2")];
    const { key: as } = await server.grant(`identities.${one}.read_identity`);
    assert.equal((await server.ok("identities.listIdentities", { search: "shown_1" }, { as })).length, 1);
    const error = await server.rejected("identities.listIdentities", { search: "shown" }, "insufficient_permissions", {
      as,
    });
    assert.equal(error.detail, "Missing permission: 'identities.*.read_identity'");
    assert(!error.detail.includes(two));
    const { key: both } = await server.grant(`identities.${one}.read_identity`, `identities.${two}.read_identity`);
    assert.equal((await server.ok("identities.listIdentities", { search: "shown" }, { as: both })).length, 2);
  });
});

describeOnStores("identities.updateIdentity", (server) => {
  it("replaces limits by name and keeps the ids of existing ones (rule 54)", async () => {
    const id = await create(server, "limits", {
      meta: { kept: true },
      ratelimits: [requests, { name: "tokens", limit: 1, duration: 1_000 }],
    });
    const byName = ({ ratelimits }: { ratelimits: { name: string; id: string }[] }) =>
      new Map(ratelimits.map((limit) => [limit.name, limit.id]));
    const before = byName(await get(server, id));
    const updated = await server.ok("identities.updateIdentity", {
      identity: "limits",
      ratelimits: [
        { ...requests, limit: 9 },
        { name: "uploads", limit: 2, duration: 2_000, autoApply: true },
      ],
    });
    assert.deepEqual(updated, await get(server, id));
    assert.deepEqual(updated.meta, { kept: true });
    assert.deepEqual([...byName(updated).keys()], ["requests", "uploads"]);
    assert.equal(byName(updated).get("requests"), before.get("requests"));
    assert.equal(updated.ratelimits[0].limit, 9);
    assert.deepEqual((await server.ok("identities.updateIdentity", { identity: id, ratelimits: [] })).ratelimits, []);
  });

  it("replaces meta as a whole, and keeps omitted properties (rule 54)", async () => {
    await create(server, "meta", { meta: { a: 1, b: 2 }, ratelimits: [requests] });
    const update = (change: object) => server.ok("identities.updateIdentity", { identity: "meta", ...change });
    const before = await get(server, "meta");
    assert.deepEqual(await update({}), before);
    assert.deepEqual((await update({ meta: { c: 3 } })).meta, { c: 3 });
    assert.deepEqual((await update({ meta: {} })).meta, {});
    assert.deepEqual((await get(server, "meta")).ratelimits, before.ratelimits);
    for (const change of [{ ratelimits: null }, { meta: null }, { unheardOf: 1 }]) {
      await server.rejected("identities.updateIdentity", { identity: "meta", ...change }, "invalid_input");
    }
    const twice = { identity: "meta", ratelimits: [requests, requests] };
    const error = await server.rejected("identities.updateIdentity", twice, "invalid_input");
    assert.match(JSON.stringify(error), /'requests'/);
    await server.rejected("identities.updateIdentity", { identity: "unknown", meta: {} }, "identity_not_found");
  });

  it("needs the permission for all identities, which is checked before the look-up", async () => {
    const id = await create(server, "wild");
    const { key: as } = await server.grant(`identities.${id}.update_identity`, `identities.${id}.delete_identity`);
    for (const identity of [id, "unknown"]) {
      await server.rejected("identities.updateIdentity", { identity, meta: {} }, "insufficient_permissions", { as });
      await server.rejected("identities.deleteIdentity", { identity }, "insufficient_permissions", { as });
    }
  });

  it("applies to all keys of the identity at once (rule 54)", async () => {
    await create(server, "shared", { ratelimits: [requests] });
    const apiId = await server.createApi();
    const keys = [
      await server.createKey(apiId, { externalId: "shared" }),
      await server.createKey(apiId, { externalId: "shared" }),
    ];
    for (const { key } of keys) assert.equal((await server.verify(key)).identity.ratelimits[0].limit, 5);
    await server.ok("identities.updateIdentity", {
      identity: "shared",
      meta: { plan: "pro" },
      ratelimits: [{ ...requests, limit: 2 }],
    });
    for (const { key } of keys) {
      const { identity } = await server.verify(key);
      assert.deepEqual([identity.meta, identity.ratelimits[0].limit], [{ plan: "pro" }, 2]);
    }
    // Two units were spent before and two since, of a limit of two.
    assert.equal((await server.verify(keys[0]!.key)).code, "RATE_LIMITED");
    await server.ok("identities.updateIdentity", { identity: "shared", ratelimits: [] });
    for (const { key } of keys) assert.equal((await server.verify(key)).code, "VALID");
  });
});

describeOnStores("identities.deleteIdentity", (server) => {
  it("leaves its keys, without the identity and its limits (rules 49, 55)", async () => {
    await create(server, "leaving", { ratelimits: [{ ...requests, limit: 1 }] });
    const { key, keyId } = await server.createKey(await server.createApi(), { externalId: "leaving" });
    assert.equal((await server.verify(key)).code, "VALID");
    assert.equal((await server.verify(key)).code, "RATE_LIMITED");
    const reply = await server.call("identities.deleteIdentity", { identity: "leaving" });
    assert.deepEqual(reply.body.data, {});
    const verified = await server.verify(key);
    assert.deepEqual([verified.code, verified.identity, verified.ratelimits], ["VALID", undefined, undefined]);
    assert.equal((await server.getKey(keyId)).identity, undefined);
    // The same external id is another identity afterwards.
    await create(server, "leaving", { ratelimits: [{ ...requests, limit: 1 }] });
    for (let i = 0; i < 3; i++) assert.equal((await server.verify(key)).code, "VALID");
  });

  it("does not find another workspace's identities (rule 55)", async () => {
    const { key: as } = await server.workspace("other owner");
    const id = await create(server, "foreign");
    for (const identity of [id, "foreign"]) {
      await server.rejected("identities.deleteIdentity", { identity }, "identity_not_found", { as });
      await server.rejected("identities.updateIdentity", { identity, meta: {} }, "identity_not_found", { as });
    }
    await get(server, id);
  });
});
