/** Callers who try to end the holds of others, to end one twice, or to hold more than there is. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { describeOnStores, type TestServer } from "../harness.ts";

const HOUR = 3_600_000;
const CREDITS_MAX = 1_000_000_000_000_000;

/** The changes of a hold, with a body of each. */
const changes = {
  "holds.settleHold": { credits: 1 },
  "holds.releaseHold": {},
  "holds.extendHold": { ttl: HOUR },
} as const;

describeOnStores("a hold", (server) => {
  const { make, createKey, createBudget, left, books } = maker(server);

  it("is missing for another workspace, for which every id looks the same (rule 94)", async () => {
    const { keyId, key } = await createKey(100);
    const holdId = await make(key, 40);
    const { key: as } = await server.workspace("elsewhere");
    const before = await server.ok("holds.getHold", { holdId });
    for (const [operation, body] of Object.entries({ ...changes, "holds.getHold": {} })) {
      const [theirs, invented] = await Promise.all(
        [holdId, "hold_never0existed000"].map((id) =>
          server.rejected(operation, { holdId: id, ...body }, "hold_not_found", { as }),
        ),
      );
      assert.deepEqual(theirs, invented);
    }
    assert.deepEqual(await server.ok("holds.listHolds", { keyId }, { as }), []);
    assert.deepEqual([await server.ok("holds.getHold", { holdId }), await left(keyId)], [before, 60]);
  });

  it("is not changed by a root key of another API, nor of the budget (rule 94)", async () => {
    const budgetId = await createBudget(100);
    const { key } = await createKey(100, { budgetId });
    const holdId = await make(key, 40);
    const other = await server.createApi();
    const { key: as } = await server.grant(
      `apis.${other}.verify_key`,
      `apis.${other}.read_key`,
      "apis.*.update_key",
      "budgets.*.update_budget",
    );
    for (const [operation, body] of Object.entries({ ...changes, "holds.getHold": {} })) {
      await server.rejected(operation, { holdId, ...body }, "insufficient_permissions", { as });
    }
    assert.deepEqual(await books(budgetId), [60, 40, 0]);
  });

  it("is neither made nor seen by the holder of a key (rule 90)", async () => {
    const apiId = await server.createApi();
    await server.ok("apis.updateApi", { apiId, ownKeyAccess: true });
    const { keyId, key } = await server.createKey(apiId, { credits: { remaining: 100 } });
    const body = { key, credits: { cost: 100 }, hold: { ttl: 24 * HOUR } };
    await server.rejected("keys.verifyKey", body, "authentication_missing", { as: null });
    await server.rejected("keys.verifyKey", body, "authentication_failed", { as: key });
    assert.equal(await left(keyId), 100);
    await make(key, 40);
    const own = await server.ok("keys.getOwnKey", { key }, { as: null });
    assert(!JSON.stringify(own).includes("hold_"));
    for (const operation of ["holds.listHolds", "holds.getHold"]) {
      await server.rejected(
        operation,
        operation === "holds.getHold" ? { holdId: "hold_x" } : {},
        "authentication_failed",
        {
          as: key,
        },
      );
    }
  });

  it("is settled by one of many settlements at once, and charged once (rule 91)", async () => {
    const budgetId = await createBudget(1_000);
    const { keyId, key } = await createKey(1_000, { budgetId });
    const holdId = await make(key, 100);
    const amounts = Array.from({ length: 12 }, (_, i) => i * 20);
    const replies = await Promise.all([
      ...amounts.map((credits) => server.call("holds.settleHold", { holdId, credits })),
      ...amounts.map(() => server.call("holds.releaseHold", { holdId })),
    ]);
    const ends = replies.flatMap(({ status, body }) => (status === 200 ? [body.data] : []));
    const distinct = new Set(ends.map((end) => JSON.stringify(end)));
    assert.equal(distinct.size, 1);
    for (const { status, problem } of replies) assert(status === 200 || problem === "hold_closed", problem);
    const { charged } = ends[0];
    assert.deepEqual([await left(keyId), await books(budgetId)], [1_000 - charged, [1_000 - charged, 0, charged]]);
  });

  it("does not take a balance below 0 or out of its range, whatever its settlement asks for (rule 92)", async () => {
    const budgetId = await createBudget(50);
    const watched = await createBudget(50, { onEmpty: "allow" });
    await server.ok("identities.createIdentity", { externalId: "giant", budgetId: watched });
    const { keyId, key } = await createKey(100, { budgetId, externalId: "giant" });
    const holdId = await make(key, 10);
    for (const credits of [CREDITS_MAX + 1, -1, 0.5, "1", null]) {
      await server.rejected("holds.settleHold", { holdId, credits }, "invalid_input");
    }
    assert.equal((await server.ok("holds.getHold", { holdId })).state, "open");
    const settled = await server.ok("holds.settleHold", { holdId, credits: CREDITS_MAX });
    assert.deepEqual([settled.charged, settled.uncovered], [50, CREDITS_MAX - 50]);
    assert.deepEqual([await left(keyId), (await books(budgetId))[0]], [0, 0]);
    const [remaining, held] = await books(watched);
    assert(remaining! >= -CREDITS_MAX && remaining! < 0 && held === 0);
  });

  it("is one of as many as the budget covers, of many at once", async () => {
    const budgetId = await createBudget(300);
    const keys = await Promise.all([1, 2, 3].map(() => createKey(null, { budgetId })));
    const body = { credits: { cost: 10 }, hold: { ttl: HOUR } };
    const answers = await Promise.all(Array.from({ length: 60 }, (_, i) => server.verify(keys[i % 3]!.key, body)));
    const made = answers.flatMap(({ hold }) => (hold ? [hold.holdId] : []));
    assert.equal(made.length, 30);
    assert.deepEqual(await books(budgetId), [0, 300, 0]);
    await Promise.all(made.map((holdId) => server.ok("holds.settleHold", { holdId, credits: 1 })));
    assert.deepEqual(await books(budgetId), [270, 0, 30]);
  });

  it("of a rotated key is paid once by the pool of both keys, and by the budget of each (rule 90)", async () => {
    const [former, next] = [await createBudget(100), await createBudget(100)];
    const { keyId, key } = await createKey(100, { budgetId: former });
    const before = await make(key, 30);
    const rotated = await server.ok("keys.rerollKey", { keyId, expiration: HOUR });
    await server.ok("keys.updateKey", { keyId: rotated.keyId, budgetId: next });
    const [of, ofNext] = await Promise.all([make(key, 20), make(rotated.key, 50)]);
    assert.deepEqual([await left(keyId), await left(rotated.keyId)], [0, 0]);
    assert.deepEqual(
      [await books(former), await books(next)],
      [
        [50, 50, 0],
        [50, 50, 0],
      ],
    );
    for (const one of [key, rotated.key]) {
      assert.equal((await server.verify(one, { credits: { cost: 1 } })).code, "USAGE_EXCEEDED");
    }
    await server.ok("holds.settleHold", { holdId: before, credits: 10 });
    await server.ok("holds.settleHold", { holdId: ofNext, credits: 60 });
    await server.ok("holds.releaseHold", { holdId: of });
    assert.deepEqual([await left(keyId), await left(rotated.keyId)], [30, 30]);
    assert.deepEqual(
      [await books(former), await books(next)],
      [
        [90, 0, 10],
        [40, 0, 60],
      ],
    );
  });

  it("is settled although its key was deleted and its budget taken away meanwhile", async () => {
    const budgetId = await createBudget(100);
    const { keyId, key } = await createKey(100, { budgetId });
    const holdId = await make(key, 40);
    await server.ok("keys.updateKey", { keyId, budgetId: null });
    await server.ok("keys.deleteKey", { keyId });
    assert.equal((await server.ok("holds.settleHold", { holdId, credits: 25 })).charged, 25);
    assert.deepEqual(await books(budgetId), [75, 0, 25]);
  });
});

function maker(server: TestServer) {
  return {
    async make(key: string, cost: number): Promise<string> {
      return (await server.verify(key, { credits: { cost }, hold: { ttl: HOUR } })).hold.holdId;
    },
    async createKey(credits: number | null, more: object = {}) {
      return server.createKey(await server.createApi(), { credits: { remaining: credits }, ...more });
    },
    async createBudget(remaining: number, more: object = {}): Promise<string> {
      return (await server.ok("budgets.createBudget", { name: "adversary", remaining, ...more })).budgetId;
    },
    async left(keyId: string): Promise<number> {
      return (await server.getKey(keyId)).credits.remaining;
    },
    /** What a budget has: remaining, held and spent. */
    async books(budgetId: string): Promise<number[]> {
      const { remaining, held, totals } = await server.ok("budgets.getBudget", { budgetId });
      assert.equal(totals.granted, totals.spent + held + remaining + totals.lapsed);
      return [remaining, held, totals.spent];
    },
  };
}
