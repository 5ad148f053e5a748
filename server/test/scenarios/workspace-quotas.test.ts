/** The quotas of a workspace, independent of other workspaces. */
import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { type Quota, quotaNames, quotas } from "../../src/platform/store/quotas/quotas.ts";
import type { WorkspaceUsageRow } from "../../src/platform/store/schema.ts";
import { describeOnStores, type Reply, TestServer } from "../harness.ts";

const MAX = 4;
/** More than the keys that imports of roles and identities make. */
const KEYS_MAX = 10;
/** More than a transaction counts itself. */
const PERMISSIONS_MAX = 5_100;
const SETTINGS = {
  ...Object.fromEntries(quotaNames.map((quota) => [`${quotas[quota].setting}_PER_WORKSPACE`, String(MAX)])),
  KEYS_PER_WORKSPACE: String(KEYS_MAX),
  PERMISSIONS_PER_WORKSPACE: String(PERMISSIONS_MAX),
  IDEMPOTENCY_RECORDS_PER_WORKSPACE: "4",
};
const hash = (i: number) => String(i).padStart(64, "0");
const ONCE = { limit: 10, duration: 60_000 };

interface Workspace {
  as: string;
  apiId: string;
}

/** The key of each workspace that keys are derived from. */
const parents = new Map<string, Promise<{ keyId: string; key: string }>>();

function parentOf(server: TestServer, { as, apiId }: Workspace): Promise<{ keyId: string; key: string }> {
  const known = parents.get(apiId);
  if (known) return known;
  const made = server
    .ok("apis.updateApi", { apiId, ownKeyDerivation: true }, { as })
    .then(() => server.ok("keys.createKey", { apiId }, { as }));
  parents.set(apiId, made);
  return made;
}

/** Each quota, with calls that add one row to it: explicit ones, and those that do so beside something else. */
type Creation = (server: TestServer, workspace: Workspace, i: number) => Promise<Reply>;

const creations: Record<Exclude<Quota, "permissions">, Record<string, Creation>> = {
  apis: { createApi: (server, { as }, i) => server.call("apis.createApi", { name: `api ${i}` }, { as }) },
  budgets: {
    createBudget: (server, { as }, i) => server.call("budgets.createBudget", { name: `b${i}`, remaining: 1 }, { as }),
  },
  derivedKeys: {
    deriveKey: async (server, workspace) => {
      const { keyId } = await parentOf(server, workspace);
      return server.call("keys.deriveKey", { keyId, ttl: 60_000 }, { as: workspace.as });
    },
    deriveOwnKey: async (server, workspace) => {
      const { key } = await parentOf(server, workspace);
      return server.call("keys.deriveOwnKey", { key, ttl: 60_000 }, { as: workspace.as });
    },
  },
  identities: {
    createIdentity: (server, { as }, i) => server.call("identities.createIdentity", { externalId: `a${i}` }, { as }),
    "a new key of a new owner": (server, { as, apiId }, i) =>
      server.call("keys.createKey", { apiId, externalId: `b${i}` }, { as }),
    "an import": (server, { as, apiId }, i) =>
      server.call(
        "keys.migrateKeys",
        { apiId, migrationId: "one", keys: [{ hash: hash(i), externalId: `c${i}` }] },
        { as },
      ),
    "a session of a new owner": (server, { as, apiId }, i) =>
      server.call("portal.createSession", { apiId, externalId: `d${i}`, actions: ["list"] }, { as }),
  },
  keys: {
    createKey: (server, { as, apiId }) => server.call("keys.createKey", { apiId }, { as }),
    migrateKeys: (server, { as, apiId }, i) =>
      server.call("keys.migrateKeys", { apiId, migrationId: "two", keys: [{ hash: hash(1_000 + i) }] }, { as }),
  },
  namespaces: {
    "a first use": (server, { as }, i) =>
      server.call("ratelimits.limit", { namespace: `n${i}`, identifier: "a", ...ONCE }, { as }),
  },
  plans: {
    createPlan: (server, { as }, i) => server.call("plans.createPlan", { name: `p${i}` }, { as }),
  },
  overrides: {
    setOverride: (server, { as }, i) =>
      server.call("ratelimits.setOverride", { namespace: "overrides", identifier: `o${i}`, ...ONCE }, { as }),
  },
  portalSessions: {
    createSession: (server, { as, apiId }) =>
      server.call("portal.createSession", { apiId, externalId: "one", actions: ["list"] }, { as }),
  },
  roles: {
    createRole: (server, { as }, i) =>
      server.call("permissions.createRole", { name: `r${i}`, permissions: [] }, { as }),
    "an import": (server, { as, apiId }, i) =>
      server.call(
        "keys.migrateKeys",
        { apiId, migrationId: "three", keys: [{ hash: hash(2_000 + i), roles: [`s${i}`] }] },
        { as },
      ),
  },
  rootKeys: {
    createRootKey: (server, { as }, i) =>
      server.call("rootKeys.createRootKey", { name: `k${i}`, permissions: ["ratelimits.*.limit"] }, { as }),
  },
};

