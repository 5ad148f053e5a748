import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate } from "node:timers/promises";
import { collect } from "../../../server/test/garbage.ts";
import { SimulatedClock } from "../clock/simulated.ts";
import { hashSecret } from "../crypto/hash.ts";
import { alphanumeric } from "../random/random.ts";
import { seededRandom } from "../random/seeded.ts";
import { holds } from "../rules/permissions.ts";
import { keyLocation, RecordCaches } from "./directories.ts";
import { Generations, newGenerationsBuffer } from "./generations.ts";
import type { DeletedKey, DirectoryKey } from "./stored.ts";

const WORKSPACE = "ws_2fGh7KkLmN0pQrStUvWxYz12";
const API = "api_2fGh7KkLmN0pQrStUvWxYz12";

type StoredKey = DirectoryKey | DeletedKey;

/** Caches in front of these keys, by hash. */
function openCaches(keys: (hash: string) => StoredKey | undefined) {
  const generations = new Generations(newGenerationsBuffer(1_000_000));
  const unused = () => assert.fail();
  const caches = new RecordCaches({
    clock: new SimulatedClock(0),
    generations,
    bytesMax: 1e9,
    source: {
      keysAt: async (locations) => locations.flatMap(({ hash }) => keys(hash) ?? []),
      keysByIds: unused,
      derivedKeysAt: unused,
      rootKeysByHashes: unused,
      plans: unused,
      workspaces: unused,
      keyMigrations: unused,
      namespaces: unused,
      sessions: unused,
      portalSessions: unused,
    },
  });
  return { caches, generations, load: (hash: string) => caches.keys.load(keyLocation(hash, WORKSPACE)) };
}

function storedKey(changed: Partial<DirectoryKey> = {}): DirectoryKey {
  return {
    hash: "hash",
    workspace_id: WORKSPACE,
    id: "key_1",
    api_id: API,
    pool_id: "pool_1",
    hash_version: 1,
    is_unused: 0,
    name: null,
    meta: null,
    enabled: 1,
    expires_at: null,
    migration_id: null,
    allowed_ips: null,
    api_allowed_ips: null,
    api_own_key_access: 0,
    api_own_key_derivation: 0,
    workspace_enabled: 1,
    balance: null,
    plan: null,
    budgets: [],
    identity: null,
    concurrency: null,
    ratelimits: [],
    roles: [],
    permissions: [],
    ...changed,
  };
}

const budget = (id: string) => ({ id, name: `of ${id}`, unit: null });

const limit = (id: string) =>
  ({ id, name: "requests", limit: 10, duration: 60_000, mode: "standard", auto_apply: 1 }) as const;

