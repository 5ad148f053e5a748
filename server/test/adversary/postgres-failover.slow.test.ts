/** Two PostgreSQL servers with a failover to the second one, and nodes that reach them through one address. */
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { setTimeout } from "node:timers/promises";
import { Client } from "pg";
import { systemClock } from "../../../engine/src/clock/system.ts";
import { eventually, makeFolder, type Server, start } from "../process.ts";
import { startPostgres, startStandby } from "../services/postgres.ts";
import { sharedRedis } from "../services/redis.ts";
import { TcpProxy } from "../tcp-proxy.ts";

const CHANGED = "the database is another server, another timeline or a restored copy: all caches were invalidated";
const LOST = "the database does not answer";

async function connect(t: TestContext, url: string): Promise<Client> {
  const client = new Client({ connectionString: url });
  client.on("error", () => {});
  await client.connect();
  t.after(() => client.end().catch(() => {}));
  return client;
}

/** A primary, its standby, the proxy for the nodes, and the proxy for the replication. */
async function openCluster(t: TestContext, { isSynchronous }: { isSynchronous: boolean }) {
  const primary = await startPostgres();
  t.after(() => primary.stop());
  const replication = await TcpProxy.open(primary.url);
  t.after(() => replication.close());
  const standby = await startStandby(primary.url, replication.url);
  t.after(() => standby.stop());
  const address = await TcpProxy.open(primary.url);
  t.after(() => address.close());
  const [onPrimary, onStandby] = [await connect(t, primary.url), await connect(t, standby.url)];
  if (isSynchronous) {
    await onPrimary.query("alter system set synchronous_standby_names = 'standby'");
    await onPrimary.query("select pg_reload_conf()");
    await eventually("the standby to be synchronous", async () => {
      const { rows } = await onPrimary.query("select sync_state from pg_stat_replication");
      return rows[0]?.sync_state === "sync";
    });
  }
  const settings = { DATABASE_URL: address.url, REDIS_URL: await sharedRedis(), ANALYTICS: "off" };
  const nodes = await Promise.all([0, 1].map(() => start({ directory: makeFolder(t), settings })));
  const { rows } = await onPrimary.query("select split_part(pg_read_file('postmaster.pid'), E'\\n', 1)::int as pid");
  return {
    nodes: nodes as [Server, Server],
    address,
    replication,
    standby,
    killPrimary: () => process.kill(rows[0].pid, "SIGKILL"),
    promote: () => onStandby.query("select pg_promote()"),
  };
}

interface Tally {
  statuses: Map<number, number>;
  unanswered: number;
}

/** Repeats the call until `stop`, and counts the statuses. */
function keepCalling(call: () => Promise<{ status: number }>, parallel = 1) {
  const tally: Tally = { statuses: new Map(), unanswered: 0 };
  let isOver = false;
  const loop = async () => {
    while (!isOver) {
      try {
        const { status } = await call();
        tally.statuses.set(status, (tally.statuses.get(status) ?? 0) + 1);
        if (status !== 200) await setTimeout(20);
      } catch {
        tally.unanswered++;
        await setTimeout(20);
      }
    }
  };
  const ended = Promise.all(Array.from({ length: parallel }, loop));
  return {
    tally,
    async stop() {
      isOver = true;
      await ended;
      return tally;
    },
  };
}

const summary = ({ statuses, unanswered }: Tally) =>
  [...statuses].map(([status, count]) => `${count} × ${status}`).join(", ") +
  (unanswered ? `, ${unanswered} unanswered` : "");

