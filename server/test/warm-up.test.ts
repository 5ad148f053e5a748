/** After a start, keys that were used before are verified without a look-up. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { describeOnStores, openTestServer } from "./harness.ts";
import { eventually } from "./process.ts";

describeOnStores("a node that starts", (server) => {
  it("has loaded the keys that were used, and finds the others as ever", async () => {
    const apiId = await server.createApi();
    const [used, unused, deleted] = [
      await server.createKey(apiId),
      await server.createKey(apiId),
      await server.createKey(apiId),
    ];
    for (const { key } of [used, deleted]) assert.equal((await server.verify(key)).code, "VALID");
    // Last uses are stored every half minute.
    await server.pass(60_000);
    await server.ok("keys.deleteKey", { keyId: deleted.keyId });
    const node = await openTestServer({ beside: server });
    try {
      let lookups = 0;
      node.store.interception = (name, proceed) => {
        if (name === "keysAt") lookups++;
        return proceed();
      };
      await eventually("the key is loaded", async () =>
        (await node.scrape()).includes('latchkey_directory_entries{kind="keys"} 1'),
      );
      lookups = 0;
      assert.equal((await node.verify(used.key)).code, "VALID");
      assert.equal(lookups, 0);
      assert.equal((await node.verify(unused.key)).code, "VALID");
      assert.equal((await node.verify(deleted.key)).code, "NOT_FOUND");
      assert.equal(lookups, 2);
      await server.ok("keys.deleteKey", { keyId: used.keyId });
      await node.pass(1_000);
      assert.equal((await node.verify(used.key)).code, "NOT_FOUND");
    } finally {
      await node.close();
    }
  });
});
