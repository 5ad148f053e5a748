/** Limits during failures of Redis, the clock or the process, tested with real services over HTTP. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { createClient } from "@redis/client";
import { systemClock } from "../../engine/src/clock/system.ts";
import { openTestServer, type TestServer } from "./harness.ts";
import { eventually, makeFolder, type ServeOptions, type Server, start } from "./process.ts";
import { type Exposed, parseExposition } from "./prometheus.ts";
import { freshDatabase } from "./services/postgres.ts";
import { startRedis } from "./services/redis.ts";
import { makeDirectory, type Service, unprivilegedAccount } from "./services/service.ts";
import { TcpProxy } from "./tcp-proxy.ts";

/** 30 days: no test reaches the end of a window. */
const DURATION = 2_592_000_000;
const CALLERS_PER_NODE = 8;
/** The second that a kill may lose, the time of its write, and an allowance for other tests on the machine. */
const JOURNAL_AGE_MAX = 2_500;
const policies = ["local", "closed", "open"] as const;

/** A Redis that can be killed and stopped. */
interface TestRedis extends Service {
  signal(signal: NodeJS.Signals): void;
}

async function startTestRedis(settings: Record<string, string> = {}): Promise<TestRedis> {
  const service = await startRedis(settings);
  const client = createClient({ url: service.url });
  await client.connect();
  const [, pid] = /process_id:(\d+)/.exec(await client.info("server"))!;
  client.destroy();
  return {
    ...service,
    signal: (signal) => void process.kill(Number(pid), signal),
    // A stopped process does not handle the signal that ends it.
    stop: () => {
      try {
        process.kill(Number(pid), "SIGCONT");
      } catch {
        // It has ended already.
      }
      return service.stop();
    },
  };
}

/** The answers of one node. */
interface Tally {
  admitted: number;
  denied: number;
  /** Answers other than 200, by status. */
  failed: Map<number, number>;
}

async function scrape(node: Server): Promise<Exposed> {
  return parseExposition(await (await fetch(`${node.address}/metrics`)).text());
}

async function readiness(node: Server): Promise<{ status: string; checks?: Record<string, string> }> {
  const response = await fetch(`${node.address}/health/ready`);
  assert.equal(response.status, 200);
  return response.json() as Promise<{ status: string; checks?: Record<string, string> }>;
}

const hasOutage = async (node: Server) => (await scrape(node)).value("latchkey_redis_away") === 1;

const linesOf = (node: Server, beginning: string) =>
  node.log.filter(({ msg }) => (msg as string).startsWith(beginning));

/** Callers of every node that call again after each answer, until they are stopped. */
class ContinuousLoad {
  readonly tallies: Tally[];
  /** Called on every admission. */
  onAdmission = () => {};
  readonly #callers: Promise<unknown>;
  #isOver = false;

  constructor(nodes: readonly Server[], body: object) {
    this.tallies = nodes.map(() => ({ admitted: 0, denied: 0, failed: new Map() }));
    const callers = nodes.flatMap((node, i) =>
      Array.from({ length: CALLERS_PER_NODE }, () => this.#call(node, this.tallies[i]!, body)),
    );
    this.#callers = Promise.all(callers);
  }

  get admitted(): number {
    return this.tallies.reduce((sum, { admitted }) => sum + admitted, 0);
  }

  answered(node: number): number {
    const { admitted, denied, failed } = this.tallies[node]!;
    return admitted + denied + [...failed.values()].reduce((sum, count) => sum + count, 0);
  }

  /** Resolves when every node has answered this many more calls. */
  async continueFor(calls: number): Promise<void> {
    const goals = this.tallies.map((_, i) => this.answered(i) + calls);
    await eventually("answers", () => goals.every((goal, i) => this.answered(i) >= goal));
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#callers;
  }

  async #call(node: Server, tally: Tally, body: object): Promise<void> {
    while (!this.#isOver) {
      const { status, body: answer } = await node.call("ratelimits.limit", body);
      if (status !== 200) tally.failed.set(status, (tally.failed.get(status) ?? 0) + 1);
      else if (answer.data.success) {
        tally.admitted++;
        this.onAdmission();
      } else tally.denied++;
    }
  }
}

/** Services on one PostgreSQL and one Redis; each reaches Redis through a proxy of its own. */
class Cluster {
  readonly nodes: Server[] = [];
  readonly proxies: TcpProxy[] = [];
  redis!: TestRedis;
  readonly #options: ServeOptions[] = [];
  readonly #undo: (() => unknown)[] = [];
  /** The folder of Redis' append-only file, so that it can be restarted. */
  #folder = "";