describe("a cached key", () => {
  it("has the members of its answers in their order", async () => {
    const full = storedKey({
      name: 'a "name"',
      meta: '{"plan":"pro"}',
      expires_at: 5_000,
      identity: {
        id: "id_1",
        external_id: "acme",
        plan: null,
        budget_id: null,
        meta: null,
        concurrency: null,
        ratelimits: [limit("rl_2")],
      },
      ratelimits: [limit("rl_1")],
      roles: ["admin"],
      permissions: ["read"],
    });
    const { load } = openCaches((hash) => (hash === "full" ? { ...full, hash } : storedKey({ hash })));
    const [record, plain] = [await load("full"), await load("plain")];
    assert(record && plain);
    const anonymous = {
      keyId: "key_1",
      apiId: API,
      enabled: true,
      meta: { plan: "pro" },
      expires: 5_000,
      identity: {
        id: "id_1",
        externalId: "acme",
        meta: {},
        ratelimits: [{ id: "rl_2", name: "requests", limit: 10, duration: 60_000, autoApply: true }],
      },
    };
    assert.equal(`{${record.anonymousMembers}}`, JSON.stringify(anonymous));
    const members = { ...anonymous, name: 'a "name"', roles: ["admin"], permissions: ["read"] };
    assert.equal(`{${record.members}}`, JSON.stringify(members));
    assert.deepEqual(
      record.limits.map(({ owner, counter }) => [owner, counter]),
      [
        ["key", "key\0pool_1\0requests"],
        ["identity", "identity\0id_1\0requests"],
      ],
    );
    assert.equal(`{${plain.members}}`, JSON.stringify({ keyId: "key_1", apiId: API, enabled: true, meta: {} }));
    assert.equal(plain.members, plain.anonymousMembers);
  });

  it("leaves out for callers without a root key how many calls of its identity run at once, and its plan", async () => {
    const identity = { id: "id_1", external_id: "acme", plan: null, budget_id: null, meta: null, ratelimits: [] };
    const concurrency = [{ name: "streams", limit: 2 }];
    const limited = { ...identity, concurrency: JSON.stringify(concurrency) };
    const keys: Record<string, Partial<DirectoryKey>> = {
      limited: { identity: limited },
      planned: {
        identity: { ...identity, concurrency: null, plan: { id: "plan_1", name: "gold", credits: null, budget: null } },
      },
      free: { identity: { ...identity, concurrency: null } },
    };
    const { load } = openCaches((hash) => storedKey({ hash, ...keys[hash] }));
    const [record, planned, free] = [await load("limited"), await load("planned"), await load("free")];
    assert(record && planned && free);
    const shown = { id: "id_1", externalId: "acme", meta: {}, ratelimits: [] };
    const identityOf = (members: string) => JSON.parse(`{${members}}`).identity;
    assert.deepEqual(identityOf(record.members), { ...shown, concurrency });
    assert.deepEqual(identityOf(record.anonymousMembers), shown);
    assert.deepEqual(identityOf(planned.members), { ...shown, plan: "gold" });
    assert.deepEqual(identityOf(planned.anonymousMembers), shown);
    assert.deepEqual(identityOf(free.members), shown);
    assert.equal(free.members, free.anonymousMembers);
  });

  it("shares with other keys only what is the same", async () => {
    const changes: Record<string, Partial<DirectoryKey>> = {
      same: { id: "key_2", pool_id: "pool_2", name: "another" },
      disabled: { enabled: 0 },
      elsewhere: { api_id: "api_2" },
      restricted: { api_allowed_ips: '["192.0.2.0/24"]' },
      tied: { allowed_ips: '["192.0.2.0/24"]' },
      readable: { api_own_key_access: 1 },
      derivable: { api_own_key_derivation: 1 },
      permitted: { permissions: ["read"] },
      metered: { balance: { plan_id: null } },
      unused: { is_unused: 1 },
      suspended: { workspace_enabled: 0 },
    };
    const { load } = openCaches((hash) => storedKey({ hash, ...changes[hash] }));
    const plain = await load("plain");
    assert(plain);
    for (const hash of Object.keys(changes)) {
      const record = await load(hash);
      assert(record);
      assert.deepEqual(
        {
          enabled: record.enabled,
          api: record.apiId === API,
          verify: record.verifyRequirement,
          restricted: record.allowedIps !== null && record.allowedIps.ofApi !== null,
          tied: record.allowedIps !== null && record.allowedIps.ofKey !== null,
          readable: record.hasOwnAccess,
          permitted: holds(record.permissions, "read"),
          metered: record.hasBalance,
          unused: record.isUnused,
          suspended: !record.workspaceEnabled,
          shared: record.permissions === plain.permissions,
        },
        {
          enabled: hash !== "disabled",
          api: hash !== "elsewhere",
          verify: `apis.${hash === "elsewhere" ? "api_2" : API}.verify_key`,
          restricted: hash === "restricted",
          tied: hash === "tied",
          readable: hash === "readable",
          permitted: hash === "permitted",
          metered: hash === "metered",
          unused: hash === "unused",
          suspended: hash === "suspended",
          shared: hash === "same",
        },
      );
    }
  });

  it("shares its budgets with keys that have the same ones, and one empty list with keys without", async () => {
    const budgets = [budget("bud_team"), budget("bud_root")];
    const identity = {
      id: "id_1",
      external_id: "acme",
      plan: null,
      budget_id: null,
      meta: null,
      concurrency: null,
      ratelimits: [],
    };
    const changes: Record<string, Partial<DirectoryKey>> = {
      first: { budgets },
      again: { id: "key_2", budgets: [...budgets], identity },
      plain: {},
      owned: { identity },
    };
    const { load } = openCaches((hash) => storedKey({ hash, ...changes[hash] }));
    const budgetsOf = async (hash: string) => (await load(hash))!.budgets;
    assert.deepEqual(await budgetsOf("first"), [
      { budgetId: "bud_team", name: "of bud_team", unit: null },
      { budgetId: "bud_root", name: "of bud_root", unit: null },
    ]);
    assert.equal(await budgetsOf("again"), await budgetsOf("first"));
    assert.deepEqual(await budgetsOf("plain"), []);
    assert.equal(await budgetsOf("owned"), await budgetsOf("plain"));
  });

  it("is outdated by a change of each of its tags, and by no other", async () => {
    const budgets = [budget("bud_1"), budget("bud_root")];
    const identity = {
      id: "id_1",
      external_id: "acme",
      plan: null,
      budget_id: null,
      meta: null,
      concurrency: null,
      ratelimits: [],
    };
    for (const key of [storedKey({ identity, budgets }), storedKey()]) {
      const { caches, generations, load } = openCaches(() => key);
      const name = keyLocation("hash", WORKSPACE);
      const tags = ["hash", "key_1", API, WORKSPACE, "pool_1", ...(key.identity ? ["id_1", "bud_1", "bud_root"] : [])];
      for (const tag of tags) {
        await load("hash");
        generations.bump(["key_2", "api_2", "pool_2", "id_2", "bud_2"]);
        assert(caches.keys.get(name), tag);
        generations.bump([tag]);
        assert.equal(caches.keys.get(name), undefined, tag);
      }
      await load("hash");
      generations.bumpAll();
      assert.equal(caches.keys.get(name), undefined);
    }
  });

  it("compiles each list of addresses once, for the keys and the APIs that have it", async () => {
    const office = '["192.0.2.0/24"]';
    const changes: Record<string, Partial<DirectoryKey>> = {
      first: { allowed_ips: office, permissions: ["a"] },
      second: { allowed_ips: office, id: "key_2", is_unused: 1 },
      third: { api_allowed_ips: office, api_id: "api_2" },
    };
    const { load } = openCaches((hash) => storedKey({ hash, ...changes[hash] }));
    const [first, second, third] = [await load("first"), await load("second"), await load("third")];
    assert(first?.allowedIps?.ofKey);
    assert.equal(second?.allowedIps?.ofKey, first.allowedIps.ofKey);
    assert.equal(third?.allowedIps?.ofApi, first.allowedIps.ofKey);
    second.markUsed();
    assert.equal(second.allowedIps?.ofKey, first.allowedIps.ofKey);
  });

  it("is marked as used in place, and unused again if that cannot be stored", async () => {
    const { load } = openCaches((hash) => storedKey({ hash, id: `key_${hash}`, is_unused: 1, roles: ["admin"] }));
    const [first, second] = [await load("1"), await load("2")];
    assert(first && second);
    const { members } = first;
    const undo = first.markUsed();
    assert.deepEqual([first.isUnused, second.isUnused, first.members], [false, true, members]);
    undo();
    assert.deepEqual([first.isUnused, second.isUnused], [true, true]);
  });

  it("that is deleted looks missing, and names its owner", async () => {
    const deleted = { hash: "hash", workspace_id: WORKSPACE, id: "key_1", api_id: API, identity_id: "id_1" };
    const { load } = openCaches(() => ({ ...deleted, migration_id: null, deleted: true }));
    const record = await load("hash");
    assert.deepEqual(
      [record?.isDeleted, record?.keyId, record?.apiId, record?.identity?.id, record?.enabled],
      [true, "key_1", API, "id_1", false],
    );
  });

  it("takes the memory that the cache counts, about 400 bytes if it has nothing but its ids", async () => {
    const KEYS = 20_000;
    // The first collection flattens strings. What its weak callbacks release is collected by the next ones.
    const collectAll = async () => {
      for (let i = 0; i < 3; i++) {
        collect();
        await setImmediate();
      }
    };
    const identityOf = (i: number) => ({
      id: `id_${i}`,
      external_id: `customer-${i}`,
      plan: null,
      meta: null,
      concurrency: null,
      ratelimits: [],
      budget_id: null,
    });
    const kinds: Record<string, (i: number) => Partial<DirectoryKey>> = {
      plain: () => ({}),
      named: (i) => ({ name: `customer ${i}` }),
      owned: (i) => ({ identity: identityOf(i), meta: `{"plan":"pro","seat":${i}}`, expires_at: 4e12 + i }),
      concurrent: (i) => ({ concurrency: `[{"name":"streams of ${i}","limit":10}]` }),
      limited: (i) => ({ ratelimits: [limit(`rl_${i}`)] }),
      tied: (i) => ({ allowed_ips: `["198.51.${i >> 8}.${i & 255}","2001:db8:${i.toString(16)}::/48"]` }),
      permitted: (i) => ({ permissions: [`documents.${i}.read`] }),
      budgeted: (i) => ({ budgets: [budget(`bud_${i}`), budget("bud_root")] }),
      "in a team": () => ({ budgets: [budget("bud_team"), budget("bud_root")] }),
    };
    /** Bytes of the heap for each key, and those that the cache counts. */
    const measure = async (kind: string, fields: (i: number) => Partial<DirectoryKey>) => {
      const random = seededRandom(1);
      let i = 0;
      const { caches, load } = openCaches((hash) => {
        // Strings in one piece, as a database returns them.
        const idOf = (prefix: string) => Buffer.from(prefix + alphanumeric(random, 22)).toString("latin1");
        return storedKey({ hash, id: idOf("key_"), pool_id: idOf("pool_"), ...fields(i++) });
      });
      await collectAll();
      const before = process.memoryUsage().heapUsed;
      for (let from = 0; from < KEYS; from += 100) {
        await Promise.all(Array.from({ length: 100 }, (_, j) => load(hashSecret(`${kind} ${from + j}`))));
      }
      await collectAll();
      return [(process.memoryUsage().heapUsed - before) / KEYS, caches.counts.keys.bytes / KEYS] as const;
    };
    // What the program compiles at its first turn would be collected during the second one.
    await measure("first", () => ({}));
    for (const [kind, fields] of Object.entries(kinds)) {
      const [used, counted] = await measure(kind, fields);
      const figures = `${kind}: ${used.toFixed(0)} bytes, counted ${counted.toFixed(0)}`;
      assert(counted >= 0.9 * used && counted <= 1.3 * used, figures);
      if (kind === "plain") assert(used <= 450, figures);
    }
  });
});
