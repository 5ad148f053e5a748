import assert from "node:assert/strict";
import { it } from "node:test";
import { hashSecret } from "../../../engine/src/crypto/hash.ts";
import { TestEdge } from "../edge.ts";
import { describeOnStores, openTestServer, type TestServer } from "../harness.ts";

const limit = { name: "requests", limit: 5, duration: 60_000, autoApply: true };
const codes = (results: { data?: { code: string }; problem?: { code: string } }[]) =>
  results.map(({ data, problem }) => data?.code ?? problem?.code);
const many = <T>(count: number, one: T): T[] => Array.from({ length: count }, () => one);

describeOnStores("Charges of edges (rule 169)", (server) => {
  it("are exact: limits and credits over a batch, beside direct calls", async () => {
    const apiId = await server.createApi();
    const edge = new TestEdge(server);
    const { key: limited } = await server.createKey(apiId, { ratelimits: [limit] });
    assert.equal((await server.verify(limited)).code, "VALID");
    const results = await edge.charge(...many(7, { key: limited }));
    assert.deepEqual(codes(results).sort(), [...many(3, "RATE_LIMITED"), ...many(4, "VALID")]);
    assert.equal((await server.verify(limited)).code, "RATE_LIMITED");
    const { key: metered } = await server.createKey(apiId, { credits: { remaining: 10 } });
    const spent = await edge.charge(
      { key: metered, credits: { cost: 4 } },
      { key: metered, credits: { cost: 4 } },
      { key: metered, credits: { cost: 4 } },
      { key: metered, credits: { cost: 0 } },
    );
    assert.deepEqual(codes(spent).sort(), ["USAGE_EXCEEDED", "VALID", "VALID", "VALID"]);
    assert.equal((await server.verify(metered, { credits: { cost: 0 } })).credits, 2);
    const { budgetId } = await server.ok("budgets.createBudget", { name: "team", remaining: 3 });
    const { key: budgeted } = await server.createKey(apiId, { budgetId });
    const ofBudget = codes(await edge.charge(...many(5, { key: budgeted })));
    assert.deepEqual(ofBudget.sort(), [...many(2, "USAGE_EXCEEDED"), ...many(3, "VALID")]);
  });

  it("decide each call as keys.verifyKey does", async () => {
    const apiId = await server.createApi();
    const edge = new TestEdge(server);
    const expires = server.clock.now() + 60_000;
    await server.ok("identities.createIdentity", { externalId: "acme", ratelimits: [{ ...limit, limit: 1_000 }] });
    const inputs = [
      {},
      { enabled: false },
      { expires },
      { permissions: ["a.read"], name: "named", meta: { a: 1 } },
      { externalId: "acme" },
      { allowedIps: ["192.0.2.0/24"] },
      { credits: { remaining: 100 } },
    ];
    const keys = await Promise.all(inputs.map(async (input) => (await server.createKey(apiId, input)).key));
    const asked = [{}, { apiId }, { apiId: "api_other" }, { keyspaces: [apiId] }, { permissions: "a.read" }];
    let compared = 0;
    for (const key of [...keys, "never_issued"]) {
      for (const call of asked) {
        const [charged] = await edge.charge({ key, ...call });
        const direct = await server.verify(key, { ...call, clientIp: "203.0.113.7" });
        const { credits: before, ratelimits: _, ...rest } = charged.data;
        const { credits: after, ratelimits: __, ...same } = direct;
        assert.deepEqual(rest, same);
        if (before !== undefined) assert(before - after <= 1);
        compared++;
      }
    }
    assert.equal(compared, 40);
    await server.pass(60_000);
    assert.deepEqual(codes(await edge.charge({ key: keys[2]! })), ["EXPIRED"]);
  });

  it("give each call its own problem", async () => {
    const { key } = await server.createKey(await server.createApi());
    const results = await new TestEdge(server).charge(
      { key, permissions: "a AND" },
      { key },
      { key, ratelimits: [{ name: "unknown" }] },
    );
    assert.deepEqual(codes(results), ["permissions_query_syntax_error", "VALID", "precondition_failed"]);
    assert.equal(results[0].problem.status, 400);
    assert.match(results[0].problem.detail, /position/);
  });

  it("find nothing of APIs that the root key does not open", async () => {
    const [open, closed] = [await server.createApi(), await server.createApi()];
    const keys = [await server.createKey(open), await server.createKey(closed, { credits: { remaining: 1 } })];
    // What a root key may otherwise do makes no difference.
    const { key } = await server.grant(`replicas.${open}.open`, "apis.*.verify_key");
    const calls = keys.map(({ key: string }) => ({ key: string }));
    assert.deepEqual(codes(await new TestEdge(server, key).charge(...calls)), ["VALID", "NOT_FOUND"]);
    assert.equal((await server.verify(keys[1]!.key, { credits: { cost: 0 } })).credits, 1);
    const foreign = await server.workspace("foreign");
    assert.deepEqual(codes(await new TestEdge(server, foreign.key).charge(...calls)), ["NOT_FOUND", "NOT_FOUND"]);
  });

  it("of callers without a root key show what they may see (rule 171)", async () => {
    const { key } = await server.createKey(await server.createApi(), { name: "secret", permissions: ["a"] });
    const [anonymous, own] = await new TestEdge(server).charge(
      { key, isAnonymous: true },
      { key, isAnonymous: true, ratelimits: [{ name: "own", limit: 1, duration: 60_000 }] },
    );
    assert.deepEqual(anonymous.data, await server.verify(key, {}, { as: null }));
    assert.equal(anonymous.data.name, undefined);
    assert.equal(own.problem.code, "authentication_missing");
    const { key: as } = await server.workspace("second");
    const { apiId } = await server.ok("apis.createApi", { name: "second" }, { as });
    const { key: second } = await server.ok("keys.createKey", { apiId }, { as });
    const edge = new TestEdge(server, as);
    assert.deepEqual(codes(await edge.charge({ key: second, isAnonymous: true }, { key: second })), [
      "NOT_FOUND",
      "VALID",
    ]);
  });

  it("of callers with another root key are decided by what both may, and a hash lends nothing (rule 171)", async () => {
    const [open, closed] = [await server.createApi(), await server.createApi()];
    const input = { credits: { remaining: 10 } };
    const { key } = await server.createKey(open, input);
    const { key: unopened } = await server.createKey(closed, input);
    const edge = new TestEdge(server, (await server.grant(`replicas.${open}.open`)).key);
    const able = await server.grant("apis.*.verify_key");
    const other = await server.grant(`apis.${closed}.verify_key`);
    const disabled = await server.grant("apis.*.verify_key");
    await server.ok("rootKeys.updateRootKey", { rootKeyId: disabled.rootKeyId, enabled: false });
    const foreign = await server.workspace("foreign callers");
    const codeOf = async (rootKey: string, string = key) => {
      const [code] = codes(await edge.charge({ key: string, rootKey: hashSecret(rootKey) }));
      return code;
    };
    assert.equal(await codeOf(able.key), "VALID");
    assert.equal(await codeOf(able.key, unopened), "NOT_FOUND");
    assert.equal(await codeOf(other.key), "NOT_FOUND");
    assert.equal(await codeOf(disabled.key), "root_key_disabled");
    assert.equal(await codeOf(foreign.key), "authentication_failed");
    assert.equal(await codeOf("lk_never_issued"), "authentication_failed");
    await server.ok("rootKeys.deleteRootKey", { rootKeyId: able.rootKeyId });
    assert.equal(await codeOf(able.key), "authentication_failed");
    assert.equal((await server.verify(key, { credits: { cost: 0 } })).credits, 9);
    assert.equal((await server.verify(unopened, { credits: { cost: 0 } })).credits, 10);
  });

  it("look up a bounded number of root keys that do not exist (rule 175)", async () => {
    const { key } = await server.createKey(await server.createApi());
    const edge = new TestEdge(server, (await server.grant("replicas.*.open")).key);
    const found = new Map<string | undefined, number>();
    for (let batch = 0; batch < 8; batch++) {
      const calls = many(250, key).map((one, i) => ({ key: one, rootKey: hashSecret(`invented ${batch} ${i}`) }));
      for (const code of codes(await edge.charge(...calls))) found.set(code, (found.get(code) ?? 0) + 1);
    }
    assert.deepEqual([...found.keys()].sort(), ["authentication_failed", "lookups_exhausted"]);
    assert(found.get("authentication_failed")! <= 1_000, JSON.stringify([...found]));
  });

  it("count as requests of the workspace, each call as one (rule 170)", async () => {
    const { key: as, workspaceId } = await server.workspace("limited");
    const { apiId } = await server.ok("apis.createApi", { name: "limited" }, { as });
    const { key } = await server.ok("keys.createKey", { apiId, credits: { remaining: 100 } }, { as });
    await server.ok("workspaces.updateWorkspace", { workspaceId, requestsPerMinute: 5 });
    await server.pass(500);
    const results = await new TestEdge(server, as).charge(...many(8, { key }));
    assert.deepEqual(codes(results).sort(), [...many(5, "VALID"), ...many(3, "workspace_rate_limited")]);
    const refused = results.find(({ problem }: { problem?: object }) => problem);
    assert.equal(refused.problem.status, 429);
    assert.match(refused.problem.headers["retry-after"], /^\d+$/);
    await server.rejected("replica.charge", { calls: [] }, "workspace_rate_limited", { as });
    await server.ok("workspaces.updateWorkspace", { workspaceId, requestsPerMinute: null });
    await server.pass(500);
    assert.equal((await server.verify(key, { credits: { cost: 0 } }, { as })).credits, 95);
  });

  it("do not take the first use of an imported key, whose string they do not have", async () => {
    const apiId = await server.createApi();
    const string = "sk_live_never_used_string";
    const hash = Buffer.from(await crypto.subtle.digest("SHA-256", Buffer.from(string))).toString("hex");
    await server.ok("keys.migrateKeys", { migrationId: "imported", apiId, keys: [{ hash }] });
    const edge = new TestEdge(server);
    assert.deepEqual(codes(await edge.charge({ key: string })), ["VALID"]);
    await server.pass(1_000);
    assert.deepEqual((await edge.resolve(string))[0].needs, ["first_use"]);
    await server.verify(string);
    await server.pass(1_000);
    assert.deepEqual((await edge.resolve(string))[0].needs, []);
  });

  it("take no more than 256 calls, and none with what must be passed on", async () => {
    const call = { hash: "h".repeat(43), isAnonymous: false, address: "203.0.113.7" };
    await server.rejected("replica.charge", { calls: [] }, "invalid_input");
    await server.rejected("replica.charge", { calls: many(257, call) }, "invalid_input");
    for (const more of [{ key: "k" }, { hold: { ttl: 1_000 } }, { migrationId: "m" }, { clientIp: "192.0.2.1" }]) {
      await server.rejected("replica.charge", { calls: [{ ...call, ...more }] }, "invalid_input");
    }
    await server.rejected("replica.charge", { calls: [{ ...call, address: "nowhere" }] }, "invalid_input");
  });
});

