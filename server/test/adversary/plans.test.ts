/** A tenant who uses plans to cost others time, memory or space. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { sql as raw } from "kysely";
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
});