  async open(count: number, policy: (typeof policies)[number]): Promise<void> {
    const database = await freshDatabase();
    this.after(() => database.drop());
    this.#folder = makeDirectory("redis-aof", unprivilegedAccount("redis"));
    this.redis = await this.startPersistent();
    for (let i = 0; i < count; i++) {
      const proxy = await TcpProxy.open(this.redis.url);
      this.after(() => proxy.close());
      this.proxies.push(proxy);
      const directory = makeFolder({ after: (undo) => this.after(undo) });
      const settings = {
        DATABASE_URL: database.url,
        REDIS_URL: proxy.url,
        REDIS_POLICY: policy,
      };
      // One after the other, because the first one creates the tables.
      this.nodes.push(await start({ directory, settings }));
      this.#options.push({ directory, settings });
    }
  }

  /** Starts a stopped node again. */
  async restart(node: number): Promise<void> {
    this.nodes[node] = await start(this.#options[node]!);
  }

  after(undo: () => unknown): void {
    this.#undo.unshift(undo);
  }

  async close(): Promise<void> {
    for (const undo of this.#undo) await undo();
  }

  /** Starts a Redis with an append-only file in the cluster's folder. */
  async startPersistent(): Promise<TestRedis> {
    return this.#started(await startTestRedis({ dir: this.#folder, appendonly: "yes", appendfsync: "always" }));
  }

  async startEmpty(): Promise<TestRedis> {
    return this.#started(await startTestRedis());
  }

  /** Connects all nodes to this Redis. */
  connectTo(redis: TestRedis): void {
    this.redis = redis;
    for (const proxy of this.proxies) proxy.retarget(redis.url);
  }

  /** Resolves when all nodes, or none, have an outage of Redis. */
  async untilOutageIs(expected: boolean): Promise<void> {
    for (const node of this.nodes) {
      await eventually(`${expected ? "an outage" : "a recovery"}`, async () => (await hasOutage(node)) === expected);
    }
  }

  #started(redis: TestRedis): TestRedis {
    this.after(() => redis.stop());
    return redis;
  }
}

/** The failures of Redis: how to cause each one, and how to repair it. */
const outages: Record<string, { fail(cluster: Cluster): void; repair(cluster: Cluster): Promise<void> }> = {
  "is paused": {
    fail: ({ redis }) => redis.signal("SIGSTOP"),
    repair: async ({ redis }) => redis.signal("SIGCONT"),
  },
  "is killed, and starts again with its append-only file": {
    fail: ({ redis }) => redis.signal("SIGKILL"),
    repair: async (cluster) => cluster.connectTo(await cluster.startPersistent()),
  },
  "fails over to an empty one": {
    fail: ({ redis }) => redis.signal("SIGKILL"),
    repair: async (cluster) => cluster.connectTo(await cluster.startEmpty()),
  },
};

for (const policy of policies) {
  describe(`two services under the policy ${policy}`, () => {
    const cluster = new Cluster();
    before(() => cluster.open(2, policy));
    after(() => cluster.close());

    it("charge nothing for calls that timed out while Redis was paused", async () => {
      const body = { namespace: "given up", identifier: "a", limit: 100, duration: DURATION };
      const [node] = cluster.nodes;
      let admitted = 0;
      const call = async () => {
        const { status, body: answer } = await node!.call("ratelimits.limit", body);
        if (status === 200 && answer.data.success) admitted++;
        return status;
      };
      for (let i = 0; i < 5; i++) await call();
      // No command is in progress when Redis is stopped: new commands wait in its socket.
      cluster.redis.signal("SIGSTOP");
      const statuses = await Promise.all(Array.from({ length: 20 }, call));
      cluster.redis.signal("SIGCONT");
      await cluster.untilOutageIs(false);
      assert.deepEqual(new Set(statuses), new Set([policy === "closed" ? 503 : 200]));
      assert.equal(admitted, policy === "closed" ? 5 : 25);
      // Redis has counted the five admitted calls, and no other.
      const { remaining } = await cluster.nodes[1]!.ok("ratelimits.limit", { ...body, cost: 0 });
      assert.equal(remaining, 95);
    });

    for (const [outage, { fail, repair }] of Object.entries(outages)) {
      it(`follow the policy when Redis ${outage} during calls`, async () => {
        const limit = 200;
        const losses = await Promise.all(cluster.nodes.map(async (node) => lossesOf(node)));
        const load = new ContinuousLoad(cluster.nodes, {
          namespace: "load",
          identifier: outage,
          limit,
          duration: DURATION,
        });
        const outageBegan = new Promise<void>((resolve) => {
          load.onAdmission = () => {
            if (load.admitted < limit / 4) return;
            load.onAdmission = () => {};
            fail(cluster);
            resolve();
          };
        });
        await outageBegan;
        await cluster.untilOutageIs(true);
        await load.continueFor(CALLERS_PER_NODE);
        const before = structuredClone(load.tallies);
        await load.continueFor(2 * limit);
        for (const [i, node] of cluster.nodes.entries()) {
          const { status, checks } = await readiness(node);
          const server = new URL(cluster.proxies[i]!.url).host;
          const redis = `${server} does not answer; the policy is ${policy}`;
          assert.deepEqual([status, checks], ["degraded", { redis }]);
          const now = load.tallies[i]!;
          if (policy === "closed") assert.equal(now.admitted, before[i]!.admitted);
          if (policy === "open") assert.equal(now.denied, before[i]!.denied);
          // The admissions of this node, through Redis and on its own.
          if (policy === "local") assert.equal(now.admitted, limit);
        }
        await repair(cluster);
        await cluster.untilOutageIs(false);
        await load.continueFor(2 * limit);
        await load.stop();
        // A call has to reach Redis: a denial by the node's own counters detects no loss.
        const another = { namespace: "load", identifier: `after: ${outage}`, limit, duration: DURATION };
        for (const node of cluster.nodes) {
          await eventually("an answer of Redis", async () => {
            const { status } = await node.call("ratelimits.limit", another);
            return status === 200 && !(await hasOutage(node));
          });
        }

        for (const [i, node] of cluster.nodes.entries()) {
          const { failed, admitted } = load.tallies[i]!;
          assert.deepEqual([...failed.keys()], policy === "closed" ? [503] : []);
          if (policy === "local") assert.equal(admitted, limit);
          const [reported] = linesOf(node, "Redis does not answer").slice(-1);
          assert.deepEqual([reported?.level, reported?.policy], [50, policy]);
          assert.equal(linesOf(node, "Redis does not answer").length, linesOf(node, "Redis answers again").length);
          assert.equal((await readiness(node)).status, "ok");
          const lost = (await lossesOf(node)) - losses[i]!;
          assert.equal(lost, outage === "fails over to an empty one" ? 1 : 0);
          assert.equal(linesOf(node, "Redis has lost counters").length, await lossesOf(node));
        }
        if (policy === "closed") {
          const least = outage === "fails over to an empty one" ? limit / 4 : limit - 2 * CALLERS_PER_NODE;
          assert(load.admitted <= limit && load.admitted >= least, `admitted ${load.admitted}`);
        }
      });
    }

    if (policy === "closed") {
      it("count again in windows that began after the loss", async () => {
        const body = { namespace: "after", identifier: "a", limit: 10, duration: DURATION };
        for (const node of cluster.nodes) assert.equal((await node.ok("ratelimits.limit", body)).success, false);
        const short = { ...body, duration: 1_000 };
        await eventually("a window", async () => (await cluster.nodes[0]!.ok("ratelimits.limit", short)).success);
      });

      it("admit nothing again when Redis is emptied and all nodes are restarted together", async () => {
        const body = { namespace: "together", identifier: "a", limit: 10, duration: DURATION };
        const keptBy = async () => (await cluster.nodes[0]!.ok("ratelimits.limit", { ...body, cost: 0 })).remaining;
        assert.equal(await keptBy(), 0);
        for (const node of cluster.nodes) await node.kill("SIGKILL");
        cluster.redis.signal("SIGKILL");
        cluster.connectTo(await cluster.startEmpty());
        for (const i of cluster.nodes.keys()) await cluster.restart(i);
        for (const node of cluster.nodes) assert.equal((await node.ok("ratelimits.limit", body)).success, false);
        assert.equal(await lossesOf(cluster.nodes[0]!), 1);
      });

      it("reject keys with limits and verify the others while Redis is away", async () => {
        const [node] = cluster.nodes;
        const { apiId } = await node!.ok("apis.createApi", { name: "outage" });
        const ratelimits = [{ name: "calls", limit: 10, duration: 60_000, autoApply: true }];
        const limited = await node!.ok("keys.createKey", { apiId, ratelimits });
        const free = await node!.ok("keys.createKey", { apiId });
        cluster.redis.signal("SIGSTOP");
        const verify = ({ key }: { key: string }) => node!.call("keys.verifyKey", { key });
        assert.equal((await verify(limited)).status, 503, JSON.stringify(node!.log.at(-1)));
        assert.equal((await verify(free)).body.data.code, "VALID");
        const response = await fetch(`${node!.address}/v2/keys.verifyKey`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ key: limited.key }),
        });
        assert.deepEqual([response.status, response.headers.get("retry-after")], [503, "1"]);
        const undecided = (await scrape(node!)).value("latchkey_limits_undecided_total");
        assert(undecided >= 2);
        cluster.redis.signal("SIGCONT");
      });
    }
  });
}

