import assert from "node:assert/strict";
import { it } from "node:test";
import { describeOnStores, openTestServer, type TestServer } from "../harness.ts";

const MINUTE = 60_000;

async function newNamespace(server: TestServer, namespace: string): Promise<string> {
  await server.ok("ratelimits.limit", { namespace, identifier: "first", limit: 1, duration: 1_000, cost: 0 });
  return namespace;
}

const set = async (server: TestServer, namespace: string, identifier: string, limit: number, duration = MINUTE) =>
  (await server.ok("ratelimits.setOverride", { namespace, identifier, limit, duration })).overrideId as string;

const limit = (server: TestServer, namespace: string, identifier: string, cost = 1) =>
  server.ok("ratelimits.limit", { namespace, identifier, limit: 10, duration: MINUTE, cost });

describeOnStores("an override", (server) => {
  it("applies from the next call on, also to what was counted before (rule 65)", async () => {
    const namespace = await newNamespace(server, "at once");
    assert.equal((await limit(server, namespace, "a", 3)).remaining, 7);
    const overrideId = await set(server, namespace, "a", 5);
    const { remaining, limit: effective, ...rest } = await limit(server, namespace, "a");
    assert.deepEqual([remaining, effective, rest.overrideId], [1, 5, overrideId]);
    await limit(server, namespace, "a");
    const denied = await limit(server, namespace, "a");
    assert.deepEqual([denied.success, denied.limit, denied.overrideId], [false, 5, overrideId]);
    // Another duration is another counter.
    await set(server, namespace, "a", 5, 2 * MINUTE);
    assert.equal((await limit(server, namespace, "a")).remaining, 4);
    await server.ok("ratelimits.deleteOverride", { namespace, identifier: "a" });
    assert.equal((await limit(server, namespace, "a", 0)).overrideId, undefined);
  });

  it("applies to all identifiers that match its pattern, the most specific one first, and is found by them (rules 65, 67)", async () => {
    const namespace = await newNamespace(server, "patterns");
    const ids = new Map<string, string>();
    for (const pattern of ["*", "prefix*", "*suffix", "*mid*", "prefix_exact", "a*b*c", "[x]*"]) {
      ids.set(pattern, await set(server, namespace, pattern, 100));
      await server.pass(1);
    }
    for (const [identifier, pattern] of [
      ["prefix_1", "prefix*"],
      ["1_suffix", "*suffix"],
      ["amidst", "*mid*"],
      ["prefix_exact", "prefix_exact"],
      // Both have six characters, and the first one is older.
      ["prefix suffix", "prefix*"],
      ["prefixmid", "prefix*"],
      ["abc", "a*b*c"],
      ["[x]y", "[x]*"],
      ["xy", "*"],
      ["Prefix_1", "*"],
    ]) {
      assert.equal((await limit(server, namespace, identifier!, 0)).overrideId, ids.get(pattern!), identifier);
      const body = { namespace, identifier };
      assert.equal((await server.ok("ratelimits.getOverride", body)).identifier, pattern, identifier);
    }
    assert.equal((await limit(server, namespace, "two\nlines", 0)).overrideId, undefined);
  });

  it("with the limit 0 denies everything (rule 66)", async () => {
    const namespace = await newNamespace(server, "zero");
    const overrideId = await set(server, namespace, "banned", 0);
    for (const cost of [1, 0]) {
      const { reset, ...answer } = await limit(server, namespace, "banned", cost);
      assert.deepEqual(answer, { success: false, limit: 0, remaining: 0, overrideId });
      assert(reset > server.clock.now());
    }
  });

  it("is set by name or id, and keeps its id when it is set again (rule 66)", async () => {
    const namespace = await newNamespace(server, "twice");
    const [{ id }] = await server.ok("ratelimits.listNamespaces", { search: "twice" });
    const overrideId = await set(server, namespace, "a*", 5);
    await server.pass(1_000);
    assert.equal(await set(server, id, "a*", 7, 2_000), overrideId);
    assert.deepEqual(await server.ok("ratelimits.getOverride", { namespace: id, identifier: "abc" }), {
      overrideId,
      namespace,
      identifier: "a*",
      limit: 7,
      duration: 2_000,
    });
    const body = { namespace: "never made", identifier: "a", limit: 1, duration: 1_000 };
    const error = await server.rejected("ratelimits.setOverride", body, "namespace_not_found");
    assert.match(error.detail, /This namespace does not exist\./);
    assert.deepEqual(await server.ok("ratelimits.listNamespaces", { search: "never made" }), []);
    for (const wrong of [
      { limit: -1 },
      { duration: -1 },
      { duration: 999 },
      { identifier: "" },
      { identifier: undefined },
    ]) {
      await server.rejected("ratelimits.setOverride", { ...body, namespace, ...wrong }, "invalid_input");
    }
  });

  it("has no effect after its deletion, which needs the exact identifier, until it is set again (rule 68)", async () => {
    const namespace = await newNamespace(server, "gone");
    const former = await set(server, namespace, "a*", 5);
    const remove = (identifier: string) => server.call("ratelimits.deleteOverride", { namespace, identifier });
    assert.equal((await remove("abc")).problem, "override_not_found");
    assert.equal((await remove("a*")).status, 200);
    assert.equal((await remove("a*")).problem, "override_not_found");
    const error = await server.rejected(
      "ratelimits.getOverride",
      { namespace, identifier: "abc" },
      "override_not_found",
    );
    assert.match(error.detail, /This override does not exist\./);
    assert.deepEqual((await server.ok("ratelimits.listOverrides", { namespace })).overrides, []);
    assert.equal((await limit(server, namespace, "abc")).overrideId, undefined);
    const again = await set(server, namespace, "a*", 5);
    assert.notEqual(again, former);
    assert.equal((await limit(server, namespace, "abc")).overrideId, again);
  });

  it("may have any text as its identifier", async () => {
    const namespace = await newNamespace(server, " any\t\u0002identifier ");
    for (const identifier of ["\t", " a ", "%_\\", "日本", "🚦", "x".repeat(512), "a:b"]) {
      const overrideId = await set(server, namespace, identifier, 5);
      assert.equal((await limit(server, namespace, identifier)).overrideId, overrideId);
      assert.equal((await server.ok("ratelimits.getOverride", { namespace, identifier })).identifier, identifier);
    }
  });

  it("has at most eight asterisks", async () => {
    const namespace = await newNamespace(server, "asterisks");
    await set(server, namespace, "*a*b*c*d*e*f*g*", 5);
    const body = { namespace, identifier: "*a*b*c*d*e*f*g*h*", limit: 1, duration: 1_000 };
    const { errors } = await server.rejected("ratelimits.setOverride", body, "invalid_input");
    assert.match(errors![0]!.message, /at most 8 asterisks/);
    assert.equal((await limit(server, namespace, "abcdefg", 0)).limit, 5);
  });

  it("counts towards a maximum in its namespace, at which existing ones can still be changed and deleted", async () => {
    const namespace = await newNamespace(server, "full");
    const [{ id }] = await server.ok("ratelimits.listNamespaces", { search: "full" });
    const other = await newNamespace(server, "not that one");
    const insert = (from: number, count: number, identifierOf: (i: number) => string) =>
      server.change([id], async ({ db }) => {
        for (let first = from; first < from + count; first += 1_000) {
          const rows = Array.from({ length: Math.min(1_000, from + count - first) }, (_, i) => ({
            id: `rlor_${first + i}`,
            workspace_id: server.workspaceId,
            namespace_id: id,
            identifier: identifierOf(first + i),
            limit: 1,
            duration: MINUTE,
            created_at: 1,
          }));
          await db.insertInto("ratelimit_overrides").values(rows).execute();
        }
      });
    const rejected = (identifier: string) =>
      server.rejected(
        "ratelimits.setOverride",
        { namespace, identifier, limit: 1, duration: MINUTE },
        "override_limit_reached",
      );

    await insert(0, 100, (i) => `*${i}*`);
    assert.match((await rejected("*one more*")).detail, /100 patterns with more than one asterisk/);
    await set(server, namespace, "*0*", 2);
    await insert(100, 9_899, (i) => (i % 2 === 0 ? `user_${i}` : `org_${i}_*`));
    await set(server, namespace, "the last", 3);
    assert.match((await rejected("one more")).detail, /10000 overrides/);
    await set(server, namespace, "the last", 4);
    await set(server, other, "one more", 4);
    for (const [identifier, expected] of [
      ["the last", 4],
      ["user_9998", 1],
      ["org_101_x", 1],
      ["z", 10],
    ] as const) {
      assert.equal((await limit(server, namespace, identifier, 0)).limit, expected, identifier);
    }
    await server.ok("ratelimits.deleteOverride", { namespace, identifier: "user_100" });
    await set(server, namespace, "one more", 5);
  });

  it("is rejected at the maximum also among calls at the same time", async () => {
    const namespace = await newNamespace(server, "rivals");
    for (let i = 0; i < 98; i++) await set(server, namespace, `*${i}*`, 1);
    const identifiers = Array.from({ length: 12 }, (_, i) => `*rival${i}*`);
    const replies = await Promise.all(
      identifiers.map((identifier) =>
        server.call("ratelimits.setOverride", { namespace, identifier, limit: 1, duration: MINUTE }),
      ),
    );
    const rejected = replies.filter(({ problem }) => problem === "override_limit_reached").length;
    const accepted = replies.filter(({ status }) => status === 200).length;
    assert.deepEqual({ accepted, rejected }, { accepted: 2, rejected: 10 });
  });

  it("and its namespace can be deleted at the same time as others are set", async () => {
    for (let round = 0; round < 5; round++) {
      const namespace = await newNamespace(server, `deleted ${round}`);
      await set(server, namespace, "a", 1);
      const replies = await Promise.all([
        ...["a", "b", "a"].map((identifier) =>
          server.call("ratelimits.setOverride", { namespace, identifier, limit: 2, duration: MINUTE }),
        ),
        server.call("ratelimits.deleteNamespace", { namespace }),
      ]);
      for (const { status, problem } of replies) assert(status === 200 || problem === "namespace_not_found", problem);
      const namespaces = (await server.rowsOf("ratelimit_namespaces")) as { id: string; name: string }[];
      const { id } = namespaces.find(({ name }) => name === namespace)!;
      const overrides = (await server.rowsOf("ratelimit_overrides")) as { namespace_id: string }[];
      assert(!overrides.some((override) => override.namespace_id === id), "an override outlived its namespace");
    }
  });

  it("is masked without the permission to read it", async () => {
    const namespace = await newNamespace(server, "hidden");
    await set(server, namespace, "a", 5);
    const { key: as } = await server.grant("ratelimits.*.set_override");
    const body = { namespace, identifier: "a" };
    const hidden = await server.rejected("ratelimits.getOverride", body, "override_not_found", { as });
    const absent = await server.rejected("ratelimits.getOverride", { ...body, identifier: "b" }, "override_not_found");
    assert.deepEqual(hidden, absent);
  });
});

