import assert from "node:assert/strict";
import { it } from "node:test";
import { writeCursor } from "../../src/platform/store/cursor.ts";
import { describeOnStores, type TestServer } from "../harness.ts";

const create = async (server: TestServer, slug: string, more: object = {}, as?: string) =>
  (await server.ok("permissions.createPermission", { name: slug, slug, ...more }, as ? { as } : {}))
    .permissionId as string;
const get = (server: TestServer, permission: string) => server.ok("permissions.getPermission", { permission });
const slugs = (list: { slug: string }[]) => list.map(({ slug }) => slug);

describeOnStores("permissions.createPermission", (server) => {
  it("stores its input, and getPermission finds it by id and slug (rules 57, 60)", async () => {
    const name = `Lesen 📖 ${"\u{1F511}".repeat(504)}`;
    const id = await create(server, "Docs:read/own-1_*", { name, description: "d".repeat(512) });
    const permission = { id, name, slug: "Docs:read/own-1_*", description: "d".repeat(512) };
    for (const by of [id, "Docs:read/own-1_*", "DOCS:READ/OWN-1_*"])
      assert.deepEqual(await get(server, by), permission);
    assert.match(id, /^perm_/);
    await server.rejected("permissions.getPermission", { permission: id.toLowerCase() }, "permission_not_found");
  });

  it("omits an absent description, and permits duplicate names (rule 57)", async () => {
    for (const [slug, more] of [
      ["plain.one", {}],
      ["plain.two", { description: "" }],
      ["s".repeat(128), {}],
    ] as const) {
      const id = await create(server, slug, { name: "Plain", ...more });
      assert.deepEqual(await get(server, slug), { id, name: "Plain", slug });
    }
  });

  it("rejects invalid permissions (rule 57)", async () => {
    const before = await server.rows();
    const valid = { name: "Wrong", slug: "wrong" };
    for (const change of [
      { slug: "with blank" },
      { slug: "at@sign" },
      { slug: "ümlaut" },
      { slug: "" },
      { slug: "s".repeat(129) },
      { slug: undefined },
      { name: "" },
      { name: "n".repeat(513) },
      { name: undefined },
      { description: "d".repeat(513) },
      { description: null },
      { unheardOf: 1 },
    ]) {
      await server.rejected("permissions.createPermission", { ...valid, ...change }, "invalid_input");
    }
    for (const permission of ["", "a b", "s".repeat(129)]) {
      await server.rejected("permissions.getPermission", { permission }, "invalid_input");
    }
    assert.deepEqual(await server.rows(), before);
  });

  it("accepts a slug once in a workspace, without regard to case (rule 56)", async () => {
    const id = await create(server, "Once.Only");
    for (const slug of ["Once.Only", "once.only", "ONCE.ONLY"]) {
      const body = { name: "Another", slug };
      const error = await server.rejected("permissions.createPermission", body, "permission_already_exists");
      assert.match(error.detail, new RegExp(`'${slug}' already exists`));
    }
    assert.equal((await get(server, "once.ONLY")).id, id);
    const { key: as } = await server.workspace("its own slugs");
    assert.notEqual(await create(server, "Once.Only", {}, as), id);

    const concurrent = await Promise.all(
      ["Rival", "rival", "RIVAL", "rIVAL"].map((slug) =>
        server.call("permissions.createPermission", { name: slug, slug }),
      ),
    );
    assert.deepEqual(concurrent.map(({ status }) => status).sort(), [200, 409, 409, 409]);
  });

  it("creates one permission for one Idempotency-Key", async () => {
    const headers = { "idempotency-key": "make-permission" };
    const body = { name: "Repeated", slug: "repeated" };
    const first = await server.ok("permissions.createPermission", body, { headers });
    assert.deepEqual(await server.ok("permissions.createPermission", body, { headers }), first);
    await server.rejected("permissions.createPermission", { ...body, name: "x" }, "idempotency_mismatch", { headers });
  });

  it("leaves verifications sensitive to case", async () => {
    await create(server, "Case.Read");
    const { key } = await server.createKey(await server.createApi(), { permissions: ["case.read"] });
    assert.equal((await server.verify(key, { permissions: "Case.Read" })).code, "VALID");
    assert.equal((await server.verify(key, { permissions: "case.read" })).code, "INSUFFICIENT_PERMISSIONS");
  });

  it("is found by id before it is found by slug", async () => {
    const id = await create(server, "borrowed");
    const other = await create(server, id);
    assert.equal((await get(server, id)).slug, "borrowed");
    assert.equal((await get(server, other)).slug, id);
  });
});

