/** The addresses that may use a key. What strangers can do with them is in `adversary/addresses.test.ts`. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { sql as raw } from "kysely";
import { sha256 } from "../../../engine/src/crypto/digest.ts";
import { describeOnStores } from "../harness.ts";

const office = ["198.51.100.0/24", "2001:db8::/32"];
const HASH = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae";

describeOnStores("the first addresses of a key", (server, store) => {
  it("are not stored beside an earlier release, which cannot be started afterwards", async () => {
    const apiId = await server.createApi();
    const { keyId } = await server.createKey(apiId);
    const calls: [name: string, body: object][] = [
      ["keys.createKey", { apiId, allowedIps: office }],
      ["keys.updateKey", { keyId, allowedIps: office }],
      ["keys.migrateKeys", { apiId, migrationId: "table", keys: [{ hash: HASH, allowedIps: office }] }],
    ];
    if (store === "postgres") {
      await server.besideEarlierRelease(async () => {
        for (const [name, body] of calls) {
          const { detail } = await server.rejected(name, body, "precondition_failed");
          assert.match(detail, /would let every address use the key/);
        }
        await server.ok("keys.updateKey", { keyId, allowedIps: null });
      });
    }
    const needs = () =>
      server.change([], async ({ db }) => {
        const { rows } = await raw<{ needs: number }>`select max(needs) as needs from schema_steps`.execute(db);
        return Number(rows[0]!.needs);
      });
    assert.equal(await needs(), 0);
    for (const [name, body] of calls) await server.ok(name, body);
    assert.equal(await needs(), 40);
  });
});

describeOnStores("the addresses of a key", (server) => {
  const codeFrom = async (key: string, from: string) => (await server.verify(key, {}, { from })).code;

  it("let others use no key, in addition to those of its API (rule 47)", async () => {
    const apiId = await server.createApi();
    const { key, keyId } = await server.createKey(apiId, { allowedIps: ["10.1.0.0/16", "2001:db8::/32"] });
    const { key: other } = await server.createKey(apiId);
    const codes = async (secret: string) => {
      const from = ["10.1.2.3", "::ffff:10.1.2.3", "10.2.0.1", "2001:db8::1", "2001:db9::1"];
      return Promise.all(from.map((address) => codeFrom(secret, address)));
    };
    assert.deepEqual(await codes(key), ["VALID", "VALID", "FORBIDDEN", "VALID", "FORBIDDEN"]);
    assert.deepEqual(new Set(await codes(other)), new Set(["VALID"]));
    await server.ok("apis.updateApi", { apiId, allowedIps: ["10.0.0.0/8"] });
    assert.deepEqual(await codes(key), ["VALID", "VALID", "FORBIDDEN", "FORBIDDEN", "FORBIDDEN"]);
    assert.deepEqual(await codes(other), ["VALID", "VALID", "VALID", "FORBIDDEN", "FORBIDDEN"]);
    await server.ok("keys.updateKey", { keyId, allowedIps: ["10.2.0.0/16"] });
    assert.deepEqual(await codes(key), ["FORBIDDEN", "FORBIDDEN", "VALID", "FORBIDDEN", "FORBIDDEN"]);
    await server.ok("keys.updateKey", { keyId, allowedIps: null });
    assert.deepEqual(await codes(key), await codes(other));
  });

  it("are explained, each list for itself", async () => {
    const apiId = await server.createApi();
    const { keyId } = await server.createKey(apiId);
    const detailOf = async (clientIp: string) => {
      const { code, steps } = await server.ok("keys.explainVerification", { keyId, clientIp });
      return [code, steps.find(({ step }: { step: string }) => step === "address").detail];
    };
    const expect = async (clientIp: string, code: string, detail: string) =>
      assert.deepEqual(await detailOf(clientIp), [code, detail]);
    await expect("10.1.2.3", "VALID", "Neither the API nor the key has an allow-list of addresses.");
    await server.ok("keys.updateKey", { keyId, allowedIps: ["10.1.0.0/16"] });
    await expect("10.1.2.3", "VALID", "The allow-list of the key contains 10.1.2.3.");
    await server.ok("apis.updateApi", { apiId, allowedIps: ["10.0.0.0/8"] });
    await expect(
      "10.2.0.1",
      "FORBIDDEN",
      "The allow-list of the API contains 10.2.0.1, and the allow-list of the key does not contain 10.2.0.1.",
    );
    await expect(
      "192.0.2.1",
      "FORBIDDEN",
      "The allow-list of the API does not contain 192.0.2.1, and the allow-list of the key does not contain 192.0.2.1.",
    );
  });

  it("are shown where keys are, kept by a reroll, imported, and recorded", async () => {
    const apiId = await server.createApi();
    const { keyId, key } = await server.createKey(apiId, { allowedIps: office });
    assert.deepEqual((await server.getKey(keyId)).allowedIps, office);
    assert.deepEqual((await server.ok("apis.listKeys", { apiId }))[0].allowedIps, office);
    assert.deepEqual((await server.ok("keys.whoami", { key })).allowedIps, office);
    const rerolled = await server.ok("keys.rerollKey", { keyId, expiration: null });
    assert.deepEqual((await server.getKey(rerolled.keyId)).allowedIps, office);
    assert.equal(await codeFrom(rerolled.key, "192.0.2.1"), "FORBIDDEN");
    assert.equal(await codeFrom(rerolled.key, "198.51.100.7"), "VALID");

    const secret = "from-elsewhere";
    const imported = { hash: sha256(secret).toString("hex"), allowedIps: office };
    await server.ok("keys.migrateKeys", { apiId, migrationId: "elsewhere", keys: [imported] });
    assert.equal(await codeFrom(secret, "192.0.2.1"), "FORBIDDEN");
    assert.equal(await codeFrom(secret, "2001:db8::7"), "VALID");

    await server.advance(1);
    await server.ok("keys.updateKey", { keyId, allowedIps: null });
    assert.equal("allowedIps" in (await server.getKey(keyId)), false);
    const events: { action: string; meta: Record<string, unknown> }[] = await server.ok("audit.listEvents", {
      target: keyId,
    });
    const of = (name: string) => events.find(({ action }) => action === name)?.meta ?? {};
    const { before, after } = of("keys.updateKey");
    assert.deepEqual([before, after], [{ allowedIps: office }, { allowedIps: null }]);
    assert.deepEqual(of("keys.createKey").allowedIps, office);
  });

  it("are rejected where they are no list of addresses", async () => {
    const apiId = await server.createApi();
    const { keyId } = await server.createKey(apiId, { allowedIps: office });
    const tooMany = Array.from({ length: 101 }, (_, i) => `10.0.${i}.0/24`);
    for (const allowedIps of [[], tooMany, ["10.0.0.0/33"], ["10.0.0"], ["*"], ["fe80::1%eth0"], "10.0.0.1", [""]]) {
      await server.rejected("keys.createKey", { apiId, allowedIps }, "invalid_input");
      await server.rejected("keys.updateKey", { keyId, allowedIps }, "invalid_input");
      const keys = [{ hash: HASH, allowedIps }];
      await server.rejected("keys.migrateKeys", { apiId, migrationId: "m", keys }, "invalid_input");
    }
    assert.deepEqual((await server.getKey(keyId)).allowedIps, office);
  });
});
