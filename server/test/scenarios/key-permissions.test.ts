import assert from "node:assert/strict";
import { it } from "node:test";
import { describeOnStores, type TestServer } from "../harness.ts";

const slugs = (list: { slug: string }[]) => list.map(({ slug }) => slug);
const names = (list: { name: string }[]) => list.map(({ name }) => name);
const newKey = async (server: TestServer, more: object = {}) => server.createKey(await server.createApi(), more);

/**
 * The detail of the problem of a call whose root key has only these grants. Asserts that nothing changed.
 */
async function missing(server: TestServer, operation: string, body: object, ...grants: string[]): Promise<string> {
  const { key: as } = await server.grant(...grants);
  const before = await server.rows();
  const { detail } = await server.rejected(operation, body, "insufficient_permissions", { as });
  assert.deepEqual(await server.rows(), before);
  return detail;
}

const manySlugs = (count: number) => Array.from({ length: count }, (_, i) => `many.${i}`);

describeOnStores("permissions of keys", (server) => {
  const change = async (operation: string, keyId: string, ...permissions: string[]) =>
    slugs(await server.ok(`keys.${operation}Permissions`, { keyId, permissions }));

  it("has a role to assign", async () => {
    await server.createRole("giving", "by.role", "both");
  });

  it("are added to existing ones; the answer excludes those of roles (rule 30)", async () => {
    const { keyId, key } = await newKey(server, { permissions: ["add.one"], roles: ["giving"] });
    assert.equal((await server.verify(key, { permissions: "add.two" })).code, "INSUFFICIENT_PERMISSIONS");
    const answer = await server.ok("keys.addPermissions", { keyId, permissions: ["add.two", "ADD.two", "both"] });
    assert.deepEqual(slugs(answer), ["add.one", "add.two", "both"]);
    const permission = await server.ok("permissions.getPermission", { permission: "add.two" });
    assert.deepEqual([permission, permission.name], [answer[1], "add.two"]);
    assert.equal((await server.verify(key, { permissions: "add.two AND by.role" })).code, "VALID");
    assert.deepEqual((await server.getKey(keyId)).permissions, ["add.one", "add.two", "both", "by.role"]);

    await server.pass(10);
    const before = await server.rows();
    assert.deepEqual(await change("add", keyId, "Add.One", "add.two"), ["add.one", "add.two", "both"]);
    assert.deepEqual(await server.rows(), before);
    assert.deepEqual(await change("add", keyId, "add.three"), ["add.one", "add.three", "add.two", "both"]);
    assert.equal((await server.getKey(keyId)).updatedAt, server.clock.now());
  });

  it("accept the id of a permission as the slug of a new one", async () => {
    const { permissionId } = await server.ok("permissions.createPermission", { name: "Directories", slug: "known" });
    const { keyId } = await newKey(server);
    assert.deepEqual(await change("add", keyId, permissionId), [permissionId]);
    const { permissionId: other } = await server.ok("permissions.createPermission", { name: "x", slug: "x" });
    await server.rejected("keys.removePermissions", { keyId, permissions: [other] }, "permission_not_found");
  });

  it("are removed if the key has them, and must all exist (rule 31)", async () => {
    const permissions = ["rem.a", "rem.b", "rem.c", "by.role"];
    const { keyId, key } = await newKey(server, { permissions, roles: ["giving"] });
    await server.ok("permissions.createPermission", { name: "Unassigned", slug: "unassigned" });
    await server.verify(key);
    let before = await server.rows();
    assert.deepEqual((await change("remove", keyId, "unassigned")).length, 4);
    for (const unknown of [["unknown"], ["rem.a", "un.Directories"], ["Unknown", "rem.a"]]) {
      const body = { keyId, permissions: unknown };
      const error = await server.rejected("keys.removePermissions", body, "permission_not_found");
      assert.equal(error.detail, `Permission '${unknown.find((slug) => !slug.startsWith("rem"))}' was not found.`);
    }
    assert.deepEqual(await server.rows(), before);
    assert.deepEqual(await change("remove", keyId, "REM.a", "rem.a", "unassigned", "by.role"), ["rem.b", "rem.c"]);
    // The role still grants it.
    assert.equal((await server.verify(key, { permissions: "by.role" })).code, "VALID");
    assert.equal((await server.verify(key, { permissions: "rem.a" })).code, "INSUFFICIENT_PERMISSIONS");
    await server.ok("permissions.getPermission", { permission: "rem.a" });

    const { key: as } = await server.workspace("stranger");
    before = await server.rows();
    await server.rejected("keys.removePermissions", { keyId, permissions: ["rem.b"] }, "key_not_found", { as });
    assert.deepEqual(await server.rows(), before);
    assert.deepEqual(await change("remove", keyId, "rem.b", "rem.c"), []);
  });

  it("are set in any order, and cleared (rule 32)", async () => {
    const { keyId, key } = await newKey(server, { permissions: ["set.a", "set.b"], roles: ["giving"] });
    assert.deepEqual(await change("set", keyId, "set.c", "set.a", "SET.C"), ["set.a", "set.c"]);
    assert.equal((await server.verify(key, { permissions: "set.c AND set.a" })).code, "VALID");
    assert.equal((await server.verify(key, { permissions: "set.b" })).code, "INSUFFICIENT_PERMISSIONS");
    await server.pass(10);
    const before = await server.rows();
    assert.deepEqual(await change("set", keyId, "set.c", "set.a"), ["set.a", "set.c"]);
    assert.deepEqual(await server.rows(), before);
    assert.deepEqual(await change("set", keyId), []);
    assert.deepEqual((await server.getKey(keyId)).permissions, ["both", "by.role"]);
    for (const permissions of [[""], "set.a", null, undefined, ["a b"], ["s".repeat(129)], manySlugs(1_001)]) {
      await server.rejected("keys.setPermissions", { keyId, permissions }, "invalid_input");
    }
    for (const operation of ["add", "remove"]) {
      await server.rejected(`keys.${operation}Permissions`, { keyId, permissions: [] }, "invalid_input");
    }
  });

  it("end as the set of one of several concurrent calls (rule 32)", async () => {
    // They exist and the sets are disjoint, so only the key can make one call wait for another.
    const sets = Array.from({ length: 6 }, (_, i) => [`race.${i}`, `race.${i}.too`]);
    const { keyId } = await newKey(server, { permissions: sets.flat() });
    for (let round = 0; round < 5; round++) {
      const answers = await Promise.all(sets.map((permissions) => change("set", keyId, ...permissions)));
      assert.deepEqual(answers, sets);
      const final = (await server.getKey(keyId)).permissions.join();
      assert(
        sets.some((permissions) => permissions.join() === final),
        final,
      );
    }
  });

  it("are limited in number, counting present and new ones", async () => {
    const { keyId } = await newKey(server);
    assert.equal((await change("set", keyId, ...manySlugs(1_000))).length, 1_000);
    const before = await server.rows();
    const body = { keyId, permissions: ["many.0", "one.more"] };
    const error = await server.rejected("keys.addPermissions", body, "invalid_input");
    assert.match(error.detail, /at most 1000.*1001/);
    assert.deepEqual(await server.rows(), before);
    assert.equal((await change("remove", keyId, ...manySlugs(2))).length, 998);
    assert.equal((await change("add", keyId, "many.0", "one.more")).length, 1_000);
  });

  it("need each permission by its name, after the look-up of the key (rule 30)", async () => {
    const apiId = await server.createApi();
    const { keyId } = await server.createKey(apiId, { permissions: ["perm.there"] });
    const [add, remove] = ["permissions.*.add_permission_to_key", "permissions.*.remove_permission_from_key"];
    const [update, make] = [`apis.${apiId}.update_key`, "permissions.*.create_permission"];
    const needs: Record<string, string[]> = { add: [add], remove: [remove], set: [add, remove] };
    for (const [operation, needed] of Object.entries(needs)) {
      const name = `keys.${operation}Permissions`;
      const body = { keyId, permissions: ["perm.there"] };
      assert.match(await missing(server, name, body, ...needed, make, "apis.api_other.update_key"), /update_key/);
      for (const one of needed) {
        const others = needed.filter((other) => other !== one);
        assert.equal(await missing(server, name, body, update, ...others), `Missing permission: '${one}'`);
      }
      if (operation !== "remove") {
        const made = { keyId, permissions: ["perm.there", "perm.new"] };
        assert.equal(await missing(server, name, made, update, ...needed), `Missing permission: '${make}'`);
      }
      const { key: as } = await server.grant(update, ...needed.map((grant) => grant.replace("permissions", "rbac")));
      await server.ok(name, body, { as });
      const { key: unprivileged } = await server.grant("audit.*.read_event");
      await server.rejected(name, { ...body, keyId: "key_never" }, "key_not_found", { as: unprivileged });
    }
  });

  it("write an audit entry for each change, and none without a change", async () => {
    const { keyId } = await newKey(server, { permissions: ["audit.a"] });
    const logged = async (operation: string, ...permissions: string[]) => {
      const { audit_events: before } = await server.rows();
      await change(operation, keyId, ...permissions);
      const { audit_events: after } = await server.rows();
      const events = after!.filter((row) => !before!.includes(row)).map((row) => JSON.parse(row as string));
      return events.map(({ action, targets, meta }) => [action, JSON.parse(targets)[0], JSON.parse(meta)]);
    };
    assert.deepEqual(await logged("add", "audit.a", "audit.b"), [
      ["keys.addPermissions", keyId, { added: ["audit.b"] }],
    ]);
    assert.deepEqual(await logged("set", "audit.c", "audit.b"), [
      ["keys.setPermissions", keyId, { added: ["audit.c"], removed: ["audit.a"] }],
    ]);
    assert.deepEqual(await logged("remove", "audit.a", "audit.b"), [
      ["keys.removePermissions", keyId, { removed: ["audit.b"] }],
    ]);
    for (const operation of ["add", "set"]) assert.deepEqual(await logged(operation, "audit.c"), []);
  });

  it("can be changed while they are deleted, without an error", async () => {
    const { keyId } = await newKey(server);
    const permissions = ["gone.a", "gone.b", "gone.c"];
    for (let round = 0; round < 5; round++) {
      await server.ok("keys.setPermissions", { keyId, permissions });
      const replies = await Promise.all([
        ...permissions.map((permission) => server.call("permissions.deletePermission", { permission })),
        server.call("keys.addPermissions", { keyId, permissions: permissions.toReversed() }),
        server.call("keys.setPermissions", { keyId, permissions }),
        server.call("keys.removePermissions", { keyId, permissions: ["gone.b"] }),
        server.call("permissions.createRole", { name: `gone ${round}`, permissions: permissions.toReversed() }),
      ]);
      for (const { status, body } of replies) assert([200, 404].includes(status), JSON.stringify(body));
    }
  });
});

