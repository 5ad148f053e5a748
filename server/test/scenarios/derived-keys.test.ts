/** Keys that are derived from keys. What their holders can do with them is in `adversary/derived-keys.test.ts`. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { sql as raw } from "kysely";
import { describeOnStores, openTestServer, type TestServer } from "../harness.ts";
import { introspect } from "../oauth-caller.ts";

const HOUR = 3_600_000;
const limit = (name: string, most: number) => ({ name, limit: most, duration: 60_000 });
const planned = (name: string, most: number) => ({ ...limit(name, most), autoApply: true });

const derive = (server: TestServer, keyId: string, more: object = {}) =>
  server.ok("keys.deriveKey", { keyId, ttl: HOUR, ...more });

const codeOf = async (server: TestServer, key: string, more: object = {}) => (await server.verify(key, more)).code;

describeOnStores("the first derived key", (server, store) => {
  it("is not stored beside an earlier release, which cannot be started afterwards", async () => {
    const { apiId } = await server.ok("apis.createApi", { name: "a", ownKeyDerivation: true });
    const { keyId, key } = await server.createKey(apiId);
    if (store === "postgres") {
      await server.besideEarlierRelease(async () => {
        const bodies = { "keys.deriveKey": { keyId }, "keys.deriveOwnKey": { key } };
        for (const [name, body] of Object.entries(bodies)) {
          const { detail } = await server.rejected(name, { ...body, ttl: HOUR }, "precondition_failed");
          assert.match(detail, /does not know derived keys/);
        }
      });
    }
    const needs = () =>
      server.change([], async ({ db }) => {
        const { rows } = await raw<{ needs: number }>`select max(needs) as needs from schema_steps`.execute(db);
        return Number(rows[0]!.needs);
      });
    assert.equal(await needs(), 0);
    await derive(server, keyId);
    assert.equal(await needs(), 47);
  });
});

describeOnStores("derived keys", (server, store) => {
  it("are answered with the meta, name and identity of the key at the top (rule 109)", async () => {
    const apiId = await server.createApi();
    await server.createRole("reader");
    const parent = await server.createKey(apiId, {
      prefix: "prod",
      name: "acme",
      externalId: "acme_1",
      meta: { tenant: 7 },
      roles: ["reader"],
      permissions: ["documents.*", "billing.read"],
    });
    const child = await derive(server, parent.keyId, {
      permissions: ["documents.read", "admin"],
      meta: { admin: true },
    });
    assert.match(child.key, /^prod_/);
    const answer = await server.verify(child.key);
    assert.equal(answer.code, "VALID");
    assert.equal(answer.keyId, child.keyId);
    assert.equal(answer.name, "acme");
    assert.deepEqual(answer.meta, { tenant: 7 });
    assert.equal(answer.identity.externalId, "acme_1");
    assert.deepEqual(answer.permissions, ["documents.read"]);
    assert.equal("roles" in answer, false);
    assert.equal(answer.expires, child.expires);
    assert.deepEqual(answer.derived, { parentKeyId: parent.keyId, meta: { admin: true } });
    const grandchild = await derive(server, child.keyId);
    assert.deepEqual((await server.verify(grandchild.key)).derived, { parentKeyId: child.keyId, meta: {} });
    // Callers without a root key see neither name nor permissions.
    const { data } = (await server.call("keys.verifyKey", { key: child.key }, { as: null })).body;
    assert.equal(data.code, "VALID");
    assert.equal("name" in data || "permissions" in data, false);
  });

  it("are charged as if their parent had called, and to their own limits besides (rule 110)", async () => {
    const apiId = await server.createApi();
    const { budgetId } = await server.ok("budgets.createBudget", { name: "b", remaining: 50 });
    const parent = await server.createKey(apiId, {
      credits: { remaining: 20 },
      budgetId,
      ratelimits: [planned("requests", 6)],
    });
    const child = await derive(server, parent.keyId, { credits: { max: 7 }, ratelimits: [limit("agent", 2)] });
    const sibling = await derive(server, parent.keyId);
    const first = await server.verify(child.key, { credits: { cost: 3 } });
    assert.equal(first.credits, 4);
    assert.deepEqual(
      first.ratelimits.map(({ name, remaining }: { name: string; remaining: number }) => [name, remaining]),
      [
        ["requests", 5],
        ["agent", 1],
      ],
    );
    assert.equal((await server.getKey(parent.keyId)).credits.remaining, 17);
    assert.equal(await codeOf(server, child.key, { credits: { cost: 5 } }), "USAGE_EXCEEDED");
    assert.equal(await codeOf(server, child.key, { credits: { cost: 0 } }), "VALID");
    assert.equal(await codeOf(server, child.key), "RATE_LIMITED");
    // Its own limit does not concern others, and what it charged to that of its parent does.
    const other = await server.verify(sibling.key, { credits: { cost: 4 } });
    assert.equal(other.ratelimits[0].remaining, 3);
    assert.equal(other.credits, 13);
    assert.equal((await server.ok("budgets.getBudget", { budgetId })).remaining, 43);
    const all = await server.ok("keys.listDerivedKeys", { keyId: parent.keyId });
    const listed = all.find((one: { keyId: string }) => one.keyId === child.keyId);
    assert.deepEqual(listed.credits, { max: 7, remaining: 4 });
    // A child of the child is charged to all three.
    await server.pass(120_000);
    const grandchild = await derive(server, child.keyId, { credits: { max: 100 } });
    assert.equal((await server.verify(grandchild.key, { credits: { cost: 4 } })).credits, 0);
    assert.equal(await codeOf(server, child.key), "USAGE_EXCEEDED");
    assert.equal((await server.getKey(parent.keyId)).credits.remaining, 9);
  });

  it("have what the plan of the key at the top gives at that moment (rule 109)", async () => {
    const apiId = await server.createApi();
    const plan = { name: "derived-gold", permissions: ["documents.*"], ratelimits: [planned("requests", 5)] };
    await server.ok("plans.createPlan", plan);
    await server.createRole("exporter");
    await server.ok("plans.createPlan", { name: "of-owner", ratelimits: [planned("all", 9)] });
    await server.ok("identities.createIdentity", { externalId: "planned", plan: "of-owner" });
    const parent = await server.createKey(apiId, {
      plan: plan.name,
      externalId: "planned",
      permissions: ["billing.read"],
    });
    const child = await derive(server, parent.keyId, { permissions: ["documents.read", "admin.*"] });
    const grandchild = await derive(server, child.keyId, { permissions: ["documents.*", "billing.read"] });
    const first = await server.verify(grandchild.key);
    assert.deepEqual([first.code, first.permissions, first.plan], ["VALID", ["documents.read"], plan.name]);
    const leftOf = ({ ratelimits = [] }: { ratelimits?: { name: string; limit: number; remaining: number }[] }) =>
      ratelimits.map(({ name, limit, remaining }) => `${name} ${remaining} of ${limit}`);
    assert.deepEqual(leftOf(first), ["requests 4 of 5", "all 8 of 9"]);
    assert.deepEqual(leftOf(await server.verify(parent.key)), ["requests 3 of 5", "all 7 of 9"]);
    const explained = await server.ok("keys.explainVerification", { keyId: grandchild.keyId });
    assert.equal(explained.key.plan, plan.name);
    assert.equal(explained.key.identity.plan, "of-owner");
    assert.deepEqual(
      explained.ratelimits.map(({ name, plan: of }: { name: string; plan?: string }) => [name, of]),
      [
        ["requests", plan.name],
        ["all", "of-owner"],
      ],
    );
    assert.equal(explained.permissions.effective[0].slug, "documents.read");

    await server.ok("plans.updatePlan", { plan: plan.name, ratelimits: [planned("requests", 3)], roles: ["exporter"] });
    const limited = await server.verify(child.key);
    assert.deepEqual([leftOf(limited), limited.roles], [["requests 0 of 3", "all 6 of 9"], undefined]);
    assert.equal(await codeOf(server, grandchild.key), "RATE_LIMITED");
    await server.ok("plans.updatePlan", { plan: plan.name, permissions: ["admin.users"], ratelimits: null });
    assert.deepEqual((await server.verify(child.key)).permissions, ["admin.users"]);
    assert.equal("permissions" in (await server.verify(grandchild.key)), false);
    await server.ok("keys.updateKey", { keyId: parent.keyId, plan: null });
    const without = await server.verify(child.key);
    assert.deepEqual([without.plan, without.permissions], [undefined, undefined]);
    await server.ok("identities.updateIdentity", { identity: "planned", plan: null });
    assert.deepEqual(leftOf(await server.verify(child.key)), []);
  });

  it("spend the credits that the plan of the key at the top gives (rule 110)", async () => {
    const apiId = await server.createApi();
    const plan = "derived-credits";
    await server.ok("plans.createPlan", {
      name: plan,
      credits: { amount: 9, refill: { interval: "monthly" } },
    });
    const parent = await server.createKey(apiId, { plan });
    const child = await derive(server, parent.keyId, { credits: { max: 6 } });
    const explained = await server.ok("keys.explainVerification", { keyId: child.keyId });
    assert.deepEqual([explained.code, explained.credits.plan, explained.credits.remaining], ["VALID", plan, 9]);
    // The first call that needs the balance is one of the derived key.
    const held = await server.verify(child.key, { credits: { cost: 4 }, hold: { ttl: 60_000 } });
    assert.deepEqual([held.code, held.credits], ["VALID", 2]);
    assert.equal((await server.verify(parent.key)).credits, 4);
    assert.equal(await codeOf(server, child.key, { credits: { cost: 3 } }), "USAGE_EXCEEDED");
    assert.equal(await codeOf(server, parent.key, { credits: { cost: 3 } }), "VALID");
    assert.equal(await codeOf(server, child.key, { credits: { cost: 2 } }), "USAGE_EXCEEDED");
    assert.equal(await codeOf(server, child.key), "VALID");
  });

  it("get no more by asking for more, and nothing by what their parent gets of others (rule 109)", async () => {
    const apiId = await server.createApi();
    const parent = await server.createKey(apiId, {
      permissions: ["models.chat"],
      credits: { remaining: 10 },
      ratelimits: [planned("requests", 4)],
      expires: server.clock.now() + 60_000,
    });
    const wide = await derive(server, parent.keyId, {
      ttl: 24 * HOUR,
      permissions: ["*"],
      credits: { max: 1_000_000 },
      ratelimits: [limit("requests", 1_000_000)],
    });
    // It expires with its parent, and says so.
    assert.equal(wide.expires, server.clock.now() + 60_000);
    const answer = await server.verify(wide.key, { permissions: "models.chat" });
    assert.deepEqual([answer.code, answer.permissions, answer.credits], ["VALID", ["models.chat"], 9]);
    assert.equal(await codeOf(server, wide.key, { permissions: "models.train" }), "INSUFFICIENT_PERMISSIONS");
    assert.equal(await codeOf(server, wide.key, { credits: { cost: 11 } }), "USAGE_EXCEEDED");
    // A grandchild of it has no more, and a narrow sibling stays narrow when the parent gets more.
    const below = await derive(server, wide.keyId, { permissions: ["*"] });
    const narrow = await derive(server, parent.keyId, { permissions: ["models.chat"] });
    await server.ok("keys.addPermissions", { keyId: parent.keyId, permissions: ["models.train"] });
    const train = (key: string) => codeOf(server, key, { permissions: "models.train" });
    assert.deepEqual([await train(below.key), await train(narrow.key)], ["VALID", "INSUFFICIENT_PERMISSIONS"]);
    await server.ok("keys.updateKey", { keyId: parent.keyId, enabled: false });
    for (const { key } of [wide, below, narrow]) assert.equal(await codeOf(server, key), "DISABLED");
    await server.ok("keys.deleteKey", { keyId: parent.keyId });
    for (const { key } of [wide, below, narrow]) assert.equal(await codeOf(server, key), "NOT_FOUND");
  });

  it("are introspected with what they have (rules 109, 111 and 126)", async () => {
    const parent = await server.createKey(await server.createApi(), { permissions: ["a.*", "b"], meta: { tenant: 7 } });
    const child = await derive(server, parent.keyId, { permissions: ["a.read", "c"], meta: { admin: true } });
    const made = Math.floor(server.clock.now() / 1_000);
    const { latchkey, ...introspected } = await introspect(server, child.key);
    assert.deepEqual(introspected, {
      active: true,
      sub: child.keyId,
      client_id: child.keyId,
      scope: "a.read",
      exp: Math.floor(child.expires / 1_000),
      iat: made,
    });
    assert.deepEqual(latchkey.meta, { tenant: 7 });
    assert.deepEqual(latchkey.derived, { parentKeyId: parent.keyId, meta: { admin: true } });
    await server.ok("keys.setPermissions", { keyId: parent.keyId, permissions: ["b"] });
    assert.equal((await introspect(server, child.key)).scope, undefined);
    await server.ok("keys.updateKey", { keyId: parent.keyId, enabled: false });
    assert.deepEqual(await introspect(server, child.key), { active: false });
    await server.ok("keys.updateKey", { keyId: parent.keyId, enabled: true });
    assert.equal((await introspect(server, child.key)).active, true);
    await server.ok("keys.deleteKey", { keyId: child.keyId });
    assert.deepEqual(await introspect(server, child.key), { active: false });
  });

  it("have holds and slots of their parent", async () => {
    const apiId = await server.createApi();
    const parent = await server.createKey(apiId, {
      credits: { remaining: 20 },
      concurrency: [{ name: "s", limit: 1 }],
    });
    const child = await derive(server, parent.keyId, { credits: { max: 8 } });
    const held = await server.verify(child.key, { hold: { ttl: 60_000 }, credits: { cost: 5 } });
    assert.equal(held.credits, 3);
    assert.equal(await codeOf(server, parent.key, { hold: { ttl: 60_000 } }), "RATE_LIMITED");
    await server.ok("keys.deleteKey", { keyId: child.keyId });
    await server.ok("holds.settleHold", { holdId: held.hold.holdId, credits: 2 });
    assert.equal((await server.getKey(parent.keyId)).credits.remaining, 18);
  });

  it("end with everything that they were derived from (rule 111)", async () => {
    const apiId = await server.createApi();
    const chain = async () => {
      const top = await server.createKey(apiId);
      const child = await derive(server, top.keyId);
      const grandchild = await derive(server, child.keyId);
      return {
        top,
        child,
        grandchild,
        codes: () => Promise.all([child, grandchild].map(({ key }) => codeOf(server, key))),
      };
    };
    const both = (code: string) => [code, code];
    const disabled = await chain();
    assert.deepEqual(await disabled.codes(), both("VALID"));
    await server.ok("keys.updateKey", { keyId: disabled.top.keyId, enabled: false });
    assert.deepEqual(await disabled.codes(), both("DISABLED"));
    await server.rejected("keys.deriveKey", { keyId: disabled.top.keyId, ttl: HOUR }, "precondition_failed");

    const deleted = await chain();
    await server.ok("keys.deleteKey", { keyId: deleted.top.keyId });
    assert.deepEqual(await deleted.codes(), both("NOT_FOUND"));

    const erased = await chain();
    assert.deepEqual(await erased.codes(), both("VALID"));
    await server.ok("keys.deleteKey", { keyId: erased.top.keyId, permanent: true });
    assert.deepEqual(await erased.codes(), both("NOT_FOUND"));

    const expired = await chain();
    await server.ok("keys.updateKey", { keyId: expired.top.keyId, expires: server.clock.now() + 1_000 });
    assert.deepEqual(await expired.codes(), both("VALID"));
    await server.pass(1_000);
    assert.deepEqual(await expired.codes(), both("EXPIRED"));

    const rerolled = await chain();
    await server.ok("keys.rerollKey", { keyId: rerolled.top.keyId, expiration: 60_000 });
    assert.deepEqual(await rerolled.codes(), both("VALID"));
    await server.pass(120_000);
    assert.deepEqual(await rerolled.codes(), both("EXPIRED"));

    const ended = await chain();
    await server.ok("keys.deleteKey", { keyId: ended.child.keyId });
    assert.deepEqual(await ended.codes(), both("NOT_FOUND"));
    assert.equal(await codeOf(server, ended.top.key), "VALID");
    await server.rejected("keys.deleteKey", { keyId: ended.child.keyId }, "key_not_found");
    await server.rejected("keys.deleteKey", { keyId: ended.grandchild.keyId }, "key_not_found");
    await server.rejected("keys.deriveKey", { keyId: ended.grandchild.keyId, ttl: HOUR }, "key_not_found");

    const leaked = await chain();
    await server.ok("apis.updateApi", { apiId, leakAction: "disable" });
    await server.ok("keys.reportLeak", { key: leaked.top.key });
    await server.store.settled();
    assert.deepEqual(await leaked.codes(), both("DISABLED"));
    const found = await chain();
    await server.ok("keys.reportLeak", { key: found.child.key });
    await server.store.settled();
    assert.deepEqual(await found.codes(), both("NOT_FOUND"));
    assert.equal(await codeOf(server, found.top.key), "VALID");

    const removed = await chain();
    assert.deepEqual(await removed.codes(), both("VALID"));
    await server.ok("apis.deleteApi", { apiId });
    assert.deepEqual(await removed.codes(), both("NOT_FOUND"));
  });

  it("expire by themselves, are EXPIRED for an hour, and are forgotten then", async () => {
    const { keyId } = await server.createKey(await server.createApi());
    const long = await derive(server, keyId, { ttl: 2 * HOUR, credits: { max: 3 } });
    // Not later than the derived key that it was derived from.
    assert.equal((await derive(server, long.keyId, { ttl: 24 * HOUR })).expires, long.expires);
    await server.advance(2 * HOUR);
    await server.pass(1_000);
    assert.equal(await codeOf(server, long.key), "EXPIRED");
    assert.deepEqual(await server.ok("keys.listDerivedKeys", { keyId }), []);
    await server.rejected("keys.deriveKey", { keyId: long.keyId, ttl: HOUR }, "precondition_failed");
    await server.advance(HOUR + 1);
    // The task of retention runs every 15 minutes.
    await server.pass(15 * 60_000);
    // A node that has it in its cache still knows that it expired.
    assert(["EXPIRED", "NOT_FOUND"].includes(await codeOf(server, long.key)));
    const left = await server.change([], async ({ db }) => {
      const of = (table: "derived_keys" | "balances", column: "id" | "pool_id") =>
        db
          .selectFrom(table)
          .select(column as never)
          .where(column as never, "=", long.keyId as never)
          .execute();
      return [...(await of("derived_keys", "id")), ...(await of("balances", "pool_id"))];
    });
    assert.deepEqual(left, []);
  });

  it("can be derived from up to three levels (rule 112)", async () => {
    const { keyId } = await server.createKey(await server.createApi());
    const first = await derive(server, keyId, { meta: { level: 1 } });
    const second = await derive(server, first.keyId);
    const third = await derive(server, second.keyId);
    const { detail } = await server.rejected(
      "keys.deriveKey",
      { keyId: third.keyId, ttl: HOUR },
      "precondition_failed",
    );
    assert.match(detail, /3 levels below/);
    const idsOf = async (of: string) =>
      (await server.ok("keys.listDerivedKeys", { keyId: of })).map((one: { keyId: string }) => one.keyId).sort();
    assert.deepEqual(await idsOf(keyId), [first.keyId, second.keyId, third.keyId].sort());
    assert.deepEqual(await idsOf(first.keyId), [second.keyId, third.keyId].sort());
    assert.deepEqual(await idsOf(third.keyId), []);
  });

  it("are explained with their chain, and recorded with it", async () => {
    const parent = await server.createKey(await server.createApi(), { permissions: ["a.*"], externalId: "owner" });
    const first = await derive(server, parent.keyId, { permissions: ["a.read"], credits: { max: 2 } });
    const second = await derive(server, first.keyId, { allowedIps: ["192.0.2.0/24"] });
    for (const subject of [{ keyId: second.keyId }, { key: second.key }]) {
      const explained = await server.ok("keys.explainVerification", {
        ...subject,
        permissions: "a.write",
        clientIp: "203.0.113.1",
        credits: { cost: 3 },
      });
      assert.equal(explained.code, "FORBIDDEN");
      assert.deepEqual(
        explained.derived.map((level: { keyId: string; parentKeyId: string }) => [level.keyId, level.parentKeyId]),
        [
          [second.keyId, first.keyId],
          [first.keyId, parent.keyId],
        ],
      );
      assert.deepEqual(explained.derived[1].credits, { max: 2, remaining: 2 });
      const failed = ["address", "permissions", "credits"].map((step) => {
        const { detail } = explained.steps.find((one: { step: string }) => one.step === step);
        return detail;
      });
      assert.match(failed[0], /derived key does not contain 203\.0\.113\.1/);
      assert.match(failed[1], /do not satisfy a\.write/);
      assert.match(failed[2], /may still spend 2/);
    }
    const events = await server.ok("audit.listEvents", { target: parent.keyId });
    const made = events.filter(({ action }: { action: string }) => action === "keys.deriveKey");
    assert.deepEqual(made.map(({ meta }: { meta: { level: number } }) => meta.level).sort(), [1, 2]);
    assert(
      made.some(
        ({ targets }: { targets: string[] }) => targets.includes(second.keyId) && targets.includes(first.keyId),
      ),
    );
    const derivedEvents = await server.ok("events.listEvents", { types: ["key.derived"], objectId: parent.keyId });
    assert.equal(derivedEvents.length, 1);
    assert.equal(derivedEvents[0].data.derivedKeyId, first.keyId);
    await server.ok("keys.deleteKey", { keyId: first.keyId });
    const explained = await server.ok("keys.explainVerification", { key: second.key });
    assert.equal(explained.code, "NOT_FOUND");
    assert.match(explained.steps.find(({ step }: { step: string }) => step === "deletion").detail, /derived from/);
  });

  it("are no keys of their API, and are not changed or read like them (rule 113)", async () => {
    const apiId = await server.createApi();
    const { keyId } = await server.createKey(apiId);
    const child = await derive(server, keyId);
    assert.equal((await server.ok("apis.listKeys", { apiId })).length, 1);
    assert.equal((await server.ok("apis.countKeys", { apiId })).count, 1);
    const of = { keyId: child.keyId };
    const rejected: [string, object][] = [
      ["keys.getKey", of],
      ["keys.updateKey", { ...of, enabled: false }],
      ["keys.updateCredits", { ...of, operation: "set", value: 1 }],
      ["keys.rerollKey", { ...of, expiration: 0 }],
      ["keys.restoreKey", of],
      ["keys.addPermissions", { ...of, permissions: ["a"] }],
      ["keys.removePermissions", { ...of, permissions: ["a"] }],
      ["keys.setPermissions", { ...of, permissions: ["a"] }],
      ["keys.addRoles", { ...of, roles: ["a"] }],
      ["keys.removeRoles", { ...of, roles: ["a"] }],
      ["keys.setRoles", { ...of, roles: [] }],
      ["keys.whoami", { key: child.key }],
      ["analytics.getKeyStats", { ...of, start: 0, end: 60_000 }],
    ];
    for (const [name, body] of rejected) {
      const { detail } = await server.rejected(name, body, "invalid_input");
      assert.match(detail, new RegExp(`was derived from ${keyId}`), name);
    }
    const stranger = (await server.workspace("stranger")).key;
    for (const [name, body] of [...rejected, ["keys.deleteKey", of], ["keys.listDerivedKeys", of]] as const) {
      await server.rejected(name, body, "key_not_found", { as: stranger });
    }
    await server.rejected("keys.deriveKey", { keyId, ttl: HOUR }, "key_not_found", { as: stranger });
    assert.equal(await codeOf(server, child.key), "VALID");
  });

  it("are derived by holders where the API lets them (rule 114)", async () => {
    const { apiId } = await server.ok("apis.createApi", { name: "closed" });
    const { key, keyId } = await server.createKey(apiId, { permissions: ["a", "b"], allowedIps: ["198.51.100.0/24"] });
    const holder = { as: null, from: "198.51.100.1" };
    const body = { key, ttl: HOUR, permissions: ["a"] };
    await server.rejected("keys.deriveOwnKey", body, "key_not_found", holder);
    await server.ok("apis.updateApi", { apiId, ownKeyDerivation: true });
    assert.equal((await server.ok("apis.getApi", { apiId })).ownKeyDerivation, true);
    await server.rejected("keys.deriveOwnKey", body, "key_not_found", { as: null, from: "203.0.113.1" });
    const made = await server.ok("keys.deriveOwnKey", body, holder);
    const { code, permissions } = await server.verify(made.key, { clientIp: "198.51.100.1" });
    assert.deepEqual([code, permissions], ["VALID", ["a"]]);
    // A derived key derives no more than it has.
    const next = await server.ok("keys.deriveOwnKey", { ...body, key: made.key, permissions: ["*"] }, holder);
    assert.deepEqual((await server.verify(next.key, { clientIp: "198.51.100.1" })).permissions, ["a"]);
    const listed = await server.ok("keys.listDerivedKeys", { keyId });
    assert.deepEqual(
      listed.map(({ byHolder }: { byHolder: boolean }) => byHolder),
      [true, true],
    );
    const [entry] = (await server.ok("audit.listEvents", { target: made.keyId })).filter(
      ({ action }: { action: string }) => action === "keys.deriveOwnKey",
    );
    assert(entry);
    await server.ok("keys.updateKey", { keyId, enabled: false });
    await server.rejected("keys.deriveOwnKey", body, "key_not_found", holder);
    await server.ok("keys.updateKey", { keyId, enabled: true });
    await server.ok("apis.updateApi", { apiId, ownKeyDerivation: false });
    await server.rejected("keys.deriveOwnKey", { ...body, key: made.key }, "key_not_found", holder);
  });

  it("are read by their holders", async () => {
    const { apiId } = await server.ok("apis.createApi", { name: "open", ownKeyAccess: true });
    const { keyId } = await server.createKey(apiId, { credits: { remaining: 9 } });
    const child = await derive(server, keyId, { credits: { max: 4 }, ratelimits: [limit("agent", 5)] });
    const own = await server.ok("keys.getOwnKey", { key: child.key }, { as: null });
    assert.equal(own.keyId, child.keyId);
    assert.deepEqual(own.credits, { remaining: 4 });
    assert.deepEqual(
      own.ratelimits.map(({ name }: { name: string }) => name),
      ["agent"],
    );
    assert.equal("usage" in own, false);
  });

  it("are bounded for each key and in their rate for each owner (rule 115)", async (t) => {
    const bounded = await openTestServer({
      store,
      settings: { DERIVED_KEYS_PER_KEY: "3", DERIVED_KEYS_PER_MINUTE: "5" },
    });
    t.after(() => bounded.close());
    const apiId = await bounded.createApi();
    const { keyId } = await bounded.createKey(apiId, { externalId: "owner" });
    const { keyId: second } = await bounded.createKey(apiId, { externalId: "owner" });
    const first = await derive(bounded, keyId);
    await derive(bounded, first.keyId);
    await derive(bounded, keyId, { ttl: 60_000 });
    await bounded.rejected("keys.deriveKey", { keyId, ttl: HOUR }, "precondition_failed");
    await derive(bounded, second);
    await derive(bounded, second);
    const { status, problem, headers } = await bounded.call("keys.deriveKey", { keyId: second, ttl: HOUR });
    assert.deepEqual([status, problem], [429, "workspace_rate_limited"]);
    assert(Number(headers["retry-after"]) > 0);
    await bounded.pass(60_000);
    await derive(bounded, keyId);
  });
});