describe("one service under the policy local", () => {
  const cluster = new Cluster();
  const body = { namespace: "alone", identifier: "", limit: 50, duration: DURATION };
  before(() => cluster.open(1, "local"));
  after(() => cluster.close());

  /** The number of admitted calls. */
  async function admitted(calls: number, identifier: string): Promise<number> {
    const answers = Array.from({ length: calls }, () =>
      cluster.nodes[0]!.ok("ratelimits.limit", { ...body, identifier }),
    );
    return (await Promise.all(answers)).filter(({ success }) => success).length;
  }

  it("admits no more than the limit when Redis is emptied while it is connected", async () => {
    assert.equal(await admitted(40, "flushed"), 40);
    const client = createClient({ url: cluster.redis.url });
    await client.connect();
    await client.flushAll();
    assert.equal(await admitted(60, "flushed"), 10);
    assert.equal(await lossesOf(cluster.nodes[0]!), 1);
    await client.flushAll();
    assert.equal(await admitted(60, "flushed"), 0);
    client.destroy();
    const [line] = linesOf(cluster.nodes[0]!, "Redis has lost counters");
    assert(Math.abs((line!.at as number) - systemClock.now()) < 60_000, JSON.stringify(line));
  });

  it("admits no more than the limit of many simultaneous calls after an outage", async () => {
    cluster.proxies[0]!.isClosed = true;
    cluster.proxies[0]!.cut();
    await cluster.untilOutageIs(true);
    assert.equal(await admitted(30, "rush"), 30);
    cluster.proxies[0]!.isClosed = false;
    await cluster.untilOutageIs(false);
    // Redis has counted none of the thirty, and gets all of these at once.
    assert.equal(await admitted(60, "rush"), 20);
  });

  it("keeps over a restart what it admitted while Redis was away", async () => {
    assert.equal(await admitted(20, "restarted"), 20);
    cluster.proxies[0]!.isClosed = true;
    cluster.proxies[0]!.cut();
    await cluster.untilOutageIs(true);
    assert.equal(await admitted(60, "restarted"), 30);
    await cluster.nodes[0]!.kill("SIGTERM");
    cluster.proxies[0]!.isClosed = false;
    await cluster.restart(0);
    assert.equal(await admitted(60, "restarted"), 0);
  });
});

