/** Counts of one tenant that are as large as its edge can report, or as its holds can spend. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { describeOnStores, type TestServer } from "../harness.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
/** Cells of the largest report, and the largest values of one. */
const CELLS = 2_000;
const COUNT_MAX = 1_000_000_000;
const LATENCY_MAX = 2 ** 52;

/** What the statistics of this day say about a key. */
async function totalOf(server: TestServer, keyId: string, as: string): Promise<number> {
  const start = server.clock.now() - (server.clock.now() % HOUR) - 6 * HOUR;
  const stats = await server.ok("analytics.getKeyStats", { keyId, start, end: start + 8 * HOUR }, { as });
  return stats.total;
}

async function tenant(server: TestServer, name: string) {
  const { key: as } = await server.workspace(name);
  const { apiId } = await server.ok("apis.createApi", { name }, { as });
  const { key, keyId } = await server.ok("keys.createKey", { apiId }, { as });
  return { as, apiId, key, keyId };
}

describeOnStores("a tenant with counts that are too large to be added up", (server) => {
  it("keeps no count of another tenant from the statistics (rule 216)", async () => {
    const [hostile, innocent] = [await tenant(server, "hostile"), await tenant(server, "innocent")];
    let edges = 0;
    const report = (of: typeof hostile, count: number, latency: number, cells: number) => {
      const minute = server.clock.now() - (server.clock.now() % MINUTE);
      const cell = [minute, of.apiId, of.keyId, null, "", "VALID", count, latency];
      const verifications = Array(cells).fill(cell);
      const body = { recorder: `edge${++edges}`, sequence: 1, verifications, uses: [] };
      return server.call("replica.report", body, { as: of.as });
    };
    // As much as fits into a column.
    const full = 2 ** 63 / LATENCY_MAX;
    assert.equal((await report(hostile, COUNT_MAX, LATENCY_MAX, CELLS)).status, 200);
    assert.equal((await report(hostile, COUNT_MAX, LATENCY_MAX, full - 1 - CELLS)).status, 200);
    assert.equal((await report(hostile, COUNT_MAX, LATENCY_MAX - 1_024, 1)).status, 200);

    // One more at the service, in the batch of all tenants.
    server.store.interception = async (_, proceed) => {
      server.clock.advance(5);
      return proceed();
    };
    await server.verify(hostile.key, {}, { as: hostile.as });
    server.store.interception = undefined;
    await server.verify(innocent.key, {}, { as: innocent.as });
    // Reports of several edges are written together.
    const together = [report(hostile, COUNT_MAX, LATENCY_MAX, CELLS)];
    for (let i = 0; i < 3; i++) together.push(report(i === 1 ? innocent : hostile, 1, LATENCY_MAX, 1));
    assert.deepEqual(
      (await Promise.all(together)).map(({ status }) => status),
      [200, 200, 200, 200],
    );
    await server.pass(10_000);
    assert.equal(await totalOf(server, innocent.keyId, innocent.as), 2);
    assert.equal(await totalOf(server, hostile.keyId, hostile.as), (full + CELLS) * COUNT_MAX + 3);
    // Minutes are added up to hours and days.
    await server.pass(6 * MINUTE);
    await server.verify(innocent.key, {}, { as: innocent.as });
    await server.pass(10_000);
    assert.equal(await totalOf(server, innocent.keyId, innocent.as), 3);
  });
});
