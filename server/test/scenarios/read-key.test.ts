import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { describeOnStores } from "../harness.ts";

describeOnStores("keys.getKey", (server) => {
  it("looks the key up before it checks the permission (rules 5, 7, 10)", async () => {
    const apiId = await server.createApi();
    const other = await server.createApi("other");
    const { keyId } = await server.createKey(apiId);
    for (const grants of [["apis.*.read_api"], [`apis.${other}.read_key`], ["apis.*.update_key"]]) {
      const { key: as } = await server.grant(...grants);
      const error = await server.rejected("keys.getKey", { keyId }, "insufficient_permissions", { as });
      assert.equal(error.detail, `Missing one of these permissions: 'apis.*.read_key' or 'apis.${apiId}.read_key'`);
      const absent = await server.rejected("keys.getKey", { keyId: "key_never0existed000" }, "key_not_found", { as });
      assert.match(absent.detail, /The specified key was not found/);
    }
    for (const grants of [["apis.*.read_key"], [`apis.${apiId}.read_key`], ["*"], ["api.*.read_key"]]) {
      await server.ok("keys.getKey", { keyId }, { as: (await server.grant(...grants)).key });
    }
  });

  it("finds nothing for unusual ids, and rejects invalid ones (rule 9)", async () => {
    for (const keyId of ["abc", "api_1234567890", "K".repeat(255)])
      await server.rejected("keys.getKey", { keyId }, "key_not_found");
    for (const keyId of ["ab", "", "key-1", "key 1", "ключ", "K".repeat(256)]) {
      const error = await server.rejected("keys.getKey", { keyId }, "invalid_input");
      assert.equal(error.detail, "POST request body for '/v2/keys.getKey' failed to validate schema");
      assert.match(error.errors![0]!.location, /^\/properties\/keyId\//);
    }
    assert.deepEqual((await server.rejected("keys.getKey", {}, "invalid_input")).errors, [
      { location: "/required", message: "missing property 'keyId'", fix: "Add 'keyId' to the request body." },
    ]);
    const unknown = await server.rejected("keys.getKey", { keyId: "abc", nope: 1 }, "invalid_input");
    assert.equal(unknown.errors![0]!.location, "/additionalProperties");
    assert.match(unknown.errors![0]!.fix!, /nope/);
  });

  describe("keys.whoami", () => {
    it("returns what getKey returns, including disabled and expired keys (rule 34)", async () => {
      const apiId = await server.createApi();
      for (const more of [{}, { enabled: false }, { expires: 0 }, { permissions: ["b", "c", "a"], meta: { a: 1 } }]) {
        const { keyId, key } = await server.createKey(apiId, more);
        assert.deepEqual(await server.ok("keys.whoami", { key }), await server.getKey(keyId));
      }
    });

    it("answers identically for every reason of not finding a key (rules 5, 34)", async () => {
      const apiId = await server.createApi();
      const other = await server.createApi("other");
      const { key } = await server.createKey(apiId);
      const deleted = await server.createKey(apiId);
      await server.ok("keys.deleteKey", { keyId: deleted.keyId });
      const absent = await server.rejected("keys.whoami", { key: "never_existed" }, "key_not_found");
      assert.match(absent.detail, /The specified key was not found/);
      assert.deepEqual(await server.rejected("keys.whoami", { key: deleted.key }, "key_not_found"), absent);
      for (const grants of [["apis.*.create_key"], [`apis.${other}.read_key`]]) {
        const { key: as } = await server.grant(...grants);
        assert.deepEqual(await server.rejected("keys.whoami", { key }, "key_not_found", { as }), absent);
      }
      const { key: as } = await server.workspace("stranger");
      assert.deepEqual(await server.rejected("keys.whoami", { key }, "key_not_found", { as }), absent);
      await server.rejected("keys.whoami", { key: "" }, "invalid_input");
      await server.rejected("keys.whoami", { key: "k".repeat(513) }, "invalid_input");
      await server.rejected("keys.whoami", { key: "k".repeat(512) }, "key_not_found");
    });
  });
});
