/** The limits of holds, over the API. The counters themselves are compared with a model in their own tests. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { describeOnStores, openTestServer, type TestServer } from "../harness.ts";
import { sharedRedis } from "../services/redis.ts";

/** Redis has its own clock: no window of this length ends during a test, except at midnight. */
const DAY = 86_400_000;
const hold = { ttl: 60_000 };
/** Named after this process, because counters in Redis can outlive a run, and ids are those of the run before. */
const [TOKENS, STRICT, REQUESTS] = ["tokens", "strict tokens", "requests"].map((name) => `${name} ${process.pid}`);

describeOnStores("limits of holds", (server) =>
  tests(
    () => server,
    () => server,
  ),
);

describe("limits of holds with counters in Redis", () => {
  let one: TestServer;
  let other: TestServer;
  before(async () => {
    const settings = { REDIS_URL: await sharedRedis() };
    one = await openTestServer({ store: "postgres", settings });
    other = await openTestServer({ beside: one, settings });
  });
  after(async () => {
    await other?.close();
    await one?.close();
  });
  tests(
    () => one,
    () => other,
  );
});

let teams = 0;

/** `verifying` makes the holds, `settling` ends them. */
function tests(verifying: () => TestServer, settling: () => TestServer): void {
  /** A key and its identity with limits of tokens. */
  async function createKey(more: object = {}) {
    const server = verifying();
    const externalId = `team_${teams++}`;
    await server.ok("identities.createIdentity", {
      externalId,
      ratelimits: [{ name: TOKENS, limit: 9_000, duration: DAY, autoApply: false }],
    });
    const ratelimits = [
      { name: TOKENS, limit: 5_000, duration: DAY, autoApply: false },
      { name: STRICT, limit: 5_000, duration: DAY, mode: "strict", autoApply: false },
      { name: REQUESTS, limit: 100, duration: DAY, autoApply: true },
    ];
    return server.createKey(await server.createApi(), { externalId, ratelimits, ...more });
  }
  const named = (cost: number) => [TOKENS, STRICT].map((name) => ({ name, cost }));
  const make = async (key: string, cost = 1_200, more: object = {}): Promise<string> => {
    const ratelimits = [...named(cost), { name: REQUESTS }];
    const answer = await verifying().verify(key, { hold, ratelimits, ...more });
    assert.equal(answer.code, "VALID");
    return answer.hold.holdId;
  };
  const settle = (holdId: string, cost: number | undefined, credits = 0) =>
    settling().ok("holds.settleHold", { holdId, credits, ...(cost !== undefined && { ratelimits: named(cost) }) });
  /** What was used of the limits: tokens of the key and of its identity, strict tokens, requests. */
  const used = async (key: string): Promise<number[]> => {
    const ratelimits = [TOKENS, STRICT, REQUESTS].map((name) => ({ name, cost: 0 }));
    const explained = await verifying().ok("keys.explainVerification", { key, ratelimits });
    return explained.ratelimits.map((limit: { used: number }) => limit.used);
  };

  it("are corrected by the settlement, once (rule 95)", async () => {
    for (const more of [{}, { credits: { remaining: 100 } }]) {
      const { key } = await createKey(more);
      const holdId = await make(key);
      const others = await make(key, 50);
      assert.deepEqual(await used(key), [1_250, 1_250, 1_250, 2]);
      const first = await settle(holdId, 911);
      assert.deepEqual(await used(key), [961, 961, 961, 2]);
      assert.deepEqual(await Promise.all([1, 2, 3].map(() => settle(holdId, 911))), [first, first, first]);
      const other = { holdId, credits: 0, ratelimits: named(3) };
      await settling().rejected("holds.settleHold", other, "hold_closed");
      assert.deepEqual(await used(key), [961, 961, 961, 2]);
      await settle(others, 0);
      assert.deepEqual(await used(key), [911, 911, 911, 2]);
    }
  });

  it("are charged more than was held without a denial, and deny the calls after it (rule 95)", async () => {
    const { key } = await createKey();
    const holdId = await make(key, 4_000);
    await settle(holdId, 6_000);
    assert.deepEqual(await used(key), [6_000, 6_000, 6_000, 1]);
    await settle(holdId, 6_000);
    assert.deepEqual(await used(key), [6_000, 6_000, 6_000, 1]);
    const { code, ratelimits } = await verifying().verify(key, { ratelimits: [{ name: TOKENS, cost: 0 }] });
    const [ofKey, ofIdentity] = ratelimits;
    assert.deepEqual([code, ofKey.remaining, ofIdentity.remaining], ["RATE_LIMITED", 0, 3_000]);
  });

  it("stay charged unless a settlement names them (rule 95)", async () => {
    const { key } = await createKey();
    await settle(await make(key), undefined);
    await settling().ok("holds.releaseHold", { holdId: await make(key) });
    assert.deepEqual(await used(key), [2_400, 2_400, 2_400, 2]);
  });

  it("that the verification did not charge are refused, and nothing is settled", async () => {
    const { keyId, key } = await createKey({ credits: { remaining: 100 } });
    const holdId = await make(key, 10, { credits: { cost: 40 } });
    const body = {
      holdId,
      credits: 3,
      ratelimits: [
        { name: TOKENS, cost: 1 },
        { name: "seconds", cost: 1 },
      ],
    };
    const { detail } = await settling().rejected("holds.settleHold", body, "precondition_failed");
    assert.match(detail, /no limit 'seconds'/);
    await settling().rejected("holds.settleHold", { ...body, ratelimits: [...named(1), ...named(2)] }, "invalid_input");
    assert.equal((await settling().ok("holds.getHold", { holdId })).state, "open");
    assert.deepEqual([await used(key), (await settling().getKey(keyId)).credits.remaining], [[10, 10, 10, 1], 60]);
    const unlimited = await verifying().createKey(await verifying().createApi());
    const { holdId: without } = (await verifying().verify(unlimited.key, { hold })).hold;
    await settling().rejected("holds.settleHold", { ...body, holdId: without }, "precondition_failed");
  });

  it("are few with short names for one hold, and more are refused before anything is charged (rule 90)", async () => {
    const { keyId, key } = await createKey({ credits: { remaining: 100 } });
    const limits = (count: number, length: number) =>
      Array.from({ length: count }, (_, i) => ({
        name: `${i}`.padEnd(length, "\u0001"),
        cost: 1,
        limit: 10 ** 12,
        duration: 366 * DAY,
      }));
    const most = { key, hold, ratelimits: limits(10, 100) };
    for (const ratelimits of [limits(11, 2), [...limits(9, 100), ...limits(1, 101)]]) {
      for (const operation of ["keys.verifyKey", "keys.explainVerification"]) {
        const { detail } = await verifying().rejected(operation, { ...most, ratelimits }, "invalid_input");
        assert.match(detail, /at most 10 limits/);
      }
      assert.equal((await verifying().verify(key, { ratelimits, credits: { cost: 0 } })).code, "VALID");
    }
    assert.equal((await verifying().getKey(keyId)).credits.remaining, 100);
    const { hold: held } = await verifying().ok("keys.verifyKey", most);
    await verifying().change([], async ({ db }) => {
      const row = await db.selectFrom("holds").select("limits").where("id", "=", held.holdId).executeTakeFirstOrThrow();
      assert(row.limits && row.limits.length < 9_000, `${row.limits?.length} characters`);
    });
    // Limits that apply automatically and are only checked do not count.
    const ratelimits = Array.from({ length: 11 }, (_, i) => ({
      name: `${i}`,
      limit: 9,
      duration: DAY,
      autoApply: true,
    }));
    const { key: many } = await verifying().createKey(await verifying().createApi(), { ratelimits });
    await verifying().rejected("keys.verifyKey", { key: many, hold }, "invalid_input");
    assert.equal((await verifying().verify(many, { hold, ratelimits: [{ name: "1" }] })).code, "VALID");
  });

  it("are charged once by a repeated verification, and corrected for it", async () => {
    const { key } = await createKey();
    const headers = { "Idempotency-Key": `limits-${key.slice(-8)}` };
    const body = { key, hold, ratelimits: named(1_200) };
    const first = await verifying().ok("keys.verifyKey", body, { headers });
    const again = await settling().ok("keys.verifyKey", body, { headers });
    assert.equal(again.hold.holdId, first.hold.holdId);
    await settle(first.hold.holdId, 100);
    assert.deepEqual(await used(key), [100, 100, 100, 0]);
  });

  it("are not corrected by a settlement that the ledger did not make", async () => {
    const { key } = await createKey();
    const holdId = await make(key);
    const answers = await Promise.all(
      [900, 901, 902, 903].map((cost) =>
        settling().call("holds.settleHold", { holdId, credits: 0, ratelimits: named(cost) }),
      ),
    );
    const winner = answers.findIndex(({ status }) => status === 200);
    assert.deepEqual(answers.map(({ status }) => status).toSorted(), [200, 409, 409, 409]);
    const cost = 900 + winner;
    assert.deepEqual(await used(key), [cost, cost, cost, 1]);
  });
}
