import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { it } from "node:test";
import { createKey } from "../../src/features/keys/createKey.ts";
import { TestEdge } from "../edge.ts";
import { describeOnStores, openTestServer } from "../harness.ts";

const DAY = 86_400_000;
const limit = { name: "requests", limit: 10, duration: 60_000, autoApply: true };

describeOnStores("Records for edges", (server) => {
  it("are those of keys, root keys and the workspace, in the order of the question (rule 167)", async () => {
    const apiId = await server.createApi();
    const { keyId, key } = await server.createKey(apiId, { name: "first", meta: { plan: "pro" } });
    const edge = new TestEdge(server);
    const [record, unknown, again] = await edge.resolve(key, "unknown", key);
    assert.equal(unknown, null);
    assert.deepEqual(again, record);
    const { poolId, ...rest } = record;
    assert.match(poolId, /^\w+$/);
    assert.deepEqual(rest, {
      keyId,
      apiId,
      name: "first",
      meta: '{"plan":"pro"}',
      enabled: true,
      workspaceEnabled: true,
      expiresAt: null,
      allowedIps: null,
      apiAllowedIps: null,
      identity: null,
      ratelimits: [],
      roles: [],
      permissions: [],
      needs: [],
    });
    const { rootKeyId, key: granted } = await server.grant("apis.*.verify_key");
    const [rootKey, none] = await edge.resolveRootKeys(granted, "lk_root_never");
    assert.equal(none, null);
    assert.deepEqual(rootKey, {
      rootKeyId,
      grants: ["apis.*.verify_key"],
      enabled: true,
      expiresAt: null,
      workspaceEnabled: true,
      requestsPerMinute: null,
    });
    const { keys, rootKeys, workspace } = await server.ok("replica.resolveKeys", { workspace: true });
    assert.deepEqual([keys, rootKeys], [[], []]);
    assert.equal(workspace.id, server.workspaceId);
    assert.equal(workspace.enabled, true);
  });

  it("say what the edge must pass on, and who owned a deleted key (rule 167)", async () => {
    const [apiId, otherApiId] = [await server.createApi(), await server.createApi()];
    const { identityId } = await server.ok("identities.createIdentity", { externalId: "owner" });
    const deleted = await server.createKey(apiId, { externalId: "owner" });
    await server.ok("keys.deleteKey", { keyId: deleted.keyId });
    const ofOther = await server.createKey(otherApiId);
    const top = await server.createKey(apiId);
    const derived = await server.ok("keys.deriveKey", { keyId: top.keyId, ttl: 60_000 });
    const imported = "sk_live_imported_string";
    const hash = createHash("sha256").update(imported).digest("hex");
    await server.ok("keys.migrateKeys", { migrationId: "own", apiId, algorithm: "sha256", keys: [{ hash }] });
    const foreign = await server.workspace("foreign");
    const { apiId: foreignApi } = await server.ok("apis.createApi", { name: "foreign" }, { as: foreign.key });
    const foreignKey = await server.ok("keys.createKey", { apiId: foreignApi }, { as: foreign.key });

    const { key } = await server.grant(`replicas.${apiId}.open`);
    const edge = new TestEdge(server, key);
    const records = await edge.resolve(deleted.key, ofOther.key, derived.key, foreignKey.key, imported);
    assert.deepEqual(records.slice(0, 4), [
      { isDeleted: true, keyId: deleted.keyId, apiId, identityId },
      { isElsewhere: true },
      { isElsewhere: true },
      null,
    ]);
    assert.deepEqual(records[4].needs, ["first_use"]);
    assert.deepEqual(await edge.resolveRootKeys(foreign.key), [{ isElsewhere: true }]);
  });

  it("have every change that the edge knows of, however often they were asked for (rule 167)", async () => {
    const apiId = await server.createApi();
    const { keyId, key } = await server.createKey(apiId, { name: "first" });
    const { key: weak } = await server.grant(`replicas.${await server.createApi()}.open`);
    const [edge, other] = [new TestEdge(server), new TestEdge(server, weak, 2)];
    await server.pass(200);
    await other.poll();
    await edge.poll();
    const nameOf = async () => (await edge.resolve(key))[0].name;
    for (const name of ["second", "third"]) {
      await nameOf();
      await server.ok("keys.updateKey", { keyId, name });
      await server.pass(200);
      assert((await edge.poll()).tags.includes(edge.tag(keyId)));
      assert.equal(await nameOf(), name);
    }
    // What another caller may not open is not given to it because the first one has asked.
    assert.deepEqual(await other.resolve(key), [{ isElsewhere: true }]);
  });

  it("have the first use of an imported key, which changes nothing else (rule 167)", async () => {
    const apiId = await server.createApi();
    const imported = "sk_live_first_use";
    const hash = createHash("sha256").update(imported).digest("hex");
    await server.ok("keys.migrateKeys", { migrationId: "first use", apiId, algorithm: "sha256", keys: [{ hash }] });
    const edge = new TestEdge(server);
    await server.pass(200);
    await edge.poll();
    const needs = async () => (await edge.resolve(imported))[0].needs;
    assert.deepEqual(await needs(), ["first_use"]);
    assert.deepEqual(await needs(), ["first_use"]);
    assert.equal((await server.verify(imported)).code, "VALID");
    await server.pass(1_000);
    assert.deepEqual(await needs(), []);
  });

  it("name every restriction that their members do not have (rule 168)", async () => {
    const apiId = await server.createApi();
    const edge = new TestEdge(server);
    const { budgetId } = await server.ok("budgets.createBudget", { name: "team", remaining: 5 });
    await server.ok("plans.createPlan", { name: "gold", ratelimits: [{ ...limit, autoApply: undefined }] });
    await server.createRole("editor", "documents.read");
    const concurrency = [{ name: "streams", limit: 2 }];
    const identities: Record<string, object> = {
      plain: {},
      limited: { ratelimits: [limit] },
      budgeted: { budgetId },
      concurrent: { concurrency },
      planned: { plan: "gold" },
    };
    for (const [externalId, more] of Object.entries(identities)) {
      await server.ok("identities.createIdentity", { externalId, ...more });
    }
    const expires = server.clock.now() + DAY;
    // Each member of a new key: what its record needs, or which member of the record has it.
    const members: Record<string, [object, string[], Record<string, unknown>?]> = {
      name: [{ name: "named" }, [], { name: "named" }],
      externalId: [{ externalId: "plain" }, []],
      meta: [{ meta: { a: 1 } }, [], { meta: '{"a":1}' }],
      roles: [{ roles: ["editor"] }, [], { roles: ["editor"], permissions: ["documents.read"] }],
      permissions: [{ permissions: ["documents.write"] }, [], { permissions: ["documents.write"] }],
      expires: [{ expires }, [], { expiresAt: expires }],
      credits: [{ credits: { remaining: 5 } }, ["balance"]],
      budgetId: [{ budgetId }, ["budgets"]],
      plan: [{ plan: "gold" }, ["plan"]],
      ratelimits: [{ ratelimits: [limit] }, ["limits"]],
      concurrency: [{ concurrency }, ["concurrency"]],
      allowedIps: [{ allowedIps: ["192.0.2.0/24"] }, [], { allowedIps: '["192.0.2.0/24"]' }],
      enabled: [{ enabled: false }, [], { enabled: false }],
    };
    // They shape the string, or are of the owner's tools.
    const others = ["apiId", "prefix", "byteLength", "recoverable"];
    const taken = Object.keys((createKey.declaration.input as unknown as { shape: object }).shape);
    assert.deepEqual(
      [...Object.keys(members), ...others].sort(),
      taken.sort(),
      "decide about a new member of keys here",
    );
    for (const [member, [input, needs, shown = {}]] of Object.entries(members)) {
      const [record] = await edge.resolve((await server.createKey(apiId, input)).key);
      assert.deepEqual(record.needs, needs, member);
      for (const [name, value] of Object.entries(shown)) assert.deepEqual(record[name], value, member);
    }
    const ofIdentity = { limited: "limits", budgeted: "budgets", concurrent: "concurrency", planned: "plan" };
    for (const [externalId, need] of Object.entries(ofIdentity)) {
      const [record] = await edge.resolve((await server.createKey(apiId, { externalId })).key);
      assert.deepEqual([record.identity.externalId, record.needs], [externalId, [need]]);
    }
    const all = { credits: { remaining: 5 }, budgetId, ratelimits: [limit], concurrency, externalId: "limited" };
    const [record] = await edge.resolve((await server.createKey(apiId, all)).key);
    assert.deepEqual(record.needs.toSorted(), ["balance", "budgets", "concurrency", "limits"]);
    assert.deepEqual([record.ratelimits[0].name, record.identity.ratelimits[0].limit], ["requests", 10]);
    await server.ok("apis.updateApi", { apiId, allowedIps: ["198.51.100.0/24"] });
    const [restricted] = await edge.resolve((await server.createKey(apiId)).key);
    assert.equal(restricted.apiAllowedIps, '["198.51.100.0/24"]');
  });

  it("are those of APIs that the root key opens after the wait (rules 171, 174)", async () => {
    const [first, second] = [await server.createApi(), await server.createApi()];
    const { key } = await server.createKey(first);
    const { key: as, rootKeyId } = await server.grant("replicas.*.open");
    const held = server.store.holdNext("keysAt");
    const resolving = new TestEdge(server, as).resolve(key);
    await held.reached;
    const permissions = [`replicas.${second}.open`];
    await server.ok("rootKeys.updateRootKey", { rootKeyId, permissions });
    held.release();
    assert.deepEqual(await resolving, [{ isElsewhere: true }]);
  });

  it("of a key that was deleted during the question are outdated by the next answer (rule 165)", async () => {
    const { keyId, key } = await server.createKey(await server.createApi());
    await server.pass(500);
    const edge = new TestEdge(server);
    await edge.poll();
    const read = Promise.withResolvers<void>();
    const answered = Promise.withResolvers<void>();
    server.store.interception = async (name, proceed) => {
      const rows = await proceed();
      if (name !== "keysAt") return rows;
      read.resolve();
      await answered.promise;
      return rows;
    };
    const resolving = edge.resolve(key);
    await read.promise;
    server.store.interception = undefined;
    await server.ok("keys.deleteKey", { keyId });
    answered.resolve();
    const [record] = await resolving;
    assert.equal(record.keyId, keyId);
    await server.pass(200);
    assert((await edge.poll()).tags.includes(edge.tag(keyId)));
    assert.equal((await edge.resolve(key))[0].isDeleted, true);
  });

  it("bring at most 256 keys and 128 root keys at a time (rule 175)", async () => {
    const hashes = (count: number) => Array.from({ length: count }, (_, i) => String(i).padStart(43, "0"));
    await server.rejected("replica.resolveKeys", { keys: hashes(257) }, "invalid_input");
    await server.rejected("replica.resolveKeys", { rootKeys: hashes(129) }, "invalid_input");
    for (const hash of ["0".repeat(42), "0".repeat(44), `${"0".repeat(42)}=`, ""]) {
      await server.rejected("replica.resolveKeys", { keys: [hash] }, "invalid_input");
    }
  });
});

