/** Callers who ask for leases without end, and what a crash right after a grant costs. */
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { askedLease, type GrantedLease } from "../edge.ts";
import { makeFolder, type Server, start } from "../process.ts";
import { sharedRedis } from "../services/redis.ts";
import { assertUnharmed, measureBeside, report, startMonitored } from "./innocent-tenant.ts";

const DAY = 86_400_000;
const limit = { name: "requests", limit: 1_000, duration: DAY, autoApply: true };
const asked = (key: string, more: object = {}) => askedLease(key, limit, more);

describe("Questions about leases without end", () => {
  for (const counters of ["memory", "Redis"] as const) {
    it(`leave direct callers unharmed, with counters in ${counters}`, async (t) => {
      const settings = counters === "Redis" ? { REDIS_URL: await sharedRedis(), REDIS_POLICY: "closed" } : {};
      const server = await startMonitored({ directory: makeFolder(t), settings });
      const { apiId } = await server.ok("apis.createApi", { name: "innocent" });
      const { key: innocent } = await server.ok("keys.createKey", { apiId });
      const { key } = await server.ok("workspaces.createWorkspace", { name: "flooder" });
      const attacked = await server.ok("apis.createApi", { name: "flooder" }, key);
      const ratelimits = Array.from({ length: 50 }, (_, i) => ({ ...limit, name: `limit ${i}` }));
      const created = await server.ok("keys.createKey", { apiId: attacked.apiId, ratelimits }, key);
      // The longest questions: 256 limits with four returns that nobody knows, or that were taken already.
      const returns = Array.from({ length: 4 }, (_, i) => ({ id: `${i}`.repeat(20), amount: 50, spent: 0 }));
      const leases = Array.from({ length: 256 }, (_, i) =>
        askedLease(created.key, ratelimits[i % 50], { want: 1_000, returns }),
      );
      let answered = 0;
      const measured = await measureBeside(
        server,
        { operation: "keys.verifyKey", bodies: [{ key: innocent }] },
        async () => {
          const ask = async () => {
            for (let i = 0; i < 12; i++) {
              const { status } = await server.call("replica.lease", { leases }, key);
              if (status === 200) answered++;
            }
          };
          await Promise.all(Array.from({ length: 8 }, ask));
        },
      );
      report(t, `${answered} questions about leases, counters in ${counters}`, measured);
      assert(answered > 0);
      assertUnharmed(measured);
    });
  }
});

describe("A service that is killed right after a grant (rule 189)", () => {
  async function killed(t: TestContext, settings: Record<string, string>): Promise<void> {
    const directory = makeFolder(t);
    const options = { directory, settings: { ANALYTICS: "off", ...settings } };
    let server = await start(options);
    const { apiId } = await server.ok("apis.createApi", { name: "killed" });
    let lost = 0;
    for (let round = 0; round < 4; round++) {
      const { key } = await server.ok("keys.createKey", { apiId, ratelimits: [limit] });
      const ask = async (from: Server, more: object = {}): Promise<(GrantedLease | null)[]> =>
        (await from.ok("replica.lease", { leases: [asked(key, { want: 30, ...more })] })).leases;
      const [granted] = await ask(server);
      await server.kill("SIGKILL");
      assert.equal(granted?.amount, 30);
      server = await start(options);
      const left = async (): Promise<number> =>
        (await server.ok("keys.verifyKey", { key, ratelimits: [{ name: "requests", cost: 0 }] })).ratelimits[0]
          .remaining;
      assert.equal(await left(), 970);
      // What is leased to whom is known in Redis only.
      await ask(server, { want: 0, returns: [{ id: granted.id, amount: 30, spent: 10 }] });
      const after = await left();
      assert.equal(after, settings.REDIS_URL ? 990 : 970);
      lost += 990 - after;
    }
    t.diagnostic(`4 kills; ${lost} of 80 returned were lost`);
    await server.kill("SIGKILL");
  }

  it("has counted it, with counters in memory", (t) => killed(t, {}));
  it("has counted it, with counters in memory that threads share", (t) => killed(t, { WORKERS: "2" }));
  it("has counted it, with counters in Redis", async (t) => killed(t, { REDIS_URL: await sharedRedis() }));
});
