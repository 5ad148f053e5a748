import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { writeCursor } from "../../src/platform/store/cursor.ts";
import { type CallOptions, describeOnStores } from "../harness.ts";

const MINUTE = 60_000;

describeOnStores("root keys", (server) => {
  const create = (permissions: string[], more: object = {}, as?: string) =>
    server.ok("rootKeys.createRootKey", { name: "made", permissions, ...more }, as === undefined ? {} : { as });
  const show = async (rootKeyId: string, as = server.rootKey) =>
    (await server.ok("rootKeys.listRootKeys", { search: rootKeyId }, { as }))[0];
  /** The root key of the tests. */
  const own = async () => {
    const all = await server.ok("rootKeys.listRootKeys", {});
    return all.find(({ start }: { start: string }) => start !== "" && server.rootKey.startsWith(start));
  };
  const mayCall = async (as: string) =>
    (await server.call("apis.createApi", { name: "probe" }, { as })).problem ?? "passed";

  it("are created with their grants, returned once, and stored as a hash", async () => {
    const { rootKeyId, key } = await create(["api.*.create_api", "apis.*.create_api", "rbac.*.read_role", "*.*.limit"]);
    assert.match(rootKeyId, /^rk_[0-9A-Za-z]{16}$/);
    assert.match(key, /^lk_root_/);
    assert.equal(await mayCall(key), "passed");
    assert.deepEqual(await show(rootKeyId), {
      rootKeyId,
      name: "made",
      start: key.slice(0, "lk_root_".length + 4),
      permissions: ["apis.*.create_api", "permissions.*.read_role", "*.*.limit"],
      enabled: true,
      source: "issued",
      createdAt: server.clock.now(),
      createdBy: (await own()).rootKeyId,
    });
    assert(!JSON.stringify(await server.rows()).includes(key));
  });

  it("reject invalid permissions", async () => {
    const before = await server.rows();
    for (const wrong of [
      "",
      "apis",
      "apis.create_api",
      "apis.*.fly",
      "planes.*.read_api",
      "apis.*.create_api.x",
      "**",
    ]) {
      const body = { name: "wrong", permissions: ["apis.*.create_api", wrong] };
      const error = await server.rejected("rootKeys.createRootKey", body, "invalid_input");
      assert(error.errors!.length > 0, wrong);
    }
    await server.rejected("rootKeys.createRootKey", { name: "none", permissions: [] }, "invalid_input");
    assert.deepEqual(await server.rows(), before);
  });

  it("end when they expire", async () => {
    const { rootKeyId, key } = await create(["apis.*.create_api"], { expires: server.clock.now() + 2_000 });
    assert.equal(await mayCall(key), "passed");
    assert.equal((await show(rootKeyId)).expires, server.clock.now() + 2_000);
    await server.pass(2_000);
    assert.equal(await mayCall(key), "root_key_expired");
    await server.ok("rootKeys.updateRootKey", { rootKeyId, expires: null });
    assert.equal(await mayCall(key), "passed");
    assert.equal((await show(rootKeyId)).expires, undefined);
  });

  it("apply changes at once", async () => {
    const { rootKeyId, key } = await create(["apis.*.read_api"]);
    assert.equal(await mayCall(key), "insufficient_permissions");
    await server.ok("rootKeys.updateRootKey", { rootKeyId, permissions: ["api.*.create_api"] });
    assert.equal(await mayCall(key), "passed");
    await server.ok("rootKeys.updateRootKey", { rootKeyId, enabled: false });
    assert.equal(await mayCall(key), "root_key_disabled");
    await server.ok("rootKeys.updateRootKey", { rootKeyId, enabled: true, name: "Renamed" });
    assert.equal(await mayCall(key), "passed");
    const { name, permissions, updatedAt } = await show(rootKeyId);
    assert.deepEqual({ name, permissions }, { name: "Renamed", permissions: ["apis.*.create_api"] });
    assert.equal(updatedAt, server.clock.now());
    assert.equal((await server.ok("rootKeys.listRootKeys", { search: "rENAMED" })).length, 1);
    const before = await server.rows();
    await server.ok("rootKeys.updateRootKey", { rootKeyId });
    assert.deepEqual(await server.rows(), before);
    await server.ok("rootKeys.deleteRootKey", { rootKeyId });
    assert.equal(await mayCall(key), "authentication_failed");
    assert.equal(await show(rootKeyId), undefined);
    for (const [operation, more] of [
      ["updateRootKey", { name: "x" }],
      ["deleteRootKey", {}],
      ["rerollRootKey", { expiration: 0 }],
    ] as const) {
      await server.rejected(`rootKeys.${operation}`, { rootKeyId, ...more }, "root_key_not_found");
    }
  });

  it("are rerolled into an equal one, with a grace period of whole minutes (rule 27)", async () => {
    const permissions = ["apis.*.create_api"];
    const { rootKeyId, key } = await create(permissions, { name: "rotating" });
    await server.advance(1_234);
    const next = await server.ok("rootKeys.rerollRootKey", { rootKeyId, expiration: 1 });
    assert.notEqual(next.rootKeyId, rootKeyId);
    const end = Math.ceil((server.clock.now() + 1) / MINUTE) * MINUTE;
    assert.equal((await show(rootKeyId)).expires, end);
    const { createdAt, createdBy, start, ...like } = await show(next.rootKeyId);
    assert.equal(createdBy, (await own()).rootKeyId);
    assert.deepEqual(like, {
      rootKeyId: next.rootKeyId,
      name: "rotating",
      permissions,
      enabled: true,
      source: "issued",
    });
    assert(next.key.startsWith(start) && createdAt === server.clock.now());
    for (const as of [key, next.key]) assert.equal(await mayCall(as), "passed");
    await server.pass(end - server.clock.now());
    assert.equal(await mayCall(key), "root_key_expired");
    assert.equal(await mayCall(next.key), "passed");

    const last = await server.ok("rootKeys.rerollRootKey", { rootKeyId: next.rootKeyId, expiration: 0 });
    assert.equal(await mayCall(next.key), "root_key_expired");
    assert.equal(await mayCall(last.key), "passed");
    // An expired one stays expired.
    await server.ok("rootKeys.rerollRootKey", { rootKeyId, expiration: 10 * MINUTE });
    assert.equal((await show(rootKeyId)).expires, end);
  });

  describe("an operation on a root key", () => {
    const acts = (rootKeyId: string) =>
      [
        ["rootKeys.updateRootKey", { rootKeyId, name: "taken over" }],
        ["rootKeys.updateRootKey", { rootKeyId }],
        ["rootKeys.rerollRootKey", { rootKeyId, expiration: 0 }],
        ["rootKeys.deleteRootKey", { rootKeyId }],
      ] as const;

    it("needs every permission that the root key has or will have", async () => {
      const manager = (await create(["rootKeys.*.*", "apis.*.create_api"])).key;
      const strong = await create(["apis.*.create_api", "apis.*.delete_api"]);
      const before = await server.rows();
      for (const [operation, body] of acts(strong.rootKeyId)) {
        const error = await server.rejected(operation, body, "insufficient_permissions", { as: manager });
        assert.equal(error.detail, "Missing permission: 'apis.*.delete_api'");
      }
      for (const [permission, missing] of [
        ["*", "Missing permission: '*'"],
        ["*.*.*", "Missing permission: '*'"],
        ["apis.*.*", "Missing permission: 'apis.*.*'"],
        ["*.*.create_api", "Missing permission: '*.*.create_api'"],
        ["identities.id_1.read_identity", "'identities.*.read_identity' or 'identities.id_1.read_identity'"],
      ] as const) {
        const body = { name: "more", permissions: ["apis.*.create_api", permission] };
        const error = await server.rejected("rootKeys.createRootKey", body, "insufficient_permissions", {
          as: manager,
        });
        assert(error.detail.includes(missing), error.detail);
      }
      assert.deepEqual(await server.rows(), before);

      const weak = await create(["apis.*.create_api"], {}, manager);
      const raise = { rootKeyId: weak.rootKeyId, permissions: ["apis.*.create_api", "apis.*.delete_api"] };
      await server.rejected("rootKeys.updateRootKey", raise, "insufficient_permissions", { as: manager });
      const narrow = { rootKeyId: weak.rootKeyId, permissions: ["api.api_1.create_api"] };
      await server.ok("rootKeys.updateRootKey", narrow, { as: manager });
      for (const [operation, body] of acts(weak.rootKeyId)) await server.ok(operation, body, { as: manager });
    });

    it("needs the permission for it, which is checked after the look-up (rule 5)", async () => {
      const [one, other] = [await create(["apis.*.create_api"]), await create(["apis.*.create_api"])];
      const id = one.rootKeyId;
      const { key: as } = await server.grant(
        "apis.*.create_api",
        ...["update", "delete", "create"].map((action) => `rootKeys.${id}.${action}_root_key`),
      );
      for (const [operation, body] of acts(other.rootKeyId)) {
        await server.rejected(operation, body, "insufficient_permissions", { as });
      }
      for (const [operation, body] of acts("rk_never0existed0000")) {
        await server.rejected(operation, body, "root_key_not_found", { as });
      }
      // Permissions for one root key do not permit creating others, and listing needs the permission for each.
      const make = { name: "new", permissions: ["apis.*.create_api"] };
      await server.rejected("rootKeys.createRootKey", make, "insufficient_permissions", { as });
      for (const [operation, body] of acts(id)) await server.ok(operation, body, { as });
    });

    it("of another workspace fails as for a missing one", async () => {
      const stranger = await server.workspace("stranger");
      const { rootKeyId } = await create(["apis.*.create_api"]);
      const before = await server.rows();
      for (const [operation, body] of acts(rootKeyId)) {
        await server.rejected(operation, body, "root_key_not_found", { as: stranger.key });
      }
      for (const cursor of [undefined, writeCursor("rootKeys.listRootKeys", { at: 0, id: rootKeyId })]) {
        const listed = await server.ok("rootKeys.listRootKeys", { cursor }, { as: stranger.key });
        assert(listed.every((shown: { rootKeyId: string }) => shown.rootKeyId === stranger.rootKeyId));
      }
      assert.deepEqual(await server.rows(), before);
    });
  });

  describe("the list of root keys", () => {
    it("has pages, and needs the permission for each root key of the page (rule 53)", async () => {
      const { key: as, rootKeyId } = await server.workspace("listing");
      const ids = [rootKeyId];
      for (let i = 0; i < 4; i++) ids.push((await create(["apis.*.read_api"], { name: `k${i}` }, as)).rootKeyId);
      ids.sort();
      for (const limit of [1, 2, 5]) {
        const seen: string[] = [];
        for (let cursor: string | undefined; ; ) {
          const { body } = await server.call("rootKeys.listRootKeys", { limit, cursor }, { as });
          seen.push(...body.data.map((shown: { rootKeyId: string }) => shown.rootKeyId));
          if (!body.pagination.hasMore) break;
          cursor = body.pagination.cursor;
        }
        assert.deepEqual(seen, ids);
      }
      const some = await create([`rootKeys.${ids[0]}.read_root_key`], { name: "reader" }, as);
      const error = await server.rejected("rootKeys.listRootKeys", {}, "insufficient_permissions", { as: some.key });
      assert.equal(error.detail, "Missing permission: 'rootKeys.*.read_root_key'");
      assert.equal((await server.ok("rootKeys.listRootKeys", { search: ids[0] }, { as: some.key })).length, 1);
    });
  });

  describe("the last administrator", () => {
    it("cannot be removed in any way", async () => {
      const { key: as, rootKeyId } = await server.workspace("lonely");
      // None of these is a permanent administrator.
      await create(["*"], { expires: 4_000_000_000_000 }, as);
      const idle = await create(["*"], {}, as);
      await server.ok("rootKeys.updateRootKey", { rootKeyId: idle.rootKeyId, enabled: false }, { as });
      await create(["apis.*.*", "rootKeys.*.*"], {}, as);
      const before = await server.rows();
      for (const change of [
        { permissions: ["apis.*.*"] },
        { enabled: false },
        { expires: 4_000_000_000_000 },
        { expires: 0 },
      ]) {
        const body = { rootKeyId, name: "x", ...change };
        const error = await server.rejected("rootKeys.updateRootKey", body, "protected_resource", { as });
        assert.match(error.detail, /last administrator/);
      }
      await server.rejected("rootKeys.deleteRootKey", { rootKeyId }, "protected_resource", { as });
      assert.deepEqual(await server.rows(), before);

      await server.ok(
        "rootKeys.updateRootKey",
        { rootKeyId, name: "chief", permissions: ["*.*.*", "apis.*.*"] },
        { as },
      );
      const next = await server.ok("rootKeys.rerollRootKey", { rootKeyId, expiration: MINUTE }, { as });
      const body = { rootKeyId: next.rootKeyId };
      await server.rejected("rootKeys.deleteRootKey", body, "protected_resource", { as: next.key });
      await server.ok("rootKeys.updateRootKey", { rootKeyId: idle.rootKeyId, enabled: true }, { as: next.key });
      await server.ok("rootKeys.deleteRootKey", body, { as: next.key });
      assert.equal(await mayCall(idle.key), "passed");
    });

    it("stays when two remove each other concurrently", async () => {
      for (let round = 0; round < 5; round++) {
        const first = await server.workspace("duel");
        const second = await create(["*"], {}, first.key);
        const { rootKeyId } = first;
        // Cached root keys are authenticated before either transaction begins.
        for (const as of [first.key, second.key]) assert.equal(await mayCall(as), "passed");
        const replies = await Promise.all([
          server.call("rootKeys.deleteRootKey", { rootKeyId: second.rootKeyId }, { as: first.key }),
          round % 2 === 0
            ? server.call("rootKeys.deleteRootKey", { rootKeyId }, { as: second.key })
            : server.call("rootKeys.updateRootKey", { rootKeyId, enabled: false }, { as: second.key }),
        ]);
        const outcomes = replies.map(({ problem }) => problem ?? "passed");
        assert.equal(outcomes.filter((outcome) => outcome === "passed").length, 1, outcomes.join());
        // One that is removed before its own call is read fails its authentication.
        assert.match(outcomes.join(), /protected_resource|authentication_failed|root_key_disabled/);
      }
    });
  });

  describe("that another one created", () => {
    const makes = ["rootKeys.*.create_root_key", "apis.*.create_api"];
    const remove = (rootKeyId: string, more: object = {}, options?: CallOptions) =>
      server.ok("rootKeys.deleteRootKey", { rootKeyId, ...more }, options);
    const NONE = { deletedDescendants: 0, livingDescendants: 0 };
    /** A leaked root key, one that it made, one that this made, and one that replaces the last. */
    const lineage = async () => {
      const leaked = await create(makes);
      const child = await create(makes, {}, leaked.key);
      const grandchild = await create(makes, {}, child.key);
      const options = { as: server.rootKey };
      const replaced = await server.ok(
        "rootKeys.createRootKey",
        { name: "made", permissions: makes },
        { as: grandchild.key },
      );
      const replacing = await server.ok(
        "rootKeys.rerollRootKey",
        { rootKeyId: replaced.rootKeyId, expiration: 0 },
        options,
      );
      return { leaked, child, grandchild, replaced, replacing };
    };

    it("live on unless the call says otherwise, and are counted", async () => {
      const { leaked, child, grandchild } = await lineage();
      assert.deepEqual(await remove(leaked.rootKeyId), { deletedDescendants: 0, livingDescendants: 3 });
      assert.equal(await mayCall(leaked.key), "authentication_failed");
      assert.equal(await mayCall(grandchild.key), "passed");
      await server.rejected("rootKeys.deleteRootKey", { rootKeyId: leaked.rootKeyId }, "root_key_not_found");
      // It is not too late for them.
      const later = await remove(leaked.rootKeyId, { descendants: true });
      assert.deepEqual(later, { deletedDescendants: 3, livingDescendants: 0 });
      for (const { key } of [child, grandchild]) assert.equal(await mayCall(key), "authentication_failed");
      const before = await server.rows();
      const body = { rootKeyId: leaked.rootKeyId, descendants: true };
      await server.rejected("rootKeys.deleteRootKey", body, "root_key_not_found");
      assert.deepEqual(await server.rows(), before);
    });

    it("are deleted with it, at any depth, with an event and an audit entry for each", async () => {
      const { leaked, child, grandchild, replaced, replacing } = await lineage();
      const own = await create(makes, {}, replaced.key).catch(() => undefined);
      assert.equal(own, undefined, "a replaced root key made another one");
      const deleted = await remove(leaked.rootKeyId, { descendants: true });
      assert.deepEqual(deleted, { deletedDescendants: 3, livingDescendants: 0 });
      const ids = [leaked, child, grandchild, replaced].map(({ rootKeyId }) => rootKeyId);
      for (const { key } of [leaked, child, grandchild]) assert.equal(await mayCall(key), "authentication_failed");
      // An administrator made this one.
      assert.equal(await mayCall(replacing.key), "passed");
      const events = (await server.rowsOf("events")) as { type: string; object_id: string }[];
      const seen = events.filter(({ type }) => type === "root_key.deleted").map(({ object_id }) => object_id);
      assert.deepEqual(seen.filter((id) => ids.includes(id)).sort(), ids.sort());
      for (const target of ids) {
        const [entry] = await server.ok("audit.listEvents", { target, action: "rootKeys.deleteRootKey" });
        assert.equal(entry.meta.descendantsOf, leaked.rootKeyId);
      }
    });

    it("are at most two hundred in a call, which can be repeated", async () => {
      const { rootKeyId, key } = await create(makes);
      for (let i = 0; i < 205; i++) await create(["apis.*.create_api"], {}, key);
      const descendants = true;
      assert.deepEqual(await remove(rootKeyId, { descendants }), { deletedDescendants: 200, livingDescendants: 5 });
      assert.deepEqual(await remove(rootKeyId, { descendants }), { deletedDescendants: 5, livingDescendants: 0 });
    });

    it("need every permission of each, or nothing changes", async () => {
      const { rootKeyId, key } = await create(makes);
      const child = await create(["apis.*.create_api"], {}, key);
      const permissions = ["apis.*.create_api", "apis.*.delete_api"];
      await server.ok("rootKeys.updateRootKey", { rootKeyId: child.rootKeyId, permissions });
      const limited = await create([...makes, "rootKeys.*.delete_root_key"]);
      const before = await server.rows();
      const body = { rootKeyId, descendants: true };
      await server.rejected("rootKeys.deleteRootKey", body, "insufficient_permissions", { as: limited.key });
      const one = await create([...makes, "apis.*.delete_api", `rootKeys.${rootKeyId}.delete_root_key`]);
      const { root_keys, ...others } = await server.rows();
      assert.equal(root_keys!.length, before.root_keys!.length + 1);
      await server.rejected("rootKeys.deleteRootKey", body, "insufficient_permissions", { as: one.key });
      assert.deepEqual(await server.rows(), { root_keys, ...others });
      assert.equal(await mayCall(child.key), "passed");
    });

    it("spare the caller and what it made, and the last administrator", async () => {
      const { rootKeyId, key } = await create(["*"]);
      const caller = await create(["*"], {}, key);
      const ofCaller = await create(["apis.*.create_api"], {}, caller.key);
      const other = await create(["apis.*.create_api"], {}, key);
      assert.deepEqual(await remove(rootKeyId, { descendants: true }, { as: caller.key }), {
        deletedDescendants: 1,
        livingDescendants: 2,
      });
      for (const { key } of [caller, ofCaller]) assert.equal(await mayCall(key), "passed");
      assert.equal(await mayCall(other.key), "authentication_failed");
      // With itself, a root key takes along what it made.
      assert.deepEqual(await remove(caller.rootKeyId, { descendants: true }, { as: caller.key }), {
        deletedDescendants: 1,
        livingDescendants: 0,
      });
      const { workspaceId, rootKeyId: first, key: as } = await server.workspace("last administrator");
      assert(workspaceId);
      await server.ok("rootKeys.createRootKey", { name: "second", permissions: ["*"] }, { as });
      const body = { rootKeyId: first, descendants: true };
      await server.rejected("rootKeys.deleteRootKey", body, "protected_resource", { as });
    });

    it("are counted and not deleted in other workspaces", async () => {
      const { rootKeyId, key } = await create(["*"]);
      const elsewhere = await server.ok("workspaces.createWorkspace", { name: "elsewhere" }, { as: key });
      assert.deepEqual(await remove(rootKeyId, { descendants: true }), {
        deletedDescendants: 0,
        livingDescendants: 1,
      });
      assert.equal(await mayCall(elsewhere.key), "passed");
      const foreign = { as: elsewhere.key };
      await server.rejected("rootKeys.deleteRootKey", { rootKeyId, descendants: true }, "root_key_not_found", foreign);
    });

    it("are none of most root keys", async () => {
      const { rootKeyId } = await create(makes);
      assert.deepEqual(await remove(rootKeyId, { descendants: true }), NONE);
    });
  });

  it("from the configuration is changed only there", async () => {
    const given = "root_key_of_the_environment_1";
    const establish = (rootKey: string) => server.store.transact("establish", { now: server.clock.now(), rootKey });
    await establish(given);
    await server.pass(500);
    const all: { rootKeyId: string; source: string }[] = await server.ok("rootKeys.listRootKeys", {}, { as: given });
    const { rootKeyId, ...shown } = all.find(({ source }) => source === "environment")!;
    assert.deepEqual(shown, { ...shown, name: "environment", start: "", permissions: ["*"] });
    const before = await server.rows();
    for (const [operation, more] of [
      ["updateRootKey", { name: "mine" }],
      ["deleteRootKey", {}],
      ["rerollRootKey", { expiration: 0 }],
    ] as const) {
      const error = await server.rejected(`rootKeys.${operation}`, { rootKeyId, ...more }, "protected_resource");
      assert.match(error.detail, /configuration.*LATCHKEY_ROOT_KEY/);
    }
    assert.deepEqual(await server.rows(), before);
    await establish("root_key_of_the_environment_2");
    await server.pass(500);
    assert.equal(await mayCall(given), "authentication_failed");
    await server.rejected("rootKeys.deleteRootKey", { rootKeyId }, "root_key_not_found");
  });

  it("is created once by repeated calls, and the record is deleted with it", async () => {
    const body = { name: "once", permissions: ["apis.*.create_api"] };
    const headers = { "idempotency-key": "create-a-root-key" };
    const first = await server.ok("rootKeys.createRootKey", body, { headers });
    assert.deepEqual(await server.ok("rootKeys.createRootKey", body, { headers }), first);
    await server.rejected("rootKeys.createRootKey", { ...body, name: "x" }, "idempotency_mismatch", { headers });
    const again = { rootKeyId: first.rootKeyId, expiration: 0 };
    const reroll = { headers: { "idempotency-key": "reroll-a-root-key" } };
    const second = await server.ok("rootKeys.rerollRootKey", again, reroll);
    assert.deepEqual(await server.ok("rootKeys.rerollRootKey", again, reroll), second);

    const records = async () =>
      (await server.rowsOf("idempotency_records")).map((row) => (row as { key_id: string }).key_id);
    for (const { rootKeyId } of [first, second]) {
      assert((await records()).includes(rootKeyId));
      await server.ok("rootKeys.deleteRootKey", { rootKeyId });
      assert(!(await records()).includes(rootKeyId));
    }
  });
});
