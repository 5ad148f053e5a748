import assert from "node:assert/strict";
import { it } from "node:test";
import { describeOnStores } from "../harness.ts";

const MINUTE = 60_000;
const HOUR = 3_600_000;

const everything = {
  prefix: "live",
  name: "Acme",
  externalId: "reroll_acme",
  meta: { plan: "pro" },
  expires: 4_000_000_000_000,
  credits: { remaining: 20, refill: { interval: "monthly", amount: 30, refillDay: 15 } },
  ratelimits: [
    { name: "requests", limit: 5, duration: HOUR, autoApply: true },
    { name: "tokens", limit: 50, duration: HOUR, autoApply: false },
  ],
  roles: ["reroll_reader"],
  permissions: ["reroll.direct"],
};

describeOnStores(
  "keys.rerollKey",
  (server) => {
    it("has a role to copy", async () => {
      await server.createRole("reroll_reader", "reroll.read");
    });

    const reroll = (keyId: string, expiration: number | null) => server.ok("keys.rerollKey", { keyId, expiration });

    it("creates a key with another secret and all other properties of the old one (rule 27)", async () => {
      const old = await server.createKey(await server.createApi(), everything);
      const before = await server.getKey(old.keyId);
      await server.pass(1_000);
      const made = await reroll(old.keyId, HOUR);
      assert.notEqual(made.keyId, old.keyId);
      assert.notEqual(made.key, old.key);
      assert(made.key.startsWith("live_"));
      const { keyId, start, createdAt, updatedAt, ratelimits, ...copied } = await server.getKey(made.keyId);
      const { keyId: _, start: oldStart, createdAt: oldCreatedAt, ratelimits: oldLimits, ...original } = before;
      assert.deepEqual(copied, original);
      assert.deepEqual([keyId, createdAt, updatedAt], [made.keyId, server.clock.now(), undefined]);
      assert(made.key.startsWith(start) && start !== oldStart && createdAt > oldCreatedAt);
      // Limits are the same with new ids.
      const withoutId = (limits: { id: string }[]) => limits.map(({ id: _, ...limit }) => limit);
      assert.deepEqual(withoutId(ratelimits), withoutId(oldLimits));
      for (const { id } of oldLimits) assert(!ratelimits.some((limit: { id: string }) => limit.id === id));
      assert.equal((await server.verify(made.key, { permissions: "reroll.read AND reroll.direct" })).code, "VALID");
    });

    it("keeps the original for the grace period, rounded up to a whole minute (rule 27)", async () => {
      const old = await server.createKey(await server.createApi());
      server.clock.step(MINUTE + 1 - (server.clock.now() % MINUTE));
      const now = server.clock.now();
      const made = await reroll(old.keyId, 90_000);
      const end = now - 1 + 2 * MINUTE;
      assert.equal((await server.getKey(old.keyId)).expires, end);
      assert.equal(end % MINUTE, 0);
      for (const { key } of [old, made]) assert.equal((await server.verify(key)).code, "VALID");
      server.clock.step(end - server.clock.now());
      assert.equal((await server.verify(old.key)).code, "EXPIRED");
      assert.equal((await server.verify(made.key)).code, "VALID");
      assert.equal((await server.getKey(made.keyId)).expires, undefined);
    });

    it("ends the original at once with an expiration of 0", async () => {
      const old = await server.createKey(await server.createApi());
      assert.equal((await server.verify(old.key)).code, "VALID");
      const made = await reroll(old.keyId, 0);
      assert.equal((await server.verify(old.key)).code, "EXPIRED");
      assert.equal((await server.verify(made.key)).code, "VALID");
      assert.equal((await server.getKey(old.keyId)).expires, server.clock.now());
    });

    it("leaves the original unchanged with an expiration of null", async () => {
      const old = await server.createKey(await server.createApi(), { expires: server.clock.now() + HOUR });
      const before = await server.getKey(old.keyId);
      const made = await reroll(old.keyId, null);
      assert.deepEqual(await server.getKey(old.keyId), before);
      for (const { key } of [old, made]) assert.equal((await server.verify(key)).code, "VALID");
      assert.equal((await server.getKey(made.keyId)).expires, before.expires);
    });

    it("never extends the life of the original", async () => {
      const expires = server.clock.now() + MINUTE;
      const old = await server.createKey(await server.createApi(), { expires });
      const made = await reroll(old.keyId, HOUR);
      assert.equal((await server.getKey(old.keyId)).expires, expires);
      assert.equal((await server.getKey(made.keyId)).expires, expires);
      const far = await server.createKey(await server.createApi());
      await reroll(far.keyId, 4_102_444_800_000);
      assert.equal((await server.getKey(far.keyId)).expires, 4_102_444_800_000);
    });

    it("shares one balance along the whole chain", async () => {
      const refill = { interval: "daily", amount: 50 };
      const first = await server.createKey(await server.createApi(), { credits: { remaining: 10, refill } });
      const second = await reroll(first.keyId, HOUR);
      const third = await reroll(second.keyId, HOUR);
      const branch = await reroll(first.keyId, HOUR);
      const chain = [first, second, third, branch];
      for (const [i, { key }] of chain.entries()) {
        assert.equal((await server.verify(key, { credits: { cost: 2 } })).credits, 8 - 2 * i);
      }
      for (const { keyId } of chain) assert.deepEqual((await server.getKey(keyId)).credits, { remaining: 2, refill });
      assert.equal((await server.verify(third.key, { credits: { cost: 3 } })).code, "USAGE_EXCEEDED");

      await server.ok("keys.updateCredits", { keyId: second.keyId, operation: "increment", value: 5 });
      await server.ok("keys.updateKey", { keyId: third.keyId, credits: { refill: null } });
      for (const { keyId } of chain) assert.deepEqual((await server.getKey(keyId)).credits, { remaining: 7 });
      // Unlimited applies to all keys at once, and so does its end.
      await server.ok("keys.updateKey", { keyId: branch.keyId, credits: null });
      for (const { key } of chain) assert.equal((await server.verify(key)).credits, undefined);
      await server.ok("keys.updateCredits", { keyId: first.keyId, operation: "set", value: 4 });
      for (const { key } of chain) assert.equal((await server.verify(key, { credits: { cost: 0 } })).credits, 4);
    });

    it("shares one set of counters along the chain, including ad-hoc limits", async () => {
      const ratelimits = [{ name: "requests", limit: 4, duration: HOUR, autoApply: true }];
      const old = await server.createKey(await server.createApi(), { ratelimits });
      for (let i = 0; i < 3; i++) assert.equal((await server.verify(old.key)).code, "VALID");
      const made = await reroll(old.keyId, HOUR);
      assert.deepEqual((await server.verify(made.key)).ratelimits[0].remaining, 0);
      for (const { key } of [old, made]) assert.equal((await server.verify(key)).code, "RATE_LIMITED");

      const plain = await server.createKey(await server.createApi());
      const next = await reroll(plain.keyId, HOUR);
      const adHoc = { ratelimits: [{ name: "export", cost: 1, limit: 1, duration: HOUR }] };
      assert.equal((await server.verify(plain.key, adHoc)).code, "VALID");
      assert.equal((await server.verify(next.key, adHoc)).code, "RATE_LIMITED");
    });

    it("shares no other property", async () => {
      const old = await server.createKey(await server.createApi(), everything);
      const made = await reroll(old.keyId, HOUR);
      const before = await server.getKey(made.keyId);
      const change = { name: "old", meta: null, enabled: false, permissions: [], ratelimits: [], roles: [] };
      await server.ok("keys.updateKey", { keyId: old.keyId, ...change });
      assert.deepEqual(await server.getKey(made.keyId), before);
      assert.equal((await server.verify(made.key)).code, "VALID");
    });

    it("leaves the pool to the other keys when one of the chain is deleted, permanently or not", async () => {
      for (const permanent of [false, true]) {
        const old = await server.createKey(await server.createApi(), { credits: { remaining: 10 } });
        const made = await reroll(old.keyId, HOUR);
        assert.equal((await server.verify(old.key)).credits, 9);
        await server.ok("keys.deleteKey", { keyId: old.keyId, permanent });
        assert.equal((await server.verify(made.key)).credits, 8);
        assert.deepEqual((await server.getKey(made.keyId)).credits, { remaining: 8 });
      }
    });

    it("creates no credit while spends are in flight", async () => {
      const credits = { remaining: 150 };
      let newest = await server.createKey(await server.createApi(), { credits });
      const keys = [newest.key];
      const verified: Promise<{ code: string }>[] = [];
      for (let rotation = 0; rotation < 6; rotation++) {
        for (let i = 0; i < 40; i++) verified.push(server.verify(keys[i % keys.length]!));
        newest = await reroll(newest.keyId, HOUR);
        keys.push(newest.key);
      }
      const codes = (await Promise.all(verified)).map(({ code }) => code);
      assert.equal(codes.filter((code) => code === "VALID").length, 150);
      assert.equal(codes.filter((code) => code === "USAGE_EXCEEDED").length, 90);
      assert.deepEqual((await server.getKey(newest.keyId)).credits, { remaining: 0 });
    });

    it("creates a recoverable key from a recoverable one, with the permission to encrypt (rule 28)", async () => {
      const old = await server.createKey(await server.createApi(), { recoverable: true });
      const { key: as } = await server.grant("apis.*.create_key");
      const body = { keyId: old.keyId, expiration: 0 };
      const error = await server.rejected("keys.rerollKey", body, "insufficient_permissions", { as });
      assert.match(error.detail, /encrypt_key/);
      assert.equal((await server.verify(old.key)).code, "VALID");
      const { key: mayEncrypt } = await server.grant("apis.*.create_key", "apis.*.encrypt_key");
      const made = await server.ok("keys.rerollKey", body, { as: mayEncrypt });
      const { plaintext } = await server.ok("keys.getKey", { keyId: made.keyId, decrypt: true });
      assert.equal(plaintext, made.key);
    });

    it("looks the key up before it checks the permission, and needs create_key only (rule 5)", async () => {
      const { keyId } = await server.createKey(await server.createApi());
      const body = { keyId, expiration: 0 };
      const { key: other } = await server.grant("apis.*.update_key");
      const error = await server.rejected("keys.rerollKey", body, "insufficient_permissions", { as: other });
      assert.match(error.detail, /create_key/);
      const missing = { ...body, keyId: "key_never0existed000" };
      await server.rejected("keys.rerollKey", missing, "key_not_found", { as: other });
      const { key: as } = await server.grant("apis.*.create_key");
      const made = await server.ok("keys.rerollKey", body, { as });
      await server.ok("keys.deleteKey", { keyId: made.keyId });
      await server.rejected("keys.rerollKey", { ...body, keyId: made.keyId }, "key_not_found");
    });

    it("rejects invalid keyIds and expirations, and tolerates unknown fields (rule 27)", async () => {
      const { keyId } = await server.createKey(await server.createApi());
      for (const body of [
        { expiration: 0 },
        { keyId: "", expiration: 0 },
        { keyId: "ab", expiration: 0 },
        { keyId },
        { keyId, expiration: -1 },
        { keyId, expiration: 1.5 },
        { keyId, expiration: 4_102_444_800_001 },
      ]) {
        await server.rejected("keys.rerollKey", body, "invalid_input");
      }
      await server.ok("keys.rerollKey", { keyId, expiration: 0, unknown: true });
    });
  },
  { VAULT_KEY: Buffer.alloc(32, 7).toString("base64") },
);
