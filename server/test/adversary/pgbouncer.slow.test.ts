/** Nodes that reach PostgreSQL through PgBouncer. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, it } from "node:test";
import { needTool, tools } from "../deploy/tools.ts";
import { makeFolder, type Server, start } from "../process.ts";
import { RollingLoad } from "../rolling-load.ts";
import { startPgBouncer } from "../services/pgbouncer.ts";
import { freshDatabase } from "../services/postgres.ts";
import { sharedRedis } from "../services/redis.ts";

/** Enough for the load to reach its limit. */
const CALLS = 1_000;

describe("two nodes behind PgBouncer", () => {
  it("in session mode serve, spend, revoke and hold their claim as without it", async (t) => {
    const program = needTool(t, tools.pgbouncer);
    if (program === undefined) return;
    const database = await freshDatabase();
    t.after(() => database.drop());
    const pooler = await startPgBouncer(program, database.url, "session");
    t.after(() => pooler.stop());
    const directory = makeFolder(t);
    const nodes: Server[] = [];
    for (const name of ["a", "b"]) {
      const settings = { DATABASE_URL: pooler.url, REDIS_URL: await sharedRedis(), DATA_DIR: join(directory, name) };
      nodes.push(await start({ directory, settings: { ...settings, ANALYTICS: "on" } }));
    }
    t.after(() => Promise.all(nodes.map((node) => node.kill("SIGKILL"))));
    const load = new RollingLoad();
    await load.open(nodes[0]!);
    load.nodes = nodes;
    load.start();
    await load.answer(CALLS);
    await load.stop();
    await load.check();
    for (const node of nodes) {
      const ready = await fetch(`${node.address}/health/ready`);
      assert.deepEqual(await ready.json(), { status: "ok" });
      assert(!node.log.some(({ msg }) => /claim.*is lost/.test(String(msg))), node.output);
    }
    for (const node of nodes) assert.equal((await node.kill("SIGTERM")).code, 0);
  });
});
