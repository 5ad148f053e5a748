/** Starts, stops and failures at unfavourable moments: real processes, and servers that are away, frozen or locked. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, it } from "node:test";
import { systemClock } from "../../../engine/src/clock/system.ts";
import { busyness } from "../busyness.ts";
import { launch, makeFolder, start } from "../process.ts";
import { freshDatabase } from "../services/postgres.ts";
import { sharedRedis } from "../services/redis.ts";
import { TcpProxy } from "../tcp-proxy.ts";

describe("a start", () => {
  it("waits for PostgreSQL, logs that, and continues when it answers", async (t) => {
    const database = await freshDatabase();
    t.after(() => database.drop());
    const proxy = await TcpProxy.open(database.url);
    t.after(() => proxy.close());
    proxy.isClosed = true;
    const server = launch({ directory: makeFolder(t), settings: { DATABASE_URL: proxy.url } });
    const { what } = await server.logged("the start waits for a service that does not answer");
    assert.equal(what, "PostgreSQL at LATCHKEY_DATABASE_URL");
    proxy.isClosed = false;
    await server.logged("latchkey is listening");
  });

  it("ends at once on a signal while it waits", async (t) => {
    const server = launch({ directory: makeFolder(t), settings: { DATABASE_URL: "postgres://127.0.0.1:1/none" } });
    await server.logged("the start waits for a service that does not answer");
    assert.deepEqual(await server.kill("SIGTERM"), { code: 0, signal: null });
  });

  for (const policy of ["local", "open", "closed"]) {
    it(`without Redis under ${policy}`, async (t) => {
      const proxy = await TcpProxy.open(await sharedRedis());
      t.after(() => proxy.close());
      proxy.isClosed = true;
      const server = launch({
        directory: makeFolder(t),
        settings: { REDIS_URL: proxy.url, REDIS_POLICY: policy },
      });
      if (policy === "closed") await server.logged("the start waits for a service that does not answer");
      else {
        server.address = (await server.logged("latchkey is listening")).address as string;
        const limit = { namespace: "n", identifier: "i", limit: 5, duration: 3_600_000 };
        assert.equal((await server.ok("ratelimits.limit", limit)).success, true);
        const ready = (await (await fetch(`${server.address}/health/ready`)).json()) as { status: string };
        assert.equal(ready.status, "degraded");
      }
      proxy.isClosed = false;
      await server.logged(policy === "closed" ? "latchkey is listening" : "Redis answers again");
    });
  }
});

describe("a stop", () => {
  it("takes at most 10 s while PostgreSQL does not answer", async (t) => {
    const database = await freshDatabase();
    t.after(() => database.drop());
    const proxy = await TcpProxy.open(database.url);
    t.after(() => proxy.close());
    const server = await start({ directory: makeFolder(t), settings: { DATABASE_URL: proxy.url } });
    const { apiId } = await server.ok("apis.createApi", { name: "frozen" });
    proxy.stall();
    const open = server.call("keys.createKey", { apiId }).catch(() => undefined);
    const startedAt = systemClock.monotonic();
    await server.kill("SIGTERM");
    const took = systemClock.monotonic() - startedAt;
    await open;
    t.diagnostic(`stopped in ${(took / 1000).toFixed(1)} s`);
    // The limit of the service, and an allowance for the machine.
    assert(took < 10_000 + 2_000 * busyness(), `${took} ms`);
  });

  it("continues to serve during the drain, is not ready, and closes each connection after its answer", async (t) => {
    const server = await start({ directory: makeFolder(t), settings: { DRAIN: "8s" } });
    server.signal("SIGTERM");
    await server.logged("stopping: not ready for new requests, open requests are completed");
    const ready = await fetch(`${server.address}/health/ready`);
    assert.deepEqual([ready.status, await ready.json()], [503, { status: "shutting down" }]);
    const live = await fetch(`${server.address}/v2/liveness`);
    assert.deepEqual([live.status, live.headers.get("connection")], [200, "close"]);
    assert.equal((await server.call("apis.createApi", { name: "late" })).status, 200);
    assert.deepEqual(await server.ended, { code: 0, signal: null });
  });
});

describe("an embedded database that another process has locked", () => {
  it("leads to 503, and is used again afterwards", async (t) => {
    const directory = makeFolder(t);
    const server = await start({ directory });
    const other = new DatabaseSync(join(directory, "data", "latchkey.db"));
    other.exec("begin immediate");
    const answer = await server.call("apis.createApi", { name: "locked" });
    assert.equal(answer.status, 503, JSON.stringify(answer.body));
    other.exec("rollback");
    other.close();
    assert.equal((await server.call("apis.createApi", { name: "free" })).status, 200);
  });
});
