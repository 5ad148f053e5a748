import assert from "node:assert/strict";
import { it } from "node:test";
import { writeCursor } from "../../src/platform/store/cursor.ts";
import { describeOnStores, openTestServer, type TestServer } from "../harness.ts";

const create = async (server: TestServer, name: string, permissions?: string[], as?: string) =>
  (await server.ok("permissions.createRole", { name, ...(permissions && { permissions }) }, as ? { as } : {}))
    .roleId as string;
const get = (server: TestServer, role: string) => server.ok("permissions.getRole", { role });
const set = (server: TestServer, roleId: string, permissions: string[]) =>
  server.ok("permissions.setRolePermissions", { roleId, permissions });
const slugs = (list: { slug: string }[] = []) => list.map(({ slug }) => slug);

const addPermission = "permissions.*.add_permission_to_role";
const removePermission = "permissions.*.remove_permission_from_role";

describeOnStores("permissions.createRole", (server) => {
  it("stores its input, and getRole finds it by id and name (rules 57, 60)", async () => {
    const name = " Süpport, level 2 🔑 ";
    await server.ok("permissions.createPermission", { name: "Reading", slug: "role.read", description: "All" });
    const body = { name, description: "d".repeat(512), permissions: ["role.write", "role.read"] };
    const { roleId } = await server.ok("permissions.createRole", body);
    assert.match(roleId, /^role_/);
    const role = await get(server, name);
    for (const by of [roleId, name.toUpperCase()]) assert.deepEqual(await get(server, by), role);
    const [read, write] = role.permissions;
    assert.deepEqual(role, {
      id: roleId,
      name,
      description: "d".repeat(512),
      permissions: [
        { id: read.id, name: "Reading", slug: "role.read", description: "All" },
        { id: write.id, name: "role.write", slug: "role.write" },
      ],
    });
    assert.deepEqual(await server.ok("permissions.getPermission", { permission: "role.write" }), write);
    await server.rejected("permissions.getRole", { role: name.trim() }, "role_not_found");
    await server.rejected("permissions.getRole", { role: roleId.toUpperCase() }, "role_not_found");
  });

  it("omits properties without a value (rule 57)", async () => {
    for (const [name, more] of [
      ["bare", {}],
      ["n".repeat(128), { description: "", permissions: [] }],
    ] as const) {
      const { roleId } = await server.ok("permissions.createRole", { name, ...more });
      assert.deepEqual(await get(server, name), { id: roleId, name });
    }
  });

  it("rejects invalid roles (rule 57)", async () => {
    const before = await server.rows();
    for (const change of [
      { name: "" },
      { name: "n".repeat(129) },
      { name: undefined },
      { description: "d".repeat(513) },
      { permissions: ["with blank"] },
      { permissions: [""] },
      { permissions: "role.read" },
      { permissions: Array.from({ length: 1_001 }, (_, i) => `many.${i}`) },
      { unheardOf: 1 },
    ]) {
      await server.rejected("permissions.createRole", { name: "wrong", ...change }, "invalid_input");
    }
    assert.deepEqual(await server.rows(), before);
  });

  it("accepts a name once in a workspace, without regard to case", async () => {
    const id = await create(server, "ΟΔΟΣ Ärzte");
    for (const name of ["ΟΔΟΣ Ärzte", "οδοσ ÄRZTE", "οδος ärzte"]) {
      const before = await server.rows();
      const body = { name, permissions: ["never.made"] };
      const error = await server.rejected("permissions.createRole", body, "role_already_exists");
      assert.match(error.detail, new RegExp(`'${name}' already exists`));
      assert.deepEqual(await server.rows(), before);
      assert.equal((await get(server, name)).id, id);
    }
    const { key: as } = await server.workspace("its own names");
    assert.notEqual(await create(server, "ΟΔΟΣ Ärzte", [], as), id);
    const concurrent = await Promise.all(
      ["Rival", "rival", "RIVAL", "rIVAL"].map((name) =>
        server.call("permissions.createRole", { name, permissions: ["rival.read"] }),
      ),
    );
    assert.deepEqual(concurrent.map(({ status }) => status).sort(), [200, 409, 409, 409]);
  });

  it("assigns a slug once, without regard to case (rule 58)", async () => {
    await create(server, "twice", ["Twice.Read", "twice.read", "TWICE.READ"]);
    assert.equal((await get(server, "twice")).permissions.length, 1);
  });

  it("creates missing permissions with the permission for it, else nothing at all (rule 58)", async () => {
    await server.ok("permissions.createPermission", { name: "There", slug: "there" });
    const { key: nothing } = await server.grant("permissions.*.create_role");
    const { key: adds } = await server.grant("rbac.*.create_role", addPermission);
    const before = await server.rows();
    const reject = async (permissions: string[], as: string) =>
      (
        await server.rejected("permissions.createRole", { name: "limited", permissions }, "insufficient_permissions", {
          as,
        })
      ).detail;
    assert.equal(await reject(["there"], nothing), `Missing permission: '${addPermission}'`);
    assert.equal(await reject(["there", "not.there"], adds), "Missing permission: 'permissions.*.create_permission'");
    assert.deepEqual(await server.rows(), before);
    await server.ok("permissions.createRole", { name: "empty", permissions: [] }, { as: nothing });
    await server.ok("permissions.createRole", { name: "limited", permissions: ["THERE"] }, { as: adds });
  });

  it("creates one role for one Idempotency-Key", async () => {
    const headers = { "idempotency-key": "make-role" };
    const first = await server.ok("permissions.createRole", { name: "repeated" }, { headers });
    assert.deepEqual(await server.ok("permissions.createRole", { name: "repeated" }, { headers }), first);
  });
});

