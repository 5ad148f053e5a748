import assert from "node:assert/strict";
import { it } from "node:test";
import { describeOnStores, type TestServer } from "../harness.ts";

const DAY = 86_400_000;
const SWEEP_INTERVAL = 60_000;

interface RefillEvent {
  occurredAt: number;
  actor: string;
  targets: string[];
  dueAt: number;
  before: number;
  remaining: number;
}

/** The audit entries of refills of this key, in order. */
async function refillsOf(server: TestServer, keyId: string): Promise<RefillEvent[]> {
  const rows = await server.change([], ({ db }) =>
    db
      .selectFrom("audit_events")
      .selectAll()
      .where("action", "=", "credits.refill")
      .orderBy("occurred_at")
      .orderBy("id")
      .execute(),
  );
  return rows
    .map(({ occurred_at, actor, targets, meta }) => ({
      occurredAt: occurred_at,
      actor,
      targets: JSON.parse(targets),
      ...JSON.parse(meta),
    }))
    .filter(({ targets }) => targets.includes(keyId));
}

function goTo(server: TestServer, moment: string | number): void {
  const at = typeof moment === "number" ? moment : Date.parse(moment);
  server.clock.step(at - server.clock.now());
}

const daily = (amount: number) => ({ interval: "daily", amount });

/** A key with a refill, and its string. */
async function refilled(server: TestServer, remaining: number, refill: object) {
  return server.createKey(await server.createApi(), { credits: { remaining, refill } });
}

/** The first midnight after now. */
const midnight = (server: TestServer) => (Math.floor(server.clock.now() / DAY) + 1) * DAY;

