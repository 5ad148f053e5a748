import assert from "node:assert/strict";
import { it } from "node:test";
import { TestEdge } from "../edge.ts";
import { describeOnStores } from "../harness.ts";

describeOnStores("Changes for edges (rule 165)", (server) => {
  it("begin at the present, and bring a change of this node within 200 ms", async () => {
    const apiId = await server.createApi();
    const { keyId } = await server.createKey(apiId);
    const edge = new TestEdge(server);
    const first = await edge.poll();
    assert.deepEqual([first.tags, first.isLost, first.hasMore, first.allowsAnonymous], [[], false, false, true]);
    await server.ok("keys.updateKey", { keyId, enabled: false });
    await server.pass(200);
    const { tags, isLost } = await edge.poll();
    assert(tags.includes(edge.tag(keyId)));
    assert.equal(isLost, false);
    assert.deepEqual((await edge.poll()).tags, []);
  });
});

describeOnStores("Records for edges (rule 167)", (server) => {
  it("are those of keys, root keys and the workspace", async () => {
    const apiId = await server.createApi();
    const { keyId, key } = await server.createKey(apiId, { name: "first", meta: { plan: "pro" } });
    const edge = new TestEdge(server);
    const [record, unknown] = await edge.resolve(key, "unknown");
    assert.equal(unknown, null);
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
    const [rootKey] = await edge.resolveRootKeys(server.rootKey);
    assert.deepEqual(rootKey.grants, ["*"]);
    const [charged] = await edge.charge({ key });
    assert.equal(charged.data.code, "VALID");
  });
});
