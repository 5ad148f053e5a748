/** What callers can do with lists of addresses that are as long as they may be, and with addresses that they make up. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { sha256 } from "../../../engine/src/crypto/digest.ts";
import { describeOnStores, openTestServer } from "../harness.ts";

const PROXY = "192.0.2.1";
const ENTRIES_MAX = 100;

/** A list that shares no block with another one, of both families. */
const longList = (i: number) =>
  Array.from({ length: ENTRIES_MAX }, (_, j) =>
    j % 2 === 0 ? `10.${i % 256}.${2 * j}.0/24` : `2001:db8:${i.toString(16)}:${j.toString(16)}::/64`,
  );

describeOnStores("addresses that a caller makes up", (server) => {
  it("are not those of a key, whatever headers name them", async () => {
    const apiId = (await server.ok("apis.createApi", { name: "listed", ownKeyAccess: true })).apiId;
    const { key } = await server.createKey(apiId, { allowedIps: ["203.0.113.0/24"] });
    const stranger = "198.51.100.9";
    const listed = "203.0.113.5";
    for (const name of ["x-forwarded-for", "forwarded", "x-real-ip", "x-client-ip", "cf-connecting-ip"]) {
      const value = name === "forwarded" ? `for=${listed}` : listed;
      const asStranger = { as: null, from: stranger, headers: { [name]: value } };
      assert.equal((await server.ok("keys.verifyKey", { key }, asStranger)).code, "FORBIDDEN", name);
      await server.rejected("keys.getOwnKey", { key }, "key_not_found", asStranger);
    }
    // Without a root key nobody names an address in the body.
    await server.rejected("keys.verifyKey", { key, clientIp: listed }, "authentication_missing", {
      as: null,
      from: stranger,
    });
    const holder = { as: null, from: listed };
    assert.equal((await server.ok("keys.verifyKey", { key }, holder)).code, "VALID");
    assert.equal((await server.ok("keys.getOwnKey", { key }, holder)).enabled, true);
  });

  it("are refused in every spelling that a list does not mean", async () => {
    const { key } = await server.createKey(await server.createApi(), { allowedIps: ["203.0.113.5", "2001:db8::/32"] });
    const codeOf = async (clientIp: string) => (await server.verify(key, { clientIp })).code;
    for (const same of ["203.0.113.5", "::ffff:203.0.113.5", "::FFFF:cb00:7105", "0:0:0:0:0:ffff:203.0.113.5"]) {
      assert.equal(await codeOf(same), "VALID", same);
    }
    for (const other of [
      "::203.0.113.5",
      "64:ff9b::203.0.113.5",
      "2001:db9::",
      "::",
      "203.0.113.50",
      "::fffe:cb00:7105",
    ]) {
      assert.equal(await codeOf(other), "FORBIDDEN", other);
    }
    for (const none of [
      "203.0.113.05",
      "203.0.113",
      "0xcb007105",
      "3405803781",
      "2001:db8::1%eth0/1",
      "203.0.113.5 ",
    ]) {
      await server.rejected("keys.verifyKey", { key, clientIp: none }, "invalid_input");
    }
  });
});

it("takes addresses from X-Forwarded-For as far as trusted proxies forwarded it", async (t) => {
  const server = await openTestServer({ settings: { TRUSTED_PROXIES: "192.0.2.0/24" } });
  t.after(() => server.close());
  const { key } = await server.createKey(await server.createApi(), { allowedIps: ["203.0.113.0/24"] });
  for (const [from, forwarded, code] of [
    [PROXY, "203.0.113.5", "VALID"],
    [PROXY, "203.0.113.5, 198.51.100.9", "FORBIDDEN"],
    ["198.51.100.9", "203.0.113.5", "FORBIDDEN"],
    [PROXY, "unknown", "FORBIDDEN"],
    [PROXY, undefined, "FORBIDDEN"],
  ] as const) {
    const { code: answered } = await server.verify(key, {}, { from, headers: { "x-forwarded-for": forwarded } });
    assert.equal(answered, code, `${forwarded} by ${from}`);
  }
});

it("compiles thousands of CIDRs of a thousand keys, and still answers plain keys", async (t) => {
  const server = await openTestServer();
  t.after(() => server.close());
  const KEYS = 1_100;
  const apiId = await server.createApi();
  const { key: plain } = await server.createKey(apiId);
  const secrets = Array.from({ length: KEYS }, (_, i) => `imported-${i}`);
  for (let from = 0; from < KEYS; from += 100) {
    const keys = secrets
      .slice(from, from + 100)
      .map((secret, i) => ({ hash: sha256(secret).toString("hex"), allowedIps: longList(from + i) }));
    await server.ok("keys.migrateKeys", { apiId, migrationId: "elsewhere", keys });
  }
  // More distinct lists than are shared: every key is judged by its own.
  for (const [i, key] of secrets.entries()) {
    const own = `10.${i % 256}.4.1`;
    assert.equal((await server.verify(key, { clientIp: own })).code, "VALID");
    assert.equal((await server.verify(key, { clientIp: `10.${(i + 1) % 256}.4.1` })).code, "FORBIDDEN");
  }
  assert.equal((await server.verify(secrets[0]!, { clientIp: "2001:db8:0:1::7" })).code, "VALID");
  assert.equal((await server.verify(secrets[0]!, { clientIp: "2001:db8:1:1::7" })).code, "FORBIDDEN");
  assert.equal((await server.verify(plain)).code, "VALID");
  await server.rejected("keys.createKey", { apiId, allowedIps: [...longList(0), "10.0.1.0/24"] }, "invalid_input");
});
