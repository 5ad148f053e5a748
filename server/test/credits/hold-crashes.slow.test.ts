/** What becomes of holds when a node, the database or Redis is killed between a hold and its settlement. */
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { setTimeout } from "node:timers/promises";
import { createClient } from "@redis/client";
import { eventually, makeFolder, type ServeOptions, type Server, start } from "../process.ts";
import { parseExposition } from "../prometheus.ts";
import { freshDatabase, startPostgres } from "../services/postgres.ts";
import { sharedRedis, startRedis } from "../services/redis.ts";
import { TcpProxy } from "../tcp-proxy.ts";

const HOUR = 3_600_000;
const CREDITS = 100_000;
/** Calls that hold and settle while something is killed, and after how many of them. */
const CALLERS = 16;
const PAIRS = 150;

/** A budget that only holds charge, with a key below it. */
async function openBudget(server: Server) {
  const { apiId } = await server.ok("apis.createApi", { name: "crashes" });
  const { budgetId } = await server.ok("budgets.createBudget", { name: "crashes", remaining: CREDITS });
  const { key, keyId } = await server.ok("keys.createKey", { apiId, budgetId });
  return { key, keyId, budgetId };
}

async function hold(server: Server, key: string, cost: number, ttl: number): Promise<string> {
  const answer = await server.ok("keys.verifyKey", { key, credits: { cost }, hold: { ttl } });
  assert.equal(answer.code, "VALID");
  return answer.hold.holdId;
}

/** All holds of a key. */
async function listHolds(server: Server, keyId: string) {
  const found: { holdId: string; state: string; charged: number }[] = [];
  for (let cursor: string | undefined; ; ) {
    const { body } = await server.call("holds.listHolds", { keyId, limit: 100, cursor });
    found.push(...body.data);
    cursor = body.pagination.cursor;
    if (!body.pagination.hasMore) return found;
  }
}

/** Repeats a call as a careful caller does, also while the service or its database is away. */
async function insist(server: () => Server, operation: string, body: object) {
  for (let attempts = 0; attempts < 200; attempts++) {
    const answer = await server()
      .call(operation, body)
      .catch(() => undefined);
    if (answer && answer.status < 500) return answer;
    await setTimeout(100);
  }
  throw new Error(`${operation} has no outcome`);
}

/** Kills something while callers hold and settle, and compares the books and the acknowledged ends afterwards. */
async function crashBetween(
  t: TestContext,
  nodes: readonly ServeOptions[],
  crash: (servers: Server[]) => Promise<void>,
): Promise<void> {
  const servers: Server[] = [];
  for (const node of nodes) servers.push(await start(node));
  const node = (i: number) => servers[i % servers.length]!;
  const { key, keyId, budgetId } = await openBudget(node(0));
  const kept: string[] = [];
  for (let i = 0; i < 20; i++) kept.push(await hold(node(i), key, 10, HOUR));
  const left = await Promise.all(Array.from({ length: 20 }, (_, i) => hold(node(i), key, 7, 2_000)));

  const settled = new Map<string, number>();
  let crashed: Promise<void> | undefined;
  const caller = async (i: number) => {
    while (!crashed) {
      try {
        const holdId = await hold(node(i), key, 5, HOUR);
        const amount = settled.size % 7;
        const answer = await node(i).call("holds.settleHold", { holdId, credits: amount });
        if (answer.status === 200) settled.set(holdId, amount);
        if (settled.size >= PAIRS) crashed ??= crash(servers);
      } catch {
        // It was killed, or the database was.
        await setTimeout(20);
      }
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, (_, i) => caller(i)));
  await crashed;

  for (const [i, holdId] of kept.entries()) {
    for (let repetition = 0; repetition < 2; repetition++) {
      const { status, body } = await insist(() => node(i + repetition), "holds.settleHold", { holdId, credits: 4 });
      assert.deepEqual([status, body.data?.charged], [200, 4], JSON.stringify(body));
    }
  }
  for (const [holdId, amount] of settled) {
    const { body } = await insist(() => node(0), "holds.getHold", { holdId });
    assert.deepEqual([body.data.state, body.data.charged], ["settled", amount]);
  }
  // Those whose callers died come back by themselves.
  await eventually("the holds of dead callers to expire", async () => {
    const all = await listHolds(node(0), keyId);
    return left.every((holdId) => all.some((hold) => hold.holdId === holdId && hold.state === "expired"));
  });
  for (const { holdId, state } of await listHolds(node(0), keyId)) {
    if (state === "open") await node(0).ok("holds.releaseHold", { holdId });
  }
  const all = await listHolds(node(0), keyId);
  const { remaining, held, totals } = await node(0).ok("budgets.getBudget", { budgetId });
  const charged = all.reduce((sum, hold) => sum + hold.charged, 0);
  assert.deepEqual([remaining, held, totals], [CREDITS - charged, 0, { granted: CREDITS, spent: charged, lapsed: 0 }]);
  t.diagnostic(`${all.length} holds, ${settled.size} settlements acknowledged before and during the crash`);
  await Promise.all(servers.map((server) => server.kill("SIGTERM")));
}