describeOnStores("permissions.listRoles", (server) => {
  it("pages without gaps in the order of ids, with permissions (rule 60)", async () => {
    const { key: as } = await server.workspace("listed");
    assert.deepEqual(await server.ok("permissions.listRoles", {}, { as }), []);
    const foreign = await create(server, "list foreign", ["list.foreign"]);
    for (let i = 0; i < 5; i++) await create(server, `List ${i}`, i % 2 ? ["list.b", "list.a"] : [], as);
    const all = await server.ok("permissions.listRoles", {}, { as });
    const ids = all.map(({ id }: { id: string }) => id);
    assert.deepEqual([ids.length, ids], [5, ids.toSorted()]);
    for (const role of all) {
      assert.deepEqual(role, await server.ok("permissions.getRole", { role: role.id }, { as }));
      assert.deepEqual(slugs(role.permissions), Number(role.name.at(-1)) % 2 ? ["list.a", "list.b"] : []);
    }
    for (const limit of [1, 2, 5]) {
      const paged: object[] = [];
      let cursor: string | undefined;
      do {
        const { body } = await server.call("permissions.listRoles", { limit, cursor }, { as });
        paged.push(...body.data);
        cursor = body.pagination.cursor;
      } while (cursor !== undefined);
      assert.deepEqual(paged, all);
    }
    const cursor = writeCursor("permissions.listRoles", { at: 0, id: foreign });
    assert.deepEqual(await server.ok("permissions.listRoles", { cursor }, { as }), all);
  });

  it("searches literally without regard to case, in every field", async () => {
    const { key: as } = await server.workspace("searched");
    const body = { name: "Ärzte_100%", description: "ΟΔΟΣ\\", permissions: ["searched.slug"] };
    const { roleId } = await server.ok("permissions.createRole", body, { as });
    await create(server, "Arzte 1000", [], as);
    const found = async (search: string) =>
      (await server.ok("permissions.listRoles", { search }, { as })).map(({ name }: { name: string }) => name);
    for (const search of ["ÄRZ", "ärzte", "E_100", "%", "\\", "οδοσ", " ΔΟΣ ", roleId.toLowerCase()]) {
      assert.deepEqual(await found(search), ["Ärzte_100%"], search);
    }
    for (const search of ["searched.slug", "a%e", "%%"]) assert.deepEqual(await found(search), [], search);
    assert.equal((await found("  ")).length, 2);
    assert.equal((await found("RZTE")).length, 2);
  });
});

