import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { describeOnStores, type Reply } from "../harness.ts";

const MINUTE = 60_000;
/** The start of a window of a minute, so that a test has all of it. */
const whole = (now: number) => MINUTE - (now % MINUTE);

describeOnStores("workspaces", (server) => {
  const create = (more: object = {}) => server.ok("workspaces.createWorkspace", { name: "Initech", ...more });
  const update = (workspaceId: string, changes: object) =>
    server.ok("workspaces.updateWorkspace", { workspaceId, ...changes });
  const show = async (workspaceId: string) =>
    (await server.ok("workspaces.listWorkspaces", { search: workspaceId }))[0];

  it("are created with an administrator, and are isolated from each other", async () => {
    const [one, other] = [await create(), await create({ requestsPerMinute: 100 })];
    assert.match(one.workspaceId, /^ws_[0-9A-Za-z]{16}$/);
    const { apiId } = await server.ok("apis.createApi", { name: "theirs" }, { as: one.key });
    await server.rejected("apis.getApi", { apiId }, "api_not_found", { as: other.key });
    await server.rejected("apis.getApi", { apiId }, "api_not_found");
    const [administrator, ...rest] = await server.ok("rootKeys.listRootKeys", {}, { as: one.key });
    assert.deepEqual(rest, []);
    assert.equal(administrator.rootKeyId, one.rootKeyId);
    assert.deepEqual(administrator.permissions, ["*"]);
    const shown = { name: "Initech", enabled: true, default: false, createdAt: server.clock.now() };
    assert.deepEqual(await show(one.workspaceId), { workspaceId: one.workspaceId, ...shown });
    const limited = { workspaceId: other.workspaceId, ...shown, requestsPerMinute: 100 };
    assert.deepEqual(await show(other.workspaceId), limited);
    assert.equal((await show(server.workspaceId)).default, true);
  });

  it("are managed by root keys of the default workspace only", async () => {
    const { workspaceId, key: as } = await create();
    const before = await server.rows();
    for (const [operation, body] of [
      ["workspaces.createWorkspace", { name: "sub" }],
      ["workspaces.listWorkspaces", {}],
      ["workspaces.updateWorkspace", { workspaceId, requestsPerMinute: null }],
      ["workspaces.updateWorkspace", { workspaceId: server.workspaceId, enabled: false }],
      ["workspaces.updateWorkspace", { workspaceId: "ws_never0existed000", enabled: false }],
    ] as const) {
      const error = await server.rejected(operation, body, "insufficient_permissions", { as });
      assert.match(error.detail, /default workspace/);
    }
    assert.deepEqual(await server.rows(), before);
    const { key: weak } = await server.grant("workspaces.*.read_workspace");
    await server.ok("workspaces.listWorkspaces", {}, { as: weak });
    const error = await server.rejected(
      "workspaces.updateWorkspace",
      { workspaceId: "ws_never0existed000", name: "x" },
      "insufficient_permissions",
      { as: weak },
    );
    assert.equal(error.detail, "Missing permission: 'workspaces.*.update_workspace'");
    const absent = { workspaceId: "ws_never0existed000", name: "x" };
    await server.rejected("workspaces.updateWorkspace", absent, "workspace_not_found");
  });

  it("are listed in pages and found by name", async () => {
    const ids: string[] = [];
    for (let i = 0; i < 5; i++) ids.push((await create({ name: `Paged ${i}` })).workspaceId);
    ids.sort();
    for (const limit of [1, 2, 5]) {
      const seen: string[] = [];
      for (let cursor: string | undefined; ; ) {
        const { body } = await server.call("workspaces.listWorkspaces", { limit, search: "pAGED", cursor });
        seen.push(...body.data.map((shown: { workspaceId: string }) => shown.workspaceId));
        if (!body.pagination.hasMore) break;
        cursor = body.pagination.cursor;
      }
      assert.deepEqual(seen, ids);
    }
  });

  it("change the given properties, and a limit can be removed", async () => {
    const { workspaceId } = await create({ requestsPerMinute: 100 });
    await update(workspaceId, { name: "Initrode" });
    const { name, requestsPerMinute, updatedAt } = await show(workspaceId);
    assert.deepEqual({ name, requestsPerMinute }, { name: "Initrode", requestsPerMinute: 100 });
    assert.equal(updatedAt, server.clock.now());
    await update(workspaceId, { requestsPerMinute: null });
    assert.equal((await show(workspaceId)).requestsPerMinute, undefined);
    const before = await server.rows();
    await update(workspaceId, {});
    assert.deepEqual(await server.rows(), before);
    for (const change of [
      { name: null },
      { enabled: null },
      { requestsPerMinute: -1 },
      { requestsPerMinute: 1e12 + 1 },
    ]) {
      await server.rejected("workspaces.updateWorkspace", { workspaceId, ...change }, "invalid_input");
    }
  });

  it("are disabled and enabled with all their root keys and keys, at once", async () => {
    const { workspaceId, key: as } = await create();
    const { apiId } = await server.ok("apis.createApi", { name: "theirs" }, { as });
    const { key } = await server.ok("keys.createKey", { apiId }, { as });
    assert.equal((await server.verify(key, {}, { as })).code, "VALID");
    await update(workspaceId, { enabled: false });
    for (const [operation, body] of [
      ["apis.getApi", { apiId }],
      ["keys.verifyKey", { key }],
    ] as const) {
      await server.rejected(operation, body, "workspace_disabled", { as });
    }
    await update(workspaceId, { enabled: true });
    assert.equal((await server.verify(key, {}, { as })).code, "VALID");
  });

  it("include the default one, which cannot disable itself", async () => {
    const before = await server.rows();
    for (const change of [{ enabled: false }, { requestsPerMinute: 0 }]) {
      const body = { workspaceId: server.workspaceId, name: "x", ...change };
      await server.rejected("workspaces.updateWorkspace", body, "protected_resource");
    }
    assert.deepEqual(await server.rows(), before);
    await update(server.workspaceId, { name: "headquarters", enabled: true, requestsPerMinute: 1_000_000 });
    await update(server.workspaceId, { requestsPerMinute: null });
    assert.equal((await show(server.workspaceId)).name, "headquarters");
  });

  it("are created once by repeated calls", async () => {
    const headers = { "idempotency-key": "make-a-workspace" };
    const body = { name: "once" };
    const made = await server.ok("workspaces.createWorkspace", body, { headers });
    assert.deepEqual(await server.ok("workspaces.createWorkspace", body, { headers }), made);
    assert.equal((await server.ok("workspaces.listWorkspaces", { search: "once" })).length, 1);
    const kept = async () =>
      (await server.rowsOf("idempotency_records")).some((row) => (row as { key_id: string }).key_id === made.rootKeyId);
    assert(await kept());
    await server.ok("rootKeys.createRootKey", { name: "second", permissions: ["*"] }, { as: made.key });
    await server.ok("rootKeys.deleteRootKey", { rootKeyId: made.rootKeyId }, { as: made.key });
    assert(!(await kept()));
  });

  describe("workspaces with a limit of requests", () => {
    const standing = ({ headers }: Reply) =>
      ["limit", "remaining", "reset"].map(
        (name) => headers[`ratelimit-${name}`] && Number(headers[`ratelimit-${name}`]),
      );
    const none = [undefined, undefined, undefined];

    it("reject requests beyond it, and each answer has its state (rule 72)", async () => {
      const { workspaceId, key: as } = await create();
      const { apiId } = await server.ok("apis.createApi", { name: "theirs" }, { as });
      await update(workspaceId, { requestsPerMinute: 2 });
      await server.advance(whole(server.clock.now()));
      const first = await server.call("apis.getApi", { apiId }, { as });
      assert.deepEqual([first.status, ...standing(first)], [200, 2, 1, 60]);
      await server.advance(500);
      // Every request counts, whatever its outcome.
      const second = await server.call("apis.getApi", { apiId: "!" }, { as });
      assert.deepEqual([second.problem, ...standing(second)], ["invalid_input", 2, 0, 60]);
      const before = await server.rows();
      for (const operation of ["apis.getApi", "keys.verifyKey", "ratelimits.limit", "apis.createApi"]) {
        const third = await server.call(operation, { name: "theirs" }, { as });
        assert.deepEqual([third.problem, ...standing(third)], ["workspace_rate_limited", 2, 0, 60]);
        assert.equal(third.headers["content-type"], "application/problem+json");
        assert.equal(third.body.error.type, "/errors/user/too_many_requests/workspace_rate_limited");
        const wait = Number(third.headers["retry-after"]);
        assert(wait >= 60 && wait <= 120, String(wait));
      }
      assert.deepEqual(await server.rows(), before);
      await server.advance(2 * MINUTE);
      await server.ok("apis.getApi", { apiId }, { as });
    });

    it("accept requests again at Retry-After, and not before", async () => {
      const { key: as } = await create({ requestsPerMinute: 3 });
      await server.advance(whole(server.clock.now()));
      const ask = () => server.call("apis.listApis", {}, { as });
      for (let i = 0; i < 3; i++) assert.equal((await ask()).status, 200);
      const wait = Number((await ask()).headers["retry-after"]) * 1_000;
      await server.advance(wait - 1_000);
      assert.equal((await ask()).problem, "workspace_rate_limited");
      await server.advance(1_000);
      assert.equal((await ask()).status, 200);
    });

    it("count metered calls and all their root keys together, and no other workspace's", async () => {
      const { workspaceId, key: as } = await create();
      const { key: second } = await server.ok("rootKeys.createRootKey", { name: "2", permissions: ["*"] }, { as });
      const count = { namespace: "n", identifier: "i", limit: 100, duration: MINUTE };
      await server.ok("ratelimits.limit", count, { as });
      await update(workspaceId, { requestsPerMinute: 3 });
      await server.advance(whole(server.clock.now()));
      const reply = await server.call("ratelimits.limit", count, { as });
      assert.deepEqual(standing(reply), [3, 2, 60]);
      assert(reply.headers.ratelimit !== undefined, "the namespace's own headers stay");
      assert.deepEqual(standing(await server.call("keys.verifyKey", { key: "unknown" }, { as: second })), [3, 1, 60]);
      assert.deepEqual(standing(await server.call("apis.listApis", {}, { as: second })), [3, 0, 60]);
      await server.rejected("ratelimits.limit", count, "workspace_rate_limited", { as });
      for (const by of [server.rootKey, null]) {
        const other = await server.call("keys.verifyKey", { key: "unknown" }, { as: by });
        assert.deepEqual([other.status, ...standing(other)], [200, ...none]);
      }
    });

    it("of 0 reject every request, without its state (rule 72)", async () => {
      const { workspaceId, key: as } = await create({ requestsPerMinute: 0 });
      for (const [operation, body] of [
        ["apis.listApis", {}],
        ["keys.verifyKey", { key: "unknown" }],
      ] as const) {
        const reply = await server.call(operation, body, { as });
        assert.deepEqual([reply.problem, ...standing(reply)], ["workspace_rate_limited", ...none]);
        assert.equal(reply.headers["retry-after"], "60");
      }
      await update(workspaceId, { requestsPerMinute: null });
      for (let i = 0; i < 50; i++) {
        const reply = await server.call("keys.verifyKey", { key: "unknown" }, { as });
        assert.deepEqual([reply.status, ...standing(reply)], [200, ...none]);
      }
    });
  });
});
