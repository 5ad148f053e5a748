/** Thousands of calls that a shared root budget refuses, beside a caller below another root. */
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { makeFolder } from "../process.ts";
import { freshDatabase } from "../services/postgres.ts";
import { sharedRedis } from "../services/redis.ts";
import { assertUnharmed, measureBeside, report, startMonitored } from "./innocent-tenant.ts";

const CALLS = 20_000;
/** Calls of the attacker at any time. */
const OPEN = 256;
const KEYS = 50;

async function attackRoot(t: TestContext, settings: Record<string, string>): Promise<void> {
  const server = await startMonitored({ directory: makeFolder(t), settings: { ...settings, ANALYTICS: "off" } });
  const { apiId } = await server.ok("apis.createApi", { name: "roots" });
  const budget = async (remaining: number, more: object = {}): Promise<string> =>
    (await server.ok("budgets.createBudget", { name: "root", remaining, ...more })).budgetId;
  const createKey = async (budgetId: string): Promise<string> =>
    (await server.ok("keys.createKey", { apiId, budgetId })).key;
  const [empty, other] = [await budget(9), await budget(1_000_000)];
  const attacking = await Promise.all(
    Array.from({ length: KEYS }, async () => createKey(await budget(1_000_000, { parentId: empty }))),
  );
  // The root never covers a call, and holds of it may expire.
  const { hold } = await server.ok("keys.verifyKey", { key: attacking[0], credits: { cost: 5 }, hold: { ttl: 1_000 } });
  assert(hold.holdId);
  const innocent = { operation: "keys.verifyKey", bodies: [{ key: await createKey(other) }] };
  const codes = new Map<string, number>();
  const measured = await measureBeside(server, innocent, async () => {
    let sent = 0;
    const caller = async () => {
      while (sent < CALLS) {
        const key = attacking[sent++ % KEYS];
        const { status, body } = await server.call("keys.verifyKey", { key, credits: { cost: 10 } });
        const code = status === 200 ? body.data.code : String(status);
        codes.set(code, (codes.get(code) ?? 0) + 1);
      }
    };
    await Promise.all(Array.from({ length: OPEN }, caller));
  });
  report(t, `${CALLS} refused calls below one root`, measured);
  assert.deepEqual([...codes.keys()], ["USAGE_EXCEEDED"], JSON.stringify([...codes]));
  assertUnharmed(measured);
  await server.kill("SIGTERM");
}

describe("20,000 calls that one root refuses do not delay the calls of another", () => {
  it("on the embedded database", (t) => attackRoot(t, {}));

  it("on PostgreSQL", async (t) => {
    const database = await freshDatabase();
    t.after(() => database.drop());
    await attackRoot(t, { DATABASE_URL: database.url, REDIS_URL: await sharedRedis() });
  });
});
