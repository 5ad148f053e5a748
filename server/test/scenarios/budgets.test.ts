import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { it } from "node:test";
import { sql as raw } from "kysely";
import { seededRandom } from "../../../engine/src/random/seeded.ts";
import { findBalancesForUpdate, subtractCredits } from "../../src/features/credits/statements/balances.ts";
import { describeOnStores, type TestServer } from "../harness.ts";

describeOnStores("the first budget", (server, store) => {
  const body = { name: "early", remaining: 1 };

  it("is not created beside an earlier release, which cannot be started afterwards", async () => {
    if (store === "postgres") {
      await server.besideEarlierRelease(async () => {
        const { detail } = await server.rejected("budgets.createBudget", body, "precondition_failed");
        assert.match(detail, /Upgrade every node/);
      });
    }
    const needs = () =>
      server.change([], async ({ db }) => {
        const { rows } = await raw<{ needs: number }>`select max(needs) as needs from schema_steps`.execute(db);
        return Number(rows[0]!.needs);
      });
    assert.equal(await needs(), 0);
    await server.ok("budgets.createBudget", body);
    assert.equal(await needs(), 37);
  });
});

describeOnStores("budgets", tests);

const DAY = 86_400_000;

function tests(server: TestServer): void {
  const create = async (body: object = {}): Promise<string> =>
    (await server.ok("budgets.createBudget", { name: "team", remaining: 100, ...body })).budgetId;
  const get = (budgetId: string) => server.ok("budgets.getBudget", { budgetId });
  const eventsOf = async (budgetId: string): Promise<{ type: string; data: Record<string, unknown> }[]> => {
    const events = await server.ok("events.listEvents", { objectId: budgetId });
    return events.map(({ type, data }: { type: string; data: { actor?: string } }) => {
      const { actor: _, ...rest } = data;
      return { type, data: rest };
    });
  };
  /** Spends of a budget, as the ledger makes them. */
  const spend = (budgetId: string, amount: number) =>
    server.change([], async (sql) => {
      const [random, now] = [seededRandom(server.clock.now() + ++spends), server.clock.now()];
      const balances = await findBalancesForUpdate(sql, [budgetId], random, now);
      await subtractCredits(sql, [{ balanceId: budgetId, amount }], { balances, random, now });
    });
  let spends = 0;

  it("are created with a refill, thresholds and a unit, and listed as a tree", async () => {
    const refill = { interval: "monthly", amount: 500, refillDay: 31, timeZone: "Europe/Berlin", rollover: 50 };
    const root = await create({ name: "company", refill, thresholds: [80, 50, 80], unit: "token", meta: { cost: 7 } });
    const child = await create({ name: "search", parentId: root, onEmpty: "allow" });
    const now = server.clock.now();
    assert.deepEqual(await get(root), {
      budgetId: root,
      name: "company",
      unit: "token",
      onEmpty: "deny",
      remaining: 100,
      held: 0,
      refill,
      spent: 0,
      totals: { granted: 100, spent: 0, lapsed: 0 },
      thresholds: [50, 80],
      meta: { cost: 7 },
      createdAt: now,
    });
    const shown = await get(child);
    assert.deepEqual([shown.parentId, shown.unit, shown.onEmpty], [root, "token", "allow"]);
    const ids = async (body: object) =>
      (await server.ok("budgets.listBudgets", body)).map(({ budgetId }: { budgetId: string }) => budgetId);
    assert.deepEqual(await ids({ parentId: root }), [child]);
    assert.deepEqual(await ids({ parentId: null, search: "COMPANY" }), [root]);
    assert.deepEqual(await ids({ parentId: child }), []);
    const [entry] = await server.ok("audit.listEvents", { target: child });
    assert.deepEqual(
      [entry.action, entry.meta],
      ["budgets.createBudget", { name: "search", remaining: 100, parentId: root, onEmpty: "allow" }],
    );
    assert.deepEqual(await eventsOf(child), [{ type: "budget.created", data: { budgetId: child, name: "search" } }]);
  });

  it("have at most four levels, one unit in a tree, and a refill of the right shape", async () => {
    let parentId = await create({ unit: "token" });
    for (let level = 2; level <= 4; level++) parentId = await create({ parentId });
    const body = { name: "fifth", remaining: 0 };
    const tooDeep = await server.rejected("budgets.createBudget", { ...body, parentId }, "invalid_input");
    assert.match(tooDeep.detail, /^parentId must not be on level 4/);
    const root = await create({ unit: "token" });
    const other = await server.rejected(
      "budgets.createBudget",
      { ...body, parentId: root, unit: "usd" },
      "invalid_input",
    );
    assert.match(other.detail, /^unit must be that of the parent, "token"/);
    const refill = { interval: "daily", amount: 1, refillDay: 3 };
    for (const [operation, rest] of [
      ["budgets.createBudget", body],
      ["budgets.updateBudget", { budgetId: root }],
    ] as const) {
      const misplaced = await server.rejected(operation, { ...rest, refill }, "invalid_input");
      assert.match(misplaced.detail, /^refill\.refillDay must not be provided/);
    }
    await server.rejected("budgets.createBudget", { ...body, thresholds: [101] }, "invalid_input");
  });

  it("keep their books when credits are set, added and taken", async () => {
    const budgetId = await create();
    const books = async () => {
      const { remaining, spent, totals } = await get(budgetId);
      assert.equal(totals.granted, totals.spent + remaining + totals.lapsed);
      return [remaining, spent, totals.granted];
    };
    const change = (operation: string, value: number) =>
      server.ok("budgets.updateCredits", { budgetId, operation, value });
    await spend(budgetId, 30);
    assert.deepEqual(await books(), [70, 30, 100]);
    assert.deepEqual(await change("decrement", 100), { remaining: 0 });
    assert.deepEqual(await books(), [0, 30, 30]);
    assert.deepEqual(await change("increment", 50), { remaining: 50 });
    assert.deepEqual(await books(), [50, 0, 80]);
    await spend(budgetId, 20);
    assert.deepEqual(await change("set", 10), { remaining: 10 });
    assert.deepEqual(await books(), [10, 20, 60]);
    const over = await server.rejected(
      "budgets.updateCredits",
      { budgetId, operation: "increment", value: 1e15 },
      "invalid_input",
    );
    assert.match(over.detail, /maximum/);
    const entries = await server.ok("audit.listEvents", { target: budgetId, action: "budgets.updateCredits" });
    const set = entries.find(({ meta }: { meta: { operation: string } }) => meta.operation === "set");
    assert.deepEqual(set.meta, { operation: "set", value: 10, before: 30, after: 10 });
    assert.deepEqual((await eventsOf(budgetId)).at(-1), {
      type: "budget.updated",
      data: { budgetId, name: "team", changed: ["credits"] },
    });
  });

  it("are refilled when they are due, once, with what lapses", async () => {
    const kept = await create({ refill: { interval: "daily", amount: 40, rollover: 25 } });
    const lost = await create({ refill: { interval: "daily", amount: 40 }, thresholds: [50] });
    await spend(lost, 30);
    server.clock.step((Math.floor(server.clock.now() / DAY) + 1) * DAY - server.clock.now());
    const shown = async (budgetId: string) => {
      const { remaining, spent, totals } = await get(budgetId);
      return { remaining, spent, ...totals };
    };
    const after = {
      [kept]: { remaining: 65, spent: 0, granted: 140, lapsed: 75 },
      [lost]: { remaining: 40, spent: 0, granted: 140, lapsed: 70 },
    };
    const totalSpent = { [kept]: 0, [lost]: 30 };
    for (const budgetId of [kept, lost]) {
      const { spent: _, ...books } = after[budgetId]!;
      assert.deepEqual(
        { ...(await shown(budgetId)), spent: undefined },
        { ...books, spent: undefined },
        "before it is written",
      );
      await spend(budgetId, 1);
      const written = await shown(budgetId);
      assert.deepEqual(
        [written.remaining, written.spent, written.granted, written.lapsed],
        [books.remaining - 1, totalSpent[budgetId]! + 1, books.granted, books.lapsed],
      );
      const refills = (await eventsOf(budgetId)).filter(({ type }) => type === "budget.refilled");
      assert.deepEqual(refills, [
        {
          type: "budget.refilled",
          data: { budgetId, name: "team", remaining: books.remaining, before: budgetId === kept ? 100 : 70 },
        },
      ]);
    }
    const [entry] = await server.ok("audit.listEvents", { target: lost, action: "budgets.refill" });
    assert.deepEqual([entry.actor, entry.meta.before, entry.meta.remaining], ["system", 70, 40]);
  });

  it("have an event for each threshold that a spend reaches, once a period", async () => {
    const budgetId = await create({
      thresholds: [50, 80, 100],
      refill: { interval: "daily", amount: 10 },
      unit: "token",
    });
    const reached = async () =>
      (await eventsOf(budgetId))
        .filter(({ type }) => type === "budget.threshold_reached")
        .map(({ data }) => [data.threshold, data.remaining, data.spent, data.unit]);
    await spend(budgetId, 49);
    assert.deepEqual(await reached(), []);
    await spend(budgetId, 1);
    const half = [50, 50, 50, "token"];
    assert.deepEqual(await reached(), [half]);
    await spend(budgetId, 50);
    const first = [half, [80, 0, 100, "token"], [100, 0, 100, "token"]];
    assert.deepEqual(await reached(), first);
    server.clock.step(DAY);
    await spend(budgetId, 5);
    assert.deepEqual(await reached(), [...first, [50, 5, 5, "token"]]);
    await server.ok("budgets.updateCredits", { budgetId, operation: "increment", value: 10 });
    await spend(budgetId, 5);
    assert.deepEqual((await reached()).slice(first.length), [
      [50, 5, 5, "token"],
      [50, 10, 10, "token"],
    ]);
  });

  it("that only watch may fall below 0, and are at 0 when they deny again", async () => {
    const budgetId = await create({ onEmpty: "allow" });
    await spend(budgetId, 130);
    assert.equal((await get(budgetId)).remaining, -30);
    assert.deepEqual(await server.ok("budgets.updateCredits", { budgetId, operation: "decrement", value: 5 }), {
      remaining: -30,
    });
    const denying = await server.ok("budgets.updateBudget", { budgetId, onEmpty: "deny" });
    assert.deepEqual(
      [denying.remaining, denying.onEmpty, denying.totals],
      [0, "deny", { granted: 130, spent: 130, lapsed: 0 }],
    );
    await assert.rejects(spend(budgetId, 1), /constraint/);
  });

  it("belong to keys and identities, also after a reroll and an import", async () => {
    const [own, another] = [await create(), await create()];
    const apiId = await server.createApi();
    const externalId = `owner_of_${own}`;
    await server.ok("identities.createIdentity", { externalId, budgetId: own });
    const { keyId } = await server.createKey(apiId, { externalId, budgetId: another });
    const shown = async (id: string) => {
      const key = await server.getKey(id);
      return [key.budgetId, key.identity?.budgetId];
    };
    assert.deepEqual(await shown(keyId), [another, own]);
    const rerolled = await server.ok("keys.rerollKey", { keyId, expiration: 0 });
    assert.deepEqual(await shown(rerolled.keyId), [another, own]);
    await server.ok("keys.updateKey", { keyId, budgetId: null });
    assert.deepEqual(await shown(keyId), [undefined, own]);
    const hash = createHash("sha256").update(own).digest("hex");
    const imported = await server.ok("keys.migrateKeys", {
      migrationId: "from elsewhere",
      apiId,
      keys: [{ hash, budgetId: own }],
    });
    assert.deepEqual(await shown(imported.migrated[0].keyId), [own, undefined]);
    const identity = await server.ok("identities.updateIdentity", { identity: externalId, budgetId: another });
    assert.equal(identity.budgetId, another);
    assert.equal((await server.ok("identities.getIdentity", { identity: externalId })).budgetId, another);
    const [entry] = await server.ok("audit.listEvents", {
      target: identity.id,
      action: "identities.updateIdentity",
    });
    assert.deepEqual([entry.meta.before, entry.meta.after], [{ budgetId: own }, { budgetId: another }]);
    const missing = "bud_00000000000000000000";
    for (const [operation, body] of [
      ["keys.createKey", { apiId, budgetId: missing }],
      ["keys.updateKey", { keyId, budgetId: missing }],
      ["keys.migrateKeys", { migrationId: "another", apiId, keys: [{ hash, budgetId: missing }] }],
      ["identities.createIdentity", { externalId: `${externalId}_2`, budgetId: missing }],
      ["identities.updateIdentity", { identity: externalId, budgetId: missing }],
    ] as const) {
      await server.rejected(operation, body, "budget_not_found");
    }
  });

  it("are those of the next verification: assigned, renamed and removed", async () => {
    const root = await create({ name: "company" });
    const [team, owner] = [await create({ name: "search", parentId: root }), await create({ name: "ada" })];
    const externalId = `verified_${root}`;
    await server.ok("identities.createIdentity", { externalId });
    const { keyId, key } = await server.createKey(await server.createApi(), { externalId });
    const names = async () =>
      (await server.verify(key, { credits: { cost: 0 } })).budgets?.map(({ name }: { name: string }) => name);
    assert.equal(await names(), undefined);
    await server.ok("keys.updateKey", { keyId, budgetId: team });
    assert.deepEqual(await names(), ["search", "company"]);
    await server.ok("budgets.updateBudget", { budgetId: root, name: "holding" });
    assert.deepEqual(await names(), ["search", "holding"]);
    await server.ok("identities.updateIdentity", { identity: externalId, budgetId: owner });
    assert.deepEqual(await names(), ["search", "holding", "ada"]);
    await server.ok("identities.updateIdentity", { identity: externalId, budgetId: root });
    assert.deepEqual(await names(), ["search", "holding"]);
    await server.ok("keys.updateKey", { keyId, budgetId: null });
    assert.deepEqual(await names(), ["holding"]);
    await server.ok("identities.updateIdentity", { identity: externalId, budgetId: null });
    assert.equal(await names(), undefined);
  });

  it("are not deleted while something uses them (rule 88)", async () => {
    const budgetId = await create();
    const apiId = await server.createApi();
    const inUse = async (what: RegExp) => {
      const { detail } = await server.rejected("budgets.deleteBudget", { budgetId }, "budget_in_use");
      assert.match(detail, what);
    };
    const child = await create({ parentId: budgetId });
    await inUse(/has children/);
    await server.ok("budgets.deleteBudget", { budgetId: child });
    const externalId = `user_of_${budgetId}`;
    await server.ok("identities.createIdentity", { externalId, budgetId });
    await inUse(/^Identities use/);
    await server.ok("identities.deleteIdentity", { identity: externalId });
    const { keyId } = await server.createKey(apiId, { budgetId });
    await inUse(/^Keys use/);
    await server.ok("keys.deleteKey", { keyId });
    await server.ok("budgets.deleteBudget", { budgetId });
    await server.rejected("budgets.getBudget", { budgetId }, "budget_not_found");
    const { detail } = await server.rejected("keys.restoreKey", { keyId }, "budget_not_found");
    assert.match(detail, /was deleted\. The key cannot be restored/);
    const rows = await server.change([], ({ db }) =>
      db.selectFrom("balances").select("pool_id").where("pool_id", "=", budgetId).execute(),
    );
    assert.deepEqual(rows, []);
    assert.deepEqual((await eventsOf(budgetId)).at(-1)?.type, "budget.deleted");
  });

  it("with a key that can be restored are charged by it again", async () => {
    const budgetId = await create();
    const { keyId } = await server.createKey(await server.createApi(), { budgetId });
    await server.ok("keys.deleteKey", { keyId });
    await server.ok("keys.restoreKey", { keyId });
    assert.equal((await server.getKey(keyId)).budgetId, budgetId);
  });

  it("count once for calls with the same Idempotency-Key", async () => {
    const options = { headers: { "Idempotency-Key": `budget-${server.clock.now()}` } };
    const body = { name: "once", remaining: 5 };
    const first = await server.ok("budgets.createBudget", body, options);
    assert.deepEqual(await server.ok("budgets.createBudget", body, options), first);
    const again = { headers: { "Idempotency-Key": `credits-${server.clock.now()}` } };
    const change = { budgetId: first.budgetId, operation: "increment", value: 2 };
    for (const _ of ["first", "second"]) {
      assert.deepEqual(await server.ok("budgets.updateCredits", change, again), { remaining: 7 });
    }
  });

  it("satisfy the rules of verify-store", async () => {
    assert.deepEqual(
      (await server.store.read("brokenRules", null)).filter(({ rows }: { rows: number }) => rows > 0),
      [],
    );
  });
}
