/** The quotas of a workspace: keys, namespaces and idempotency records, independent of other workspaces. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { describeOnStores, type Reply } from "../harness.ts";

const SETTINGS = {
  KEYS_PER_WORKSPACE: "5",
  NAMESPACES_PER_WORKSPACE: "3",
  IDEMPOTENCY_RECORDS_PER_WORKSPACE: "4",
};
const hash = (i: number) => String(i).padStart(64, "0");

describeOnStores(
  "a workspace's quota",
  (server) => {
    const open = async (name: string) => {
      const { key: as } = await server.workspace(name);
      const { apiId } = await server.ok("apis.createApi", { name }, { as });
      return { as, apiId };
    };

    /**
     * Makes calls until one is rejected; returns the number before. Records that are added during the first count may
     * be counted twice until the next count.
     */
    const fill = async (max: number, call: (i: number) => Promise<Reply>): Promise<number> => {
      for (let i = 0; ; i++) {
        const reply = await call(i);
        if (reply.problem !== "workspace_quota_exceeded") {
          assert.equal(reply.status, 200);
          assert(i < max, `${i + 1} were accepted`);
          continue;
        }
        assert(i >= max - 1, `only ${i} were accepted`);
        assert.equal(reply.headers["retry-after"], "60");
        return i;
      }
    };

    it("limits its keys, and has room again when some are deleted", async () => {
      const { as, apiId } = await open("keys");
      const create = () => server.call("keys.createKey", { apiId }, { as });
      const first = await server.ok("keys.createKey", { apiId }, { as });
      await fill(4, create);
      assert.match((await create()).body.error.detail, /maximum number of keys/);
      await server.rejected("keys.rerollKey", { keyId: first.keyId, expiration: 0 }, "workspace_quota_exceeded", {
        as,
      });
      const keys = [{ hash: hash(1) }];
      await server.rejected("keys.migrateKeys", { apiId, migrationId: "mine", keys }, "workspace_quota_exceeded", {
        as,
      });
      const other = await open("other");
      assert.equal((await server.call("keys.createKey", { apiId: other.apiId }, { as: other.as })).status, 200);

      await server.ok("keys.deleteKey", { keyId: first.keyId }, { as });
      await create();
      await server.pass(5_000);
      await create();
      await server.store.settled();
      assert.equal((await create()).status, 200);
    });

    it("stops an import where it is reached", async () => {
      const { as, apiId } = await open("import");
      await server.rejected("keys.getKey", { keyId: "key_none" }, "key_not_found", { as });
      const keys = Array.from({ length: 45 }, (_, i) => ({ hash: hash(1_000 + i) }));
      const { migrated, failed } = await server.ok("keys.migrateKeys", { apiId, migrationId: "mine", keys }, { as });
      // The chunk that crosses the limit is stored as a whole.
      assert.deepEqual([migrated.length, failed.length], [20, 25]);
    });

    it("limits namespaces that a first use creates", async () => {
      const { as } = await open("namespaces");
      const count = (namespace: string) =>
        server.call("ratelimits.limit", { namespace, identifier: "a", limit: 10, duration: 60_000 }, { as });
      await fill(3, (i) => count(`n${i}`));
      const entries = [0, 4].map((i) => ({ namespace: `n${i}`, identifier: "a", limit: 10, duration: 60_000 }));
      await server.rejected("ratelimits.multiLimit", entries, "workspace_quota_exceeded", { as });
      assert.equal((await count("n1")).status, 200);
      assert.equal((await server.call("ratelimits.limit", entries[1], { as: (await open("free")).as })).status, 200);
    });

    it("limits idempotency records, and still answers replays", async () => {
      const { as } = await open("records");
      const create = (key: string, who = as) =>
        server.call("apis.createApi", { name: "once" }, { as: who, headers: { "idempotency-key": key } });
      const first = (await create("call-0")).body.data;
      await fill(3, (i) => create(`call-${i + 1}`));
      const before = await server.rows();
      assert.equal((await create("call-9")).problem, "workspace_quota_exceeded");
      assert.deepEqual((await create("call-0")).body.data, first);
      assert.deepEqual(await server.rows(), before);
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
