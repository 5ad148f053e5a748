/** What happened to a request: the log of decisions, as programs read it. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { describeOnStores, openTestServer, type TestServer } from "../harness.ts";

const SECOND = 1_000;
const MINUTE = 60_000;

interface Logged {
  id: string;
  code: string;
  keyId?: string;
  requestId: string;
  leftOut?: number;
}

/** The entries of all pages. */
async function list(server: TestServer, body: object, as?: string): Promise<Logged[]> {
  const entries: Logged[] = [];
  for (let cursor: string | undefined; ; ) {
    const reply = await server.call("analytics.listDecisions", { ...body, limit: 7, cursor }, as ? { as } : {});
    assert.equal(reply.status, 200);
    entries.push(...(reply.body.data as Logged[]));
    const { hasMore, cursor: next } = reply.body.pagination as { hasMore: boolean; cursor?: string };
    if (!hasMore) return entries;
    cursor = next;
  }
}

describeOnStores("analytics.listDecisions", (server) => {
  it("says why a request was refused, by its id", async () => {
    const apiId = await server.createApi();
    const { keyId, key } = await server.createKey(apiId, {
      externalId: "refused",
      ratelimits: [
        { name: "hourly", limit: 100, duration: 60 * MINUTE, autoApply: true },
        { name: "requests", limit: 1, duration: MINUTE, autoApply: true },
      ],
    });
    await server.verify(key, { tags: ["path=/a"] });
    const { identity } = await server.getKey(keyId);
    const at = server.clock.now();
    const refused = await server.call("keys.verifyKey", { key, tags: ["path=/b"], clientIp: "198.51.100.77" });
    const { requestId } = refused.body.meta as { requestId: string };
    await server.pass(SECOND);
    const found = await list(server, { requestId });
    assert.equal(found.length, 1);
    const { id, latencyUs, ...decision } = found[0] as Logged & { latencyUs: number };
    assert.match(id, /^dec_\w+$/);
    assert(latencyUs >= 0);
    assert.deepEqual(decision, {
      at,
      kind: "verification",
      code: "RATE_LIMITED",
      requestId,
      keyId,
      apiId,
      identityId: identity.id,
      limit: { name: "requests" },
      cost: 1,
      creditsSpent: 0,
      tags: ["path=/b"],
      network: "198.51.100.0/24",
    });
    const ofKey = await list(server, { keyId });
    assert.deepEqual(ofKey.map(({ code }) => code).sort(), ["RATE_LIMITED", "VALID"]);
    assert.deepEqual(await list(server, { keyId, refused: true }), found);
    assert.deepEqual(await list(server, { identityId: identity.id, codes: ["RATE_LIMITED"] }), found);
    assert.deepEqual(await list(server, { keyId, start: at + 1 }), []);
    await server.rejected("analytics.listDecisions", { start: 5, end: 5 }, "invalid_input");
  });

  it("names the limit that credits and limits together refused, and one of a namespace with its numbers", async () => {
    const apiId = await server.createApi();
    const { keyId, key } = await server.createKey(apiId, {
      credits: { remaining: 5 },
      ratelimits: [{ name: "spends", limit: 1, duration: MINUTE, autoApply: true }],
    });
    await server.verify(key);
    await server.verify(key, { credits: { cost: 9 } });
    const limit = { namespace: "logged", identifier: "203.0.113.9", limit: 3, duration: MINUTE };
    await server.ok("ratelimits.limit", { ...limit, cost: 4 });
    await server.pass(SECOND);
    const [limited] = await list(server, { keyId, refused: true });
    const { limit: name, cost } = limited as Logged & { limit: object; cost: number };
    assert.deepEqual([limited!.code, name, cost], ["RATE_LIMITED", { name: "spends" }, 9]);
    const [denied] = (await list(server, { codes: ["DENIED"] })) as (Logged & Record<string, unknown>)[];
    assert.deepEqual(
      [denied!.identifier, denied!.limit, denied!.cost],
      ["203.0.113.0/24", { limit: 3, duration: MINUTE }, 4],
    );
    assert.deepEqual(await list(server, { namespaceId: denied!.namespaceId }), [denied]);
  });

  it("has only what the root key may read, and nothing of another workspace", async () => {
    const [shown, hidden] = [await server.createApi("shown"), await server.createApi("hidden")];
    const keys = [await server.createKey(shown), await server.createKey(hidden)];
    for (const { keyId, key } of keys) {
      await server.ok("keys.updateKey", { keyId, enabled: false });
      await server.verify(key);
    }
    await server.verify("unknown_key");
    await server.ok("ratelimits.limit", { namespace: "hidden", identifier: "a", limit: 1, cost: 2, duration: MINUTE });
    await server.pass(SECOND);
    const { key: as } = await server.grant(`apis.${shown}.read_analytics`);
    assert.deepEqual(
      (await list(server, {}, as)).map(({ keyId }) => keyId),
      [keys[0]!.keyId],
    );
    assert.deepEqual(await list(server, { apiId: hidden }, as), []);
    const { key: ofApis } = await server.grant("apis.*.read_analytics");
    assert((await list(server, { codes: ["NOT_FOUND"] }, ofApis)).length > 0);
    assert.deepEqual(await list(server, { codes: ["DENIED"] }, ofApis), []);
    const { key: other } = await server.workspace("reader");
    assert.deepEqual(await list(server, {}, other), []);
    const { key: nothing } = await server.grant("apis.*.read_key");
    await server.rejected("analytics.listDecisions", {}, "insufficient_permissions", { as: nothing });
  });

  it("shows a flood of one tenant as some rows and a count, and the refusal of another one beside it", async () => {
    const { key: as } = await server.workspace("flooding");
    const limit = (identifier: string, root?: string) =>
      server.ok(
        "ratelimits.limit",
        { namespace: "flood", identifier, limit: 1, cost: 2, duration: MINUTE },
        root ? { as: root } : {},
      );
    const calls = 600;
    for (let i = 0; i < calls; i++) await limit(`user_${i}`, as);
    const { key: quiet } = await server.workspace("quiet");
    await limit("user_1", quiet);
    // Counts of many identifiers become a batch in two turns.
    for (let turn = 0; turn < 2; turn++) await server.pass(SECOND);
    assert.equal((await list(server, {}, quiet)).length, 1);
    assert((await list(server, {}, as)).length < 30);
    // The end of the minute.
    await server.pass(MINUTE);
    await server.pass(SECOND);
    const rows = await list(server, { refused: true }, as);
    assert.equal(
      rows.reduce((sum, { leftOut = 0 }) => sum + 1 + leftOut, 0),
      calls,
    );
    assert.equal(new Set(rows.map(({ id }) => id)).size, rows.length);
  });
});

describe("the log of decisions", () => {
  it("survives a restart, with what its store had not accepted", async (t) => {
    const first = await openTestServer();
    t.after(() => first.close());
    const { keyId, key } = await first.createKey(await first.createApi());
    await first.ok("keys.updateKey", { keyId, enabled: false });
    await first.verify(key);
    await first.pass(SECOND);
    first.analytics.interception = (name, proceed) =>
      name === "write" ? Promise.reject(new Error("away")) : proceed();
    for (let i = 0; i < 40; i++) await first.verify(key);
    await first.service.stop();
    const next = await openTestServer({ beside: first });
    t.after(() => next.close());
    for (let second = 0; second < 5; second++) await next.pass(SECOND);
    const rows = await list(next, { keyId, refused: true });
    assert.equal(
      rows.reduce((sum, { leftOut = 0 }) => sum + 1 + leftOut, 0),
      41,
    );
  });

  it("is empty if it is switched off", async (t) => {
    const server = await openTestServer({ settings: { DECISIONS_PER_WORKSPACE: "0" } });
    t.after(() => server.close());
    await server.verify("unknown_key");
    await server.pass(SECOND);
    assert.deepEqual(await list(server, {}), []);
  });
});
