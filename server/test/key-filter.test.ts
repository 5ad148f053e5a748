/**
 * If the service is the only user of its database, keys that do not exist cost no look-up, and every other key is
 * found.
 */
import assert from "node:assert/strict";
import { createHash, createHmac, randomBytes } from "node:crypto";
import { describe, it } from "node:test";
import { formatKey } from "../../engine/src/rules/key-string.ts";
import { openTestServer, type TestServer, type TestServerOptions } from "./harness.ts";

interface Test {
  after(undo: () => Promise<void>): void;
}

async function open(t: Test, options: TestServerOptions = {}): Promise<TestServer> {
  const server = await openTestServer({ alone: true, ...options });
  t.after(() => server.close());
  await server.store.settled();
  return server;
}

/** A key that does not exist, with a valid checksum. */
const invented = () => formatKey("test", randomBytes(16)).key;

/** The number of key look-ups during `action`. */
async function lookups(server: TestServer, work: () => Promise<unknown>): Promise<number> {
  let count = 0;
  server.store.interception = (name, proceed) => {
    if (name === "keysAt") count++;
    return proceed();
  };
  await work();
  server.store.interception = undefined;
  return count;
}

const verifyInvented = async (server: TestServer) => {
  for (let i = 0; i < 20; i++) assert.equal((await server.verify(invented())).code, "NOT_FOUND");
};

const hex = (algorithm: string, text: string) => createHash(algorithm).update(text).digest("hex");

describe("the filter of keys", () => {
  it("saves the look-up of every key that does not exist", async (t) => {
    const server = await open(t);
    await server.createKey(await server.createApi());
    assert.equal(await lookups(server, () => verifyInvented(server)), 0);
  });

  it("is not used where other processes may create keys", async (t) => {
    const server = await open(t, { alone: false });
    assert.equal(await lookups(server, () => verifyInvented(server)), 20);
  });

  it("contains every new key, however it is created", async (t) => {
    const server = await open(t);
    const apiId = await server.createApi();
    const { key, keyId } = await server.createKey(apiId);
    assert.equal((await server.verify(key)).code, "VALID");
    const rerolled = await server.ok("keys.rerollKey", { keyId, expiration: 0 });
    assert.equal((await server.verify(rerolled.key)).code, "VALID");

    const algorithms = {
      sha256: { secret: "imported by sha256", hash: hex("sha256", "imported by sha256") },
      sha512: { secret: "imported by sha512", hash: hex("sha512", "imported by sha512") },
      "hmac-sha256": {
        secret: "imported by hmac",
        hash: createHmac("sha256", "pepper").update("imported by hmac").digest("hex"),
        pepper: "pepper",
      },
      "prefixed-api-key": { secret: "company_short_long", hash: hex("sha256", "long") },
    };
    for (const [algorithm, { secret, hash, ...pepper }] of Object.entries(algorithms)) {
      const migrationId = `by ${algorithm}`;
      await server.ok("keys.migrateKeys", { migrationId, apiId, algorithm, ...pepper, keys: [{ hash }] });
      const needsIt = algorithm === "hmac-sha256" || algorithm === "prefixed-api-key";
      const { code } = await server.verify(secret, needsIt ? { migrationId } : {});
      assert.equal(code, "VALID", algorithm);
    }
    // After its first use, it is found by its whole string.
    assert.equal((await server.verify("company_short_long")).code, "VALID");
  });

  it("is filled at the start in chunks, and is not used meanwhile", async (t) => {
    const first = await open(t);
    const apiId = await first.createApi();
    const secrets = Array.from({ length: 1_200 }, (_, i) => `existing ${i}`);
    const keys = secrets.map((secret) => ({ hash: hex("sha256", secret) }));
    for (const part of [keys.slice(0, 600), keys.slice(600)]) {
      await first.ok("keys.migrateKeys", { migrationId: "before", apiId, keys: part });
    }

    const held = Promise.withResolvers<void>();
    let chunks = 0;
    const second = await openTestServer({
      alone: true,
      beside: first,
      interception: async (name, proceed) => {
        if (name !== "recordKeyLocations") return proceed();
        chunks++;
        await held.promise;
        return proceed();
      },
    });
    t.after(() => second.close());
    const { interception } = second.store;
    assert((await lookups(second, () => verifyInvented(second))) > 0);
    assert.equal((await second.verify(secrets[0]!)).code, "VALID");
    second.store.interception = interception;
    held.resolve();
    await second.store.settled();
    assert.equal(chunks, 3);

    assert.equal(await lookups(second, () => verifyInvented(second)), 0);
    for (const secret of secrets) assert.equal((await second.verify(secret)).code, "VALID");
  });
});