describe("holds and their settlements", () => {
  it("survive kill -9 of a node on the embedded database", async (t) => {
    const node = { directory: makeFolder(t) };
    await crashBetween(t, [node], async (servers) => {
      await servers[0]!.kill("SIGKILL");
      servers[0] = await start(node);
    });
  });

  it("survive kill -9 of one of two nodes on PostgreSQL", async (t) => {
    const database = await freshDatabase();
    t.after(() => database.drop());
    const settings = { DATABASE_URL: database.url, REDIS_URL: await sharedRedis() };
    const nodes = [0, 1].map(() => ({ directory: makeFolder(t), settings }));
    await crashBetween(t, nodes, async (servers) => {
      await servers[0]!.kill("SIGKILL");
      servers[0] = await start(nodes[0]!);
    });
  });

  it("survive kill -9 of PostgreSQL", async (t) => {
    const database = await startPostgres();
    t.after(() => database.stop());
    const settings = { DATABASE_URL: database.url, REDIS_URL: await sharedRedis() };
    await crashBetween(t, [{ directory: makeFolder(t), settings }], () => database.restart("SIGKILL"));
  });
});

describe("limits of holds when Redis fails before the settlement", () => {
  const LIMIT = { name: "tokens", limit: 5_000, duration: 30 * 24 * HOUR, autoApply: false };

  /** A node behind a proxy to Redis, and a key with a limit of tokens. */
  async function open(t: TestContext, redis: string) {
    const proxy = await TcpProxy.open(redis);
    t.after(() => proxy.close());
    const database = await freshDatabase();
    t.after(() => database.drop());
    const settings = { DATABASE_URL: database.url, REDIS_URL: proxy.url, REDIS_TIMEOUT: "5s" };
    const server = await start({ directory: makeFolder(t), settings });
    const { apiId } = await server.ok("apis.createApi", { name: "limits" });
    const { key } = await server.ok("keys.createKey", { apiId, ratelimits: [LIMIT] });
    const metric = async (name: string) =>
      parseExposition(await (await fetch(`${server.address}/metrics`)).text()).value(name);
    return {
      proxy,
      server,
      charge: async (cost: number, more: object = {}) =>
        server.ok("keys.verifyKey", { key, ratelimits: [{ name: "tokens", cost }], ...more }),
      used: async () => {
        const body = { key, ratelimits: [{ name: "tokens", cost: 0 }] };
        return (await server.ok("keys.explainVerification", body)).ratelimits[0].used;
      },
      settle: (holdId: string, cost: number) =>
        server.ok("holds.settleHold", { holdId, credits: 0, ratelimits: [{ name: "tokens", cost }] }),
      uncorrected: () => metric("latchkey_limits_uncorrected_total"),
      isBack: async () => (await metric("latchkey_redis_away")) === 0,
    };
  }

  it("are not corrected after a failover that lost the charge, and are after one that has it", async (t) => {
    const primary = await startRedis();
    t.after(() => primary.stop());
    const replica = await startRedis({ replicaof: `127.0.0.1 ${new URL(primary.url).port}` });
    t.after(() => replica.stop());
    const [onPrimary, onReplica] = [createClient({ url: primary.url }), createClient({ url: replica.url })];
    for (const client of [onPrimary, onReplica]) {
      // The servers end before them.
      client.on("error", () => {});
      await client.connect();
      t.after(() => client.destroy());
    }
    const { proxy, server, charge, used, settle, uncorrected, isBack } = await open(t, primary.url);

    const kept = (await charge(1_000, { hold: { ttl: HOUR } })).hold.holdId;
    assert.equal(await onPrimary.sendCommand(["WAIT", "1", "10000"]), 1);
    await onReplica.sendCommand(["REPLICAOF", "NO", "ONE"]);
    const lost = (await charge(1_200, { hold: { ttl: HOUR } })).hold.holdId;
    assert.equal(await used(), 2_200);
    proxy.retarget(replica.url);
    proxy.cut();
    await eventually("the node to reach the replica", async () => {
      const { status, body } = await server.call("ratelimits.limit", {
        ...{ namespace: "after", identifier: "failover", limit: 9, duration: HOUR, cost: 0 },
      });
      return status === 200 && body.data.success && (await isBack());
    });
    assert.equal(await used(), 1_000, "the replica has the first charge only");

    await settle(lost, 0);
    assert.deepEqual([await used(), await uncorrected()], [1_000, 1]);
    await settle(kept, 400);
    assert.deepEqual([await used(), await uncorrected()], [400, 1]);
    await Promise.all([settle(kept, 400), settle(lost, 0)]);
    assert.equal(await used(), 400, "a repetition corrects nothing");
    await server.kill("SIGTERM");
  });

  it("stay charged when Redis was killed meanwhile, and the settlement succeeds", async (t) => {
    const redis = await startRedis();
    t.after(() => redis.stop());
    const { server, charge, settle, uncorrected } = await open(t, redis.url);
    const holds: string[] = [];
    for (let i = 0; i < 3; i++) holds.push((await charge(1_000, { hold: { ttl: HOUR } })).hold.holdId);
    await redis.restart("SIGKILL");
    const before = await uncorrected();
    for (const holdId of holds) assert.equal((await settle(holdId, 1)).state, "settled");
    assert.equal((await uncorrected()) - before, 3);
    // Redis has lost the window, so nothing is admitted in it, as without holds.
    const { code } = await charge(5_000);
    assert.notEqual(code, "VALID");
    await server.kill("SIGTERM");
  });
});