describeOnStores("permissions.deleteRole", (server) => {
  it("removes it from every key at once; permissions stay, and its name is free (rule 59)", async () => {
    const id = await create(server, "leaving", ["leaving.read", "shared.read"]);
    await create(server, "staying", ["shared.read"]);
    const { keyId, key } = await server.createKey(await server.createApi(), { roles: ["leaving", "staying"] });
    const query = (permissions: string) => server.verify(key, { permissions });
    assert.equal((await query("leaving.read")).code, "VALID");
    assert.deepEqual(await server.ok("permissions.deleteRole", { role: "Leaving" }), {});
    assert.equal((await query("leaving.read")).code, "INSUFFICIENT_PERMISSIONS");
    assert.deepEqual((await query("shared.read")).roles, ["staying"]);
    const { roles, permissions } = await server.getKey(keyId);
    assert.deepEqual([roles, permissions], [["staying"], ["shared.read"]]);
    for (const role of [id, "leaving"]) {
      for (const operation of ["deleteRole", "getRole"]) {
        const error = await server.rejected(`permissions.${operation}`, { role }, "role_not_found");
        assert.match(error.detail, /does not exist/);
      }
    }
    await server.ok("permissions.getPermission", { permission: "leaving.read" });
    const again = await create(server, "leaving", ["leaving.read"]);
    assert.notEqual(again, id);
    assert.equal((await query("leaving.read")).code, "INSUFFICIENT_PERMISSIONS");
    await server.ok("permissions.deleteRole", { role: again });
  });

  it("masks the role without the permission to read it", async () => {
    const id = await create(server, "hidden");
    const { key: stranger } = await server.workspace("stranger");
    const { key: unpermitted } = await server.grant("rbac.*.create_role", `permissions.${id}.read_role`);
    const before = await server.rows();
    for (const role of [id, "hidden", "never existed"]) {
      for (const operation of ["getRole", "deleteRole"]) {
        await server.rejected(`permissions.${operation}`, { role }, "role_not_found", { as: stranger });
        await server.rejected(`permissions.${operation}`, { role }, "insufficient_permissions", { as: unpermitted });
      }
    }
    assert.deepEqual(await server.ok("permissions.listRoles", {}, { as: stranger }), []);
    assert.deepEqual(await server.rows(), before);
  });
});

describeOnStores("permissions.setRolePermissions", (server) => {
  it("replaces, clears, and answers in the order of slugs (rule 61)", async () => {
    const roleId = await create(server, "set", ["set.b", "set.c"]);
    const answer = await set(server, roleId, ["set.d", "set.a", "SET.B", "set.A"]);
    assert.deepEqual(slugs(answer), ["set.a", "set.b", "set.d"]);
    assert.deepEqual((await get(server, "set")).permissions, answer);
    const before = await server.rows();
    assert.deepEqual(await set(server, roleId, ["set.b", "set.d", "set.a"]), answer);
    assert.deepEqual(await server.rows(), before);
    assert.deepEqual(await set(server, roleId, []), []);
    assert.equal((await get(server, "set")).permissions, undefined);
    await server.ok("permissions.getPermission", { permission: "set.a" });
  });

  it("applies to every key with the role at once, on other nodes within a poll (rule 59)", async () => {
    const roleId = await create(server, "reaching", ["reach.old"]);
    const apiId = await server.createApi();
    const keys = [
      await server.createKey(apiId, { roles: ["reaching"] }),
      await server.createKey(apiId, { roles: ["reaching"], permissions: ["reach.direct"] }),
    ];
    const other = await openTestServer({ beside: server });
    try {
      const codes = (asked: TestServer, permissions: string) =>
        Promise.all(keys.map(async ({ key }) => (await asked.verify(key, { permissions })).code));
      for (const node of [server, other]) assert.deepEqual(await codes(node, "reach.old"), ["VALID", "VALID"]);
      await set(server, roleId, ["reach.new"]);
      assert.deepEqual(await codes(server, "reach.new"), ["VALID", "VALID"]);
      await other.pass(500);
      for (const node of [server, other]) {
        assert.deepEqual(await codes(node, "reach.new"), ["VALID", "VALID"]);
        assert.deepEqual(await codes(node, "reach.old OR nothing"), [
          "INSUFFICIENT_PERMISSIONS",
          "INSUFFICIENT_PERMISSIONS",
        ]);
        assert.deepEqual(await codes(node, "reach.direct"), ["INSUFFICIENT_PERMISSIONS", "VALID"]);
      }
    } finally {
      await other.close();
    }
  });

  it("finds roles by id or name, in either property, in the own workspace only (rule 61)", async () => {
    const roleId = await create(server, "guarded", ["guarded.read"]);
    const { key: as } = await server.workspace("stranger");
    const before = await server.rows();
    const body = { permissions: ["stranger.made"] };
    for (const id of [roleId, "role_never_existed"]) {
      await server.rejected("permissions.setRolePermissions", { roleId: id, ...body }, "role_not_found", { as });
    }
    for (const role of [{}, { role: roleId, roleId }, { roleId: "" }, { role: "r".repeat(129) }]) {
      await server.rejected("permissions.setRolePermissions", { ...role, ...body }, "invalid_input");
    }
    assert.deepEqual(await server.rows(), before);
    const references = [{ role: "guarded" }, { role: roleId }, { roleId: "GUARDED" }, { roleId }];
    for (const [i, role] of references.entries()) {
      const permissions = [`guarded.${i}`];
      await server.ok("permissions.setRolePermissions", { ...role, permissions });
      assert.deepEqual(slugs((await get(server, roleId)).permissions), permissions);
    }
  });

  it("needs both permissions, which are checked before the look-up, and one more for new slugs", async () => {
    const roleId = await create(server, "limited", ["limited.read"]);
    const grants = [
      [[addPermission], removePermission],
      [[removePermission], addPermission],
      [[addPermission, removePermission], "permissions.*.create_permission"],
    ] as const;
    const before = await server.rows();
    for (const [granted, missing] of grants) {
      const { key: as } = await server.grant(...granted);
      const body = { roleId, permissions: ["limited.read", "limited.new"] };
      const error = await server.rejected("permissions.setRolePermissions", body, "insufficient_permissions", { as });
      assert.equal(error.detail, `Missing permission: '${missing}'`);
      const never = { roleId: "role_never_existed", permissions: [] };
      const problem = granted.length === 2 ? "role_not_found" : "insufficient_permissions";
      await server.rejected("permissions.setRolePermissions", never, problem, { as });
    }
    const { roles_permissions, permissions } = await server.rows();
    assert.deepEqual([roles_permissions, permissions], [before.roles_permissions, before.permissions]);
  });

  it("ends as the set of one of several concurrent calls (rule 61)", async () => {
    // They exist and the sets are disjoint, so only the role can make one call wait for another.
    const sets = Array.from({ length: 6 }, (_, i) => [`together.${i}`, `together.${i}.too`]);
    const roleId = await create(server, "together", sets.flat());
    for (let round = 0; round < 5; round++) {
      const answers = await Promise.all(sets.map((permissions) => set(server, roleId, permissions)));
      assert.deepEqual(answers.map(slugs), sets);
      const final = slugs((await get(server, "together")).permissions).join();
      assert(
        sets.some((permissions) => permissions.join() === final),
        final,
      );
    }
  });
});