describeOnStores("the list of overrides", (server) => {
  it("has both shapes, by name or id, in pages (rule 69)", async () => {
    const namespace = await newNamespace(server, "list");
    const [{ id }] = await server.ok("ratelimits.listNamespaces", { search: "list" });
    assert.deepEqual(await server.ok("ratelimits.listOverrides", { namespace }), { overrides: [] });
    assert.deepEqual(await server.ok("ratelimit.listOverrides", { namespace }), []);
    const ids: string[] = [];
    for (let i = 0; i < 5; i++) ids.push(await set(server, namespace, `user_${i}`, i));
    ids.sort();
    const { overrides } = await server.ok("ratelimits.listOverrides", { namespace: id });
    assert.deepEqual(
      overrides.map((override: { overrideId: string }) => override.overrideId),
      ids,
    );
    assert(overrides.every((override: { namespace: string }) => override.namespace === namespace));
    assert.deepEqual(await server.ok("ratelimit.listOverrides", { namespace: id }), overrides);

    for (const operation of ["ratelimits.listOverrides", "ratelimit.listOverrides"]) {
      const paged: object[] = [];
      let cursor: string | undefined;
      do {
        const { body } = await server.call(operation, { namespace, limit: 2, cursor });
        cursor = body.pagination.cursor;
        if (operation === "ratelimits.listOverrides") {
          assert.equal(body.data.cursor, cursor);
          paged.push(...body.data.overrides);
        } else paged.push(...body.data);
      } while (cursor !== undefined);
      assert.deepEqual(paged, overrides);
    }
    const exactlyFull = await server.call("ratelimits.listOverrides", { namespace, limit: 5 });
    assert.deepEqual(exactlyFull.body.pagination, { hasMore: false });
    await server.rejected("ratelimits.listOverrides", { namespace, cursor: "garbage" }, "invalid_input");
    for (const size of [0, -1, 101]) {
      await server.rejected("ratelimits.listOverrides", { namespace, limit: size }, "invalid_input");
    }
  });

  it("has 50 entries on a page by default", async () => {
    const namespace = await newNamespace(server, "fifty");
    for (let i = 0; i < 51; i++) await set(server, namespace, `user_${i}`, 1);
    const { overrides, cursor } = await server.ok("ratelimits.listOverrides", { namespace });
    assert.equal(overrides.length, 50);
    assert.equal(typeof cursor, "string");
  });
});