interface OpenedApi {
  apiId: string;
  rootKeyId: string;
}

const permit = (server: TestServer, { rootKeyId }: OpenedApi, ...permissions: string[]) =>
  server.ok("rootKeys.updateRootKey", { rootKeyId, permissions });

/** By event during the wait of a call in the ledger, about the root key of its edge: the answer. */
const changesOfEdges: {
  how: string;
  change(server: TestServer, opened: OpenedApi): Promise<unknown>;
  answer: string;
}[] = [
  {
    how: "may no longer open keys of the API",
    change: (server, opened) => permit(server, opened, "replicas.api_other.open", "apis.*.verify_key"),
    answer: "NOT_FOUND",
  },
  {
    how: "may open nothing any more",
    change: (server, opened) => permit(server, opened, "apis.*.verify_key"),
    answer: "NOT_FOUND",
  },
  {
    how: "may open this API alone",
    change: (server, opened) => permit(server, opened, `replicas.${opened.apiId}.open`),
    answer: "VALID",
  },
  {
    how: "is deleted",
    change: (server, { rootKeyId }) => server.ok("rootKeys.deleteRootKey", { rootKeyId }),
    answer: "authentication_failed",
  },
  {
    how: "is disabled",
    change: (server, { rootKeyId }) => server.ok("rootKeys.updateRootKey", { rootKeyId, enabled: false }),
    answer: "root_key_disabled",
  },
];

