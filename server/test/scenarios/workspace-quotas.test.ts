/** What a workspace may have: so many keys, namespaces and remembered calls, whatever others have. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { describeOnStores } from "../harness.ts";

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

    it("bounds its keys, and finds room when some are deleted", async () => {
      const { as, apiId } = await open("keys");
      const create = () => server.call("keys.createKey", { apiId }, { as });
      const first = await server.ok("keys.createKey", { apiId }, { as });
      for (let i = 1; i < 5; i++) assert.equal((await create()).status, 200);
      const reply = await create();
      assert.equal(reply.problem, "workspace_quota_exceeded");
      assert.match(reply.body.error.detail, /as many keys as it may have/);
      assert.equal(reply.headers["retry-after"], "60");
      await server.refused("keys.rerollKey", { keyId: first.keyId, expiration: 0 }, "workspace_quota_exceeded", { as });
      const keys = [{ hash: hash(1) }];
      await server.refused("keys.migrateKeys", { apiId, migrationId: "mine", keys }, "workspace_quota_exceeded", {
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
      await server.refused("keys.getKey", { keyId: "key_none" }, "key_not_found", { as });
      const keys = Array.from({ length: 45 }, (_, i) => ({ hash: hash(1_000 + i) }));
      const { migrated, failed } = await server.ok("keys.migrateKeys", { apiId, migrationId: "mine", keys }, { as });
      // The chunk that crosses the bound is taken in as a whole.
      assert.deepEqual([migrated.length, failed.length], [20, 25]);
    });

    it("bounds namespaces made by first use", async () => {
      const { as } = await open("namespaces");
      const count = (namespace: string) =>
        server.call("ratelimits.limit", { namespace, identifier: "a", limit: 10, duration: 60_000 }, { as });
      for (let i = 0; i < 3; i++) assert.equal((await count(`n${i}`)).status, 200);
      assert.equal((await count("n3")).problem, "workspace_quota_exceeded");
      const entries = [0, 4].map((i) => ({ namespace: `n${i}`, identifier: "a", limit: 10, duration: 60_000 }));
      await server.refused("ratelimits.multiLimit", entries, "workspace_quota_exceeded", { as });
      assert.equal((await count("n1")).status, 200);
      assert.equal((await server.call("ratelimits.limit", entries[1], { as: (await open("free")).as })).status, 200);
    });

    it("bounds remembered calls, and answers repetitions all the same", async () => {
      const { as } = await open("records");
      const create = (key: string, who = as) =>
        server.call("apis.createApi", { name: "once" }, { as: who, headers: { "idempotency-key": key } });
      const first = (await create("call-0")).body.data;
      for (let i = 1; i < 4; i++) assert.equal((await create(`call-${i}`)).status, 200);
      const before = await server.rows();
      assert.equal((await create("call-4")).problem, "workspace_quota_exceeded");
      assert.deepEqual((await create("call-0")).body.data, first);
      assert.deepEqual(await server.rows(), before);
      // Credits are remembered in the same table.
      const { as: other, apiId } = await open("records of credits");
      const { key } = await server.ok("keys.createKey", { apiId, credits: { remaining: 100 } }, { as: other });
      const spend = (text: string) =>
        server.call("keys.verifyKey", { key }, { as: other, headers: { "idempotency-key": text } });
      for (let i = 0; i < 4; i++) assert.equal((await spend(`spend-${i}`)).body.data.credits, 99 - i);
      assert.equal((await spend("spend-4")).problem, "workspace_quota_exceeded");
      assert.equal((await spend("spend-0")).body.data.credits, 99);
      assert.equal((await server.verify(key, {}, { as: other })).credits, 95);
    });
  },
  SETTINGS,
);
