/** A tenant who uses plans to cost others time, memory or space. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { sql as raw } from "kysely";
import { VERSIONS_MAX } from "../../src/features/plans/record.ts";
import { MEMBERS_EXAMINED_MAX } from "../../src/features/plans/statements/members.ts";
import { describeOnStores } from "../harness.ts";
import { numbersTo } from "../numbers.ts";

const MINUTE = 60_000;

describeOnStores("a plan", (server) => {
  /** Gives the plan to pools of keys that are deleted, and to as many identities. */
  const fill = async (planId: string, members: number) =>
    server.change([], async ({ db, dialect }) => {
      const ids = numbersTo(members, dialect.name);
      await raw`insert into identities (id, workspace_id, external_id, created_at)
        select 'id_' || n, ${server.workspaceId}, 'member-' || n, 1 from (${ids}) as numbers`.execute(db);
      await raw`insert into plan_assignments (owner_id, workspace_id, owner, plan_id)
        select 'id_' || n, ${server.workspaceId}, 'identity', ${planId} from (${ids}) as numbers`.execute(db);
    });

  it("with more members than a preview examines is counted up to that, and never deleted", async () => {
    const { planId } = await server.ok("plans.createPlan", { name: "crowded" });
    await fill(planId, MEMBERS_EXAMINED_MAX + 100);
    const preview = await server.ok("plans.previewUpdate", { plan: "crowded" });
    assert.deepEqual(preview.identities, { count: MEMBERS_EXAMINED_MAX, isComplete: false });
    await server.rejected("plans.deletePlan", { plan: "crowded" }, "plan_in_use");
  });

  it("of the largest size has a bounded body, and one that is larger is refused", async () => {
    const limits = (count: number) =>
      Array.from({ length: count }, (_, i) => ({ name: `limit-${i}`, limit: 1, duration: MINUTE, autoApply: false }));
    const permissions = (count: number) => Array.from({ length: count }, (_, i) => `documents.${i}`);
    await server.ok("plans.createPlan", { name: "large", ratelimits: limits(50), permissions: permissions(1_000) });
    await server.rejected("plans.createPlan", { name: "larger", ratelimits: limits(51) }, "invalid_input");
    await server.rejected("plans.createPlan", { name: "larger", permissions: permissions(1_001) }, "invalid_input");
    const { key } = await server.createKey(await server.createApi(), { plan: "large" });
    assert.equal((await server.verify(key, { permissions: "documents.999" })).code, "VALID");
  });

  it("of another workspace does not exist, by name or by id", async () => {
    const { planId } = await server.ok("plans.createPlan", { name: "private" });
    const { key: as } = await server.workspace("stranger");
    const { apiId } = await server.ok("apis.createApi", { name: "theirs" }, { as });
    for (const plan of ["private", planId]) {
      await server.rejected("plans.getPlan", { plan }, "plan_not_found", { as });
      await server.rejected("keys.createKey", { apiId, plan }, "plan_not_found", { as });
      await server.rejected("identities.createIdentity", { externalId: "x", plan }, "plan_not_found", { as });
    }
    // Its name is free elsewhere.
    await server.ok("plans.createPlan", { name: "private" }, { as });
  });

  it("that changes all the time neither fails nor delays the keys of others", async () => {
    const apiId = await server.createApi();
    await server.ok("plans.createPlan", { name: "restless" });
    const [own, other] = [await server.createKey(apiId, { plan: "restless" }), await server.createKey(apiId)];
    for (let n = 1; n <= 50; n++) {
      const ratelimits = [{ name: "requests", limit: 1_000_000 + n, duration: MINUTE, autoApply: true }];
      const change = server.ok("plans.updatePlan", { plan: "restless", ratelimits });
      const calls = await Promise.all([server.verify(own.key), server.verify(other.key)]);
      assert.deepEqual(
        calls.map(({ code }) => code),
        ["VALID", "VALID"],
      );
      await change;
    }
  });

  it("with a budget makes one row for an identity, with its first call, however many calls begin at once", async () => {
    const budget = { amount: 1_000, refill: { interval: "monthly" } };
    await server.ok("plans.createPlan", { name: "shared", budget });
    const apiId = await server.createApi();
    const rows = async (table: "plan_budgets" | "plan_grants") =>
      server.change([], async ({ db }) => (await db.selectFrom(table).selectAll().execute()).length);
    const owners = ["one", "two", "three"];
    for (const externalId of owners) await server.ok("identities.createIdentity", { externalId, plan: "shared" });
    const keys = await Promise.all(
      owners.flatMap((externalId) => Array.from({ length: 5 }, () => server.createKey(apiId, { externalId }))),
    );
    assert.equal(await rows("plan_budgets"), 0);
    const spent = await Promise.all(keys.map(({ key }) => server.verify(key, { credits: { cost: 10 } })));
    assert(spent.every(({ valid }) => valid));
    assert.equal(await rows("plan_budgets"), owners.length);
    for (const identity of owners) {
      assert.equal((await server.ok("identities.getIdentity", { identity })).budget.remaining, 950);
    }
    // Moves and units leave one row, and one note for each unit.
    const units = ["a", "b"];
    for (const unit of units) await server.ok("plans.createPlan", { name: `in-${unit}`, budget: { amount: 5, unit } });
    const grants = await rows("plan_grants");
    for (let i = 0; i < 10; i++) {
      await server.ok("identities.updateIdentity", { identity: "one", plan: `in-${units[i % 2]}` });
    }
    assert.deepEqual([await rows("plan_budgets"), await rows("plan_grants")], [owners.length, grants + units.length]);
    const { budget: left } = await server.ok("identities.getIdentity", { identity: "two" });
    const { key: as } = await server.workspace("curious");
    await server.rejected("budgets.getBudget", { budgetId: left.budgetId }, "budget_not_found", { as });
    const change = { budgetId: left.budgetId, operation: "set", value: 1 };
    await server.rejected("budgets.updateCredits", change, "budget_not_found", { as });
  });

  it("with a budget is bounded in its amount, its unit, its thresholds and the changes that balances lack", async () => {
    const wrong = [
      { amount: 0 },
      { amount: 1e15 + 1 },
      { amount: 1, unit: "u".repeat(33) },
      { amount: 1, thresholds: Array.from({ length: 11 }, (_, i) => i + 1) },
      { amount: 1, refill: { interval: "daily", rollover: 1e15 } },
    ];
    for (const budget of wrong) await server.rejected("plans.createPlan", { name: "wrong", budget }, "invalid_input");
    await server.ok("plans.createPlan", { name: "busy", budget: { amount: 1 } });
    await server.ok("identities.createIdentity", { externalId: "idle", plan: "busy" });
    const { key } = await server.createKey(await server.createApi(), { externalId: "idle" });
    await server.verify(key);
    const change = (amount: number) => server.call("plans.updatePlan", { plan: "busy", budget: { amount } });
    let refused = 0;
    for (let amount = 2; amount < VERSIONS_MAX + 5; amount++) {
      if ((await change(amount)).status === 412) refused++;
    }
    assert(refused >= 1 && refused <= 5, `${refused} changes were refused`);
    await server.verify(key);
    assert.equal((await change(7)).status, 200);
  });
});