describeOnStores("A charge that waits for the ledger (rule 171)", (server) => {
  for (const { how, change, answer } of changesOfEdges) {
    for (const caller of ["the edge", "another root key", "nobody"] as const) {
      it(`is decided again for ${caller} when the root key of the edge ${how}`, async () => {
        const apiId = await server.createApi();
        const { key } = await server.createKey(apiId, { credits: { remaining: 10 } });
        const { key: own, rootKeyId } = await server.grant("replicas.*.open", "apis.*.verify_key");
        const { key: other } = await server.grant("apis.*.verify_key");
        const of = {
          "the edge": {},
          "another root key": { rootKey: hashSecret(other) },
          nobody: { isAnonymous: true },
        }[caller];
        const edge = new TestEdge(server, own);
        const spend = server.store.holdNext("spend");
        const waiting = edge.charge({ key, ...of });
        await spend.reached;
        await change(server, { apiId, rootKeyId });
        spend.release();
        assert.deepEqual(codes(await waiting), [answer]);
        const { credits } = await server.verify(key, { credits: { cost: 0 } });
        assert.equal(credits, answer === "VALID" ? 9 : 10);
      });
    }
  }
});

it("Calls without a root key are refused where verifications need one (rule 171)", async (t) => {
  const server = await openTestServer({ settings: { VERIFY_AUTH: "required" } });
  t.after(() => server.close());
  const { key } = await server.createKey(await server.createApi());
  const edge = new TestEdge(server);
  const results = await edge.charge({ key, isAnonymous: true }, { key });
  assert.deepEqual(codes(results), ["authentication_missing", "VALID"]);
  assert.equal(results[0].problem.status, 401);
  assert.equal((await edge.poll()).allowsAnonymous, false);
});
