/** Services that count in a Redis Cluster, over HTTP, while its servers fail. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { eventually, makeFolder, runMany, type Server, start } from "../process.ts";
import { parseExposition } from "../prometheus.ts";
import { type FreshDatabase, freshDatabase } from "../services/postgres.ts";
import { sharedRedis } from "../services/redis.ts";
import { type RedisCluster, type SentinelGroup, startRedisCluster, startSentinels } from "../services/redis-groups.ts";

/** 30 days: no test reaches the end of a window. */
const DURATION = 2_592_000_000;

let redis: RedisCluster;
let sentinels: SentinelGroup;
let database: FreshDatabase;
before(async () => {
  redis = await startRedisCluster();
  sentinels = await startSentinels();
  database = await freshDatabase();
});
after(async () => {
  await database?.drop();
  await Promise.all([redis?.stop(), sentinels?.stop()]);
});

describe("the start", () => {
  it("says in one line which address fits the servers", async (t) => {
    const single = new URL(await sharedRedis()).host;
    const [node] = redis.members;
    const [sentinel] = sentinels.sentinels;
    const expected: [url: string, message: RegExp][] = [
      [node!.url, /is a node of a cluster: write redis\+cluster:\/\//],
      [`redis+cluster://${single}`, /is not a node of a cluster: write redis:\/\//],
      [sentinel!.url, /is a Sentinel: write redis\+sentinel:\/\//],
      [`redis+sentinel://${single}/counters`, /is not a Sentinel: .*write redis:\/\//],
      [sentinels.url.replace("/counters", "/other"), /no Sentinel knows a primary with the name other/],
      ["redis+cluster://secret@", /give an address such as redis\+cluster:\/\//],
    ];
    const runs = expected.map(([url]) => ({ args: ["serve", "--port", "0"], settings: { REDIS_URL: url } }));
    const ran = await runMany(runs, { directory: makeFolder(t) });
    for (const [i, { code, stderr }] of ran.entries()) {
      assert.match(stderr, expected[i]![1]);
      assert.match(stderr, /^latchkey: LATCHKEY_REDIS_URL\b[^\n]*\n$/);
      assert.equal(stderr.includes("secret"), false);
      assert.equal(code, 1);
    }
  });
});

describe("two services on a cluster", () => {
  const nodes: Server[] = [];
  const undo: (() => unknown)[] = [];
  before(async () => {
    for (let i = 0; i < 2; i++) {
      const directory = makeFolder({ after: (task) => undo.push(task) });
      const settings = {
        DATABASE_URL: database.url,
        REDIS_URL: redis.url,
        REDIS_POLICY: "closed",
      };
      nodes.push(await start({ directory, settings }));
    }
  });
  after(async () => {
    for (const task of undo) await task();
  });

  const scrape = async (node: Server) => parseExposition(await (await fetch(`${node.address}/metrics`)).text());
  const checks = async (node: Server) =>
    (await (await fetch(`${node.address}/health/ready`)).json()) as { checks?: Record<string, string> };

  it("count the limits of a key and of its identity together", async () => {
    const [one, other] = nodes;
    const { apiId } = await one!.ok("apis.createApi", { name: "cluster" });
    const keys: string[] = [];
    const identityLimit = { name: "all", limit: 15, duration: DURATION, autoApply: true };
    await one!.ok("identities.createIdentity", { externalId: "acme", ratelimits: [identityLimit] });
    for (let i = 0; i < 3; i++) {
      const ratelimits = [{ name: "own", limit: 10, duration: DURATION, autoApply: true }];
      keys.push((await one!.ok("keys.createKey", { apiId, externalId: "acme", ratelimits })).key);
    }
    const codes = await Promise.all(
      Array.from({ length: 60 }, async (_, i) => {
        const { code } = await (i % 2 ? one : other)!.ok("keys.verifyKey", { key: keys[i % 3]! });
        return `${i % 3} ${code}`;
      }),
    );
    const valid = codes.filter((code) => code.endsWith("VALID"));
    // Calls that the identity denies have given back what they charged to the key.
    assert.ok(valid.length <= 15 && valid.length >= 10, `${valid.length}`);
    for (let i = 0; i < 3; i++) assert.ok(valid.filter((code) => code.startsWith(`${i} `)).length <= 10);
    assert.ok((await scrape(one!)).value("latchkey_redis_spread_total") > 0);
    // Whatever is left can be spent by calls one after another.
    let more = 0;
    for (const key of keys) {
      for (;;) {
        if ((await one!.ok("keys.verifyKey", { key })).code !== "VALID") break;
        more++;
      }
    }
    assert.equal(valid.length + more, 15);
  });

  it("repeat the outcome of a call with an Idempotency-Key", async () => {
    const body = { namespace: "replays", identifier: "a", limit: 10, duration: DURATION };
    const call = async (node: Server) => {
      const response = await fetch(`${node.address}/v2/ratelimits.limit`, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          "idempotency-key": "once-on-the-cluster",
          authorization: "Bearer lk_root_of_a_test_8J2kQwZx41",
        },
        body: JSON.stringify(body),
      });
      return ((await response.json()) as { data: { remaining: number } }).data.remaining;
    };
    assert.deepEqual([await call(nodes[0]!), await call(nodes[1]!), await call(nodes[0]!)], [9, 9, 9]);
  });

  it("name a server that is paused or killed, and admit no more than the limits", async () => {
    const identifiers = Array.from({ length: 30 }, (_, i) => `caller ${i}`);
    const admitted = new Map(identifiers.map((identifier) => [identifier, 0]));
    const statuses = new Map<number, number>();
    const limit = 40;
    let isOver = false;
    const callers = identifiers.map(async (identifier, i) => {
      while (!isOver) {
        const body = { namespace: "load", identifier, limit, duration: DURATION };
        const { status, body: answer } = await nodes[i % 2]!.call("ratelimits.limit", body);
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
        if (status === 200 && answer.data.success) admitted.set(identifier, admitted.get(identifier)! + 1);
      }
    });
    const total = () => [...admitted.values()].reduce((sum, count) => sum + count, 0);
    await eventually("calls", () => total() > 5 * identifiers.length);
    const [, killed, paused] = await redis.primaries();

    // No replica takes over from a server that is only paused.
    await redis.failOverAfter(60_000);
    paused!.signal("SIGSTOP");
    const outages = nodes.map(async (node) => {
      const isNamed = async () => ((await checks(node)).checks?.redis ?? "").includes(paused!.name);
      await eventually("an outage", async () => {
        if (!(await isNamed())) return false;
        const metrics = await scrape(node);
        return metrics.values("latchkey_redis_server_away").get(`server="${paused!.name}"`) === 1;
      });
      assert.match((await checks(node)).checks?.redis ?? "answers again", /(; the policy is closed|answers again)$/);
    });
    await Promise.all(outages);
    paused!.signal("SIGCONT");
    for (const node of nodes)
      await eventually("a return", async () => (await checks(node)).checks?.redis === undefined);
    await redis.untilServed();
    await redis.failOverAfter(1_000);

    const acknowledged = new Map(admitted);
    await killed!.send("WAIT", 1, 1_000);
    killed!.signal("SIGKILL");
    const beforeKill = new Map(admitted);
    for (const node of nodes) {
      await eventually("the log", () =>
        node.log.some(({ server, msg }) => server === killed!.name && /does not answer/.test(String(msg))),
      );
      await eventually("a failover", () => node.log.some(({ msg }) => msg === "the primaries of Redis have changed"));
      await eventually("a return", async () => (await scrape(node)).value("latchkey_redis_away") === 0);
      const { components } = await node.ok("system.getStatus", {});
      const { status, detail } = components.find(({ name }: { name: string }) => name === "redis");
      assert.equal(status, "ok");
      assert.equal(detail.includes(killed!.name), false);
      assert.match(detail, /^counts on 127\.0\.0\.1:\d+, 127\.0\.0\.1:\d+, 127\.0\.0\.1:\d+$/);
    }
    await eventually("the limits", () => total() >= 0.9 * limit * identifiers.length);
    isOver = true;
    await Promise.all(callers);
    for (const identifier of identifiers) {
      // What the replica had not received yet is lost.
      const lost = beforeKill.get(identifier)! - acknowledged.get(identifier)!;
      assert.ok(admitted.get(identifier)! <= limit + lost, `${admitted.get(identifier)} and ${lost}`);
    }
    assert.deepEqual(
      [...statuses.keys()].filter((status) => status !== 200 && status !== 503),
      [],
    );
  });
});