describe("limits of one service over a restart", () => {
  const body = { namespace: "kept", limit: 1_000_000, duration: DURATION };

  it("are unchanged after a stop, including short windows", async (t) => {
    const options = { directory: makeFolder(t) };
    const server = await start(options);
    const short = { ...body, identifier: "short", limit: 1_000, duration: 100_000 };
    const long = { ...body, identifier: "long" };
    await server.ok("ratelimits.limit", { ...long, cost: 123_456 });
    const { reset } = await server.ok("ratelimits.limit", { ...short, cost: 1_000 });
    assert.deepEqual(await server.kill("SIGTERM"), { code: 0, signal: null });
    const again = await start(options);
    assert.equal((await again.ok("ratelimits.limit", { ...long, cost: 0 })).remaining, 1_000_000 - 123_456);
    // The count of a window has its usual weight in the next one.
    const look = await again.ok("ratelimits.limit", { ...short, cost: 0 });
    const passed = systemClock.now() - reset;
    assert(look.reset <= reset + short.duration, "this machine was too slow");
    assert(look.remaining <= Math.max(0, passed) / 100 + 1, JSON.stringify({ look, passed }));
    await again.kill("SIGTERM");
  });

  it("lose at most the last second after kill -9 during calls", async (t) => {
    const options = { directory: makeFolder(t) };
    let server = await start(options);
    for (let round = 1; round <= 2; round++) {
      const identifier = `killed ${round}`;
      const answeredAt: number[] = [];
      const mustBeKept = (now: number) => answeredAt.filter((at) => at < now - JOURNAL_AGE_MAX).length;
      // Each round ends at another moment between two writes.
      const begin = systemClock.monotonic() + 400 * round;
      let killedAt = 0;
      let killed: Promise<unknown> | undefined;
      const callers = Array.from({ length: CALLERS_PER_NODE }, async () => {
        for (;;) {
          const answer = await server.call("ratelimits.limit", { ...body, identifier }).catch(() => undefined);
          if (!answer) return;
          assert.equal(answer.body.data.success, true);
          const now = systemClock.monotonic();
          answeredAt.push(now);
          if (killed || begin > now - JOURNAL_AGE_MAX || mustBeKept(now) === 0) continue;
          killedAt = now;
          killed = server.kill("SIGKILL");
        }
      });
      await Promise.all(callers);
      await killed;
      server = await start(options);
      const { remaining } = await server.ok("ratelimits.limit", { ...body, identifier, cost: 0 });
      const kept = body.limit - remaining;
      const least = mustBeKept(killedAt);
      assert(kept >= least, `kept ${kept} of ${answeredAt.length}, ${least} of them older`);
      assert(kept <= answeredAt.length + CALLERS_PER_NODE);
    }
    await server.kill("SIGTERM");
  });
});