describeOnStores(
  "a workspace's quota",
  (server, store) => {
    let second: TestServer | undefined;
    before(async () => {
      if (store === "postgres") second = await new TestServer({ ...server.options, beside: server }).open();
    });
    after(() => second?.close());

    const open = async (name: string): Promise<Workspace> => {
      const { key: as } = await server.workspace(name);
      const { apiId } = await server.ok("apis.createApi", { name }, { as });
      return { as, apiId };
    };

    for (const [quota, calls] of Object.entries(creations) as [Quota, Record<string, Creation>][]) {
      for (const [what, create] of Object.entries(calls)) {
        it(`limits ${quotas[quota].things}: ${what}`, async () => {
          const workspace = await open(`${quota} ${what}`);
          if (quota === "overrides") {
            const use = { namespace: "overrides", identifier: "a", ...ONCE };
            await server.ok("ratelimits.limit", use, { as: workspace.as });
          }
          // The first one of the database raises its demand on programs, and others wait for that.
          if (quota === "plans") await server.ok("plans.createPlan", { name: what });
          if (quota === "derivedKeys") {
            const { keyId } = await server.createKey(await server.createApi());
            await server.ok("keys.deriveKey", { keyId, ttl: 60_000 });
          }
          if (quota === "budgets") await server.ok("budgets.createBudget", { name: "first", remaining: 1 });
          // The workspace itself has one API and one root key.
          const room = quota === "keys" ? KEYS_MAX : quota === "apis" || quota === "rootKeys" ? MAX - 1 : MAX;
          // Together, on two nodes if the database can have them: none may pass because of the others.
          const replies = await Promise.all(
            Array.from({ length: 3 * MAX }, (_, i) => create(i % 2 === 0 ? server : (second ?? server), workspace, i)),
          );
          const refused = replies.filter(({ problem }) => problem === "workspace_quota_exceeded");
          assert.equal(replies.filter(({ status }) => status === 200).length, room);
          assert.equal(refused.length, 3 * MAX - room);
          const { detail } = refused[0]!.body.error;
          assert(
            detail.includes(quotas[quota].things) && detail.includes(`LATCHKEY_${quotas[quota].setting}_PER_WORKSPACE`),
          );
          assert.equal(refused[0]!.headers["retry-after"], "60");
          if (quota === "overrides") return;
          const other = await open(`beside ${quota} ${what}`);
          assert.equal((await create(server, other, 99)).status, 200);
        });
      }
    }

    it("has room again at once when something was deleted", async () => {
      const { as, apiId } = await open("room");
      const keyIds: string[] = [];
      for (let i = 0; i < KEYS_MAX; i++) keyIds.push((await server.ok("keys.createKey", { apiId }, { as })).keyId);
      await server.rejected("keys.createKey", { apiId }, "workspace_quota_exceeded", { as });
      await server.rejected("keys.rerollKey", { keyId: keyIds[0], expiration: 0 }, "workspace_quota_exceeded", { as });
      // What changes without adding a row is not refused.
      await server.ok("keys.updateKey", { keyId: keyIds[0], name: "renamed" }, { as });
      await server.ok("keys.deleteKey", { keyId: keyIds[0] }, { as });
      await server.ok("keys.createKey", { apiId }, { as });
      await server.rejected("keys.createKey", { apiId }, "workspace_quota_exceeded", { as });
      await server.ok("ratelimits.limit", { namespace: "n", identifier: "a", ...ONCE }, { as });
      for (let i = 0; i < MAX; i++) {
        await server.ok("ratelimits.setOverride", { namespace: "n", identifier: `${i}`, ...ONCE }, { as });
      }
      for (let i = 0; i < 2; i++) {
        await server.ok(
          "ratelimits.setOverride",
          { namespace: "n", identifier: "0", limit: i, duration: 60_000 },
          { as },
        );
      }
    });

    it("counts a restored key again", async () => {
      const { as, apiId } = await open("restored");
      const { keyId } = await server.ok("keys.createKey", { apiId }, { as });
      await server.ok("keys.deleteKey", { keyId }, { as });
      for (let i = 0; i < KEYS_MAX; i++) await server.ok("keys.createKey", { apiId }, { as });
      await server.rejected("keys.restoreKey", { keyId }, "workspace_quota_exceeded", { as });
      assert.equal((await server.ok("keys.getKey", { keyId, deleted: true }, { as })).keyId, keyId);
    });

    it("stops an import before the chunk that would cross it", async () => {
      const { as, apiId } = await open("import");
      const keys = Array.from({ length: 23 }, (_, i) => ({ hash: hash(5_000 + i) }));
      await server.rejected("keys.migrateKeys", { apiId, migrationId: "mine", keys }, "workspace_quota_exceeded", {
        as,
      });
      assert.equal((await server.ok("apis.countKeys", { apiId }, { as })).count, 0);
    });

    it("counts many rows in the background, and rarely", async () => {
      const { key: as, workspaceId } = await server.workspace("many");
      const add = (count: number, from: number) =>
        server.change([], ({ db }) =>
          db
            .insertInto("permissions")
            .values(
              Array.from({ length: count }, (_, i) => {
                const slug = `p${from + i}`;
                return {
                  id: `perm_${workspaceId}_${from + i}`,
                  workspace_id: workspaceId,
                  slug,
                  slug_folded: slug,
                  name: slug,
                  name_folded: slug,
                  description: null,
                  description_folded: null,
                  created_at: 1,
                };
              }),
            )
            .execute(),
        );
      for (let from = 0; from < PERMISSIONS_MAX - 2; from += 1_000) {
        await add(Math.min(1_000, PERMISSIONS_MAX - 2 - from), from);
      }
      const create = (slug: string) => server.call("permissions.createPermission", { name: slug, slug }, { as });
      // Not counted yet, and too many for the transaction.
      const before = await usage(workspaceId);
      assert.equal(before, undefined);
      assert.equal((await create("a")).status, 200);
      await server.store.settled();
      assert.equal((await usage(workspaceId))!.counted, PERMISSIONS_MAX - 1);
      assert.equal((await create("b")).status, 200);
      assert.equal((await create("c")).problem, "workspace_quota_exceeded");
      // A permission that a key gets at its first use counts too.
      const { apiId } = await server.ok("apis.createApi", { name: "many" }, { as });
      const wanted = { apiId, permissions: ["d"] };
      await server.rejected("keys.createKey", wanted, "workspace_quota_exceeded", { as });
      // What was deleted makes room, by one row for each.
      await server.ok("permissions.deletePermission", { permission: "a" }, { as });
      assert.equal((await create("e")).status, 200);
      assert.equal((await create("f")).problem, "workspace_quota_exceeded");
    });

    async function usage(workspaceId: string): Promise<WorkspaceUsageRow | undefined> {
      const rows = (await server.rowsOf("workspace_usage")) as WorkspaceUsageRow[];
      return rows.find((row) => row.workspace_id === workspaceId && row.quota === "permissions");
    }

    it("limits idempotency records, and still answers replays", async () => {
      /** Records that are added during the first count may be counted twice until the next count. */
      const fill = async (max: number, call: (i: number) => Promise<Reply>): Promise<number> => {
        for (let i = 0; ; i++) {
          const reply = await call(i);
          if (reply.problem !== "workspace_quota_exceeded") {
            assert.equal(reply.status, 200);
            assert(i < max, `${i + 1} were accepted`);
            continue;
          }
          assert(i >= max - 1, `only ${i} were accepted`);
          return i;
        }
      };
      const { as } = await open("records");
      const create = (key: string, who = as) =>
        server.call("identities.createIdentity", { externalId: key }, { as: who, headers: { "idempotency-key": key } });
      const once = (key: string) =>
        server.call(
          "permissions.createPermission",
          { name: key, slug: key },
          { as, headers: { "idempotency-key": key } },
        );
      const first = (await once("call-0")).body.data;
      await fill(3, (i) => once(`call-${i + 1}`));
      const before = await server.rows();
      assert.equal((await once("call-9")).problem, "workspace_quota_exceeded");
      assert.deepEqual((await once("call-0")).body.data, first);
      assert.deepEqual(await server.rows(), before);
      assert.equal((await create("free", (await open("other records")).as)).status, 200);
      // Records of spends are in the same table.
      const { as: other, apiId } = await open("records of credits");
      const { key } = await server.ok("keys.createKey", { apiId, credits: { remaining: 100 } }, { as: other });
      const spend = (text: string) =>
        server.call("keys.verifyKey", { key }, { as: other, headers: { "idempotency-key": text } });
      const spent = await fill(4, (i) => spend(`spend-${i}`));
      assert.equal((await spend("spend-0")).body.data.credits, 99);
      assert.equal((await server.verify(key, {}, { as: other })).credits, 99 - spent);
    });
  },
  SETTINGS,
);
