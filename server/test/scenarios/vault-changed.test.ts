/** A node that was left out when the master key of the vault was changed. */
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { it } from "node:test";
import { sql as raw } from "kysely";
import { describeOnStores, openTestServer, VAULT_KEY } from "../harness.ts";

describeOnStores(
  "a vault whose master key a node lacks",
  (server, store) => {
    const ready = async () => {
      const { status, body } = await server.request("GET", "/health/ready");
      return [status, body.status, body.checks?.vault];
    };
    const lines = () =>
      server.logged.filter(({ message }) => message.includes("the master key of the vault was changed"));

    it("is reported until the node has it (rule 241)", async () => {
      const [vault] = (await server.rowsOf("vault")) as { fingerprint: string }[];
      assert(vault, "the vault has been used");
      const change = (fingerprint: string) =>
        server.change([], ({ db }) => raw`update vault set fingerprint = ${fingerprint}`.execute(db));
      await server.pass(15_000);
      assert.deepEqual(await ready(), [200, "ok", undefined]);
      await change("of another master key");
      await server.pass(25_000);
      const [status, text, trouble] = await ready();
      assert.deepEqual([status, text], [200, "degraded"]);
      assert.match(trouble, /set LATCHKEY_VAULT_KEY/);
      assert.deepEqual(
        lines().map(({ level }) => level),
        ["error"],
      );
      await change(vault.fingerprint);
      await server.pass(15_000);
      assert.deepEqual(await ready(), [200, "ok", undefined]);
    });

    it("fails the calls that need the key with 503, and no others, until the node has it (rule 242)", async () => {
      const apiId = await server.createApi();
      const { key, keyId } = await server.createKey(apiId, { recoverable: true });
      const { webhookId } = await server.ok("webhooks.createWebhook", { endpoint: "https://example.com/events" });
      const pepper = "a pepper for hashes";
      const imported = "sk_live_imported_1234567890";
      const hash = createHmac("sha256", pepper).update(imported).digest("hex");
      const migration = { apiId, migrationId: "vaulted", algorithm: "hmac-sha256" };
      await server.ok("keys.migrateKeys", { ...migration, pepper, keys: [{ hash }] });
      const dataKeys = (await server.rowsOf("vault_data_keys")) as { workspace_id: string; fingerprint: string }[];
      const setFingerprint = (fingerprint: string) =>
        server.change([], ({ db }) => db.updateTable("vault_data_keys").set({ fingerprint }).execute());

      // A node that has opened no data key yet.
      const node = await openTestServer({ store, settings: { VAULT_KEY }, beside: server });
      try {
        await setFingerprint("of another master key");
        const headers = [{ name: "Authorization", value: "Bearer secret" }];
        const calls: [operation: string, body: object][] = [
          ["keys.getKey", { keyId, decrypt: true }],
          ["apis.listKeys", { apiId, decrypt: true }],
          ["keys.createKey", { apiId, recoverable: true }],
          ["keys.rerollKey", { keyId, expiration: 60_000 }],
          ["webhooks.createWebhook", { endpoint: "https://example.com/events" }],
          ["webhooks.rotateSecret", { webhookId }],
          ["apis.updateApi", { apiId, upstream: { url: "https://example.com/keys", headers } }],
          ["keys.migrateKeys", { ...migration, pepper, keys: [{ hash: hash.replaceAll("a", "b") }] }],
          ["keys.verifyKey", { key: imported, migrationId: migration.migrationId }],
        ];
        for (const [operation, body] of calls) {
          const logged = node.logged.length;
          const reply = await node.call(operation, body);
          assert.deepEqual([operation, reply.status, reply.problem], [operation, 503, "service_unavailable"]);
          assert.equal(reply.headers["retry-after"], "1");
          assert.match(reply.body.error.detail, /lacks the master key of the vault.* LATCHKEY_VAULT_KEY/);
          const answer = JSON.stringify(reply.body);
          for (const secret of [VAULT_KEY, key, pepper, imported, "of another master key"]) {
            assert(!answer.includes(secret));
          }
          // The log samples lines with one cause, and each names the operation.
          for (const line of node.logged.slice(logged)) assert.match(JSON.stringify(line), /MasterKeyMissing/);
        }
        assert(node.logged.some((line) => /MasterKeyMissing.*LATCHKEY_VAULT_KEY/.test(JSON.stringify(line))));
        assert.equal((await node.verify(key)).code, "VALID");
        assert.equal((await node.getKey(keyId)).plaintext, undefined);
        await node.createKey(apiId);

        await setFingerprint(dataKeys[0]!.fingerprint);
        assert.equal((await node.ok("keys.getKey", { keyId, decrypt: true })).plaintext, key);
        assert.equal((await node.verify(imported, { migrationId: migration.migrationId })).code, "VALID");
        for (const [operation, body] of calls) await node.ok(operation, body);
      } finally {
        await setFingerprint(dataKeys[0]!.fingerprint);
        await node.close();
      }
    });
  },
  { VAULT_KEY },
);
