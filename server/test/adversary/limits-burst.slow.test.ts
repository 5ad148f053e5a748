/** Whether several nodes keep a limit when the CPU is saturated. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { burst, saturate } from "../burst.ts";
import { makeFolder, type Server, start } from "../process.ts";
import { parseExposition } from "../prometheus.ts";
import { freshDatabase } from "../services/postgres.ts";
import { startRedis } from "../services/redis.ts";

const LIMIT = 100;
const CALLS = 1_000;

describe("three nodes on a saturated machine", () => {
  it("admit exactly the limit of a burst on a fresh limit, in the default configuration", async (t) => {
    const database = await freshDatabase();
    t.after(() => database.drop());
    const redis = await startRedis();
    t.after(() => redis.stop());
    const nodes: Server[] = [];
    for (let i = 0; i < 3; i++) {
      const settings = { DATABASE_URL: database.url, REDIS_URL: redis.url };
      nodes.push(await start({ directory: makeFolder(t), settings }));
    }
    // Two rounds: in the first one the code is not compiled yet.
    for (const round of ["cold", "warm"]) {
      const load = saturate();
      let tally: Map<string, number>;
      try {
        tally = await burst(nodes, { identifier: round, limit: LIMIT, calls: CALLS });
      } finally {
        load.end();
      }
      const exposed = await Promise.all(
        nodes.map(async ({ address }) => parseExposition(await (await fetch(`${address}/metrics`)).text())),
      );
      const outages = exposed.map((one) => one.value("latchkey_redis_outages_total"));
      const outcomes = [...tally].map(([outcome, count]) => `${outcome} ${count}`).join(", ");
      const admitted = tally.get("admitted") ?? 0;
      t.diagnostic(`${round}: admitted ÷ limit ${(admitted / LIMIT).toFixed(2)} (${outcomes}), outages ${outages}`);
      assert.ok(admitted <= LIMIT, `admitted ${admitted}`);
    }
  });
});
