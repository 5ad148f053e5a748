import assert from "node:assert/strict";
import { it } from "node:test";
import { hashSecret } from "../../../engine/src/crypto/hash.ts";
import { TestEdge } from "../edge.ts";
import { rateLimitRequest, readResponse, SHOULD_RATE_LIMIT } from "../grpc/rate-limit-messages.ts";
import { describeOnStores, openTestServer } from "../harness.ts";

const HOUR = 3_600_000;
/** A unit of Envoy. */
const DAY = 4;
const entry = (members: object = {}) => ({
  namespace: "emails",
  identifier: "a",
  limit: 5,
  duration: HOUR,
  mode: "standard",
  shadow: false,
  cost: 1,
  ...members,
});
const limit = (members: object = {}) => ({ operation: "ratelimits.limit", entries: [entry(members)] });
const multiLimit = (...entries: object[]) => ({ operation: "ratelimits.multiLimit", entries: entries.map(entry) });
const ELSEWHERE = { isElsewhere: true };

describeOnStores("Limits of edges", (server) => {
  /** A namespace of its own, and an edge that may count in it. */
  async function open(name: string, ...grants: string[]) {
    await server.ok("ratelimits.limit", entry({ namespace: name, identifier: "first" }));
    const { key: as } = await server.grant(...(grants.length > 0 ? grants : ["replicas.*.open", "ratelimits.*.limit"]));
    const edge = new TestEdge(server, as);
    const [found] = await edge.resolveNamespaces(name);
    return { edge, namespaceId: found?.namespaceId as string };
  }

  it("are charged exactly, beside direct calls (rule 182)", async () => {
    const { edge, namespaceId } = await open("exact");
    const call = limit({ namespace: "exact", namespaceId });
    await server.ok("ratelimits.limit", entry({ namespace: "exact" }));
    const results = await edge.limit(...Array.from({ length: 7 }, () => call));
    assert.equal(results.filter(({ data }: { data: { success: boolean } }) => data.success).length, 4);
    assert.equal((await server.ok("ratelimits.limit", entry({ namespace: "exact" }))).success, false);
    for (const { headers } of results) assert.match(headers.RateLimit, /r=\d/);
  });

  it("are decided as the operations decide them, and recorded like them (rule 182)", async () => {
    const { edge, namespaceId } = await open("alike");
    await server.ok("ratelimits.setOverride", { namespace: "alike", identifier: "vip*", limit: 50, duration: HOUR });
    const calls = [
      { identifier: "x" },
      { identifier: "x", cost: 4 },
      { identifier: "x", cost: 1 },
      { identifier: "x", cost: 0 },
      { identifier: "x", cost: 9 },
      { identifier: "vip 1", cost: 7 },
      { identifier: "strict", mode: "strict", cost: 2 },
      { identifier: "shadow", shadow: true, cost: 6 },
    ];
    for (const call of calls) {
      // Counted in a twin of its counter.
      const twin = { ...call, namespace: "alike", identifier: `${call.identifier} twin` };
      const direct = await server.call("ratelimits.limit", entry(twin));
      const [charged] = await edge.limit(limit({ ...call, namespace: namespaceId, namespaceId }));
      assert.deepEqual(charged.data, direct.body.data);
      assert.equal(charged.headers?.RateLimit, direct.headers.ratelimit);
      assert.equal(charged.headers?.["RateLimit-Policy"], direct.headers["ratelimit-policy"]);
    }
    const two = [
      { identifier: "m", limit: 1 },
      { identifier: "n", limit: 1, cost: 2 },
    ];
    const direct = await server.ok(
      "ratelimits.multiLimit",
      two.map((one) => entry({ ...one, namespace: "alike" })),
    );
    const [charged] = await edge.limit(multiLimit(...two.map((one) => ({ ...one, namespace: "alike", namespaceId }))));
    assert.equal(charged.data.passed, false);
    assert.deepEqual(charged.data, direct);
    await server.pass(2_000);
    const range = { start: server.clock.now() - HOUR, end: server.clock.now() + 60_000 };
    const stats = await server.ok("analytics.getRatelimitStats", { namespace: "alike", ...range });
    assert.equal(stats.total, 2 * calls.length + 5, "and the first one");
  });

  it("share a question with verifications (rule 182)", async () => {
    const { namespaceId } = await open("shared");
    const { key } = await server.createKey(await server.createApi());
    const calls = [{ hash: hashSecret(key), isAnonymous: true, address: "203.0.113.7" }];
    const limits = [limit({ namespace: "shared", namespaceId }), limit({ namespace: "none" })];
    const answer = await server.ok("replica.charge", { calls, limits });
    assert.equal(answer.results[0].data.code, "VALID");
    assert.equal(answer.limits[0].data.remaining, 4);
    assert.deepEqual(answer.limits[1], ELSEWHERE);
    assert.deepEqual(await server.ok("replica.charge", {}), { results: [], limits: [] });
  });

  it("are passed on where the namespace is not the one that the edge knows, or not open to it (rule 183)", async () => {
    const { edge, namespaceId } = await open("known");
    const other = await open("other");
    const narrow = await open("narrow", "replicas.*.open", `ratelimits.${namespaceId}.limit`);
    assert.equal(narrow.namespaceId, undefined);
    assert.deepEqual(await narrow.edge.resolveNamespaces("known", "narrow", "never made"), [
      { namespaceId },
      ELSEWHERE,
      null,
    ]);
    const results = await edge.limit(
      limit({ namespace: "never made" }),
      limit({ namespace: "known", namespaceId: other.namespaceId }),
      limit({ namespace: "known", namespaceId }),
      multiLimit({ namespace: "known", namespaceId }, { namespace: "never made" }),
      limit({ namespace: "known" }),
    );
    assert.deepEqual(
      results.map((result: { data?: { remaining: number } }) => result.data?.remaining ?? result),
      [ELSEWHERE, ELSEWHERE, 4, ELSEWHERE, 3],
    );
    assert.deepEqual(await narrow.edge.limit(limit({ namespace: "narrow" })), [ELSEWHERE]);
    const names = (await server.ok("ratelimits.listNamespaces", {})).map(({ name }: { name: string }) => name);
    assert.equal(names.includes("never made"), false);
    // Deleted and made again by the same name.
    await server.ok("ratelimits.deleteNamespace", { namespace: "known" });
    await server.ok("ratelimits.limit", entry({ namespace: "known" }));
    assert.deepEqual(await edge.limit(limit({ namespace: "known", namespaceId })), [ELSEWHERE]);
  });

  it("of other workspaces do not exist (rule 183)", async () => {
    const { namespaceId } = await open("victim's");
    const { key: thief } = await server.workspace("thief of limits");
    const edge = new TestEdge(server, thief);
    assert.deepEqual(await edge.resolveNamespaces("victim's", namespaceId), [null, null]);
    const results = await edge.limit(limit({ namespace: "victim's", namespaceId }), limit({ namespace: namespaceId }));
    assert.deepEqual(results, [ELSEWHERE, ELSEWHERE]);
    const { remaining } = await server.ok("ratelimits.limit", entry({ namespace: "victim's", cost: 0 }));
    assert.equal(remaining, 5);
  });

  it("of Envoy count for nobody who may not, and a message that is not one concerns no other (rules 182 and 196)", async () => {
    const { edge, namespaceId } = await open("gate");
    const other = await open("gate two");
    const narrow = await open("gate three", "replicas.*.open", `ratelimits.${other.namespaceId}.limit`);
    const thief = new TestEdge(server, (await server.workspace("thief of descriptors")).key);
    const call = (message: Buffer, id = namespaceId) => ({
      operation: SHOULD_RATE_LIMIT,
      namespaceId: id,
      message: message.toString("base64"),
      address: "203.0.113.7",
    });
    const question = (domain: string) => rateLimitRequest(domain, [{ entries: [["user", "a"]], limit: [2, DAY] }]);
    const right = call(question("gate"));
    for (const stranger of [narrow.edge, thief]) assert.deepEqual(await stranger.limit(right), [ELSEWHERE]);
    const results = await edge.limit(
      right,
      call(question("gate"), other.namespaceId),
      call(question("never made")),
      call(question("")),
      call(Buffer.from([255, 255])),
      call(rateLimitRequest("gate", [])),
      limit({ namespace: "gate", namespaceId }),
      right,
      right,
    );
    const codes = results.map((result: { data?: { message?: string }; problem?: { code: string } }) => {
      const { message } = result.data ?? {};
      return message === undefined
        ? (result.problem?.code ?? result)
        : readResponse(Buffer.from(message, "base64")).code;
    });
    assert.deepEqual(codes.slice(0, 6), [1, ELSEWHERE, ELSEWHERE, ...Array(3).fill("invalid_input")]);
    assert.deepEqual(codes.slice(7), [1, 2]);
    assert.equal(results[6].data.remaining, 4);
    const { status } = await server.call("replica.charge", { limits: [{ ...right, message: "no base64!" }] });
    assert.equal(status, 400);
    const long = { ...right, message: "A".repeat(100_000) };
    assert.equal((await server.call("replica.charge", { limits: [long] })).status, 400);
  });

  it("that cannot be read refuse the batch, and one that is not valid concerns no other (rule 182)", async () => {
    const { edge, namespaceId } = await open("valid");
    const call = limit({ namespace: "valid", namespaceId });
    const two = { ...multiLimit({ namespace: "valid" }, { namespace: "valid" }), operation: "ratelimits.limit" };
    const [wrong, right] = await edge.limit(two, call);
    assert.equal(wrong.problem.code, "invalid_input");
    assert.equal(right.data.remaining, 4);
    const entries = Array.from({ length: 101 }, () => entry({ namespace: "valid" }));
    const unreadable: object[] = [
      { operation: "ratelimits.multiLimit", entries },
      { operation: "ratelimits.multiLimit", entries: [] },
      { operation: "ratelimits.setOverride", entries: [entry()] },
      limit({ cost: -1 }),
      limit({ namespace: "" }),
      { hash: "h".repeat(43), isAnonymous: false, address: "203.0.113.7" },
      { ...call, address: "nowhere" },
    ];
    for (const one of unreadable) await server.rejected("replica.charge", { limits: [call, one] }, "invalid_input");
    const { remaining } = await server.ok("ratelimits.limit", entry({ namespace: "valid", cost: 0 }));
    assert.equal(remaining, 4, "nothing of a batch that is refused is charged");
    const names = Array.from({ length: 129 }, (_, i) => `n${i}`);
    await server.rejected("replica.resolveKeys", { namespaces: names }, "invalid_input");
  });
});

it("Limits of edges count as requests of the workspace (rule 170)", async (t) => {
  const server = await openTestServer();
  t.after(() => server.close());
  const edge = new TestEdge(server);
  const { workspaceId } = server;
  await server.ok("ratelimits.limit", entry({ limit: 100 }));
  await server.ok("workspaces.updateWorkspace", { workspaceId, requestsPerMinute: 5 });
  await server.pass(1_000);
  const results = await edge.limit(...Array.from({ length: 8 }, () => limit({ limit: 100 })));
  const passed = results.filter((result: object) => "data" in result);
  const [refused] = results.filter((result: object) => "problem" in result);
  assert.equal(passed.length, 5);
  assert.equal(refused.problem.code, "workspace_rate_limited");
  await server.pass(60_000);
  await server.ok("workspaces.updateWorkspace", { workspaceId, requestsPerMinute: null });
  assert.equal((await server.ok("ratelimits.limit", entry({ limit: 100, cost: 0 }))).remaining, 94);
});
