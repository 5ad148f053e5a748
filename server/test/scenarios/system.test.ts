/** What the service says about itself, about what needs attention, and about its latest decisions. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { CompiledQuery, createQueryId, type RootOperationNode } from "kysely";
import { KeyFindingReader } from "../../src/features/keys/statements/key-findings.ts";
import { describeOnStores, openTestServer } from "../harness.ts";

const MINUTE = 60_000;
const DAY = 86_400_000;

interface Found {
  keyId: string;
  leakedAt: number;
  name?: string;
}

describeOnStores("system.getFindings", (server, store) => {
  it("returns keys that expire or are low on credits, and idle and unrestricted root keys", async () => {
    const { key: as } = await server.workspace("found");
    const ok = (name: string, body: object) => server.ok(name, body, { as });
    const { apiId } = await ok("apis.createApi", { name: "found" });
    const add = async (name: string, more: object = {}) =>
      (await ok("keys.createKey", { apiId, name, ...more })).keyId as string;
    const now = server.clock.now();
    const refill = { interval: "monthly", amount: 1_000 };
    const later = await add("later", { expires: now + 13 * DAY });
    const sooner = await add("sooner", { expires: now + 2 * DAY });
    const together: string[] = [];
    for (const name of ["a", "b", "c", "d", "e"]) together.push(await add(name, { expires: now + 9 * DAY }));
    await add("much later", { expires: now + 15 * DAY });
    await add("off", { expires: now + DAY, enabled: false, credits: { remaining: 0 } });
    const spent = await add("spent", { credits: { remaining: 0 } });
    const low = await add("low", { credits: { remaining: 100, refill } });
    await add("enough", { credits: { remaining: 101, refill } });
    await ok("rootKeys.createRootKey", { name: "reader", permissions: ["apis.*.read_api"] });

    const found = await ok("system.getFindings", {});
    const ids = ({ keys }: { keys: { keyId: string }[] }) => keys.map(({ keyId }) => keyId);
    // Of the same time by id, so that both databases answer the same.
    assert.deepEqual(ids(found.keysExpiring), [sooner, ...together.sort(), later]);
    assert.deepEqual(ids(found.creditsLow), [spent, low]);
    assert.equal(found.keysExpiring.count, 2 + together.length);
    assert.deepEqual(
      found.rootKeysUnrestricted.map(({ name }: { name: string }) => name),
      ["administrator"],
    );
    assert.deepEqual(found.rootKeysUnused, []);
    assert.deepEqual(found.keysLeaked, { count: 0, keys: [] });
  });

  it("returns leaked keys that still verify, each once", async () => {
    const { key: as } = await server.workspace("leaky");
    const ok = (name: string, body: object) => server.ok(name, body, { as });
    const { apiId } = await ok("apis.createApi", { name: "leaky" });
    const leak = async (more: object = {}) => {
      const { keyId, key } = await ok("keys.createKey", { apiId, ...more });
      await server.advance(1);
      await server.ok("keys.reportLeak", { key }, { as: null });
      await server.store.settled();
      return { keyId, key, leakedAt: server.clock.now() };
    };
    const first = await leak();
    const last = await leak({ name: "last" });
    const [deleted, disabled] = [await leak(), await leak(), await leak({ expires: server.clock.now() + 100 })];
    await ok("keys.deleteKey", { keyId: deleted.keyId });
    await ok("keys.updateKey", { keyId: disabled.keyId, enabled: false });
    await server.advance(100);
    // Its second report disables it, and it is enabled again.
    await ok("apis.updateApi", { apiId, leakAction: "disable" });
    await server.ok("keys.reportLeak", { key: first.key }, { as: null });
    await server.store.settled();
    const ids = async () => (await ok("system.getFindings", {})).keysLeaked.keys.map(({ keyId }: Found) => keyId);
    assert.deepEqual(await ids(), [last.keyId]);
    await ok("keys.updateKey", { keyId: first.keyId, enabled: true });
    const { keysLeaked } = await ok("system.getFindings", {});
    assert.equal(keysLeaked.count, 2);
    assert.deepEqual(
      keysLeaked.keys.map(({ keyId, leakedAt, name }: Found) => ({ keyId, leakedAt, name })),
      [
        { keyId: last.keyId, leakedAt: last.leakedAt, name: "last" },
        { keyId: first.keyId, leakedAt: first.leakedAt, name: undefined },
      ],
    );
    const others = await server.ok("system.getFindings", {}, { as: (await server.workspace("stranger to leaks")).key });
    assert.equal(others.keysLeaked.count, 0);
  });

  if (store === "sqlite") {
    it("finds keys that are low on credits from the balances, and does not read all balances once for each key", async () => {
      const plan = await server.change([], async (sql) => {
        let find: RootOperationNode | undefined;
        const recorded = sql.db.withPlugin({
          transformQuery: ({ node }) => {
            find = node;
            return node;
          },
          transformResult: async ({ result }) => result,
        });
        const reader = new KeyFindingReader({ ...sql, db: recorded }, server.workspaceId);
        await reader.lowOnCredits(10, server.clock.now());
        const { sql: text, parameters } = sql.db.getExecutor().compileQuery(find!, createQueryId());
        const { rows } = await sql.db.executeQuery<{ detail: string }>(
          CompiledQuery.raw(`explain query plan ${text}`, [...parameters]),
        );
        return rows.map(({ detail }) => detail);
      });
      const place = (step: RegExp) => plan.findIndex((detail) => step.test(detail));
      const [pools, keys] = [place(/^SCAN pools/), place(/^SEARCH keys USING .*pool_id=\?/)];
      assert(pools >= 0 && pools < keys, plan.join("\n"));
    });
  }

  it("returns only what the root key may read", async () => {
    const { key: keysOnly } = await server.grant("apis.*.read_key");
    const { key: rootKeysOnly } = await server.grant("rootKeys.*.read_root_key");
    const members = async (as: string) => Object.keys(await server.ok("system.getFindings", {}, { as })).sort();
    const { key: webhooksOnly } = await server.grant("webhooks.*.read_webhook");
    assert.deepEqual(await members(keysOnly), ["creditsLow", "keysAgainstPolicy", "keysExpiring", "keysLeaked"]);
    assert.deepEqual(await members(webhooksOnly), ["webhooksDead", "webhooksDisabled"]);
    assert.deepEqual(await members(rootKeysOnly), ["rootKeysLeaked", "rootKeysUnrestricted", "rootKeysUnused"]);
  });
});

describe("the last use of a root key", () => {
  it("is stored later if it cannot be stored now, and before the service stops", async (t) => {
    const server = await openTestServer();
    t.after(() => server.close());
    const { key, rootKeyId } = await server.grant("apis.*.read_api");
    let attempts = 0;
    const storing = async (name: string, proceed: () => Promise<unknown>) => {
      if (name !== "recordRootKeyUses") return proceed();
      attempts++;
      if (attempts === 1) throw new Error("The disk is full");
      return proceed();
    };
    const at = server.clock.now();
    await server.ok("apis.listApis", {}, { as: key });
    server.store.interception = storing;
    await server.pass(2 * MINUTE);
    server.store.interception = undefined;
    const { lastUsedAt } = (await server.ok("rootKeys.listRootKeys", { search: "granted" })).find(
      (one: { rootKeyId: string }) => one.rootKeyId === rootKeyId,
    );
    assert.deepEqual([lastUsedAt, attempts], [at, 2]);
    await server.ok("apis.listApis", {}, { as: key });
    server.store.interception = storing;
    await server.service.stop();
    assert.equal(attempts, 3);
  });
});

describeOnStores("the last use of a root key", (server) => {
  it("is stored within a minute, and a root key without one for 90 days is found", async () => {
    const { key: used } = await server.grant("apis.*.read_api");
    await server.advance(1);
    const idle = await server.grant("apis.*.read_api");
    const listed = async () => {
      const all = await server.ok("rootKeys.listRootKeys", { search: "granted" });
      return all.map(({ rootKeyId, lastUsedAt }: { rootKeyId: string; lastUsedAt?: number }) => [
        rootKeyId,
        lastUsedAt,
      ]);
    };
    const at = server.clock.now();
    await server.ok("apis.listApis", {}, { as: used });
    await server.pass(MINUTE);
    const rows = await listed();
    assert.deepEqual(
      rows.map(([, lastUsedAt]: [string, number?]) => lastUsedAt),
      [at, undefined],
    );
    const again = server.clock.now();
    await server.ok("apis.listApis", {}, { as: used });
    await server.pass(2 * MINUTE);
    assert.equal((await listed())[0][1], again);
    await server.change([], async ({ db }) => {
      const created_at = server.clock.now() - 90 * DAY;
      await db.updateTable("root_keys").set({ created_at }).where("name", "=", "granted").execute();
    });
    const unused = async () =>
      (await server.ok("system.getFindings", {})).rootKeysUnused.map(
        ({ rootKeyId }: { rootKeyId: string }) => rootKeyId,
      );
    assert.deepEqual(await unused(), [idle.rootKeyId]);
  });
});

describe("system.getStatus", () => {
  it("has the effective configuration for the default workspace only, without secrets", async (t) => {
    const secret = Buffer.alloc(32, "secret").toString("base64");
    const server = await openTestServer({ settings: { VAULT_KEY: secret, STALE_MAX: "3m" } });
    t.after(() => server.close());
    const { service, ...status } = await server.ok("system.getStatus", {});
    assert.equal(status.status, "ok");
    const values = new Map(
      service.configuration.map(({ name, value }: { name: string; value: unknown }) => [name, value]),
    );
    assert.equal(values.get("LATCHKEY_STALE_MAX"), "180000");
    assert.equal(values.get("LATCHKEY_VAULT_KEY"), "set");
    assert.equal(values.get("LATCHKEY_REDIS_URL"), "");
    assert.equal(values.get("LATCHKEY_ANALYTICS"), "on");
    assert(!JSON.stringify(service).includes(secret));
    const other = await server.workspace("other");
    assert.equal((await server.ok("system.getStatus", {}, { as: other.key })).service, undefined);
  });

  it("has the latencies and the refused look-ups of the last 10 minutes", async (t) => {
    const server = await openTestServer({ settings: { LOOKUPS_PER_SECOND: "2" } });
    t.after(() => server.close());
    const recent = async () => {
      const { minutes, ...sums } = (await server.ok("system.getStatus", {})).service.recent;
      counts = minutes.map(({ verifications }: { verifications: number }) => verifications);
      return sums;
    };
    let counts: number[] = [];
    const start = server.clock.now();
    assert.deepEqual(await recent(), { since: start, verifications: 0, lookupsRefused: 0 });
    const { key } = await server.createKey(await server.createApi());
    for (let n = 0; n < 3; n++) await server.verify(key);
    const { p50Ms, p99Ms, ...rest } = await recent();
    assert.deepEqual(rest, { since: start, verifications: 3, lookupsRefused: 0 });
    assert(p50Ms > 0 && p50Ms <= p99Ms && p99Ms <= 0.05, `${p50Ms} ${p99Ms}`);
    await server.pass(5 * MINUTE);
    for (let n = 0; n < 20; n++) await server.call("keys.verifyKey", { key }, { as: `latchkey_invented${n}` });
    const refused = (await recent()).lookupsRefused;
    assert(refused > 0, `${refused}`);
    assert.deepEqual(counts, [3, 0, 0, 0, 0, 20]);
    await server.pass(9 * MINUTE);
    assert.equal((await recent()).verifications, 20);
    assert.deepEqual(counts, [3, 0, 0, 0, 0, 20, ...Array(9).fill(0)]);
    await server.pass(6 * MINUTE);
    assert.deepEqual(await recent(), { since: server.clock.now() - 10 * MINUTE, verifications: 0, lookupsRefused: 0 });
  });

  it("has the schedule of backups, if there is one", async (t) => {
    const plain = await openTestServer();
    t.after(() => plain.close());
    assert.equal((await plain.ok("system.getStatus", {})).service.backups, undefined);
    const server = await openTestServer({ settings: { BACKUP_EVERY: "6h" } });
    t.after(() => server.close());
    const { backups } = (await server.ok("system.getStatus", {})).service;
    assert.deepEqual(backups, { everyMs: 360 * MINUTE, nextAt: server.clock.now(), failures: 0 });
  });

  it("reports components that do not work", async (t) => {
    const server = await openTestServer();
    t.after(() => server.close());
    const { key } = await server.createKey(await server.createApi());
    await server.verify(key);
    server.analytics.interception = () => Promise.reject(new Error("away"));
    await server.pass(10_000);
    const { components } = await server.ok("system.getStatus", {});
    const states = Object.fromEntries(
      components.map((one: { name: string; status: string }) => [one.name, one.status]),
    );
    assert.deepEqual(states, { database: "ok", storage: "ok", redis: "off", analytics: "degraded" });
  });
});

describeOnStores("system.listDecisions", (server) => {
  it("returns decisions of the last minutes, the newest first, without key strings", async () => {
    const apiId = await server.createApi();
    const { keyId, key } = await server.createKey(apiId, { externalId: "tailed" });
    await server.verify(key, { tags: ["path=/a"] });
    await server.advance(1);
    await server.verify(`${key}x`);
    await server.ok("ratelimits.limit", { namespace: "tail", identifier: "user_1", limit: 1, duration: MINUTE });
    const { decisions } = await server.ok("system.listDecisions", {});
    const [limited, unknown, valid] = decisions;
    assert.deepEqual(
      [limited.kind, limited.identifier, limited.passed, limited.cost],
      ["ratelimit", "user_1", true, 1],
    );
    assert.deepEqual([unknown.code, unknown.keyId], ["NOT_FOUND", undefined]);
    assert.deepEqual([valid.code, valid.keyId, valid.apiId, valid.tags], ["VALID", keyId, apiId, ["path=/a"]]);
    assert(!JSON.stringify(decisions).includes(key));
    assert.deepEqual((await server.ok("system.listDecisions", { keyId })).decisions, [valid]);
    assert.deepEqual((await server.ok("system.listDecisions", { since: limited.at })).decisions, [limited, unknown]);
  });

  it("samples at most 20 decisions of a workspace in a second, and one of each kind", async () => {
    const { key: as } = await server.workspace("busy");
    await server.pass(1_000);
    const limit = (identifier: string) =>
      server.ok("ratelimits.limit", { namespace: "busy", identifier, limit: 100, duration: MINUTE }, { as });
    for (let i = 0; i < 30; i++) await limit("same");
    const count = async () => (await server.ok("system.listDecisions", { limit: 500 }, { as })).decisions.length;
    assert.equal(await count(), 1);
    for (let i = 0; i < 30; i++) await limit(`user_${i}`);
    assert.equal(await count(), 20);
    await server.pass(1_000);
    await limit("same");
    assert.equal(await count(), 21);
  });

  it("returns only what the root key may read, and nothing of other workspaces", async () => {
    const apiId = await server.createApi();
    const { key } = await server.createKey(apiId);
    await server.pass(1_000);
    await server.verify(key);
    const { key: reader } = await server.grant(`apis.${apiId}.read_analytics`);
    const { decisions } = await server.ok("system.listDecisions", {}, { as: reader });
    assert.deepEqual(new Set(decisions.map((one: { apiId?: string }) => one.apiId)), new Set([apiId]));
    const { key: other } = await server.workspace("stranger");
    assert.deepEqual((await server.ok("system.listDecisions", {}, { as: other })).decisions, []);
  });
});
