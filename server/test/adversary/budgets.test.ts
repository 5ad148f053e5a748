/** A root key that may do everything except assign budgets, and tries to take keys out of theirs. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { it } from "node:test";
import { seededRandom } from "../../../engine/src/random/seeded.ts";
import { grantActions } from "../../../engine/src/rules/grants.ts";
import { BalanceWriter } from "../../src/features/credits/statements/balances.ts";
import { describeOnStores, type TestServer } from "../harness.ts";
import { callPortal } from "../portal-caller.ts";

const { budgets: ofBudgets, ...others } = grantActions;
const reading = ofBudgets.filter((action) => action === "read_budget");
const EVERYTHING_ELSE = Object.entries({ ...others, budgets: reading }).flatMap(([resource, actions]) =>
  actions.map((action) => `${resource}.*.${action}`),
);

describeOnStores("a key in a budget", (server) => {
  let made = 0;
  /** A key in a budget, whose identity is in another one, and a root key without a permission on either. */
  async function capped(server: TestServer) {
    const create = async (name: string): Promise<string> =>
      (await server.ok("budgets.createBudget", { name, remaining: 10 })).budgetId;
    const [own, shared, elsewhere] = [await create("own"), await create("shared"), await create("elsewhere")];
    const externalId = `capped_${++made}`;
    await server.ok("identities.createIdentity", { externalId, budgetId: shared });
    const apiId = await server.createApi();
    const { keyId } = await server.createKey(apiId, { externalId, budgetId: own });
    const { key: as } = await server.grant(...EVERYTHING_ELSE);
    return { own, shared, elsewhere, externalId, apiId, keyId, as };
  }
  type Capped = Awaited<ReturnType<typeof capped>>;

  const attempts: Record<string, (capped: Capped) => [operation: string, body: object]> = {
    "its budget is removed": ({ keyId }) => ["keys.updateKey", { keyId, budgetId: null }],
    "its budget is replaced": ({ keyId, elsewhere }) => ["keys.updateKey", { keyId, budgetId: elsewhere }],
    "it is taken out of its identity": ({ keyId }) => ["keys.updateKey", { keyId, externalId: null }],
    "it is given to another identity": ({ keyId }) => ["keys.updateKey", { keyId, externalId: "somebody_else" }],
    "the budget of its identity is removed": ({ externalId }) => [
      "identities.updateIdentity",
      { identity: externalId, budgetId: null },
    ],
    "the budget of its identity is replaced": ({ externalId, elsewhere }) => [
      "identities.updateIdentity",
      { identity: externalId, budgetId: elsewhere },
    ],
    "its identity is deleted": ({ externalId }) => ["identities.deleteIdentity", { identity: externalId }],
    "its budget stops to deny": ({ own }) => ["budgets.updateBudget", { budgetId: own, onEmpty: "allow" }],
    "its budget gets a refill": ({ own }) => [
      "budgets.updateBudget",
      { budgetId: own, refill: { interval: "hourly", amount: 1_000 } },
    ],
    "its budget is raised": ({ own }) => [
      "budgets.updateCredits",
      { budgetId: own, operation: "increment", value: 1_000 },
    ],
    "its budget is deleted": ({ own }) => ["budgets.deleteBudget", { budgetId: own }],
    "a new key spends from it": ({ apiId, own }) => ["keys.createKey", { apiId, budgetId: own }],
    "an imported key spends from it": ({ apiId, own }) => [
      "keys.migrateKeys",
      { apiId, migrationId: "mine", keys: [{ hash: createHash("sha256").update(own).digest("hex"), budgetId: own }] },
    ],
    "a new identity spends from it": ({ own }) => [
      "identities.createIdentity",
      { externalId: `${own}_1`, budgetId: own },
    ],
    "a new budget spends from it": ({ own }) => [
      "budgets.createBudget",
      { name: "child", remaining: 10, parentId: own },
    ],
  };

  for (const [attempt, call] of Object.entries(attempts)) {
    it(`stays in it when ${attempt} without assign_budget (rule 87)`, async () => {
      const all = await capped(server);
      const { keyId, externalId, own, shared, as } = all;
      const [operation, body] = call(all);
      const read = async () => [
        await server.getKey(keyId),
        await server.ok("identities.getIdentity", { identity: externalId }),
        await server.ok("budgets.getBudget", { budgetId: own }),
        await server.ok("budgets.getBudget", { budgetId: shared }),
      ];
      const before = await read();
      await server.rejected(operation, body, "insufficient_permissions", { as });
      assert.deepEqual(await read(), before);
    });
  }

  it("leaves it with assign_budget on the former and on the new one, and not with one of them", async () => {
    const { keyId, own, elsewhere } = await capped(server);
    const body = { keyId, budgetId: elsewhere };
    const withAssign = async (...ids: string[]) =>
      (await server.grant("apis.*.update_key", ...ids.map((id) => `budgets.${id}.assign_budget`))).key;
    for (const id of [own, elsewhere]) {
      await server.rejected("keys.updateKey", body, "insufficient_permissions", { as: await withAssign(id) });
    }
    await server.ok("keys.updateKey", body, { as: await withAssign(own, elsewhere) });
    assert.equal((await server.getKey(keyId)).budgetId, elsewhere);
  });

  it("keeps it when it is rerolled, deleted and restored, and changed in other ways (rule 87)", async () => {
    const { keyId, own, shared, externalId, apiId, as } = await capped(server);
    const budgetsOf = async (id: string) => {
      const key = await server.getKey(id);
      return [key.budgetId, key.identity?.budgetId];
    };
    await server.ok("keys.updateKey", { keyId, externalId, name: "renamed", budgetId: own }, { as });
    const rerolled = await server.ok("keys.rerollKey", { keyId, expiration: null }, { as });
    for (const id of [keyId, rerolled.keyId]) {
      await server.ok("keys.deleteKey", { keyId: id }, { as });
      await server.ok("keys.restoreKey", { keyId: id }, { as });
      assert.deepEqual(await budgetsOf(id), [own, shared]);
    }
    const body = { apiId, externalId, enabled: true, budgetId: null };
    await server.rejected("apis.updateKeys", body, "invalid_input", { as });
  });

  it("keeps it in the portal, where its owner's new keys are under the cap of the owner", async () => {
    const { keyId, own, shared, externalId, apiId, as } = await capped(server);
    const session = { apiId, externalId, actions: ["list", "create", "reroll"] };
    const { token } = await server.ok("portal.createSession", session, { as });
    const reply = await callPortal(server, token, "rerollKey", { keyId, expiration: 0 });
    assert.equal(reply.status, 200);
    assert.equal((await server.getKey(reply.body.data.keyId)).budgetId, own);
    const created = await callPortal(server, token, "createKey", { name: "mine" });
    assert.equal(created.status, 200);
    assert.equal((await server.getKey(created.body.data.keyId)).identity.budgetId, shared);
    const listed = await callPortal(server, token, "listKeys");
    assert(!JSON.stringify(listed.body).includes("bud_"), "an owner does not see budgets");
  });

  it("has a balance that no other workspace can lock", async () => {
    const { budgetId } = await server.ok("budgets.createBudget", { name: "ours", remaining: 10 });
    const lockedBy = (workspaceId: string) =>
      server.change([], (sql) =>
        new BalanceWriter(sql, workspaceId).findForUpdate(budgetId, seededRandom(1), server.clock.now()),
      );
    assert.equal(await lockedBy("ws_other"), undefined);
    assert.equal((await lockedBy(server.workspaceId))?.remaining, 10);
  });

  it("keeps a budget from being deleted that it joins at the same time", async () => {
    const { budgetId } = await server.ok("budgets.createBudget", { name: "contended", remaining: 10 });
    const { keyId } = await server.createKey(await server.createApi());
    const replies = await Promise.all([
      server.call("keys.updateKey", { keyId, budgetId }),
      server.call("budgets.deleteBudget", { budgetId }),
    ]);
    const problems = replies.map(({ problem }) => problem);
    const isJoined = (await server.getKey(keyId)).budgetId === budgetId;
    assert.deepEqual(problems, isJoined ? [undefined, "budget_in_use"] : ["budget_not_found", undefined]);
  });
});