describeOnStores("a refill", (server) => {
  it("is an audit entry with its due time and the balance before and after", async () => {
    const { keyId, key } = await refilled(server, 3, daily(10));
    const due = midnight(server);
    goTo(server, due + 5_000);
    assert.equal((await server.verify(key)).credits, 9);
    const [refill, ...others] = await refillsOf(server, keyId);
    assert.deepEqual(others, []);
    assert.deepEqual(refill, {
      occurredAt: due + 5_000,
      actor: "system",
      targets: [keyId],
      dueAt: due,
      before: 3,
      remaining: 10,
    });
  });

  it("applies from its due time on wherever a key is returned, and reads write nothing", async () => {
    const { keyId, key } = await refilled(server, 3, daily(10));
    const { apiId } = await server.getKey(keyId);
    const shown = async () => [
      (await server.getKey(keyId)).credits.remaining,
      (await server.ok("keys.whoami", { key })).credits.remaining,
      (await server.ok("apis.listKeys", { apiId }))[0].credits.remaining,
    ];
    const due = midnight(server);
    goTo(server, due - 1);
    assert.deepEqual(await shown(), [3, 3, 3]);
    goTo(server, due);
    assert.deepEqual(await shown(), [10, 10, 10]);
    assert.deepEqual(await refillsOf(server, keyId), []);
  });

  it("applies to a verification that fails before the charge, and to one with a cost of 0", async () => {
    const { keyId, key } = await refilled(server, 3, daily(10));
    await server.ok("keys.updateKey", { keyId, enabled: false });
    goTo(server, midnight(server));
    assert.deepEqual((({ code, credits }) => [code, credits])(await server.verify(key)), ["DISABLED", 10]);
    await server.ok("keys.updateKey", { keyId, enabled: true });
    const looked = await server.verify(key, { credits: { cost: 0 } });
    assert.deepEqual([looked.code, looked.credits], ["VALID", 10]);
    assert.equal((await refillsOf(server, keyId)).length, 1, "a cost of 0 writes the refill");
  });

  it("is applied before a change of the credits", async () => {
    const added = await refilled(server, 3, daily(10));
    const taken = await refilled(server, 3, daily(10));
    const kept = await refilled(server, 3, daily(10));
    goTo(server, midnight(server));
    const change = (keyId: string, operation: string, value: number) =>
      server.ok("keys.updateCredits", { keyId, operation, value });
    assert.equal((await change(added.keyId, "increment", 5)).remaining, 15);
    assert.equal((await change(taken.keyId, "decrement", 4)).remaining, 6);
    await server.ok("keys.updateKey", { keyId: kept.keyId, credits: { refill: daily(99) } });
    assert.equal((await server.getKey(kept.keyId)).credits.remaining, 10);
    for (const { keyId } of [added, taken, kept]) assert.equal((await refillsOf(server, keyId)).length, 1);
  });

  it("is applied once for any number of calls at its due time", async () => {
    const { keyId, key } = await refilled(server, 0, daily(30));
    goTo(server, midnight(server));
    const answers = await Promise.all(Array.from({ length: 50 }, () => server.verify(key)));
    assert.equal(answers.filter(({ code }) => code === "VALID").length, 30);
    assert.equal((await refillsOf(server, keyId)).length, 1);
  });

  it("that was missed for months is applied as the last one, by a call or by the sweep", async () => {
    const [used, idle] = [await refilled(server, 3, daily(10)), await refilled(server, 3, daily(10))];
    const monthly = await refilled(server, 3, { interval: "monthly", amount: 8, refillDay: 31 });
    const ofMonth = new Date(server.clock.now()).toISOString();
    assert(ofMonth < "2026-03-01");
    goTo(server, "2026-07-04T12:00:00Z");
    assert.equal((await server.verify(used.key)).credits, 9);
    assert.equal((await server.verify(monthly.key)).credits, 7);
    await server.pass(SWEEP_INTERVAL);
    for (const [{ keyId }, dueAt, remaining] of [
      [used, "2026-07-04", 10],
      [idle, "2026-07-04", 10],
      [monthly, "2026-06-30", 8],
    ] as const) {
      const refills = await refillsOf(server, keyId);
      assert.deepEqual(
        refills.map((refill) => [refill.dueAt, refill.before, refill.remaining]),
        [[Date.parse(dueAt), 3, remaining]],
      );
    }
    // The schedule continues from there.
    goTo(server, "2026-07-31T00:00:00Z");
    assert.equal((await server.verify(monthly.key)).credits, 7);
  });

  it("of an unused key is written by the sweep within a minute, for any number of keys", async () => {
    const apiId = await server.createApi();
    const made = await Promise.all(
      Array.from({ length: 230 }, () => server.createKey(apiId, { credits: { remaining: 1, refill: daily(7) } })),
    );
    goTo(server, midnight(server));
    await server.pass(SWEEP_INTERVAL);
    const rows = await server.change([], ({ db }) =>
      db
        .selectFrom("keys")
        .innerJoin("balances", "balances.pool_id", "keys.pool_id")
        .select(["keys.id", "balances.remaining", "balances.refill_due_at"])
        .where("keys.api_id", "=", apiId)
        .execute(),
    );
    assert.equal(rows.length, made.length);
    for (const { remaining, refill_due_at } of rows) {
      assert.deepEqual([remaining, refill_due_at], [7, midnight(server)]);
    }
    for (const { keyId } of [made[0]!, made.at(-1)!]) assert.equal((await refillsOf(server, keyId)).length, 1);
  });

  it("is not repeated when the clock is corrected around its due time", async () => {
    const { keyId, key } = await refilled(server, 3, daily(10));
    const due = midnight(server);
    goTo(server, due + 200);
    assert.equal((await server.verify(key, { credits: { cost: 10 } })).credits, 0);
    goTo(server, due - 300);
    assert.equal((await server.verify(key)).code, "USAGE_EXCEEDED");
    goTo(server, due + 1);
    assert.equal((await server.verify(key)).code, "USAGE_EXCEEDED");
    assert.equal((await refillsOf(server, keyId)).length, 1);
    goTo(server, due + DAY);
    assert.equal((await server.verify(key)).credits, 9);
  });

  it("returns to the schedule after a clock that was years ahead", async () => {
    const keys = [await refilled(server, 3, daily(10)), await refilled(server, 3, { interval: "monthly", amount: 10 })];
    const now = server.clock.now();
    goTo(server, now + 4 * 365 * DAY);
    for (const { key } of keys) assert.equal((await server.verify(key)).credits, 9);
    goTo(server, now);
    for (const { key } of keys) assert.equal((await server.verify(key, { credits: { cost: 9 } })).credits, 0);
    goTo(server, midnight(server));
    assert.equal((await server.verify(keys[0]!.key)).credits, 9);
    const next = new Date(now);
    goTo(server, Date.UTC(next.getUTCFullYear(), next.getUTCMonth() + 1, 1));
    assert.equal((await server.verify(keys[1]!.key)).credits, 9);
  });

  it("belongs to the pool: all keys of a reroll chain share one", async () => {
    const { keyId, key } = await refilled(server, 3, daily(10));
    const rerolled = await server.ok("keys.rerollKey", { keyId, expiration: 30 * DAY });
    goTo(server, midnight(server));
    assert.equal((await server.verify(key)).credits, 9);
    assert.equal((await server.verify(rerolled.key)).credits, 8);
    const refills = await refillsOf(server, keyId);
    assert.equal(refills.length, 1);
    assert.deepEqual(refills[0]!.targets.toSorted(), [keyId, rerolled.keyId].toSorted());
  });
});
