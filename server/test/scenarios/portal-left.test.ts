/** What owners of keys see of what their credits and budgets have left: nothing, unless the operator shows it. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { describeOnStores } from "../harness.ts";
import { callPortal } from "../portal-caller.ts";

const DAY = 86_400_000;
const LEFT = ["list", "left"];

describeOnStores("what is left in the portal", (server) => {
  let names = 0;
  const budget = async (body: object): Promise<string> =>
    (await server.ok("budgets.createBudget", { name: `internal ${++names}`, remaining: 1_000, ...body })).budgetId;
  const identity = async (budgetId: string | null = null): Promise<string> => {
    const externalId = `owner_${++names}`;
    await server.ok("identities.createIdentity", { externalId, ...(budgetId && { budgetId }) });
    return externalId;
  };
  /** A call in a new session of the owner. */
  const listed = async (apiId: string, externalId: string, more: object = { actions: LEFT }) => {
    const { token } = await server.ok("portal.createSession", { apiId, externalId, ...more });
    const { status, body } = await callPortal(server, token, "listKeys");
    assert.equal(status, 200, JSON.stringify(body));
    return body.data as { keyId: string; credits?: object; left?: { remaining: number; unit?: string } }[];
  };
  const leftOf = async (apiId: string, externalId: string) => {
    const keys = await listed(apiId, externalId);
    return Object.fromEntries(keys.map(({ keyId, left }) => [keyId, left]));
  };

  it("is the least remainder of the balances that deny, of the key and of its owner (rule 100)", async () => {
    const apiId = await server.createApi();
    const company = await budget({ unit: "usd_micro", remaining: 700 });
    const team = await budget({ parentId: company, remaining: 900 });
    const counted = await budget({ parentId: company, remaining: 3, onEmpty: "allow" });
    const shared = await budget({ unit: "usd_micro", remaining: 800 });
    const owner = await identity(shared);
    const create = async (body: object): Promise<string> =>
      (await server.createKey(apiId, { externalId: owner, ...body })).keyId;
    const ofTeam = await create({ budgetId: team });
    const ofCounted = await create({ budgetId: counted });
    const ofOwner = await create({});
    const ofItself = await create({ budgetId: team, credits: { remaining: 5 } });
    const at = (remaining: number) => ({ remaining, unit: "usd_micro" });
    assert.deepEqual(await leftOf(apiId, owner), {
      [ofTeam]: at(700),
      [ofCounted]: at(700),
      [ofOwner]: at(800),
      [ofItself]: at(5),
    });
    await server.ok("budgets.updateCredits", { budgetId: shared, operation: "set", value: 0 });
    const empty = await leftOf(apiId, owner);
    assert.deepEqual(new Set(Object.values(empty).map((left) => left?.remaining)), new Set([0]));
  });

  it("counts what plans give, while they give it", async () => {
    const apiId = await server.createApi();
    await server.ok("plans.createPlan", { name: "of-owners", budget: { amount: 60, unit: "token" } });
    await server.ok("plans.createPlan", { name: "of-keys", credits: { amount: 9 } });
    await server.ok("identities.createIdentity", { externalId: "planned", plan: "of-owners" });
    const { key, keyId } = await server.createKey(apiId, { externalId: "planned", plan: "of-keys" });
    const left = async () => (await leftOf(apiId, "planned"))[keyId];
    assert.deepEqual((await server.verify(key)).budgets[0].remaining, 59);
    assert.deepEqual(await left(), { remaining: 8, unit: "token" });
    await server.ok("plans.updatePlan", { plan: "of-keys", credits: null });
    assert.deepEqual(await left(), { remaining: 59, unit: "token" });
    await server.ok("plans.updatePlan", { plan: "of-owners", budget: null });
    assert.equal(await left(), undefined);
  });

  it("is as it is now: with the refills that are due, and without what is held", async () => {
    const apiId = await server.createApi();
    const refill = { interval: "daily", amount: 50 };
    const budgetId = await budget({ remaining: 40, refill });
    const owner = await identity(budgetId);
    const { key, keyId } = await server.createKey(apiId, { externalId: owner, credits: { remaining: 45 } });
    assert.deepEqual(await leftOf(apiId, owner), { [keyId]: { remaining: 40 } });
    server.clock.step(DAY);
    assert.deepEqual(await leftOf(apiId, owner), { [keyId]: { remaining: 45 } });
    await server.verify(key, { credits: { cost: 15 }, hold: { ttl: 60_000 } });
    assert.deepEqual(await leftOf(apiId, owner), { [keyId]: { remaining: 30 } });
  });

  it("is absent where nothing limits the cost, or calls of any cost are refused", async () => {
    const apiId = await server.createApi();
    const owner = await identity(await budget({ unit: "token" }));
    const mixed = await server.createKey(apiId, { externalId: owner, budgetId: await budget({ unit: "second" }) });
    assert.equal((await server.call("keys.verifyKey", { key: mixed.key })).status, 400);
    assert.deepEqual(await leftOf(apiId, owner), { [mixed.keyId]: undefined });
    const counting = await identity(await budget({ onEmpty: "allow" }));
    const counted = await server.createKey(apiId, { externalId: counting });
    assert.deepEqual(await leftOf(apiId, counting), { [counted.keyId]: undefined });
    const free = await identity();
    const { keyId } = await server.createKey(apiId, { externalId: free });
    assert.deepEqual(await leftOf(apiId, free), { [keyId]: undefined });
  });

  it("is not shown, and nothing of a budget is, unless the operator says so (rule 100)", async () => {
    const apiId = await server.createApi();
    const company = await budget({ name: "internal company", unit: "internal_unit", remaining: 9_182 });
    const budgetId = await budget({ name: "internal team", parentId: company, remaining: 8_273 });
    const owner = await identity(company);
    const { keyId } = await server.createKey(apiId, { externalId: owner, budgetId, credits: { remaining: 7_364 } });
    const secrets = /internal|bud_|9182|8273/;
    const shown = { remaining: 7_364, unit: "internal_unit" };

    const usual = await listed(apiId, owner, { actions: ["list", "usage", "create", "reroll", "rename", "delete"] });
    assert.deepEqual([usual[0]?.credits, usual[0]?.left], [{ remaining: 7_364 }, undefined]);
    assert.doesNotMatch(JSON.stringify(usual), secrets);

    // The setting of the API, unless the session names its own actions.
    await server.ok("apis.updateApi", { apiId, portal: { actions: LEFT } });
    const inherited = await listed(apiId, owner, {});
    assert.deepEqual([inherited[0]?.keyId, inherited[0]?.left], [keyId, shown]);
    assert.doesNotMatch(JSON.stringify(inherited).replace('"unit":"internal_unit"', ""), secrets);
    assert.equal((await listed(apiId, owner, { actions: ["list"] }))[0]?.left, undefined);
    await server.ok("apis.updateApi", { apiId, portal: { actions: ["list"] } });
    assert.equal((await listed(apiId, owner, {}))[0]?.left, undefined);
    // Without the keys there is nothing to show.
    const { token } = await server.ok("portal.createSession", { apiId, externalId: owner, actions: ["left"] });
    assert.equal((await callPortal(server, token, "listKeys")).problem, "insufficient_permissions");
  });

  it("is never that of another owner", async () => {
    const apiId = await server.createApi();
    const [mine, theirs] = [
      await identity(await budget({ remaining: 500 })),
      await identity(await budget({ remaining: 5 })),
    ];
    const { keyId } = await server.createKey(apiId, { externalId: mine });
    await server.createKey(apiId, { externalId: theirs, budgetId: await budget({ remaining: 1 }) });
    assert.deepEqual(await leftOf(apiId, mine), { [keyId]: { remaining: 500 } });
  });

  it("needs a root key that may read budgets, as long as the session lasts", async () => {
    const apiId = await server.createApi();
    const owner = await identity(await budget({ remaining: 50 }));
    await server.createKey(apiId, { externalId: owner });
    const own = ["create_portal_session", "read_key", "update_api"].map((action) => `apis.${apiId}.${action}`);
    const { key: as, rootKeyId } = await server.grant(...own);
    const session = { apiId, externalId: owner, actions: LEFT };
    for (const [name, body] of [
      ["portal.createSession", session],
      ["apis.updateApi", { apiId, portal: { actions: LEFT } }],
    ] as const) {
      const { status, body: answer } = await server.call(name, body, { as });
      assert.equal(status, 403);
      assert.match(answer.error.detail, /'budgets\.\*\.read_budget'/);
    }
    await server.ok("rootKeys.updateRootKey", { rootKeyId, permissions: [...own, "budgets.*.read_budget"] });
    const { token } = await server.ok("portal.createSession", session, { as });
    const keys = async () => (await callPortal(server, token, "listKeys")).body.data;
    const actions = async () => (await callPortal(server, token, "getSession")).body.data.actions;
    assert.deepEqual([(await keys())[0].left, await actions()], [{ remaining: 50 }, LEFT]);
    await server.ok("rootKeys.updateRootKey", { rootKeyId, permissions: own });
    assert.deepEqual([(await keys())[0].left, await actions()], [undefined, ["list"]]);
  });
});