describe("limits and a clock that is set", () => {
  let server: TestServer;
  before(async () => {
    server = await openTestServer();
  });
  after(() => server.close());

  const limit = (more: object) =>
    server.ok("ratelimits.limit", { namespace: "clock", identifier: "a", limit: 10, duration: 60_000, ...more });

  /** Keeps a step of the clock long enough that the counting clock follows it. */
  async function settle(): Promise<void> {
    await limit({ identifier: "look", cost: 0 });
    await server.pass(60_000);
    const { reset } = await limit({ identifier: "look", cost: 0 });
    assert.equal(reset, (Math.floor(server.clock.now() / 60_000) + 1) * 60_000);
  }

  for (const back of [1, 1_500, 59_999, 60_000, 3_600_000, 10 * 86_400_000]) {
    it(`admit nothing more when it is stepped back by ${back} ms, and no call waits longer`, async () => {
      await settle();
      const one = { identifier: `back ${back}` };
      // In the middle of a window, after an exhausted one.
      await server.pass(60_000 - (server.clock.now() % 60_000));
      await limit({ ...one, cost: 10 });
      await server.pass(90_000);
      await limit({ ...one, cost: 5 });
      const before = await limit(one);
      assert.equal(before.success, false);
      server.clock.step(-back);
      const denied = await limit(one);
      assert.deepEqual([denied.success, denied.remaining], [false, 0]);
      assert.equal(denied.retryAfter, before.retryAfter);
      await server.pass(denied.retryAfter - 1);
      assert.equal((await limit(one)).success, false);
      // The time stops for at most a second.
      await server.pass(back < 1_000 ? back + 1 : 1);
      assert.equal((await limit(one)).success, true);
    });
  }

  it("ignore one that is a day ahead for a second", async () => {
    await settle();
    const one = { identifier: "forward" };
    const before = await limit({ ...one, cost: 10 });
    server.clock.step(86_400_000);
    assert.equal((await limit(one)).success, false);
    await server.pass(1_000);
    assert.equal((await limit(one)).success, false);
    server.clock.step(-86_400_000);
    const { success, reset } = await limit(one);
    assert.deepEqual([success, reset], [false, before.reset]);
    await server.pass(120_000);
    assert.equal((await limit({ ...one, cost: 10 })).success, true);
  });

  it("follow one that is stepped forward and stays there", async () => {
    await settle();
    const one = { identifier: "new time", duration: 3_600_000 };
    await limit({ ...one, cost: 10 });
    server.clock.step(86_400_000);
    assert.equal((await limit(one)).success, false);
    await settle();
    assert.equal((await limit({ ...one, cost: 10 })).success, true);
  });
});

async function lossesOf(node: Server): Promise<number> {
  return (await scrape(node)).value("latchkey_redis_losses_total");
}