it("Unknown hashes use the budget of the edge's root key up, and of no other (rule 175)", async (t) => {
  const server = await openTestServer({ settings: { LOOKUPS_PER_SECOND: "300" } });
  t.after(() => server.close());
  const { key: known } = await server.createKey(await server.createApi());
  const hashes = (mark: string) => Array.from({ length: 256 }, (_, i) => `${mark}${i}`.padStart(43, "0"));
  const [one, other] = [(await server.grant("replicas.*.open")).key, (await server.grant("replicas.*.open")).key];
  await server.ok("replica.resolveKeys", { keys: hashes("a") }, { as: one });
  await server.ok("replica.resolveKeys", { keys: hashes("b") }, { as: one });
  const refused = await server.call("replica.resolveKeys", { keys: hashes("c") }, { as: one });
  assert.equal(refused.problem, "lookups_exhausted");
  assert.equal(refused.headers["retry-after"], "1");
  const calls = [{ hash: "u".repeat(43), isAnonymous: false, address: "203.0.113.7" }];
  const { results } = await server.ok("replica.charge", { calls }, { as: one });
  assert.equal(results[0].problem.code, "lookups_exhausted");
  await server.ok("replica.resolveKeys", { keys: hashes("d") }, { as: other });
  // Direct callers have their own.
  await server.verify(known);
  await server.verify("never_issued_string");
  await server.pass(3_000);
  assert.equal((await new TestEdge(server, one).resolve(known))[0].needs.length, 0);
});