describeOnStores("permissions.listPermissions", (server) => {
  it("pages without gaps (rule 60)", async () => {
    const { key: as } = await server.workspace("listed");
    assert.deepEqual(await server.ok("permissions.listPermissions", {}, { as }), []);
    const foreign = await create(server, "aaa.foreign");
    for (let i = 0; i < 7; i++) await create(server, `list.${i}`, { description: i % 2 ? `odd ${i}` : "" }, as);
    const all = await server.ok("permissions.listPermissions", {}, { as });
    const ids = all.map(({ id }: { id: string }) => id);
    assert.deepEqual([ids.length, ids], [7, ids.toSorted()]);
    for (const limit of [1, 3, 7]) {
      const paged: object[] = [];
      let cursor: string | undefined;
      do {
        const { body } = await server.call("permissions.listPermissions", { limit, cursor }, { as });
        assert(body.data.length === limit || !body.pagination.hasMore);
        paged.push(...body.data);
        cursor = body.pagination.cursor;
      } while (cursor !== undefined);
      assert.deepEqual(paged, all);
    }
    // A cursor never leads to another workspace.
    const cursor = writeCursor("permissions.listPermissions", { at: 0, id: foreign });
    assert.deepEqual(await server.ok("permissions.listPermissions", { cursor }, { as }), all);
    for (const limit of [0, 101]) await server.rejected("permissions.listPermissions", { limit }, "invalid_input");
    await server.rejected("permissions.listPermissions", { search: "x".repeat(257) }, "invalid_input");
    await server.rejected("permissions.listPermissions", { cursor: "x".repeat(1_025) }, "invalid_input");
  });

  it("searches literally without regard to case, in every field", async () => {
    const { key: as } = await server.workspace("searched");
    const id = await create(server, "Alpha.Read", { name: "100% ÄRGER_\\", description: "ΟΔΟΣ ist Straße" }, as);
    await create(server, "beta.write", { name: "Beta 1000", description: "nothing" }, as);
    const found = async (search: string, more: object = {}) =>
      slugs(await server.ok("permissions.listPermissions", { search, ...more }, { as }));
    for (const search of [
      "alpha",
      "A.READ",
      " pha.re ",
      "ärger",
      "Ärger_",
      "100%",
      "R_\\",
      "%",
      "_\\",
      "\\",
      "οδοσ",
      "ΔΟΣ",
      "οδος",
      "STRAße",
      id.toUpperCase(),
    ]) {
      assert.deepEqual(await found(search), ["Alpha.Read"], search);
    }
    for (const search of ["alphaxread", "alpha%read", "a_pha", "%%", "1%", "read100", "'", "𝄞"]) {
      assert.deepEqual(await found(search), [], search);
    }
    for (const search of ["", " \t ", "_"]) assert.equal((await found(search)).length, 2, search);
    const { body } = await server.call("permissions.listPermissions", { search: "BETA", limit: 1 }, { as });
    assert.deepEqual([slugs(body.data), body.pagination], [["beta.write"], { hasMore: false }]);
    const first = await server.call("permissions.listPermissions", { search: "A.", limit: 1 }, { as });
    const { cursor } = first.body.pagination;
    assert.deepEqual([...slugs(first.body.data), ...(await found("A.", { cursor }))].sort(), [
      "Alpha.Read",
      "beta.write",
    ]);
  });
});