describeOnStores("an override on another node", (server) => {
  it("applies within a second, and so does its deletion", async (t) => {
    const namespace = await newNamespace(server, "elsewhere");
    const other = await openTestServer({ beside: server });
    t.after(() => other.close());
    const onOther = (identifier: string) => limit(other, namespace, identifier, 0);
    assert.equal((await onOther("a")).limit, 10);
    await set(server, namespace, "a", 3);
    await Promise.all([server.pass(500), other.store.settled()]);
    await other.store.settled();
    assert.equal((await onOther("a")).limit, 3);
    // The other node creates a namespace that this node has cached as missing.
    const { key: as } = await server.grant("ratelimits.*.limit");
    const body = { namespace: "made elsewhere", identifier: "a", limit: 1, duration: MINUTE };
    await other.rejected("ratelimits.limit", body, "insufficient_permissions", { as });
    await server.ok("ratelimits.limit", body);
    await Promise.all([server.pass(500), other.store.settled()]);
    await other.store.settled();
    await other.ok("ratelimits.limit", body, { as });
    await server.ok("ratelimits.deleteNamespace", { namespace });
    await Promise.all([server.pass(500), other.store.settled()]);
    await other.store.settled();
    await other.rejected("ratelimits.limit", { ...body, namespace }, "insufficient_permissions", { as });
  });
});
