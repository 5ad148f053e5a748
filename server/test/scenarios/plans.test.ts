/** Plans: what they give to keys and identities, and how a change of one reaches them. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { sql as raw } from "kysely";
import { describeOnStores, type TestServer } from "../harness.ts";

describeOnStores("the first plan", (server, store) => {
  it("is not created beside an earlier release, which cannot be started afterwards", async () => {
    if (store === "postgres") {
      await server.besideEarlierRelease(async () => {
        const { detail } = await server.rejected("plans.createPlan", { name: "gold" }, "precondition_failed");
        assert.match(detail, /Upgrade every node/);
      });
    }
    await server.ok("plans.createPlan", { name: "gold" });
    const needs = await server.change([], async ({ db }) => {
      const { rows } = await raw<{ needs: number }>`select max(needs) as needs from schema_steps`.execute(db);
      return Number(rows[0]!.needs);
    });
    assert.equal(needs, 49);
  });
});

describeOnStores("plans", tests);

const MINUTE = 60_000;
const perMinute = (name: string, limit: number, more: object = {}) => ({
  name,
  limit,
  duration: MINUTE,
  autoApply: true,
  ...more,
});

interface State {
  id: string;
  name: string;
  limit: number;
  remaining: number;
}

function tests(server: TestServer): void {
  let plans = 0;
  const create = async (body: object = {}): Promise<string> => {
    const name = `plan-${++plans}`;
    await server.ok("plans.createPlan", { name, ...body });
    return name;
  };
  const update = (plan: string, body: object) => server.ok("plans.updatePlan", { plan, ...body });
  const newKey = async (body: object = {}) => server.createKey(await server.createApi(), body);
  const limitsOf = async (key: string): Promise<[string, number, number][]> => {
    const { ratelimits = [] } = await server.verify(key);
    return ratelimits.map(({ name, limit, remaining }: State) => [name, limit, remaining]);
  };

  it("give keys limits, permissions and roles besides their own, and say so (rule 102)", async () => {
    await server.createRole("exporter", "documents.export");
    const plan = await create({
      ratelimits: [perMinute("requests", 600), perMinute("uploads", 5)],
      permissions: ["documents.read"],
      roles: ["exporter"],
      meta: { price: 9 },
    });
    const { key, keyId } = await newKey({
      plan,
      permissions: ["documents.write"],
      ratelimits: [perMinute("uploads", 2)],
    });
    const verified = await server.verify(key, {
      permissions: "documents.read AND documents.export AND documents.write",
    });
    assert.equal(verified.code, "VALID");
    assert.deepEqual(verified.permissions, ["documents.export", "documents.read", "documents.write"]);
    assert.deepEqual([verified.roles, verified.plan], [["exporter"], plan]);
    assert.deepEqual(
      verified.ratelimits.map(({ name, limit, remaining }: State) => [name, limit, remaining]),
      [
        ["uploads", 2, 1],
        ["requests", 600, 599],
      ],
    );
    const shown = await server.getKey(keyId);
    assert.deepEqual([shown.plan, shown.permissions, shown.roles], [plan, ["documents.write"], undefined]);
    assert.deepEqual(
      shown.ratelimits.map(({ name }: State) => name),
      ["uploads"],
    );
    const explained = await server.ok("keys.explainVerification", { keyId, permissions: "documents.export" });
    assert.equal(explained.key.plan, plan);
    assert.deepEqual(
      explained.ratelimits.map(({ name, plan: of }: State & { plan?: string }) => [name, of]),
      [
        ["uploads", undefined],
        ["requests", plan],
      ],
    );
    const [granted] = explained.permissions.effective;
    assert.deepEqual(granted, { slug: "documents.export", direct: false, roles: [], plan });
    assert.equal((await server.call("keys.verifyKey", { key }, { as: null })).body.data?.plan, undefined);
  });

  it("have one name each, which never changes, and refuse what does not exist (rule 101)", async () => {
    const plan = await create();
    await server.rejected("plans.createPlan", { name: plan }, "plan_already_exists");
    await server.rejected("plans.createPlan", { name: "plan_like_an_id" }, "invalid_input");
    await server.rejected("plans.createPlan", { name: "x", roles: ["nobody has it"] }, "role_not_found");
    await server.rejected("plans.updatePlan", { plan, roles: ["nobody has it"] }, "role_not_found");
    await server.rejected("plans.getPlan", { plan: "x" }, "plan_not_found");
    await server.rejected("plans.updatePlan", { plan, name: "y" }, "invalid_input");
    await server.rejected("keys.createKey", { apiId: await server.createApi(), plan: "x" }, "plan_not_found");
    const { keyId } = await newKey();
    await server.rejected("keys.updateKey", { keyId, plan: "x" }, "plan_not_found");
    await server.ok("identities.createIdentity", { externalId: `owner-of-${plan}` });
    await server.rejected("identities.updateIdentity", { identity: `owner-of-${plan}`, plan: "x" }, "plan_not_found");
    const { planId } = await server.ok("plans.getPlan", { plan });
    assert.equal((await server.ok("plans.getPlan", { plan: planId })).name, plan);
  });

  it("change for every key and identity at once, and a limit keeps its count unless its duration or mode changes (rule 105)", async () => {
    const plan = await create({ ratelimits: [perMinute("requests", 10)] });
    const { key } = await newKey({ plan });
    const { key: other } = await newKey({ plan, ratelimits: [perMinute("requests", 3)] });
    await server.ok("identities.createIdentity", { externalId: `owner-of-${plan}`, plan });
    const { key: owned } = await newKey({ externalId: `owner-of-${plan}` });
    for (const one of [key, owned]) assert.deepEqual(await limitsOf(one), [["requests", 10, 9]]);
    assert.deepEqual(await limitsOf(other), [["requests", 3, 2]]);

    const changed = await update(plan, { ratelimits: [perMinute("requests", 20)] });
    assert.equal(changed.version, 2);
    for (const one of [key, owned]) assert.deepEqual(await limitsOf(one), [["requests", 20, 18]]);
    assert.deepEqual(await limitsOf(other), [["requests", 3, 1]]);

    await update(plan, { ratelimits: [perMinute("requests", 20, { duration: 2 * MINUTE })] });
    assert.deepEqual(await limitsOf(key), [["requests", 20, 19]]);
    await update(plan, { ratelimits: [perMinute("requests", 20, { duration: 2 * MINUTE, mode: "strict" })] });
    assert.deepEqual(await limitsOf(key), [["requests", 20, 19]]);
    await update(plan, { ratelimits: null });
    for (const one of [key, owned]) assert.deepEqual(await limitsOf(one), []);
  });

  it("throw no key out of the cache when they change", async () => {
    const plan = await create({ ratelimits: [perMinute("requests", 10)] });
    const keys = await Promise.all(Array.from({ length: 20 }, () => newKey({ plan })));
    for (const { key } of keys) await server.verify(key);
    await update(plan, { ratelimits: [perMinute("requests", 30)] });
    const read: string[] = [];
    server.store.interception = async (name, proceed) => {
      read.push(name);
      return proceed();
    };
    for (const { key } of keys) assert.deepEqual(await limitsOf(key), [["requests", 30, 28]]);
    server.store.interception = undefined;
    assert.deepEqual(
      read.filter((name) => name === "keysAt" || name === "plansByIds"),
      ["plansByIds"],
    );
  });

  it("belong to the reroll chain of a key: a change through one key holds for all of it", async () => {
    const [gold, silver] = [await create({ ratelimits: [perMinute("requests", 10)] }), await create()];
    const { key, keyId } = await newKey({ plan: gold });
    const rerolled = await server.ok("keys.rerollKey", { keyId, expiration: 3_600_000 });
    await server.verify(key);
    assert.deepEqual(await limitsOf(rerolled.key), [["requests", 10, 8]]);
    await server.ok("keys.updateKey", { keyId, plan: silver });
    assert.deepEqual(await limitsOf(rerolled.key), []);
    assert.equal((await server.getKey(rerolled.keyId)).plan, silver);
    await server.ok("keys.updateKey", { keyId: rerolled.keyId, plan: null });
    assert.equal((await server.getKey(keyId)).plan, undefined);
  });

  it("give an identity limits that all its keys share, and none of the permissions (rule 103)", async () => {
    const plan = await create({ ratelimits: [perMinute("requests", 10)], permissions: ["documents.read"] });
    const externalId = `shared-${plan}`;
    const { identityId } = await server.ok("identities.createIdentity", { externalId, plan });
    const [one, other] = [await newKey({ externalId }), await newKey({ externalId, plan })];
    assert.deepEqual(await limitsOf(one.key), [["requests", 10, 9]]);
    // The key has the plan too: its own count, and that of its identity.
    assert.deepEqual(await limitsOf(other.key), [
      ["requests", 10, 9],
      ["requests", 10, 8],
    ]);
    assert.equal((await server.verify(one.key, { permissions: "documents.read" })).code, "INSUFFICIENT_PERMISSIONS");
    assert.equal((await server.verify(one.key)).identity.plan, plan);
    assert.equal((await server.ok("identities.getIdentity", { identity: externalId })).plan, plan);
    const explained = await server.ok("keys.explainVerification", { keyId: one.keyId });
    assert.deepEqual(explained.key.identity, { id: identityId, externalId, plan });
    await server.ok("identities.updateIdentity", { identity: externalId, plan: null });
    assert.deepEqual(await limitsOf(one.key), []);
    const [entry] = await server.ok("audit.listEvents", { target: identityId, action: "identities.updateIdentity" });
    assert.deepEqual([entry.meta.before, entry.meta.after], [{ plan }, { plan: null }]);
  });

  it("follow their roles", async () => {
    await server.createRole("reviewer", "reviews.read");
    const plan = await create({ roles: ["reviewer"] });
    const { key } = await newKey({ plan });
    const permissions = async () => (await server.verify(key)).permissions;
    assert.deepEqual(await permissions(), ["reviews.read"]);
    await server.ok("permissions.setRolePermissions", { role: "reviewer", permissions: ["reviews.write"] });
    assert.deepEqual(await permissions(), ["reviews.write"]);
    await server.ok("permissions.deleteRole", { role: "reviewer" });
    assert.equal(await permissions(), undefined);
    assert.deepEqual((await server.ok("plans.getPlan", { plan })).roles, []);
  });

  it("are deleted only when nothing uses them; a deleted key with one is not restored without it", async () => {
    const plan = await create();
    const { keyId } = await newKey({ plan });
    await server.ok("identities.createIdentity", { externalId: `last-${plan}`, plan });
    assert.match((await server.rejected("plans.deletePlan", { plan }, "plan_in_use")).detail, /^Keys/);
    await server.ok("keys.deleteKey", { keyId });
    assert.match((await server.rejected("plans.deletePlan", { plan }, "plan_in_use")).detail, /^Identities/);
    await server.ok("identities.deleteIdentity", { identity: `last-${plan}` });
    await server.ok("keys.restoreKey", { keyId });
    await server.rejected("plans.deletePlan", { plan }, "plan_in_use");
    await server.ok("keys.deleteKey", { keyId });
    const { planId } = await server.ok("plans.getPlan", { plan });
    await server.ok("plans.deletePlan", { plan });
    await server.rejected("plans.getPlan", { plan: planId }, "plan_not_found");
    await server.rejected("keys.restoreKey", { keyId }, "plan_not_found");
    // The name is free, and the new plan has none of the former keys.
    await server.ok("plans.createPlan", { name: plan });
    await server.rejected("keys.restoreKey", { keyId }, "plan_not_found");
    const events = await server.ok("events.listEvents", { objectId: planId });
    assert.deepEqual(
      events.map(({ type }: { type: string }) => type),
      ["plan.created", "plan.deleted"],
    );
  });

  it("need a permission for each change, and assign_plan on the former and the new one", async () => {
    const [gold, silver] = [await create(), await create()];
    const ids: string[] = [];
    for (const plan of [gold, silver]) ids.push((await server.ok("plans.getPlan", { plan })).planId);
    const apiId = await server.createApi();
    const { keyId } = await server.createKey(apiId, { plan: gold });
    const mayUpdate = [`apis.${apiId}.update_key`];
    const refused = async (permissions: string[], plan: string | null) => {
      const { key: as } = await server.grant(...mayUpdate, ...permissions);
      await server.rejected("keys.updateKey", { keyId, plan }, "insufficient_permissions", { as });
    };
    await refused([`plans.${ids[0]}.assign_plan`], silver);
    await refused([`plans.${ids[1]}.assign_plan`], silver);
    await refused([], null);
    const { key: both } = await server.grant(...mayUpdate, ...ids.map((id) => `plans.${id}.assign_plan`));
    await server.ok("keys.updateKey", { keyId, plan: silver }, { as: both });
    await server.rejected("plans.updatePlan", { plan: gold, meta: {} }, "insufficient_permissions", { as: both });
    await server.rejected("plans.previewUpdate", { plan: gold }, "insufficient_permissions", { as: both });
  });

  it("select keys and identities, and are given to many keys at once", async () => {
    const [gold, silver] = [await create(), await create()];
    const apiId = await server.createApi();
    const keyIds: string[] = [];
    for (let i = 0; i < 3; i++) keyIds.push((await server.createKey(apiId, { plan: gold })).keyId);
    await server.createKey(apiId);
    await server.ok("identities.createIdentity", { externalId: `listed-${gold}`, plan: gold });
    const listed = async (plan: string) =>
      (await server.ok("apis.listKeys", { apiId, plan })).map(({ keyId }: { keyId: string }) => keyId);
    assert.deepEqual((await listed(gold)).sort(), [...keyIds].sort());
    assert.deepEqual(await server.ok("apis.countKeys", { apiId, plan: gold }), { count: 3, isComplete: true });
    const owners = await server.ok("identities.listIdentities", { plan: gold });
    assert.deepEqual(
      owners.map(({ externalId }: { externalId: string }) => externalId),
      [`listed-${gold}`],
    );
    assert.deepEqual(await server.ok("identities.listIdentities", { plan: silver }), []);
    const moved = await server.ok("apis.updateKeys", { apiId, plan: gold, setPlan: silver });
    assert.deepEqual(moved, { changed: 3, failed: [] });
    assert.deepEqual([await listed(gold), (await listed(silver)).length], [[], 3]);
  });

  it("are given by imports", async () => {
    const plan = await create({ ratelimits: [perMinute("requests", 10)] });
    const apiId = await server.createApi();
    const hash = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae";
    await server.rejected(
      "keys.migrateKeys",
      { migrationId: plan, apiId, keys: [{ hash, plan: "no such plan".replaceAll(" ", "-") }] },
      "plan_not_found",
    );
    await server.ok("keys.migrateKeys", { migrationId: plan, apiId, keys: [{ hash, plan }] });
    assert.deepEqual(await limitsOf("foo"), [["requests", 10, 9]]);
  });

  it("are previewed: what a change would do to how many, and it changes nothing", async () => {
    const plan = await create({
      ratelimits: [perMinute("requests", 600), perMinute("uploads", 5), perMinute("same", 1)],
      permissions: ["documents.read"],
    });
    const apiId = await server.createApi();
    for (let i = 0; i < 4; i++) {
      const own = i === 0 ? { ratelimits: [perMinute("requests", 5_000)] } : {};
      await server.createKey(apiId, { plan, ...own });
    }
    await server.ok("identities.createIdentity", { externalId: `previewed-${plan}`, plan });
    const before = await server.ok("plans.getPlan", { plan });
    const rows = await server.rows();
    const preview = await server.ok("plans.previewUpdate", {
      plan,
      ratelimits: [perMinute("requests", 1_000), perMinute("uploads", 5, { duration: 1_000 }), perMinute("same", 1)],
      permissions: null,
    });
    const [requests, uploads, permissions] = preview.changes;
    assert.equal(preview.changes.length, 3);
    assert.deepEqual(preview.keys, { count: 4, isComplete: true });
    assert.deepEqual(preview.identities, { count: 1, isComplete: true });
    assert.deepEqual(requests, {
      field: "ratelimits",
      name: "requests",
      change: "changed",
      before: { limit: 600, duration: MINUTE, autoApply: true },
      after: { limit: 1_000, duration: MINUTE, autoApply: true },
      keys: 3,
      keysKeeping: 1,
      identities: 1,
      identitiesKeeping: 0,
      startsAtZero: false,
    });
    assert.deepEqual([uploads.name, uploads.keys, uploads.startsAtZero], ["uploads", 4, true]);
    assert.deepEqual([permissions.change, permissions.added, permissions.removed], ["removed", [], ["documents.read"]]);
    assert.deepEqual(await server.rows(), rows);
    assert.deepEqual(await server.ok("plans.getPlan", { plan }), before);
    const who = await server.ok("plans.previewUpdate", { plan });
    assert.deepEqual([who.keys.count, who.changes], [4, []]);
  });

  it("cover tyk#241: a policy is raised for all of its keys, and keys that have their own quota keep it", async () => {
    const policy = await create({ ratelimits: [perMinute("rate", 2)] });
    const keys = [await newKey({ plan: policy }), await newKey({ plan: policy })];
    const own = await newKey({ plan: policy, ratelimits: [perMinute("rate", 1)] });
    for (const { key } of keys) {
      await server.verify(key);
      await server.verify(key);
      assert.equal((await server.verify(key)).code, "RATE_LIMITED");
    }
    assert.equal((await server.verify(own.key)).code, "VALID");
    await update(policy, { ratelimits: [perMinute("rate", 3)] });
    for (const { key } of keys) {
      assert.equal((await server.verify(key)).code, "VALID");
      assert.equal((await server.verify(key)).code, "RATE_LIMITED");
    }
    assert.equal((await server.verify(own.key)).code, "RATE_LIMITED");
  });

  it("cover envoyproxy/gateway#7419: the tier of the user decides the limit, counted for each user apart", async () => {
    const tiers = {
      free: await create({ ratelimits: [perMinute("rate", 1)] }),
      paid: await create({ ratelimits: [perMinute("rate", 3)] }),
    };
    const users = [];
    for (const tier of ["free", "free", "paid"] as const) users.push(await newKey({ plan: tiers[tier] }));
    const passes = async (key: string) => {
      let count = 0;
      while ((await server.verify(key)).valid) count++;
      return count;
    };
    const counts = [];
    for (const { key } of users) counts.push(await passes(key));
    assert.deepEqual(counts, [1, 1, 3]);
    // An upgrade keeps what the user has used of this window.
    await server.ok("keys.updateKey", { keyId: users[0]!.keyId, plan: tiers.paid });
    assert.equal(await passes(users[0]!.key), 2);
  });
}
