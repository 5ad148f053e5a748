/** Two nodes, whose clocks are minutes apart, that end the same holds at the moment of their expiry. `SEED=17` repeats a run. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setTimeout } from "node:timers/promises";
import { Client } from "pg";
import { systemClock } from "../../../engine/src/clock/system.ts";
import { seededRandom } from "../../../engine/src/random/seeded.ts";
import { eventually, makeFolder, start } from "../process.ts";
import { fakeClock } from "../services/faketime.ts";
import { freshDatabase } from "../services/postgres.ts";
import { sharedRedis } from "../services/redis.ts";

const HOUR = 3_600_000;
const ROUNDS = 6;
const HOLDS = 30;
const CREDITS = 500;
/** Seconds by which the clocks of the nodes are wrong. */
const SHIFTS = ["+300", "-300"];
const seed = Number(process.env.SEED ?? 1);

describe("holds of two nodes with clocks ten minutes apart", () => {
  it("end once when settlements, releases, extensions, expiries and refills meet", async (t) => {
    const random = seededRandom(seed);
    const database = await freshDatabase();
    t.after(() => database.drop());
    const settings = { DATABASE_URL: database.url, REDIS_URL: await sharedRedis() };
    if (fakeClock({}, true) === undefined) t.diagnostic("libfaketime is missing: the clocks agree");
    const nodes = await Promise.all(
      SHIFTS.map((FAKETIME) =>
        start({ directory: makeFolder(t), settings, environment: fakeClock({ FAKETIME }, false) ?? {} }),
      ),
    );
    const node = () => nodes[random.below(nodes.length)]!;
    const { apiId } = await node().ok("apis.createApi", { name: "races" });
    const { budgetId } = await node().ok("budgets.createBudget", {
      name: "races",
      remaining: CREDITS,
      refill: { interval: "hourly", amount: CREDITS, rollover: 50 },
    });
    const { key } = await node().ok("keys.createKey", { apiId, budgetId });
    // Several first holds at once would not all be accepted.
    const first = await node().ok("keys.verifyKey", { key, credits: { cost: 1 }, hold: { ttl: HOUR } });
    await node().ok("holds.releaseHold", { holdId: first.hold.holdId });
    const observer = new Client({ connectionString: database.url });
    observer.on("error", () => {});
    await observer.connect();

    let isOver = false;
    /** Lets a refill be due every now and then, by the clock of any node. */
    const refilling = (async () => {
      while (!isOver) {
        const due = systemClock.now() - HOUR;
        const values = [due - (due % HOUR), budgetId];
        await observer.query("update balances set refill_due_at = $1, refill_mark = null where pool_id = $2", values);
        await setTimeout(300);
      }
    })();
    /** Lacks credits, so that it searches for expired holds. */
    const lacking = (async () => {
      while (!isOver) {
        const { code } = await node().ok("keys.verifyKey", { key, credits: { cost: 100 * CREDITS } });
        assert.equal(code, "USAGE_EXCEEDED");
        await setTimeout(20);
      }
    })();

    const told = new Map<string, { state: string; charged: number }[]>();
    for (let round = 0; round < ROUNDS; round++) {
      const ttl = 1_000 + random.below(500);
      const sentAt = systemClock.now();
      const onExpiry = round % 2 === 0 ? "charge" : "release";
      const answers = await Promise.all(
        Array.from({ length: HOLDS }, () =>
          node().ok("keys.verifyKey", { key, credits: { cost: 1 + random.below(9) }, hold: { ttl, onExpiry } }),
        ),
      );
      const made = answers.flatMap(({ hold }) => hold ?? []);
      assert(made.length > 0);
      for (const { holdId, expiresAt } of made) {
        // By the clock of the database, whichever node made it.
        assert(expiresAt >= sentAt + ttl - 5 && expiresAt <= systemClock.now() + ttl + 5, `${expiresAt - sentAt} ms`);
        told.set(holdId, []);
      }
      const end = async (holdId: string, operation: string, body: object) => {
        const { status, body: answer } = await node().call(operation, { holdId, ...body });
        assert([200, 409, 503].includes(status), JSON.stringify(answer));
        if (status === 200 && operation !== "holds.extendHold") told.get(holdId)!.push(answer.data);
      };
      await Promise.all(
        made.map(async ({ holdId, expiresAt }) => {
          await setTimeout(Math.max(0, expiresAt - systemClock.now() - 20 + random.below(40)));
          const credits = random.below(12);
          const ends: [operation: string, body: object][] = [
            ["holds.settleHold", { credits }],
            ["holds.settleHold", { credits: credits + random.below(2) }],
            ["holds.releaseHold", {}],
            ["holds.extendHold", { ttl: 1_000 }],
          ];
          const chosen = ends.filter(() => random.below(2) === 0);
          await Promise.all(chosen.map(([operation, body]) => end(holdId, operation, body)));
        }),
      );
    }
    isOver = true;
    await Promise.all([refilling, lacking]);

    // Those that were only extended expire by themselves, a second later.
    const books = () => node().ok("budgets.getBudget", { budgetId });
    await eventually("all holds to end", async () => (await books()).held === 0);
    let charged = 0;
    const states = new Map<string, number>();
    for (const [holdId, ends] of told) {
      const hold = await node().ok("holds.getHold", { holdId });
      assert.notEqual(hold.state, "open");
      for (const { state, charged } of ends) {
        assert.deepEqual([state, charged], [hold.state, hold.charged], `${holdId}: ${JSON.stringify(ends)}`);
      }
      charged += hold.charged;
      states.set(hold.state, (states.get(hold.state) ?? 0) + 1);
    }
    const { remaining, totals } = await books();
    assert.equal(totals.granted, totals.spent + remaining + totals.lapsed);
    assert.equal(totals.spent, charged);
    assert(totals.granted > CREDITS, "refills came between");
    t.diagnostic(`${told.size} holds, ${JSON.stringify([...states])}, ${JSON.stringify({ remaining, ...totals })}`);
    await observer.end();
    await Promise.all(nodes.map((node) => node.kill("SIGTERM")));
  });
});
