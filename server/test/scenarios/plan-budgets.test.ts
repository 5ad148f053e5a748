/** Budgets that plans give to identities. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { sql as raw } from "kysely";
import { describeOnStores, type TestServer } from "../harness.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

describeOnStores("the first plan with a budget", (server, store) => {
  it("is not created beside an earlier release, which cannot be started afterwards", async () => {
    const plan = { name: "gold", budget: { amount: 5 } };
    await server.ok("plans.createPlan", { name: "plain" });
    if (store === "postgres") {
      await server.besideEarlierRelease(async () => {
        await server.rejected("plans.createPlan", plan, "precondition_failed");
        await server.rejected("plans.updatePlan", { plan: "plain", budget: plan.budget }, "precondition_failed");
      });
    }
    await server.ok("plans.createPlan", plan);
    const needs = await server.change([], async ({ db }) => {
      const { rows } = await raw<{ needs: number }>`select max(needs) as needs from schema_steps`.execute(db);
      return Number(rows[0]?.needs);
    });
    assert.equal(needs, 50);
  });
});

describeOnStores("budgets of plans", tests);

function tests(server: TestServer): void {
  let names = 0;
  const fresh = (what: string) => `${what}-${++names}`;
  const createPlan = async (budget: object, body: object = {}): Promise<string> => {
    const name = fresh("plan");
    await server.ok("plans.createPlan", { name, budget, ...body });
    return name;
  };
  /** An identity with keys. */
  const customer = async (plan: string, { keys = 1, ...body }: { keys?: number; [field: string]: unknown } = {}) => {
    const externalId = fresh("customer");
    const { identityId } = await server.ok("identities.createIdentity", { externalId, plan, ...body });
    const apiId = await server.createApi();
    const made = [];
    for (let i = 0; i < keys; i++) made.push(await server.createKey(apiId, { externalId }));
    return { externalId, identityId, apiId, key: made[0]!.key, keyId: made[0]!.keyId, keys: made };
  };
  const spend = async (key: string, cost: number) => server.verify(key, { credits: { cost } });
  const left = async (key: string) => (await spend(key, 0)).budgets?.[0]?.remaining;
  const shown = (identity: string) => server.ok("identities.getIdentity", { identity });
  const move = (identity: string, body: object) => server.ok("identities.updateIdentity", { identity, ...body });

  it("are one for each identity, which all its keys share, made by the first call (rule 134)", async () => {
    const plan = await createPlan({ amount: 100, refill: { interval: "daily" }, unit: "token" });
    const [acme, globex] = [await customer(plan, { keys: 2 }), await customer(plan)];
    const before = await shown(acme.externalId);
    assert.deepEqual([before.budget.remaining, before.budget.held], [100, 0]);
    const explained = await server.ok("keys.explainVerification", { keyId: acme.keyId });
    assert.deepEqual(
      explained.budgets.map(({ name, plan: of, unit, remaining }: Record<string, unknown>) => [
        name,
        of,
        unit,
        remaining,
      ]),
      [[plan, plan, "token", 100]],
    );
    await server.rejected("budgets.getBudget", { budgetId: before.budget.budgetId }, "budget_not_found");
    const first = await spend(acme.keys[0]!.key, 60);
    assert.deepEqual(first.budgets, [
      { budgetId: before.budget.budgetId, name: plan, remaining: 40, held: 0, exceeded: false },
    ]);
    assert.equal(first.credits, undefined);
    const refused = await spend(acme.keys[1]!.key, 60);
    assert.deepEqual([refused.code, refused.budgets[0].exceeded], ["USAGE_EXCEEDED", true]);
    assert(refused.budgets[0].retryAfter > 0);
    assert.equal((await spend(globex.key, 60)).budgets[0].remaining, 40);
    const after = await shown(acme.externalId);
    assert.equal(after.budget.remaining, 40);
    const budget = await server.ok("budgets.getBudget", { budgetId: after.budget.budgetId });
    assert.deepEqual(
      [budget.plan, budget.identity, budget.unit, budget.spent, budget.totals],
      [plan, { id: acme.identityId, externalId: acme.externalId }, "token", 60, { granted: 100, spent: 60, lapsed: 0 }],
    );
    assert.deepEqual(await server.ok("budgets.listBudgets", {}), []);
    assert.equal((await server.call("keys.verifyKey", { key: acme.key }, { as: null })).body.data?.budgets, undefined);
    const [entry] = await server.ok("audit.listEvents", { action: "budgets.grant", target: acme.identityId });
    assert.deepEqual([entry.meta.plan, entry.meta.cause, entry.meta.remaining], [plan, "granted", 100]);
  });

  it("are charged with the credits of the key and its own budget, all or nothing, in one unit (rule 134)", async () => {
    const plan = await createPlan({ amount: 50 });
    const { externalId, apiId } = await customer(plan);
    const { budgetId } = await server.ok("budgets.createBudget", { name: "team", remaining: 30 });
    const { key } = await server.createKey(apiId, { externalId, budgetId, credits: { remaining: 40 } });
    const spent = await spend(key, 10);
    assert.deepEqual(
      [spent.credits, spent.budgets.map(({ remaining }: { remaining: number }) => remaining)],
      [30, [20, 40]],
    );
    assert.equal((await spend(key, 25)).code, "USAGE_EXCEEDED");
    const unchanged = await spend(key, 0);
    assert.deepEqual(
      [unchanged.credits, unchanged.budgets.map(({ remaining }: { remaining: number }) => remaining)],
      [30, [20, 40]],
    );
    const dollars = await server.ok("budgets.createBudget", { name: "dollars", remaining: 30, unit: "usd" });
    const inTokens = await customer(await createPlan({ amount: 5, unit: "token" }));
    const other = await server.createKey(inTokens.apiId, {
      externalId: inTokens.externalId,
      budgetId: dollars.budgetId,
    });
    const { detail } = await server.rejected("keys.verifyKey", { key: other.key }, "invalid_input");
    assert.match(detail, /different units/);
  });

  it("give way to a budget of the identity, and come back with what was left (rule 135)", async () => {
    const plan = await createPlan({ amount: 100, refill: { interval: "monthly" } });
    const { key, externalId } = await customer(plan);
    await spend(key, 30);
    const { budgetId } = await server.ok("budgets.createBudget", { name: "own", remaining: 7 });
    await move(externalId, { budgetId });
    const owned = await spend(key, 1);
    assert.deepEqual([owned.budgets.length, owned.budgets[0].remaining], [1, 6]);
    assert.equal((await shown(externalId)).budget, undefined);
    await server.rejected(
      "identities.updateIdentity",
      { identity: externalId, plan, balances: "reset" },
      "invalid_input",
    );
    await move(externalId, { budgetId: null });
    assert.equal(await left(key), 70);
    await move(externalId, { plan: null });
    assert.equal((await spend(key, 1)).budgets, undefined);
    await move(externalId, { plan });
    assert.equal(await left(key), 70);
  });

  it("keep what is left when the plan changes, and are reset at most once a period (rule 135)", async () => {
    const [silver, gold] = [
      await createPlan({ amount: 100, refill: { interval: "daily" } }),
      await createPlan({ amount: 1_000, refill: { interval: "daily" } }),
    ];
    const { key, externalId, identityId } = await customer(silver);
    await spend(key, 40);
    await move(externalId, { plan: gold });
    assert.equal(await left(key), 60);
    await move(externalId, { plan: gold, balances: "reset" });
    assert.equal(await left(key), 1_000);
    const { detail } = await server.rejected(
      "identities.updateIdentity",
      { identity: externalId, plan: gold, balances: "reset" },
      "invalid_input",
    );
    assert.match(detail, /reset in this period already/);
    await server.rejected("identities.updateIdentity", { identity: externalId, balances: "keep" }, "invalid_input");
    const entries = await server.ok("audit.listEvents", { target: identityId, action: "identities.updateIdentity" });
    const causes = entries.map(({ meta }: { meta: { granted?: { cause: string } } }) => meta.granted?.cause);
    assert.deepEqual(causes.sort(), ["moved", "reset"]);
    server.clock.step(DAY);
    assert.equal(await left(key), 1_000);
    const { budget } = await shown(externalId);
    const books = await server.ok("budgets.getBudget", { budgetId: budget.budgetId });
    const { granted, spent, lapsed } = books.totals;
    assert.equal(granted, spent + lapsed + books.remaining);
  });

  it("take a new amount at the next refill, onEmpty and thresholds at once, also without calls (rule 136)", async () => {
    const plan = await createPlan({ amount: 100, refill: { interval: "daily" }, thresholds: [90] });
    const { key, externalId } = await customer(plan);
    await spend(key, 50);
    await server.ok("plans.updatePlan", {
      plan,
      budget: { amount: 10, refill: { interval: "daily" }, onEmpty: "allow", thresholds: [60] },
    });
    const over = await spend(key, 70);
    assert.deepEqual([over.code, over.budgets[0].remaining], ["VALID", -20]);
    const { budget } = await shown(externalId);
    const events = await server.ok("events.listEvents", { objectId: budget.budgetId });
    assert.deepEqual(
      events.map(({ type, data }: { type: string; data: { threshold: number } }) => [type, data.threshold]),
      [["budget.threshold_reached", 60]],
    );
    const later = { amount: 10, refill: { interval: "daily" }, onEmpty: "deny" };
    await server.ok("plans.updatePlan", { plan, budget: later });
    assert.equal((await shown(externalId)).budget.remaining, 0);
    server.clock.step(DAY);
    await server.pass(MINUTE);
    assert.equal((await server.ok("budgets.getBudget", { budgetId: budget.budgetId })).remaining, 10);
    const [refill] = await server.ok("audit.listEvents", { target: budget.budgetId, action: "budgets.refill" });
    assert.deepEqual([refill.meta.plan, refill.meta.version, refill.meta.remaining], [plan, 3, 10]);
  });

  it("come to identities that have the plan already, and go with it", async () => {
    const name = fresh("plan");
    await server.ok("plans.createPlan", { name });
    const { key, externalId } = await customer(name);
    assert.equal((await spend(key, 5)).budgets, undefined);
    await server.ok("plans.updatePlan", { plan: name, budget: { amount: 20 } });
    assert.equal((await spend(key, 5)).budgets[0].remaining, 15);
    await server.ok("plans.updatePlan", { plan: name, budget: null });
    assert.equal((await spend(key, 500)).valid, true);
    assert.equal((await shown(externalId)).budget, undefined);
    await server.ok("plans.updatePlan", { plan: name, budget: { amount: 20 } });
    assert.equal(await left(key), 15);
  });

  it("are for identities, and credits for keys: the other is refused (rule 137)", async () => {
    const plan = await createPlan({ amount: 5 });
    const apiId = await server.createApi();
    const { keyId } = await server.createKey(apiId);
    const sold = fresh("plan");
    await server.ok("plans.createPlan", { name: sold, credits: { amount: 5 } });
    const plain = fresh("plan");
    await server.ok("plans.createPlan", { name: plain });
    await server.ok("keys.updateKey", { keyId, plan: plain });
    const rows = await server.rows();
    const hash = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae";
    const refused: [string, object][] = [
      ["keys.createKey", { apiId, plan }],
      ["keys.updateKey", { keyId, plan }],
      ["keys.migrateKeys", { migrationId: "m", apiId, keys: [{ hash, plan }] }],
      ["identities.createIdentity", { externalId: "x", plan: sold }],
      ["plans.createPlan", { name: "both", credits: { amount: 5 }, budget: { amount: 5 } }],
      ["plans.updatePlan", { plan, credits: { amount: 5 } }],
      ["plans.updatePlan", { plan: sold, budget: { amount: 5 } }],
      ["plans.updatePlan", { plan: plain, budget: { amount: 5 } }],
      ["plans.updatePlan", { plan, budget: { amount: 5, unit: "token" } }],
      ["plans.createPlan", { name: "both", budget: { amount: 5, refill: { interval: "hourly", refillDay: 1 } } }],
    ];
    for (const [operation, body] of refused) await server.rejected(operation as never, body, "invalid_input");
    assert.deepEqual(await server.rows(), rows);
  });

  it("are left by keys only with assign_plan on the plan (rule 137)", async () => {
    const plan = await createPlan({ amount: 5 });
    const { keyId, apiId, externalId, identityId } = await customer(plan);
    const { planId } = await server.ok("plans.getPlan", { plan });
    const { budgetId } = await server.ok("budgets.createBudget", { name: "own", remaining: 7 });
    const may = [
      `apis.${apiId}.update_key`,
      "identities.*.update_identity",
      "identities.*.delete_identity",
      `budgets.${budgetId}.assign_budget`,
    ];
    const { key: narrow } = await server.grant(...may);
    const { key: wide } = await server.grant(...may, `plans.${planId}.assign_plan`);
    const changes: ["keys.updateKey" | "identities.updateIdentity" | "identities.deleteIdentity", object][] = [
      ["keys.updateKey", { keyId, externalId: null }],
      ["identities.updateIdentity", { identity: externalId, budgetId }],
      ["identities.deleteIdentity", { identity: externalId }],
    ];
    const rows = await server.rows();
    for (const [operation, body] of changes) {
      await server.rejected(operation, body, "insufficient_permissions", { as: narrow });
    }
    assert.deepEqual(await server.rows(), rows);
    await server.ok("keys.updateKey", { keyId, externalId }, { as: narrow });
    for (const [operation, body] of changes) await server.ok(operation, body, { as: wide });
    await server.rejected("identities.getIdentity", { identity: identityId }, "identity_not_found");
  });

  it("have a unit each: a plan in another unit gives another budget, and the first one waits", async () => {
    const [tokens, dollars] = [
      await createPlan({ amount: 100, unit: "token" }),
      await createPlan({ amount: 9, unit: "usd" }),
    ];
    const { key, externalId } = await customer(tokens);
    await spend(key, 30);
    await move(externalId, { plan: dollars });
    assert.equal((await spend(key, 2)).budgets[0].remaining, 7);
    await move(externalId, { plan: tokens });
    assert.equal(await left(key), 70);
    await move(externalId, { plan: dollars });
    assert.equal(await left(key), 7);
  });

  it("are held from, and settled", async () => {
    const plan = await createPlan({ amount: 100 });
    const { key, externalId } = await customer(plan);
    const { hold, budgets } = await server.verify(key, { credits: { cost: 30 }, hold: { ttl: 60_000 } });
    assert.deepEqual([budgets[0].remaining, budgets[0].held], [70, 30]);
    await server.ok("holds.settleHold", { holdId: hold.holdId, credits: 45 });
    const { budget } = await shown(externalId);
    assert.deepEqual([budget.remaining, budget.held], [55, 0]);
    const open = await server.verify(key, { credits: { cost: 20 }, hold: { ttl: 60_000 } });
    await move(externalId, { plan: null });
    await move(externalId, { plan });
    // What was held when the budget went counts as spent.
    await server.ok("holds.releaseHold", { holdId: open.hold.holdId });
    assert.equal(await left(key), 35);
  });

  it("are changed through their plan, except their credits, and end with the identity", async () => {
    const plan = await createPlan({ amount: 100 });
    const { key, keyId, externalId } = await customer(plan);
    await spend(key, 1);
    const { budgetId } = (await shown(externalId)).budget;
    await server.rejected("budgets.updateBudget", { budgetId, name: "mine" }, "invalid_input");
    await server.rejected("budgets.deleteBudget", { budgetId }, "invalid_input");
    await server.rejected("keys.updateKey", { keyId, budgetId }, "budget_not_found");
    await server.rejected("budgets.createBudget", { name: "x", remaining: 1, parentId: budgetId }, "budget_not_found");
    await server.ok("budgets.updateCredits", { budgetId, operation: "increment", value: 11 });
    assert.equal(await left(key), 110);
    const range = { start: server.clock.now() - HOUR, end: server.clock.now() + HOUR };
    await server.pass(MINUTE);
    assert.equal((await server.ok("analytics.getBudgetStats", { budgetId, ...range })).budgetId, budgetId);
    await server.ok("identities.deleteIdentity", { identity: externalId });
    await server.rejected("budgets.getBudget", { budgetId }, "budget_not_found");
    assert.equal((await spend(key, 5_000)).valid, true);
  });

  it("are previewed", async () => {
    const plan = await createPlan({ amount: 100 });
    await customer(plan);
    const { budgetId } = await server.ok("budgets.createBudget", { name: "own", remaining: 7 });
    await customer(plan, { budgetId });
    const { changes } = await server.ok("plans.previewUpdate", { plan, budget: { amount: 200, thresholds: [50] } });
    assert.deepEqual(changes, [
      {
        field: "budget",
        change: "changed",
        before: { amount: 100, onEmpty: "deny", thresholds: [] },
        after: { amount: 200, onEmpty: "deny", thresholds: [50] },
        keys: 0,
        keysKeeping: 0,
        identities: 1,
        identitiesKeeping: 1,
        startsAtZero: false,
      },
    ]);
  });
}