describeOnStores("roles of keys", (server) => {
  const change = async (operation: string, keyId: string, ...roles: string[]) =>
    names(await server.ok(`keys.${operation}Roles`, { keyId, roles }));
  const role = (name: string) => server.ok("permissions.getRole", { role: name });

  it("has roles to assign", async () => {
    const editor = { name: "Editor", description: "Edits", permissions: ["docs.write", "docs.read"] };
    await server.ok("permissions.createRole", editor);
    await server.createRole("reader", "docs.read");
    await server.createRole("guest");
  });

  it("are added to existing ones, and returned in full (rule 33)", async () => {
    const { keyId, key } = await newKey(server, { roles: ["guest"], permissions: ["direct"] });
    assert.equal((await server.verify(key, { permissions: "docs.write" })).code, "INSUFFICIENT_PERMISSIONS");
    const answer = await server.ok("keys.addRoles", { keyId, roles: ["EDITOR", "Editor"] });
    assert.deepEqual(answer, [await role("Editor"), await role("guest")]);
    assert.equal(answer[0].description, "Edits");
    assert.deepEqual(slugs(answer[0].permissions), ["docs.read", "docs.write"]);
    assert.equal((await server.verify(key, { permissions: "docs.write AND direct" })).code, "VALID");
    await server.pass(10);
    const before = await server.rows();
    assert.deepEqual(await change("add", keyId, "guest", "editor"), ["Editor", "guest"]);
    assert.deepEqual(await server.rows(), before);
    assert.deepEqual(await change("add", keyId, "reader"), ["Editor", "guest", "reader"]);
    assert.equal((await server.getKey(keyId)).updatedAt, server.clock.now());
  });

  it("are removed if the key has them, and must all exist (rule 33)", async () => {
    const { keyId, key } = await newKey(server, { roles: ["guest", "reader"] });
    assert.equal((await server.verify(key, { permissions: "docs.read" })).code, "VALID");
    const before = await server.rows();
    assert.deepEqual(await change("remove", keyId, "Editor"), ["guest", "reader"]);
    assert.deepEqual(await server.rows(), before);
    assert.deepEqual(await change("remove", keyId, "READER", "editor"), ["guest"]);
    assert.equal((await server.verify(key, { permissions: "docs.read" })).code, "INSUFFICIENT_PERMISSIONS");
    assert.deepEqual(await change("remove", keyId, "guest"), []);
  });

  it("are set, set again without effect, and cleared (rule 33)", async () => {
    const { keyId, key } = await newKey(server, { roles: ["guest", "reader"] });
    assert.deepEqual(await change("set", keyId, "editor", "guest"), ["Editor", "guest"]);
    assert.equal((await server.verify(key, { permissions: "docs.write" })).code, "VALID");
    await server.pass(10);
    const before = await server.rows();
    assert.deepEqual(await change("set", keyId, "GUEST", "Editor", "guest"), ["Editor", "guest"]);
    assert.deepEqual(await server.rows(), before);
    assert.deepEqual(await change("set", keyId), []);
    assert.equal((await server.verify(key, { permissions: "docs.write" })).code, "INSUFFICIENT_PERMISSIONS");
    const { roles, permissions } = await server.getKey(keyId);
    assert.deepEqual([roles, permissions], [undefined, undefined]);
  });

  it("are found by name in the own workspace, all or none (rule 33)", async () => {
    const { keyId } = await newKey(server, { roles: ["guest"] });
    const { id } = await role("reader");
    const { key: as } = await server.workspace("stranger");
    await server.ok("permissions.createRole", { name: "foreign" }, { as });
    const before = await server.rows();
    for (const operation of ["addRoles", "removeRoles", "setRoles"]) {
      for (const [unknown, roles] of [
        [id, [id]],
        ["foreign", ["foreign"]],
        ["Nobody's", ["Nobody's", "reader", "guest"]],
        ["unprivileged", ["reader", "guest", "unprivileged"]],
      ] as const) {
        const error = await server.rejected(`keys.${operation}`, { keyId, roles }, "role_not_found");
        assert.equal(error.detail, `Role '${unknown}' was not found.`);
      }
      await server.rejected(`keys.${operation}`, { keyId, roles: ["foreign"] }, "key_not_found", { as });
      for (const roles of [[""], "reader", null, ["n".repeat(129)], Array(101).fill("reader")]) {
        await server.rejected(`keys.${operation}`, { keyId, roles }, "invalid_input");
      }
      if (operation !== "setRoles") await server.rejected(`keys.${operation}`, { keyId, roles: [] }, "invalid_input");
    }
    assert.deepEqual(await server.rows(), before);
  });

  it("are limited in number, counting present and new ones", async () => {
    const many = Array.from({ length: 101 }, (_, i) => `many ${i}`);
    for (const name of many) await server.createRole(name);
    const { keyId } = await newKey(server);
    assert.equal((await change("set", keyId, ...many.slice(1))).length, 100);
    const before = await server.rows();
    const body = { keyId, roles: ["many 0", "many 1"] };
    assert.match((await server.rejected("keys.addRoles", body, "invalid_input")).detail, /at most 100.*101/);
    assert.deepEqual(await server.rows(), before);
    assert.equal((await change("remove", keyId, "many 100")).length, 99);
    assert.equal((await change("add", keyId, "many 0", "many 1")).length, 100);
  });

  it("need each permission by its name, after the look-up of the key", async () => {
    const apiId = await server.createApi();
    const { keyId } = await server.createKey(apiId);
    const body = { keyId, roles: ["guest"] };
    const [update, add] = [`apis.${apiId}.update_key`, "permissions.*.add_role_to_key"];
    assert.equal(await missing(server, "keys.addRoles", body, update), `Missing permission: '${add}'`);
    for (const operation of ["addRoles", "removeRoles", "setRoles"]) {
      const name = `keys.${operation}`;
      assert.match(await missing(server, name, body, add, "apis.*.create_key"), /update_key/);
      const never = { keyId, roles: ["unprivileged"] };
      assert.match(await missing(server, name, never, add), /update_key/);
      const { key: as } = await server.grant(update, ...(operation === "addRoles" ? [add] : []));
      await server.ok(name, body, { as });
      const { key: unprivileged } = await server.grant("audit.*.read_event");
      await server.rejected(name, { ...body, keyId: "key_never" }, "key_not_found", { as: unprivileged });
    }
  });

  it("end as the set of one of several concurrent calls, without roles that are deleted meanwhile (rule 33)", async () => {
    const { keyId } = await newKey(server);
    for (let round = 0; round < 5; round++) {
      await server.createRole("gone", "docs.read");
      const sets = [["guest", "reader"], ["reader", "Editor"], ["guest"]];
      const replies = await Promise.all([
        ...sets.map((roles) => server.call("keys.setRoles", { keyId, roles })),
        server.call("keys.removeRoles", { keyId, roles: ["gone", "guest"] }),
        server.call("permissions.deleteRole", { role: "gone" }),
        server.call("keys.setRoles", { keyId, roles: ["gone"] }),
      ]);
      for (const { status, body } of replies) assert([200, 404].includes(status), JSON.stringify(body));
      const final = (await server.getKey(keyId)).roles ?? [];
      assert(!final.includes("gone"));
    }
  });
});