describeOnStores("permissions.deletePermission", (server) => {
  it("removes it from every key and role at once, and frees its slug (rule 59)", async () => {
    const apiId = await server.createApi();
    await server.createRole("losing", "lost.by.role", "kept.by.role");
    const permissions = ["lost.by.key", "kept.by.key"];
    const { keyId, key } = await server.createKey(apiId, { permissions, roles: ["losing"] });
    const query = (slug: string) => server.verify(key, { permissions: slug });
    for (const slug of ["lost.by.key", "lost.by.role"]) assert.equal((await query(slug)).code, "VALID");
    const former = (await get(server, "lost.by.key")).id;

    await server.ok("permissions.deletePermission", { permission: "Lost.By.Role" });
    await server.ok("permissions.deletePermission", { permission: former });
    for (const slug of ["lost.by.key", "lost.by.role"]) {
      assert.equal((await query(slug)).code, "INSUFFICIENT_PERMISSIONS");
      for (const operation of ["deletePermission", "getPermission"]) {
        const error = await server.rejected(`permissions.${operation}`, { permission: slug }, "permission_not_found");
        assert.match(error.detail, /does not exist/);
      }
    }
    await server.rejected("permissions.deletePermission", { permission: former }, "permission_not_found");
    assert.deepEqual((await server.getKey(keyId)).permissions, ["kept.by.key", "kept.by.role"]);
    assert.deepEqual(slugs((await server.ok("permissions.getRole", { role: "losing" })).permissions), ["kept.by.role"]);

    assert.notEqual(await create(server, "lost.by.key"), former);
    assert.equal((await query("lost.by.key")).code, "INSUFFICIENT_PERMISSIONS");
  });

  it("masks the permission without the permission to read it", async () => {
    const id = await create(server, "hidden");
    const { key: stranger } = await server.workspace("stranger");
    const { key: unpermitted } = await server.grant("rbac.*.create_role", `permissions.${id}.read_permission`);
    const { key: reader } = await server.grant("rbac.*.read_permission");
    const before = await server.rows();
    for (const permission of [id, "hidden", "never.existed"]) {
      for (const operation of ["getPermission", "deletePermission"]) {
        const name = `permissions.${operation}`;
        await server.rejected(name, { permission }, "permission_not_found", { as: stranger });
        const error = await server.rejected(name, { permission }, "insufficient_permissions", { as: unpermitted });
        assert.match(error.detail, /^Missing permission: 'permissions\.\*\.(read|delete)_permission'$/);
      }
    }
    assert.deepEqual(await server.ok("permissions.listPermissions", {}, { as: stranger }), []);
    assert.deepEqual(await server.rows(), before);
    await server.ok("permissions.getPermission", { permission: id }, { as: reader });
    await server.rejected("permissions.deletePermission", { permission: id }, "insufficient_permissions", {
      as: reader,
    });
  });
});

describeOnStores("permissions.updatePermission", (server) => {
  const update = (body: object) => server.ok("permissions.updatePermission", body);

  it("changes the given properties and keeps the others", async () => {
    const id = await create(server, "up.first");
    assert.deepEqual(await update({ permission: "up.first" }), { id, name: "up.first", slug: "up.first" });
    assert.deepEqual(await update({ permission: id, name: "First", description: "one" }), {
      id,
      name: "First",
      slug: "up.first",
      description: "one",
    });
    assert.deepEqual(await update({ permission: "UP.first", slug: "up.second" }), {
      id,
      name: "First",
      slug: "up.second",
      description: "one",
    });
    for (const description of ["", null]) {
      await update({ permission: id, description: "two" });
      assert.deepEqual(await update({ permission: id, description }), { id, name: "First", slug: "up.second" });
    }
    await server.rejected("permissions.getPermission", { permission: "up.first" }, "permission_not_found");
    await create(server, "up.first");
  });

  it("changes the slug in keys and roles, from the next verification on", async () => {
    await server.createRole("renaming", "rename.old");
    const apiId = await server.createApi();
    const { key } = await server.createKey(apiId, { permissions: ["rename.old"] });
    const { key: viaRole } = await server.createKey(apiId, { roles: ["renaming"] });
    for (const one of [key, viaRole]) assert((await server.verify(one, { permissions: "rename.old" })).valid);
    await update({ permission: "rename.old", slug: "rename.new" });
    for (const one of [key, viaRole]) {
      assert((await server.verify(one, { permissions: "rename.new" })).valid);
      assert.deepEqual((await server.verify(one)).permissions, ["rename.new"]);
      assert.equal((await server.verify(one, { permissions: "rename.old" })).code, "INSUFFICIENT_PERMISSIONS");
    }
  });

  it("rejects a slug that is in use, without regard to case", async () => {
    await create(server, "up.mine");
    await create(server, "up.theirs");
    const before = await server.rows();
    const body = { permission: "up.mine", slug: "UP.theirs" };
    await server.rejected("permissions.updatePermission", body, "permission_already_exists");
    assert.deepEqual(await server.rows(), before);
    assert.equal((await update({ permission: "up.mine", slug: "Up.Mine" })).slug, "Up.Mine");
  });
});