describeOnStores("permissions.updateRole", (server) => {
  const update = (body: object, options?: { as: string }) => server.ok("permissions.updateRole", body, options);

  it("changes the given properties and keeps the others", async () => {
    const roleId = await create(server, "first", ["update.read"]);
    assert.deepEqual(await update({ role: "first" }), { id: roleId, name: "first" });
    assert.deepEqual(await update({ role: "first", description: "one" }), {
      id: roleId,
      name: "first",
      description: "one",
    });
    assert.deepEqual(await update({ role: roleId, name: "Second" }), {
      id: roleId,
      name: "Second",
      description: "one",
    });
    for (const description of ["", null]) {
      await update({ role: "second", description: "two" });
      assert.deepEqual(await update({ role: "second", description }), { id: roleId, name: "Second" });
    }
    assert.deepEqual(slugs((await get(server, "SECOND")).permissions), ["update.read"]);
    await server.rejected("permissions.getRole", { role: "first" }, "role_not_found");
    // The former name is free.
    await create(server, "first");
  });

  it("applies the new name from the next verification on, here and on other nodes", async () => {
    await create(server, "former");
    const { key } = await server.createKey(await server.createApi(), { roles: ["former"] });
    const other = await openTestServer({ beside: server });
    try {
      for (const node of [server, other]) assert.deepEqual((await node.verify(key)).roles, ["former"]);
      await update({ role: "former", name: "latter" });
      assert.deepEqual((await server.verify(key)).roles, ["latter"]);
      await other.pass(500);
      assert.deepEqual((await other.verify(key)).roles, ["latter"]);
    } finally {
      await other.close();
    }
  });

  it("rejects a name that is in use, without regard to case, and accepts its own in another case", async () => {
    const roleId = await create(server, "mine");
    await create(server, "theirs");
    const before = await server.rows();
    const error = await server.rejected(
      "permissions.updateRole",
      { role: "mine", name: "THEIRS" },
      "role_already_exists",
    );
    assert.match(error.detail, /already exists/);
    assert.deepEqual(await server.rows(), before);
    assert.equal((await update({ role: roleId, name: "MINE" })).name, "MINE");
  });

  it("gives a name to one of two roles in concurrent calls", async () => {
    const roles = await Promise.all([1, 2, 3, 4].map((i) => create(server, `rival ${i}`)));
    const replies = await Promise.all(
      roles.map((role) => server.call("permissions.updateRole", { role, name: "wanted" })),
    );
    assert.deepEqual(replies.map(({ status }) => status).sort(), [200, 409, 409, 409]);
  });
});
