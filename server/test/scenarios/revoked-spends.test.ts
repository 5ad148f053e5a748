import assert from "node:assert/strict";
import { it } from "node:test";
import { describeOnStores, type Reply, type TestServer } from "../harness.ts";

interface Made {
  apiId: string;
  keyId: string;
  rootKeyId: string;
}

/** By event during the wait of a call in the ledger: the answer. */
const changes: { how: string; change(server: TestServer, made: Made): Promise<unknown>; answer: string }[] = [
  {
    how: "the key is disabled",
    change: (server, { keyId }) => server.ok("keys.updateKey", { keyId, enabled: false }),
    answer: "DISABLED",
  },
  {
    how: "the key is deleted",
    change: (server, { keyId }) => server.ok("keys.deleteKey", { keyId }),
    answer: "NOT_FOUND",
  },
  {
    how: "the key's API is deleted",
    change: (server, { apiId }) => server.ok("apis.deleteApi", { apiId }),
    answer: "NOT_FOUND",
  },
  {
    how: "the key expires",
    change: async (server) => server.clock.step(60_000),
    answer: "EXPIRED",
  },
  {
    how: "the key loses the permission of the query",
    change: (server, { keyId }) => server.ok("keys.removePermissions", { keyId, permissions: ["documents.read"] }),
    answer: "INSUFFICIENT_PERMISSIONS",
  },
  {
    how: "the root key is deleted",
    change: (server, { rootKeyId }) => server.ok("rootKeys.deleteRootKey", { rootKeyId }),
    answer: "authentication_failed",
  },
  {
    how: "the root key is disabled",
    change: (server, { rootKeyId }) => server.ok("rootKeys.updateRootKey", { rootKeyId, enabled: false }),
    answer: "root_key_disabled",
  },
  {
    how: "the root key may no longer verify keys of the API",
    change: (server, { rootKeyId }) =>
      server.ok("rootKeys.updateRootKey", { rootKeyId, permissions: ["apis.api_other.verify_key"] }),
    answer: "NOT_FOUND",
  },
  {
    how: "only the balance is changed",
    change: (server, { keyId }) => server.ok("keys.updateCredits", { keyId, operation: "increment", value: 5 }),
    answer: "VALID",
  },
];

describeOnStores("a verification that waits for the ledger", (server) => {
  for (const { how, change, answer } of changes) {
    it(`is decided again when ${how}`, async () => {
      const apiId = await server.createApi();
      const { key: rootKey, rootKeyId } = await server.grant("apis.*.verify_key");
      const ratelimits = [{ name: "calls", limit: 100, duration: 3_600_000, autoApply: true }];
      const options = { permissions: ["documents.read"], expires: server.clock.now() + 60_000, ratelimits };
      const { key, keyId } = await server.createKey(apiId, { credits: { remaining: 10 }, ...options });
      const verify = () => server.call("keys.verifyKey", { key, permissions: "documents.read" }, { as: rootKey });
      assert.equal(answerOf(await verify()), "VALID");

      const spend = server.store.holdNext("spend");
      const waiting = verify();
      await spend.reached;
      await change(server, { apiId, keyId, rootKeyId });
      spend.release();
      const reply = await waiting;
      assert.equal(answerOf(reply), answer);
      const keys = (await server.rowsOf("keys")) as { id: string; pool_id: string }[];
      const balances = (await server.rowsOf("balances")) as { pool_id: string; remaining: number }[];
      const poolId = keys.find(({ id }) => id === keyId)!.pool_id;
      const { remaining } = balances.find((balance) => balance.pool_id === poolId)!;
      assert.equal(remaining, answer === "VALID" ? 13 : 9);
    });
  }
});

function answerOf(reply: Reply): string {
  return reply.problem ?? reply.body.data.code;
}
