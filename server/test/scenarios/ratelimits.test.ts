import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { describeOnStores, openTestServer, stores, type TestServer } from "../harness.ts";

const MINUTE = 60_000;
const call = { namespace: "emails", identifier: "user_1", limit: 10, duration: MINUTE };

const limit = (server: TestServer, more: object = {}, as?: string) =>
  server.ok("ratelimits.limit", { ...call, ...more }, as === undefined ? {} : { as });

async function namespaces(server: TestServer): Promise<{ id: string; name: string }[]> {
  return server.ok("ratelimits.listNamespaces", {});
}

async function namespaceId(server: TestServer, name: string): Promise<string> {
  return (await namespaces(server)).find((namespace) => namespace.name === name)!.id;
}

describeOnStores("ratelimits.limit", (server) => {
  it("counts down by the cost and denies when nothing is left (rule 64)", async () => {
    const counted = { namespace: "counting" };
    const reset = Math.ceil((server.clock.now() + 1) / MINUTE) * MINUTE;
    const passed = { success: true, limit: 10, reset, retryAfter: 0 };
    assert.deepEqual(await limit(server, counted), { ...passed, remaining: 9 });
    assert.deepEqual(await limit(server, { ...counted, cost: 4 }), { ...passed, remaining: 5 });
    assert.deepEqual(await limit(server, { ...counted, cost: 0 }), { ...passed, remaining: 5 });
    const denied = await limit(server, { ...counted, cost: 6 });
    assert.deepEqual({ ...denied, retryAfter: 0 }, { ...passed, success: false, remaining: 5 });
    assert.deepEqual(await limit(server, { ...counted, cost: 5 }), { ...passed, remaining: 0 });
    assert.equal((await limit(server, counted)).success, false);
    // A cost that can never fit has no retry time.
    assert.deepEqual(await limit(server, { ...counted, cost: 11 }), {
      success: false,
      limit: 10,
      remaining: 0,
      reset,
    });
  });

  it("counts identifiers, durations and namespaces separately (rule 64)", async () => {
    const one = { namespace: "apart", limit: 1 };
    for (const other of [{}, { identifier: "User_1" }, { duration: 2 * MINUTE }, { namespace: "apart.too" }]) {
      assert.equal((await limit(server, { ...one, ...other })).success, true);
      assert.equal((await limit(server, { ...one, ...other })).success, false);
    }
  });

  it("allows again exactly at the returned time", async () => {
    const one = { namespace: "moment", limit: 3, duration: 10_000 };
    for (let i = 0; i < 3; i++) assert.equal((await limit(server, one)).success, true);
    const { retryAfter } = await limit(server, one);
    await server.pass(retryAfter - 1);
    assert.deepEqual((await limit(server, one)).retryAfter, 1);
    await server.pass(1);
    assert.equal((await limit(server, one)).success, true);
  });

  it("creates a namespace at its first use, once, with any name (rule 62)", async () => {
    for (const name of ["\tt\u0001ab\n", " blanks ", "a/b c", "名前空間 🚦", "x".repeat(512)]) {
      const before = (await namespaces(server)).length;
      for (let i = 0; i < 2; i++) assert.equal((await limit(server, { namespace: name })).remaining, 9 - i);
      const after = await namespaces(server);
      assert.equal(after.length, before + 1);
      assert(after.some((namespace) => namespace.name === name));
      // Its id names the same one.
      assert.equal((await limit(server, { namespace: await namespaceId(server, name) })).remaining, 7);
      assert.equal((await namespaces(server)).length, before + 1);
    }
  });

  it("creates one namespace for many concurrent first uses (rule 62)", async () => {
    const before = (await namespaces(server)).length;
    const answers = await Promise.all(Array.from({ length: 50 }, () => limit(server, { namespace: "at once" })));
    assert.equal(answers.filter(({ success }) => success).length, 10);
    assert.equal((await namespaces(server)).length, before + 1);
  });

  it("rejects a first use without create_namespace, and creates nothing (rule 62)", async () => {
    const { key: as } = await server.grant("ratelimits.*.limit");
    const before = await server.rows();
    const error = await server.rejected(
      "ratelimits.limit",
      { ...call, namespace: "unmade" },
      "insufficient_permissions",
      {
        as,
      },
    );
    assert.match(error.detail, /create_namespace/);
    assert.deepEqual(await server.rows(), before);
    const { key: maker } = await server.grant("ratelimits.*.create_namespace");
    const unmade = { ...call, namespace: "unmade" };
    const rejected = await server.rejected("ratelimits.limit", unmade, "insufficient_permissions", { as: maker });
    assert.match(rejected.detail, /'ratelimits\.\*\.limit'/);
    await server.ok("ratelimits.limit", unmade);
    assert.equal((await limit(server, { namespace: "unmade" }, as)).success, true);
  });

  it("accepts a permission for one namespace for that namespace only (rule 63)", async () => {
    await limit(server, { namespace: "mine" });
    await limit(server, { namespace: "yours" });
    const { key: as } = await server.grant(`ratelimit.${await namespaceId(server, "mine")}.limit`);
    assert.equal((await limit(server, { namespace: "mine" }, as)).success, true);
    const yours = { ...call, namespace: "yours" };
    const error = await server.rejected("ratelimits.limit", yours, "insufficient_permissions", { as });
    assert.match(error.detail, /^Missing one of these permissions: 'ratelimits\.\*\.limit' or 'ratelimits\.rlns_/);
    await server.rejected(
      "ratelimits.multiLimit",
      [{ ...call, namespace: "mine" }, yours],
      "insufficient_permissions",
      {
        as,
      },
    );
  });

  it("separates workspaces", async () => {
    const { key: as } = await server.workspace("neighbour");
    const shared = { namespace: "shared name", limit: 1 };
    assert.equal((await limit(server, shared)).success, true);
    assert.equal((await limit(server, shared, as)).success, true);
    // The id of another workspace's namespace is just a name.
    assert.equal(
      (await limit(server, { ...shared, namespace: await namespaceId(server, "shared name") }, as)).success,
      true,
    );
    assert.equal((await limit(server, shared)).success, false);
  });

  it("returns its state in headers too", async () => {
    await limit(server, { namespace: "headers" });
    const id = await namespaceId(server, "headers");
    const body = { ...call, namespace: "headers", duration: 1_500, limit: 7 };
    const { headers, body: answer } = await server.call("ratelimits.limit", body, {
      headers: { "x-unkey-metrics": "disabled" },
    });
    assert.equal(headers["ratelimit-policy"], `"${id}";q=7;w=2`);
    const seconds = Math.ceil((answer.data.reset - server.clock.now()) / 1_000);
    assert.equal(headers.ratelimit, `"${id}";r=6;t=${seconds}`);
    const { headers: none } = await server.call("ratelimits.multiLimit", [body]);
    assert.equal(none.ratelimit, undefined);
  });

  it("admits exactly 100 of 1,000 simultaneous calls at a limit of 100", async () => {
    const body = { namespace: "crowd", limit: 100, duration: MINUTE };
    const answers = await Promise.all(Array.from({ length: 1_000 }, () => limit(server, body)));
    assert.equal(answers.filter(({ success }) => success).length, 100);
  });

  it("charges a replayed call once", async () => {
    const one = { ...call, namespace: "repeated" };
    const repeat = (key: string, more: object = {}) =>
      server.call("ratelimits.limit", { ...one, ...more }, { headers: { "idempotency-key": key } });
    const first = await repeat("a");
    const second = await repeat("a");
    assert.deepEqual(second.body.data, first.body.data);
    assert.equal(second.headers.ratelimit, first.headers.ratelimit);
    assert.equal((await repeat("a", { cost: 2 })).problem, "idempotency_mismatch");
    assert.equal((await repeat("b")).body.data.remaining, 8);
    // A denial is not replayed, and a cost of 0 is not recorded.
    assert.equal((await repeat("c", { cost: 9 })).body.data.success, false);
    assert.equal((await repeat("c")).body.data.remaining, 7);
    assert.equal((await repeat("d", { cost: 0 })).body.data.remaining, 7);
    await limit(server, one);
    assert.equal((await repeat("d", { cost: 0 })).body.data.remaining, 6);
    const several = { headers: { "idempotency-key": "e" } };
    const multi = await server.call("ratelimits.multiLimit", [one, one], several);
    assert.deepEqual((await server.call("ratelimits.multiLimit", [one, one], several)).body.data, multi.body.data);
    assert.equal((await limit(server, { ...one, cost: 0 })).remaining, 4);
  });

  it("answers at its other address", async () => {
    assert.equal((await server.ok("ratelimit.limit", { ...call, namespace: "spelt" })).remaining, 9);
    assert.equal((await server.ok("ratelimits.limit", { ...call, namespace: "spelt" })).remaining, 8);
    const { limits } = await server.ok("ratelimit.multiLimit", [{ ...call, namespace: "spelt" }]);
    assert.equal(limits[0].remaining, 7);
    const tooLarge = JSON.stringify({ ...call, namespace: "spelt" }).padEnd(64 * 1024 + 1);
    await server.rejected("ratelimit.limit", undefined, "request_body_too_large", { raw: tooLarge });
  });
});

describeOnStores("ratelimits.multiLimit", (server) => {
  const multi = (...entries: object[]) =>
    server.ok(
      "ratelimits.multiLimit",
      entries.map((entry) => ({ ...call, ...entry })),
    );
  const left = async (more: object) => (await limit(server, { ...more, cost: 0 })).remaining;

  it("creates several namespaces in one call and answers in order (rule 71)", async () => {
    const before = (await namespaces(server)).length;
    const { passed, limits } = await multi(
      { namespace: "multi b", cost: 3 },
      { namespace: "multi a", identifier: "same" },
      { namespace: "multi b", identifier: "same" },
      { namespace: "multi c", limit: 5 },
    );
    assert.equal(passed, true);
    assert.deepEqual(
      limits.map((entry: Record<string, unknown>) => [
        entry.namespace,
        entry.identifier,
        entry.passed,
        entry.remaining,
      ]),
      [
        ["multi b", "user_1", true, 7],
        ["multi a", "same", true, 9],
        ["multi b", "same", true, 9],
        ["multi c", "user_1", true, 4],
      ],
    );
    assert.equal((await namespaces(server)).length, before + 3);
  });

  it("charges nothing when one entry is denied, and the other entries still report that they pass (rule 71)", async () => {
    await multi({ namespace: "all", limit: 100, cost: 12 }, { namespace: "one", limit: 2, cost: 2 });
    for (let i = 0; i < 3; i++) {
      const { passed, limits } = await multi({ namespace: "all", limit: 100 }, { namespace: "one", limit: 2 });
      assert.equal(passed, false);
      assert.deepEqual(
        limits.map((entry: Record<string, unknown>) => [entry.passed, entry.remaining]),
        [
          [true, 88],
          [false, 0],
        ],
      );
      assert.equal(limits[0].retryAfter, 0);
      assert(limits[1].retryAfter > 0);
    }
  });

  it("adds up entries with the same counter", async () => {
    const same = { namespace: "adding" };
    const { limits } = await multi({ ...same, cost: 4 }, { ...same, cost: 5 });
    assert.deepEqual([limits[0].remaining, limits[1].remaining], [6, 1]);
    // Its id names the same namespace.
    const byId = { namespace: await namespaceId(server, "adding") };
    const { passed } = await multi(same, byId);
    assert.equal(passed, false);
    assert.equal(await left(same), 1);
  });

  it("applies overrides entry by entry (rule 71)", async () => {
    await limit(server, { namespace: "overridden", cost: 0 });
    const { overrideId } = await server.ok("ratelimits.setOverride", {
      namespace: "overridden",
      identifier: "vip_*",
      limit: 50,
      duration: 1_000,
    });
    const { limits } = await multi(
      { namespace: "overridden", identifier: "vip_1", cost: 2 },
      { namespace: "overridden", cost: 2 },
    );
    assert.deepEqual([limits[0].overrideId, limits[0].limit, limits[0].remaining], [overrideId, 50, 48]);
    assert.deepEqual([limits[1].overrideId, limits[1].limit, limits[1].remaining], [undefined, 10, 8]);
  });

  it("creates nothing for a caller without the permission for every namespace", async () => {
    await limit(server, { namespace: "known" });
    const id = await namespaceId(server, "known");
    const { key: as } = await server.grant(`ratelimits.${id}.limit`, "ratelimits.*.create_namespace");
    const before = await server.rows();
    const entries = [
      { ...call, namespace: "known" },
      { ...call, namespace: "new to all" },
    ];
    await server.rejected("ratelimits.multiLimit", entries, "insufficient_permissions", { as });
    assert.deepEqual(await server.rows(), before);
    assert.equal(await left({ namespace: "known" }), 9);
  });

  it("rejects an empty list, too many entries, and invalid entries (rule 71)", async () => {
    const entries = (count: number) => Array.from({ length: count }, (_, i) => ({ ...call, identifier: `${i}` }));
    assert.equal((await server.ok("ratelimits.multiLimit", entries(100))).limits.length, 100);
    for (const body of [[], entries(101), call, [{ ...call, cost: -1 }], [{ ...call, namespace: undefined }], [null]]) {
      await server.rejected("ratelimits.multiLimit", body, "invalid_input");
    }
  });
});

describeOnStores("rate limit namespaces", (server) => {
  it("are listed in pages, and searched literally without regard to case", async () => {
    for (const name of ["page 100%", "page 100x", "PAGE_1", "Ünicode", "other"])
      await limit(server, { namespace: name });
    const all = await namespaces(server);
    const paged: object[] = [];
    let cursor: string | undefined;
    do {
      const { body } = await server.call("ratelimits.listNamespaces", { limit: 2, cursor });
      assert(body.data.length <= 2);
      paged.push(...body.data);
      cursor = body.pagination.cursor;
    } while (cursor !== undefined);
    assert.deepEqual(paged, all);
    const found = async (search: string) =>
      (await server.ok("ratelimits.listNamespaces", { search })).map(({ name }: { name: string }) => name).sort();
    assert.deepEqual(await found("PAGE"), ["PAGE_1", "page 100%", "page 100x"]);
    assert.deepEqual(await found("100%"), ["page 100%"]);
    assert.deepEqual(await found(" e_1 "), ["PAGE_1"]);
    assert.deepEqual(await found("üNI"), ["Ünicode"]);
    assert.equal((await found("  ")).length, all.length);
    assert.equal((await found("RLNS_")).length, all.length);
    assert.deepEqual(await found("nothing of that"), []);
  });

  it("are created anew by their next use after a deletion", async () => {
    const spent = { namespace: "phoenix", limit: 1 };
    await limit(server, spent);
    const former = await namespaceId(server, "phoenix");
    await server.ok("ratelimits.setOverride", {
      namespace: "phoenix",
      identifier: "*",
      limit: 3,
      duration: MINUTE,
    });
    assert.deepEqual(await server.ok("ratelimits.deleteNamespace", { namespace: "phoenix" }), {});
    await server.rejected("ratelimits.deleteNamespace", { namespace: "phoenix" }, "namespace_not_found");
    await server.rejected("ratelimits.deleteNamespace", { namespace: former }, "namespace_not_found");
    for (const operation of ["getOverride", "deleteOverride", "listOverrides"]) {
      const body = { namespace: "phoenix", ...(operation !== "listOverrides" && { identifier: "*" }) };
      await server.rejected(`ratelimits.${operation}`, body, "namespace_not_found");
    }
    const answer = await limit(server, spent);
    assert.deepEqual([answer.success, answer.limit, answer.overrideId], [true, 1, undefined]);
    assert.notEqual(await namespaceId(server, "phoenix"), former);
    // Its former id is an ordinary name.
    assert.equal((await limit(server, { ...spent, namespace: former })).success, true);
  });

  it("are deleted with the permission for this namespace", async () => {
    await limit(server, { namespace: "guarded" });
    const id = await namespaceId(server, "guarded");
    const { key: other } = await server.grant("ratelimits.rlns_other.delete_namespace");
    const { key: right } = await server.grant(`ratelimits.${id}.delete_namespace`);
    await server.rejected("ratelimits.deleteNamespace", { namespace: id }, "insufficient_permissions", { as: other });
    await server.ok("ratelimits.deleteNamespace", { namespace: id }, { as: right });
  });

  it("have audit entries", async () => {
    await limit(server, { namespace: "traced" });
    const id = await namespaceId(server, "traced");
    const { audit_events: events } = await server.rows();
    const created = events!.map((row) => JSON.parse(row as string)).find(({ targets }) => targets.includes(id));
    assert.equal(created.action, "ratelimits.limit");
    assert.deepEqual(JSON.parse(created.meta), { created: ["traced"] });
  });
});

for (const store of stores) {
  describe(`rate limits on ${store}`, () => {
    it("stay when the service stops and starts again", async (t) => {
      const first = await openTestServer({ store });
      await limit(first, { cost: 7 });
      await limit(first, { namespace: "short", duration: 5_000, cost: 6 });
      await first.service.stop();
      await first.advance(1_000);
      const second = await openTestServer({ beside: first });
      t.after(async () => {
        await second.close();
        await first.close();
      });
      assert.equal((await limit(second, { cost: 4 })).success, false);
      assert.equal((await limit(second, { cost: 3 })).remaining, 0);
      assert.equal((await limit(second, { namespace: "short", duration: 5_000 })).remaining, 3);
    });

    it("work from memory while the database is away", async (t) => {
      const server = await openTestServer({ store });
      t.after(() => server.close());
      await limit(server);
      server.store.interception = () => Promise.reject(new Error("away"));
      assert.equal((await limit(server)).remaining, 8);
    });
  });
}
