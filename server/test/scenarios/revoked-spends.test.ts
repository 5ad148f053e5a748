import assert from "node:assert/strict";
import { it } from "node:test";
import { type Change, changesOfKeys, changesOfRootKeys } from "../changes-during-waits.ts";
import { describeOnStores, type Reply } from "../harness.ts";

const changes: readonly Change[] = [
  ...changesOfKeys,
  {
    how: "the key's API is deleted",
    change: (server, { apiId }) => server.ok("apis.deleteApi", { apiId }),
    answer: "NOT_FOUND",
  },
  ...changesOfRootKeys("NOT_FOUND"),
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
