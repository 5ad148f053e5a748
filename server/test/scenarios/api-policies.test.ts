/** The policy of an API: what new keys must have, by whatever way they are made, and which older ones do not. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { sql as raw } from "kysely";
import { sha256 } from "../../../engine/src/crypto/digest.ts";
import { seededRandom } from "../../../engine/src/random/seeded.ts";
import { describeOnStores, type TestServer } from "../harness.ts";
import { callPortal } from "../portal-caller.ts";

const DAY = 86_400_000;
const limit = { name: "requests", limit: 5, duration: 60_000 };
const limits = { ratelimits: [limit] };

const hashOf = (text: string) => sha256(text).toString("hex");

async function policed(server: TestServer, policy: object, more: object = {}): Promise<string> {
  const { apiId } = await server.ok("apis.createApi", { name: "policed", policy });
  if (Object.keys(more).length > 0) await server.ok("apis.updateApi", { apiId, ...more });
  return apiId;
}

describeOnStores("the first policy of an API", (server, store) => {
  it("is not stored beside an earlier release, which cannot be started afterwards (rule 140)", async () => {
    const apiId = await server.createApi();
    const policy = { limitsRequired: true };
    const calls: [name: string, body: object][] = [
      ["apis.createApi", { name: "policed", policy }],
      ["apis.updateApi", { apiId, policy }],
    ];
    if (store === "postgres") {
      await server.besideEarlierRelease(async () => {
        for (const [name, body] of calls) {
          const { detail } = await server.rejected(name, body, "precondition_failed");
          assert.match(detail, /would create keys against the policy/);
        }
        await server.ok("apis.updateApi", { apiId, policy: null });
      });
    }
    const needs = () =>
      server.change([], async ({ db }) => {
        const { rows } = await raw<{ needs: number }>`select max(needs) as needs from schema_steps`.execute(db);
        return Number(rows[0]!.needs);
      });
    assert.equal(await needs(), 0);
    for (const [name, body] of calls) await server.ok(name, body);
    assert.equal(await needs(), 51);
  });
});

describeOnStores("the policy of an API", (server) => {
  const refused = async (name: string, body: object, says: RegExp) => {
    const { detail } = await server.rejected(name, body, "invalid_input");
    assert.match(detail, says);
  };
  const expiryOf = async (keyId: string) => (await server.getKey(keyId)).expires;

  it("is set as a whole, shown, recorded and removed", async () => {
    const policy = { expiry: { default: 30 * DAY, max: 90 * DAY }, limitsRequired: true, prefixFixed: false };
    const apiId = await policed(server, policy);
    assert.deepEqual((await server.ok("apis.getApi", { apiId })).policy, policy);
    await server.advance(1);
    await server.ok("apis.updateApi", { apiId, policy: { prefixFixed: true } });
    await server.advance(1);
    assert.deepEqual((await server.ok("apis.getApi", { apiId })).policy, { prefixFixed: true });
    await server.ok("apis.updateApi", { apiId, policy: null });
    assert.equal((await server.ok("apis.getApi", { apiId })).policy, undefined);
    const events = await server.ok("audit.listEvents", { target: apiId });
    assert.deepEqual(
      events.map(({ meta }: { meta: { before?: object; policy?: object; after?: object } }) => [
        meta.before ?? null,
        meta.after ?? meta.policy,
      ]),
      [
        [{ policy: { prefixFixed: true } }, { policy: null }],
        [{ policy }, { policy: { prefixFixed: true } }],
        [null, policy],
      ],
    );
    const longer = await server.rejected(
      "apis.updateApi",
      { apiId, policy: { expiry: { default: 2 * DAY, max: DAY } } },
      "invalid_input",
    );
    assert.equal(longer.errors?.[0]?.location, "/properties/policy/properties/expiry/properties/default/maximum");
  });

  it("gives keys an expiry, and refuses a later one to the millisecond (rule 138)", async () => {
    const apiId = await policed(server, { expiry: { default: 30 * DAY, max: 90 * DAY } });
    const now = server.clock.now();
    assert.equal(await expiryOf((await server.createKey(apiId)).keyId), now + 30 * DAY);
    assert.equal(await expiryOf((await server.createKey(apiId, { expires: now + 90 * DAY })).keyId), now + 90 * DAY);
    const latest = `Send \`expires\` with ${now + 90 * DAY} (${new Date(now + 90 * DAY).toISOString()}) or an earlier time.`;
    const { detail } = await server.rejected("keys.createKey", { apiId, expires: now + 90 * DAY + 1 }, "invalid_input");
    assert(detail.endsWith(latest), detail);
    await server.ok("apis.updateApi", { apiId, policy: { expiry: { max: DAY } } });
    await refused("keys.createKey", { apiId }, /at most 86400000 milliseconds/);
    await server.ok("apis.updateApi", { apiId, policy: { expiry: { default: DAY } } });
    assert.equal(await expiryOf((await server.createKey(apiId)).keyId), now + DAY);
    await server.createKey(apiId, { expires: now + 1_000 * DAY });
  });

  it("requires a limit, which the key, its plan, its identity or the plan of that can have (rule 138)", async () => {
    const apiId = await policed(server, { limitsRequired: true });
    await server.ok("plans.createPlan", { name: "limited", ...limits });
    await server.ok("plans.createPlan", { name: "slots", concurrency: [{ name: "jobs", limit: 1 }] });
    await server.ok("plans.createPlan", { name: "open", permissions: ["documents.read"] });
    await server.ok("identities.createIdentity", { externalId: "limited", ...limits });
    await server.ok("identities.createIdentity", { externalId: "planned", plan: "limited" });
    await server.ok("identities.createIdentity", { externalId: "open", plan: "open" });
    const shadow = { ratelimits: [{ ...limit, name: '"duration":', shadow: true }] };
    await server.ok("plans.createPlan", { name: "shadow", ...shadow });
    await server.ok("identities.createIdentity", { externalId: "shadow", ...shadow });
    const { budgetId } = await server.ok("budgets.createBudget", { name: "team", remaining: 5 });
    for (const sources of [
      {},
      { plan: "open" },
      { externalId: "open" },
      { externalId: "new" },
      { ratelimits: [], concurrency: [] },
      { credits: { remaining: 5 }, budgetId },
      { ratelimits: [{ ...limit, shadow: true }] },
      { plan: "shadow" },
      { externalId: "shadow" },
    ]) {
      await refused("keys.createKey", { apiId, ...sources }, /requires a limit for each key/);
    }
    // A refused call has created nothing.
    await server.rejected("identities.getIdentity", { identity: "new" }, "identity_not_found");
    for (const sources of [
      limits,
      { concurrency: [{ name: "jobs", limit: 1 }] },
      { plan: "limited" },
      { plan: "slots" },
      { externalId: "limited" },
      { externalId: "planned" },
    ]) {
      const { keyId } = await server.createKey(apiId, sources);
      const shadowed = {
        ratelimits: [{ ...limit, shadow: true }],
        concurrency: null,
        plan: "shadow",
        externalId: null,
      };
      await refused("keys.updateKey", { keyId, ...shadowed }, /takes the last one away/);
      const taken = { ratelimits: null, concurrency: null, plan: null, externalId: null };
      await refused("keys.updateKey", { keyId, ...taken }, /takes the last one away/);
      for (const [field, value] of Object.entries(taken)) {
        if (field in sources) await refused("keys.updateKey", { keyId, [field]: value }, /takes the last one away/);
      }
      assert.deepEqual(await server.ok("keys.updateKey", { keyId, ...taken, ...limits }), {});
    }
  });

  it("fixes the prefix (rule 138)", async () => {
    const apiId = await policed(server, { prefixFixed: true }, { prefix: "acme" });
    const { keyId, key } = await server.createKey(apiId);
    assert(key.startsWith("acme_"));
    await server.createKey(apiId, { prefix: "acme" });
    await refused("keys.createKey", { apiId, prefix: "other" }, /'acme', that of the API/);
    await server.ok("apis.updateApi", { apiId, prefix: "new" });
    const rerolled = await server.ok("keys.rerollKey", { keyId, expiration: 0 });
    assert(rerolled.key.startsWith("new_"));
    assert((await server.ok("keys.deriveKey", { keyId: rerolled.keyId, ttl: 60_000 })).key.startsWith("new_"));
    await server.ok("apis.updateApi", { apiId, prefix: null });
    await refused("keys.createKey", { apiId, prefix: "new" }, /none, as the API has none/);
    assert(!(await server.ok("keys.rerollKey", { keyId: rerolled.keyId, expiration: 0 })).key.includes("_"));
  });

  it("counts the life of a key from its creation, and lets an older key come nearer to it (rule 139)", async () => {
    const apiId = await policed(server, { limitsRequired: false });
    const { keyId } = await server.createKey(apiId);
    const created = server.clock.now();
    server.clock.step(40 * DAY);
    await server.ok("apis.updateApi", { apiId, policy: { expiry: { max: 30 * DAY } } });
    const now = server.clock.now();
    await server.ok("keys.updateKey", { keyId, name: "left alone" });
    assert.equal(await expiryOf(keyId), undefined);
    await server.ok("keys.updateKey", { keyId, expires: now + 20 * DAY });
    await server.ok("keys.updateKey", { keyId, expires: now + 10 * DAY });
    await refused("keys.updateKey", { keyId, expires: now + 10 * DAY + 1 }, new RegExp(`${created + 30 * DAY} `));
    await refused("keys.updateKey", { keyId, expires: null }, /from their creation/);
    assert.equal(await expiryOf(keyId), now + 10 * DAY);

    const { keyId: obeying } = await server.createKey(apiId, { expires: now + 30 * DAY });
    server.clock.step(DAY);
    await refused("keys.updateKey", { keyId: obeying, expires: now + 30 * DAY + 1 }, /from their creation/);
    const both = await server.ok("apis.updateKeys", { apiId, expires: now + 31 * DAY });
    assert.equal(both.changed, 0);
    assert.deepEqual(new Set(both.failed.map(({ keyId }: { keyId: string }) => keyId)), new Set([keyId, obeying]));
    assert.match(both.failed[0].detail, /from their creation/);
  });

  it("holds for rerolled keys, which end earlier than the old one where it ends too late", async () => {
    const apiId = await server.createApi();
    const { keyId } = await server.createKey(apiId, limits);
    const { keyId: unlimited } = await server.createKey(apiId);
    await server.ok("apis.updateApi", { apiId, policy: { expiry: { max: DAY }, limitsRequired: true } });
    const { keyId: next } = await server.ok("keys.rerollKey", { keyId, expiration: null });
    assert.equal(await expiryOf(next), server.clock.now() + DAY);
    assert.equal(await expiryOf(keyId), undefined);
    await server.ok("keys.updateKey", { keyId: next, expires: server.clock.now() + 5_000 });
    const { keyId: last } = await server.ok("keys.rerollKey", { keyId: next, expiration: null });
    assert.equal(await expiryOf(last), server.clock.now() + 5_000);
    const { detail } = await server.rejected(
      "keys.rerollKey",
      { keyId: unlimited, expiration: 0 },
      "precondition_failed",
    );
    assert.match(detail, /Give it one with `keys.updateKey`/);
    assert.equal(await expiryOf(unlimited), undefined);
  });

  it("holds for imported keys, of which a chunk with one against it is not imported, and the answer says why (rule 209)", async () => {
    const apiId = await policed(server, { expiry: { default: DAY, max: 2 * DAY }, limitsRequired: true });
    const now = server.clock.now();
    const migrate = { apiId, migrationId: "table" };
    const good = { hash: hashOf("good"), ...limits };
    const faults: [key: { hash: string; expires?: number }, says: RegExp][] = [
      [{ hash: hashOf("late"), ...limits, expires: now + 2 * DAY + 1 }, /at most 172800000 milliseconds/],
      [{ hash: hashOf("open") }, /requires a limit for each key/],
    ];
    for (const [key, says] of faults) {
      for (const dryRun of "expires" in key ? [true, false] : [false]) {
        const body = { ...migrate, keys: [good, key], dryRun };
        const { detail } = await server.rejected("keys.migrateKeys", body, "invalid_input");
        assert.match(detail, says);
        assert.match(detail, new RegExp(key.hash));
      }
    }
    // A later chunk: the answer has what was imported before it, and says which key is the reason.
    const many = Array.from({ length: 700 }, (_, i) => ({ hash: hashOf(`many ${i}`), ...limits }));
    const [late] = faults[0]!;
    for (const dryRun of [true, false]) {
      const keys = [many[0], ...many, late];
      const { migrated, failed, stopped } = await server.ok("keys.migrateKeys", { ...migrate, keys, dryRun });
      assert.deepEqual([stopped.status, dryRun ? 0 : failed.length + migrated.length], [400, dryRun ? 0 : 702]);
      assert.match(stopped.detail, /at most 172800000 milliseconds/);
      assert.match(stopped.detail, new RegExp(late.hash));
      // The one that is twice in the list is no part of it.
      assert.deepEqual(
        failed.slice(-stopped.count),
        keys.slice(-stopped.count).map((key) => key?.hash),
      );
      assert.equal(failed.length, stopped.count + 1);
    }
    const { migrated } = await server.ok("keys.migrateKeys", { ...migrate, keys: [good] });
    assert.equal(await expiryOf(migrated[0].keyId), now + DAY);
    await server.ok("apis.updateApi", { apiId, policy: { prefixFixed: true } });
    await refused("keys.migrateKeys", { ...migrate, keys: [good] }, /a hash does not show it/);
  });

  it("holds for derived keys", async () => {
    const apiId = await server.createApi();
    const { keyId } = await server.createKey(apiId);
    await server.ok("apis.updateApi", { apiId, policy: { expiry: { max: 3_600_000 }, limitsRequired: true } });
    await refused("keys.deriveKey", { keyId, ttl: 3_600_001, ...limits }, /Send a `ttl` of at most that/);
    await refused("keys.deriveKey", { keyId, ttl: 3_600_000 }, /send `ratelimits`/);
    const { keyId: child } = await server.ok("keys.deriveKey", { keyId, ttl: 3_600_000, ...limits });
    await server.ok("keys.deriveKey", { keyId: child, ttl: 60_000 });
  });

  it("holds for the keys that an owner makes in the portal", async () => {
    const apiId = await policed(server, { expiry: { max: DAY }, prefixFixed: true }, { prefix: "acme" });
    const open = async (keys: object) => {
      const body = { apiId, externalId: "ada", actions: ["create", "reroll"], keys: { max: 10, ...keys } };
      const { token } = await server.ok("portal.createSession", body);
      return async (input: object = {}, operation = "createKey") =>
        (await callPortal(server, token, operation, input)).body;
    };
    const now = server.clock.now();
    for (const [keys, life] of [
      [{ prefixes: ["other"] }, DAY],
      [{ expiresInMax: 2 * DAY }, DAY],
      [{ expiresInMax: DAY / 2 }, DAY / 2],
    ] as const) {
      const create = await open(keys);
      const { data } = await create();
      assert.equal(await expiryOf(data.keyId), now + life);
      assert(data.key.startsWith("acme_"));
    }
    const create = await open({ prefixes: ["other"] });
    assert.match((await create({ expiresIn: DAY + 60_000 })).error.detail, /longer than the 86400000 milliseconds/);
    assert.match((await create({ prefix: "other" })).error.detail, /fixes the prefix/);
    await server.ok("apis.updateApi", { apiId, policy: { expiry: { default: 60_000 }, limitsRequired: true } });
    assert.match((await create()).error.detail, /none is set for you/);
    const [{ keyId }] = await server.ok("apis.listKeys", { apiId, externalId: "ada" });
    const { error } = await create({ keyId, expiration: 0 }, "rerollKey");
    assert.match(error.type, /\/errors\/application\/precondition_failed$/);
    await server.ok("identities.updateIdentity", { identity: "ada", ...limits });
    assert.equal(await expiryOf((await create()).data.keyId), now + 60_000);
  });

  it("leaves older keys alone, and system.getFindings names them with the rules (rule 140)", async () => {
    const { key: as } = await server.workspace("found");
    const ok = (name: string, body: object) => server.ok(name, body, { as });
    const findings = async () => (await ok("system.getFindings", {})).keysAgainstPolicy;
    const { apiId } = await ok("apis.createApi", { name: "first" });
    const now = server.clock.now();
    const make = async (more: object = {}) => {
      await server.advance(1);
      return ok("keys.createKey", { apiId, ...more });
    };
    await ok("plans.createPlan", { name: "gold", ...limits });
    const bare = await make({ name: "bare" });
    const late = await make({ prefix: "acme", ...limits, expires: now + 10 * DAY });
    const planned = await make({ prefix: "acme", plan: "gold", expires: now + DAY });
    await make({ enabled: false });
    await make({ expires: now + 10 });
    const { keyId: deleted } = await make();
    await ok("keys.deleteKey", { keyId: deleted });
    await server.advance(100);
    assert.deepEqual(await findings(), []);
    const policy = { expiry: { max: 5 * DAY }, limitsRequired: true, prefixFixed: true };
    await ok("apis.updateApi", { apiId, prefix: "acme", policy });
    assert.equal((await server.verify(bare.key, {}, { as })).code, "VALID");
    const rows = [
      {
        keyId: bare.keyId,
        apiId,
        start: bare.key.slice(0, 4),
        name: "bare",
        against: ["expiry", "limitsRequired", "prefixFixed"],
      },
      { keyId: late.keyId, apiId, start: late.key.slice(0, 9), expires: now + 10 * DAY, against: ["expiry"] },
    ];
    assert.deepEqual(await findings(), [{ apiId, name: "first", count: 2, keys: rows }]);
    await ok("plans.updatePlan", { plan: "gold", ratelimits: [] });
    assert.deepEqual((await findings())[0].keys[2], {
      keyId: planned.keyId,
      apiId,
      start: planned.key.slice(0, 9),
      expires: now + DAY,
      against: ["limitsRequired"],
    });
    await ok("apis.updateApi", { apiId, policy: { expiry: { default: 60_000 } } });
    assert.deepEqual(await findings(), []);
    await ok("apis.updateApi", { apiId, policy, prefix: null });
    assert.deepEqual(
      (await findings())[0].keys.map(({ against }: { against: string[] }) => against),
      [
        ["expiry", "limitsRequired"],
        ["expiry", "prefixFixed"],
        ["limitsRequired", "prefixFixed"],
      ],
    );
    const stranger = (await server.workspace("stranger to policies")).key;
    assert.deepEqual((await server.ok("system.getFindings", {}, { as: stranger })).keysAgainstPolicy, []);
    await ok("apis.deleteApi", { apiId });
    assert.deepEqual(await findings(), []);
  });

  it("counts at most 1,000 keys of an API and shows 20", async () => {
    const { key: as } = await server.workspace("many against a policy");
    const { apiId } = await server.ok("apis.createApi", { name: "many" }, { as });
    const keys = Array.from({ length: 1_005 }, (_, i) => ({ hash: hashOf(`many ${i}`) }));
    await server.ok("keys.migrateKeys", { apiId, migrationId: "many", keys }, { as });
    await server.ok("apis.updateApi", { apiId, policy: { prefixFixed: true } }, { as });
    const [found] = (await server.ok("system.getFindings", {}, { as })).keysAgainstPolicy;
    assert.deepEqual([found.count, found.keys.length], [1_000, 20]);
  });
});

describeOnStores("a policy that an API has from its beginning", (server) => {
  it("holds for every key after any sequence of changes, by seed (rules 138 and 139)", async () => {
    const steps = 150;
    for (const seed of [1, 2, 3]) {
      const random = seededRandom(seed);
      const one = <T>(values: readonly T[]) => values[random.below(values.length)]!;
      const { key: as } = await server.workspace(`policy by seed ${seed}`);
      const max = 10 * DAY;
      const policy = { expiry: { default: DAY, max }, limitsRequired: true, prefixFixed: true };
      const { apiId } = await server.ok("apis.createApi", { name: "seeded", policy }, { as });
      await server.ok("apis.updateApi", { apiId, prefix: "acme" }, { as });
      await server.ok("plans.createPlan", { name: "gold", ...limits }, { as });
      await server.ok("plans.createPlan", { name: "open" }, { as });
      await server.ok("identities.createIdentity", { externalId: "limited", ...limits }, { as });
      const fields = (): Record<string, unknown> => ({
        expires: one([undefined, 1, max / 2, max, max + 1, 3 * max].map((life) => life && server.clock.now() + life)),
        ratelimits: one([undefined, [limit], []]),
        concurrency: one([undefined, undefined, [{ name: "jobs", limit: 1 }], []]),
        plan: one([undefined, "gold", "open"]),
        externalId: one([undefined, "limited", "somebody"]),
      });
      const given = (input: object) =>
        Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined));
      const keyIds: string[] = [];
      let [done, refusals] = [0, 0];
      const call = async (name: string, body: object) => {
        const { status, body: reply } = await server.call(name, given(body), { as });
        assert([200, 400, 412].includes(status), `${name} ${JSON.stringify(reply)}`);
        if (status === 200) done++;
        else refusals++;
        return status === 200 ? reply.data : undefined;
      };
      const actions = [
        async () => {
          const made = await call("keys.createKey", { apiId, prefix: one([undefined, "acme", "other"]), ...fields() });
          if (made) keyIds.push(made.keyId);
        },
        async () => {
          const keyId = one(keyIds);
          const cleared = Object.fromEntries(
            Object.keys(fields()).map((field) => [field, one([undefined, undefined, null])]),
          );
          if (keyId) await call("keys.updateKey", { keyId, ...given(fields()), ...given(cleared) });
        },
        async () => {
          const keyId = one(keyIds);
          const made = keyId && (await call("keys.rerollKey", { keyId, expiration: one([null, 0, DAY]) }));
          if (made) keyIds.push(made.keyId);
        },
        async () => {
          const set = one([{ expires: one([null, server.clock.now() + 2 * max]) }, { setPlan: one([null, "open"]) }]);
          await call("apis.updateKeys", { apiId, ...set, limit: 100 });
        },
        async () => server.clock.step(one([1, DAY / 2])),
      ];
      for (let step = 0; step < steps; step++) {
        await one(actions)();
        const keys = await server.ok("apis.listKeys", { apiId, limit: 100 }, { as });
        for (const key of keys) {
          const about = `seed ${seed}, step ${step}: ${JSON.stringify(key)}`;
          assert(key.expires !== undefined && key.expires <= key.createdAt + max, about);
          assert(key.start.startsWith("acme_"), about);
          const isLimited = key.ratelimits?.length > 0 || key.concurrency?.length > 0 || key.plan === "gold";
          assert(isLimited || key.identity?.externalId === "limited", about);
        }
      }
      assert.deepEqual((await server.ok("system.getFindings", {}, { as })).keysAgainstPolicy, []);
      assert(done > steps / 8 && refusals > steps / 8, `seed ${seed}: ${done} done, ${refusals} refused`);
    }
  });
});