describe("a failover of PostgreSQL", () => {
  it("with synchronous replication reverts no spend, charges none twice, and invalidates everything", async (t) => {
    const { nodes, address, standby, killPrimary, promote } = await openCluster(t, { isSynchronous: true });
    const [a, b] = nodes;
    const { apiId } = await a.ok("apis.createApi", { name: "spends" });
    const CREDITS = 100_000;
    const keys = await Promise.all(
      Array.from({ length: 4 }, () => a.ok("keys.createKey", { apiId, credits: { remaining: CREDITS } })),
    );
    const acknowledged = new Map<string, number>(keys.map(({ key }) => [key, 0]));
    let turn = 0;
    const spends = keepCalling(async () => {
      const { key } = keys[turn++ % keys.length]!;
      const reply = await nodes[turn % 2]!.call("keys.verifyKey", { key });
      if (reply.status === 200 && reply.body.data.code === "VALID") acknowledged.set(key, acknowledged.get(key)! + 1);
      return reply;
    }, 8);
    await setTimeout(1_500);
    killPrimary();
    address.retarget(standby.url);
    await setTimeout(1_000);
    await promote();
    const promotedAt = systemClock.monotonic();
    const last = keys.at(-1)!;
    for (const node of nodes) {
      await eventually(
        "spends to continue",
        async () => (await node.call("keys.verifyKey", { key: last.key, credits: { cost: 0 } })).status === 200,
      );
    }
    const recovery = systemClock.monotonic() - promotedAt;
    await setTimeout(1_000);
    const tally = await spends.stop();
    t.diagnostic(`${summary(tally)}; spends continue ${Math.round(recovery)} ms after the promotion`);
    assert.equal(tally.unanswered, 0);
    for (const { keyId, key } of keys) {
      const { credits } = await b.ok("keys.getKey", { keyId });
      assert.equal(CREDITS - credits.remaining, acknowledged.get(key), "exactly the acknowledged spends");
    }
    for (const node of nodes) {
      await node.logged(CHANGED);
      assert.equal(node.hasEnded, false);
    }
    assert(recovery < 6_000);
  });

  it("without synchronous replication invalidates keys that were lost, and a standby before its promotion counts as away", async (t) => {
    const { nodes, address, replication, standby, killPrimary, promote } = await openCluster(t, {
      isSynchronous: false,
    });
    const [a, b] = nodes;
    const { apiId } = await a.ok("apis.createApi", { name: "lost" });
    const kept = await a.ok("keys.createKey", { apiId });
    const paying = await a.ok("keys.createKey", { apiId, credits: { remaining: 100_000 } });
    for (const node of nodes)
      for (const { key } of [kept, paying]) assert.equal((await node.ok("keys.verifyKey", { key })).code, "VALID");
    await eventually("the standby to catch up", async () => {
      const client = await connect(t, standby.url);
      const { rows } = await client.query("select count(*)::int as keys from keys");
      return rows[0].keys === 2;
    });
    replication.stall();
    const lost = await a.ok("keys.createKey", { apiId });
    for (const node of nodes) assert.equal((await node.ok("keys.verifyKey", { key: lost.key })).code, "VALID");

    killPrimary();
    address.retarget(standby.url);
    const verifications = keepCalling(() => b.call("keys.verifyKey", { key: kept.key }));
    const changes = keepCalling(() => a.call("keys.updateKey", { keyId: kept.keyId, name: "changed" }), 4);
    const spends = keepCalling(() => a.call("keys.verifyKey", { key: paying.key }), 4);
    // The standby answers during all of this.
    await setTimeout(3_000);
    assert.equal(changes.tally.statuses.get(200) ?? 0, 0);
    await promote();
    const promotedAt = systemClock.monotonic();
    for (const [node, operation, body] of [
      [a, "keys.updateKey", { keyId: kept.keyId, name: "again" }],
      [b, "keys.updateKey", { keyId: kept.keyId, name: "again" }],
      [b, "keys.verifyKey", { key: paying.key }],
    ] as const) {
      await eventually(`${operation} to succeed`, async () => (await node.call(operation, body)).status === 200);
    }
    const recovery = systemClock.monotonic() - promotedAt;
    for (const node of nodes) await node.logged(CHANGED);
    for (const node of nodes) {
      assert.equal((await node.ok("keys.verifyKey", { key: lost.key })).code, "NOT_FOUND");
      assert.equal((await node.ok("keys.verifyKey", { key: kept.key })).code, "VALID");
    }
    assert.equal((await a.call("keys.deleteKey", { keyId: lost.keyId })).status, 404);
    // All connections of the pools have been used by now.
    await setTimeout(500);
    const tallies = { verifications, changes, spends };
    for (const [what, calls] of Object.entries(tallies)) {
      const tally = await calls.stop();
      t.diagnostic(`${what}: ${summary(tally)}`);
      const allowed = what === "verifications" ? [200] : [200, 503];
      assert.deepEqual(
        [...tally.statuses.keys()].filter((status) => !allowed.includes(status)),
        [],
        what,
      );
    }
    for (const node of nodes) {
      const lines = node.log.filter(({ msg }) => String(msg).startsWith(LOST));
      assert(lines.length <= 2, `${lines.length} log lines report that the database is away`);
      const failures = node.log.filter(({ msg }) => msg === "a request failed");
      assert(failures.length <= 3, `${failures.length} log lines about single requests`);
    }
    t.diagnostic(`all operations work ${Math.round(recovery)} ms after the promotion`);
    assert(recovery < 5_000);
  });
});
