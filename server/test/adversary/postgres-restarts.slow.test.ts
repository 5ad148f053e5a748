/** The program with a PostgreSQL that ends its connections, crashes, or hangs. */
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { setTimeout } from "node:timers/promises";
import { Client } from "pg";
import { systemClock } from "../../../engine/src/clock/system.ts";
import { busyness } from "../busyness.ts";
import { eventually, makeFolder, type Server, start } from "../process.ts";
import { startPostgres } from "../services/postgres.ts";
import { sharedRedis } from "../services/redis.ts";
import { TcpProxy } from "../tcp-proxy.ts";

async function connect(url: string): Promise<Client> {
  const client = new Client({ connectionString: url });
  client.on("error", () => {});
  await client.connect();
  return client;
}

async function open(t: TestContext, nodes: number) {
  const postgres = await startPostgres();
  t.after(() => postgres.stop());
  const proxy = await TcpProxy.open(postgres.url);
  t.after(() => proxy.close());
  const settings = { DATABASE_URL: proxy.url, REDIS_URL: await sharedRedis(), ANALYTICS: "off" };
  const servers = await Promise.all(Array.from({ length: nodes }, () => start({ directory: makeFolder(t), settings })));
  const { apiId } = await servers[0]!.ok("apis.createApi", { name: "restarts" });
  const paying = await servers[0]!.ok("keys.createKey", { apiId, credits: { remaining: 1_000_000 } });
  const free = await servers[0]!.ok("keys.createKey", { apiId });
  for (const server of servers) {
    for (const { key } of [paying, free]) assert.equal((await server.ok("keys.verifyKey", { key })).code, "VALID");
  }
  return { postgres, proxy, servers, paying, free, spentBefore: nodes };
}

const verify = async (server: Server, key: string) => {
  const startedAt = systemClock.monotonic();
  const { status } = await server.call("keys.verifyKey", { key });
  return { status, ms: systemClock.monotonic() - startedAt };
};

describe("the program", () => {
  it("survives terminations, restarts and crashes of PostgreSQL under load, and its balances are exact", async (t) => {
    const { postgres, servers, paying, free, spentBefore } = await open(t, 2);
    let isOver = false;
    let [acknowledged, rejected, knownFailed] = [0, 0, 0];
    const load = Promise.all(
      servers.flatMap((server) =>
        Array.from({ length: 4 }, async () => {
          while (!isOver) {
            if ((await verify(server, paying.key)).status === 200) acknowledged++;
            else rejected++;
            if ((await verify(server, free.key)).status !== 200) knownFailed++;
          }
        }),
      ),
    );
    let admin = await connect(postgres.url);
    let terminations = 0;
    for (let turn = 0; turn < 2; turn++) {
      for (let i = 0; i < 8; i++) {
        const { rowCount } = await admin.query(
          "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'latchkey-%'",
        );
        terminations += rowCount!;
        await setTimeout(80);
      }
      // Kills a process of the server. The server then ends all others and recovers, as after an immediate shutdown.
      const { rows } = await admin.query("select pid from pg_stat_activity where backend_type = 'walwriter'");
      process.kill(rows[0].pid, "SIGKILL");
      await eventually("PostgreSQL to be back", async () => {
        try {
          await admin.query("select 1");
          return false;
        } catch {
          admin = await connect(postgres.url).catch(() => admin);
          return admin.query("select 1").then(
            () => true,
            () => false,
          );
        }
      });
      // A fast and an immediate shutdown.
      for (const signal of ["SIGINT", "SIGQUIT"] as const) {
        await setTimeout(500);
        await postgres.restart(signal);
      }
      admin = await connect(postgres.url);
    }
    for (const server of servers) {
      await eventually("spends to continue", async () => {
        const { status } = await verify(server, paying.key);
        if (status === 200) acknowledged++;
        return status === 200;
      });
    }
    isOver = true;
    await load;
    const { credits } = await servers[0]!.ok("keys.getKey", { keyId: paying.keyId });
    await admin.end().catch(() => {});
    const crashed = servers.filter(({ hasEnded }) => hasEnded).length;
    t.diagnostic(
      `${terminations} connections terminated, 2 crashes and 4 restarts of the server: ${crashed} crashes of Latchkey, ` +
        `${acknowledged} spends acknowledged, ${rejected} rejected, ${knownFailed} verifications of cached keys failed`,
    );
    assert.equal(crashed, 0);
    assert.equal(knownFailed, 0);
    assert.equal(1_000_000 - credits.remaining, acknowledged + spentBefore);
    for (const server of servers) {
      const lines = server.log.filter(({ msg }) => msg === "a request failed");
      assert.deepEqual(
        lines.filter(({ error }) => !/StoreUnavailable|LedgerFailed/.test(JSON.stringify(error ?? ""))).slice(0, 1),
        [],
      );
    }
  });

  it("verifies cached keys while every packet is dropped, and recovers within seconds", async (t) => {
    const { proxy, servers, paying, free } = await open(t, 1);
    const server = servers[0]!;
    const ready = async () => {
      const reply = await fetch(`${server.address}/health/ready`);
      return ((await reply.json()) as { status: string }).status;
    };
    proxy.blackhole(true);
    const startedAt = systemClock.monotonic();
    const times: number[] = [];
    // These calls wait for the ledger in the meantime.
    const spends = Array.from({ length: 4 }, () => verify(server, paying.key));
    while (systemClock.monotonic() - startedAt < 3_000) {
      const { status, ms } = await verify(server, free.key);
      assert.equal(status, 200);
      times.push(ms);
      await setTimeout(10);
    }
    assert.equal(await ready(), "degraded");
    proxy.blackhole(false);
    const restoredAt = systemClock.monotonic();
    await eventually("credits to be spent", async () => (await verify(server, paying.key)).status === 200);
    const credits = systemClock.monotonic() - restoredAt;
    await eventually("readiness to be ok", async () => (await ready()) === "ok");
    const recovery = systemClock.monotonic() - restoredAt;
    const waits = (await Promise.all(spends)).map(({ ms }) => ms);
    // No dead connection is left in a pool.
    for (let i = 0; i < 20; i++) assert.equal((await verify(server, paying.key)).status, 200);
    const longest = Math.max(...times);
    t.diagnostic(
      `${times.length} verifications of cached keys, ${Math.round(longest)} ms at most; spends waited ${Math.round(Math.max(...waits))} ms; ` +
        `afterwards credits after ${Math.round(credits)} ms, readiness after ${Math.round(recovery)} ms`,
    );
    // Less than the shortest time after which a query fails.
    assert(longest < 1_500, `${longest} ms`);
    const most = 8_000 * busyness();
    assert(credits < most && recovery < most, `${credits} ms, ${recovery} ms`);
  });
});
