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
      await server.advance(5);
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

  it("is answered with sums that stop at 2^53 - 1 (rule 216)", async () => {
    const CREDITS_MAX = 1_000_000_000_000_000;
    const { key: as } = await server.workspace("spender");
    const ok = (operation: string, body: object) => server.ok(operation, body, { as });
    const { apiId } = await ok("apis.createApi", { name: "spent" });
    const [externalId, credits] = ["spender", { remaining: CREDITS_MAX }];
    const { budgetId } = await ok("budgets.createBudget", { name: "spent", remaining: CREDITS_MAX });
    const { key, keyId } = await ok("keys.createKey", { apiId, externalId, credits, budgetId });
    // In two hours, each with more than can be added up, and with two sets of tags.
    for (let spend = 0; spend < 40; spend++) {
      if (spend === 20) server.clock.step(HOUR);
      const tags = ["all", `half=${spend % 2}`];
      const { hold } = await ok("keys.verifyKey", { key, tags, credits: { cost: 0 }, hold: { ttl: MINUTE } });
      const settled = await ok("holds.settleHold", { holdId: hold.holdId, credits: CREDITS_MAX, tags });
      assert.equal(settled.charged, CREDITS_MAX);
      await ok("keys.updateCredits", { keyId, operation: "set", value: CREDITS_MAX });
      await ok("budgets.updateCredits", { budgetId, operation: "set", value: CREDITS_MAX });
    }
    await server.pass(10_000);
    const start = server.clock.now() - (server.clock.now() % (24 * HOUR)) - 24 * HOUR;
    for (const granularity of ["hour", "day"]) {
      const range = { start, end: start + 72 * HOUR, granularity };
      const statistics = {
        "analytics.getKeyStats": { keyId },
        "analytics.getApiStats": { apiId },
        "analytics.getIdentityStats": { identity: externalId },
        "analytics.getBudgetStats": { budgetId },
      };
      for (const [operation, of] of Object.entries(statistics)) {
        for (const tags of [undefined, ["all"]]) {
          const { creditsSpent } = await ok(operation, { ...of, ...range, tags });
          assert.equal(creditsSpent, Number.MAX_SAFE_INTEGER, operation);
        }
      }
      const { keys } = await ok("analytics.listTopKeys", range);
      const { identities } = await ok("analytics.listTopIdentities", range);
      assert.deepEqual([keys[0].creditsSpent, keys[0].total], [Number.MAX_SAFE_INTEGER, 40]);
      assert.deepEqual([identities[0].creditsSpent, identities[0].total], [Number.MAX_SAFE_INTEGER, 40]);
    }
  });
});
