import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { it } from "node:test";
import { describeOnStores } from "../harness.ts";

describeOnStores(
  "a recoverable key",
  (server) => {
    it("is decrypted with the permission to decrypt (rule 17)", async () => {
      const apiId = await server.createApi();
      const recoverable = await server.createKey(apiId, { recoverable: true, prefix: "vaulted" });
      const ordinary = await server.createKey(apiId);
      const decrypted = await server.ok("keys.getKey", { keyId: recoverable.keyId, decrypt: true });
      assert.equal(decrypted.plaintext, recoverable.key);
      assert.equal((await server.getKey(recoverable.keyId)).plaintext, undefined);
      assert.equal((await server.ok("keys.getKey", { keyId: ordinary.keyId, decrypt: true })).plaintext, undefined);
      assert.equal((await server.ok("keys.whoami", { key: recoverable.key })).plaintext, undefined);
      const listed = await server.ok("apis.listKeys", { apiId, decrypt: true });
      for (const { keyId, plaintext } of listed) {
        assert.equal(plaintext, keyId === recoverable.keyId ? recoverable.key : undefined);
      }
      assert.equal((await server.verify(recoverable.key)).code, "VALID");
      assert(!JSON.stringify(await server.rows()).includes(recoverable.key));
    });

    it("needs permissions of its own for creation and decryption", async () => {
      const apiId = await server.createApi();
      const { keyId } = await server.createKey(apiId, { recoverable: true });
      const { key: reader } = await server.grant("apis.*.read_key", "apis.*.read_api");
      const error = await server.rejected("keys.getKey", { keyId, decrypt: true }, "insufficient_permissions", {
        as: reader,
      });
      assert.match(error.detail, /decrypt_key/);
      await server.rejected("apis.listKeys", { apiId, decrypt: true }, "insufficient_permissions", { as: reader });
      await server.ok("apis.listKeys", { apiId }, { as: reader });
      const { key: creator } = await server.grant("apis.*.create_key");
      await server.rejected("keys.createKey", { apiId, recoverable: true }, "api_not_found", { as: creator });
      const { key: encryptor } = await server.grant("apis.*.create_key", `apis.${apiId}.encrypt_key`);
      await server.ok("keys.createKey", { apiId, recoverable: true }, { as: encryptor });
    });
  },
  { VAULT_KEY: randomBytes(32).toString("base64") },
);

describeOnStores("a service", (server, store) => {
  // The embedded database has a vault of its own.
  const outcome = store === "postgres" ? "precondition_failed" : undefined;

  it("creates recoverable keys if it has a vault", async () => {
    const apiId = await server.createApi();
    const { keyId } = await server.createKey(apiId);
    for (const [operation, body] of [
      ["keys.createKey", { apiId, recoverable: true }],
      ["keys.getKey", { keyId, decrypt: true }],
      ["apis.listKeys", { apiId, decrypt: true }],
    ] as const) {
      const reply = await server.call(operation, body);
      assert.equal(reply.problem, outcome, operation);
      if (outcome) assert.match(reply.body.error.detail, /Vault hasn't been set up/);
    }
    // A key from before the vault was removed.
    await server.change([keyId], async ({ db }) => {
      await db.updateTable("keys").set({ recoverable: 1 }).where("id", "=", keyId).execute();
    });
    assert.equal((await server.call("keys.rerollKey", { keyId, expiration: 0 })).problem, outcome);
  });
});
