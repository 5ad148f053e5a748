import assert from "node:assert/strict";
import { it } from "node:test";
import { describeOnStores } from "../harness.ts";

describeOnStores("keys.createKey", (server) => {
  it("returns a secret once, and no other operation returns it (rule 18)", async () => {
    const apiId = await server.createApi();
    const made = await server.createKey(apiId, { prefix: "sk_live", name: "production" });
    assert.match(made.keyId, /^key_[0-9A-Za-z]{9,}$/);
    assert.match(made.key, /^sk_live_[1-9A-HJ-NP-Za-km-z]{26,30}$/);
    assert.deepEqual(await server.getKey(made.keyId), {
      keyId: made.keyId,
      apiId,
      start: made.key.slice(0, "sk_live_".length + 4),
      enabled: true,
      createdAt: server.clock.now(),
      name: "production",
    });
    const rows = JSON.stringify(await server.rows());
    assert(!rows.includes(made.key));
    assert(!JSON.stringify(server.logged).includes(made.key));
  });

  it("gives every key a unique secret of the requested length (rule 18)", async () => {
    const apiId = await server.createApi();
    const secrets = new Set<string>();
    for (let i = 0; i < 20; i++) secrets.add((await server.createKey(apiId)).key);
    assert.equal(secrets.size, 20);
    const { key } = await server.createKey(apiId, { byteLength: 255 });
    assert(key.length > 255 * 1.3);
    assert.equal((await server.verify(key)).code, "VALID");
  });

  it("stores all of its properties (rules 18, 21)", async () => {
    const apiId = await server.createApi();
    await server.createRole("create_support", "tickets.read", "tickets.write");
    const meta = { plan: "pro", deep: { list: [1, 2.5, null, { x: true }], empty: {} }, "": "\0 😀 ☂", n: 100_000 };
    const ratelimits = [
      { name: "requests", limit: 100, duration: 60_000, autoApply: true },
      { name: "tokens", limit: 1_000_000_000_000, duration: 366 * 86_400_000, colour: "tolerated" },
    ];
    const { keyId } = await server.createKey(apiId, {
      name: "everything",
      externalId: "create_everything",
      meta,
      roles: ["CREATE_support", "create_support"],
      permissions: ["documents.read", "tickets.read", "documents.read", "*", "a:b/c-d_e.*", "1leading"],
      expires: 4_102_444_800_000,
      credits: { remaining: 7, refill: { interval: "monthly", amount: 10, refillDay: 31 } },
      ratelimits,
      enabled: false,
    });
    const { identity, ratelimits: limits, ...key } = await server.getKey(keyId);
    assert.match(identity.id, /^id_/);
    assert.deepEqual(identity, { id: identity.id, externalId: "create_everything", meta: {}, ratelimits: [] });
    for (const { id } of limits) assert.match(id, /^rl_/);
    assert.deepEqual(
      limits.map((limit: object) => ({ ...limit, id: "" })),
      [
        { id: "", name: "requests", limit: 100, duration: 60_000, autoApply: true },
        { id: "", name: "tokens", limit: 1_000_000_000_000, duration: 366 * 86_400_000, autoApply: false },
      ],
    );
    assert.deepEqual(key, {
      keyId,
      apiId,
      start: key.start,
      enabled: false,
      createdAt: server.clock.now(),
      name: "everything",
      meta,
      expires: 4_102_444_800_000,
      permissions: ["*", "1leading", "a:b/c-d_e.*", "documents.read", "tickets.read", "tickets.write"],
      roles: ["create_support"],
      credits: { remaining: 7, refill: { interval: "monthly", amount: 10, refillDay: 31 } },
    });
  });

  it("accepts whole numbers in any notation", async () => {
    const apiId = await server.createApi();
    const raw = `{"apiId":"${apiId}","meta":{"ratio":1.0,"text":"1.0"},"name":"v1.0","byteLength":1.6e1}`;
    const { keyId } = await server.ok("keys.createKey", undefined, { raw });
    assert.deepEqual((await server.getKey(keyId)).meta, { ratio: 1, text: "1.0" });
    for (const literal of ["16.0", "1.6e1", "160e-1", "0.16E+2"]) {
      await server.ok("keys.createKey", undefined, { raw: `{"apiId":"${apiId}","byteLength":${literal}}` });
    }
  });

  it("returns meta as it was sent, or rejects it", async () => {
    const apiId = await server.createApi();
    const body = (meta: string) => `{"apiId":"${apiId}","meta":${meta}}`;
    const kept = ["9007199254740992", "-9007199254740991", "1e21", "1.7976931348623157e308", "5e-324", "0.1", "1e-7"];
    for (const literal of [...kept, '"\\ud83d\\ude00"', '"\\u0000"', '{"constructor":1,"toString":{}}']) {
      const { keyId } = await server.ok("keys.createKey", undefined, { raw: body(`{"a":[${literal}]}`) });
      assert.deepEqual((await server.getKey(keyId)).meta, { a: [JSON.parse(literal)] });
    }
    const before = await server.rows();
    for (const lost of [
      "1e400",
      "-1e309",
      "9007199254740993",
      "12345678901234567890",
      "1e-400",
      "0.1000000000000000055",
      "1.00000000000000001",
      '"\\ud800"',
      '"\\udc00\\ud800"',
      '{"__proto__":{"a":1}}',
      '{"\\u005f_proto__":1}',
      '{"a":1,"a":1}',
      '{"\\u0061":1,"a":2}',
    ]) {
      const error = await server.rejected("keys.createKey", undefined, "invalid_input", {
        raw: body(`{"a":[${lost}]}`),
      });
      assert.match(error.errors![0]!.message, /, at position \d+$/);
      assert(error.errors![0]!.fix);
    }
    assert.deepEqual(await server.rows(), before);
  });

  it("keeps meta of up to 64 KiB and 100 levels", async () => {
    const apiId = await server.createApi();
    const wrapping = '{"a":""}'.length;
    const meta = { a: "x".repeat(64 * 1024 - wrapping) };
    const { keyId } = await server.createKey(apiId, { meta });
    assert.deepEqual((await server.getKey(keyId)).meta, meta);
    let deep: object = {};
    for (let level = 1; level < 100; level++) deep = { deep };
    await server.createKey(apiId, { meta: deep });
    for (const tooMuch of [{ a: `${meta.a}x` }, { deep }, { ...meta, a: "☂".repeat(30_000) }]) {
      const error = await server.rejected("keys.createKey", { apiId, meta: tooMuch }, "invalid_input");
      assert.equal(error.errors!.length, 1);
    }
    assert.equal((await server.getKey((await server.createKey(apiId, { meta: {} })).keyId)).meta, undefined);
  });

  it("validates credits (rule 20)", async () => {
    const apiId = await server.createApi();
    const credits = async (given: unknown) =>
      (await server.getKey((await server.createKey(apiId, { credits: given })).keyId)).credits;
    const monthly = (refillDay?: number) => ({ interval: "monthly", amount: 10, ...(refillDay && { refillDay }) });
    assert.deepEqual(await credits({ remaining: 0 }), { remaining: 0 });
    assert.deepEqual(await credits({ remaining: 1e15 }), { remaining: 1e15 });
    assert.equal(await credits({ remaining: null }), undefined);
    assert.equal(await credits({ remaining: null, refill: null }), undefined);
    assert.deepEqual(await credits({ remaining: 1, refill: null }), { remaining: 1 });
    assert.deepEqual(await credits({ remaining: 1, refill: monthly() }), { remaining: 1, refill: monthly(1) });
    assert.deepEqual(await credits({ remaining: 1, refill: { interval: "daily", amount: 5 } }), {
      remaining: 1,
      refill: { interval: "daily", amount: 5 },
    });

    const before = await server.rows();
    const reject = (given: unknown) => server.rejected("keys.createKey", { apiId, credits: given }, "invalid_input");
    assert.match((await reject({ remaining: null, refill: monthly(1) })).detail, /credits\.remaining/);
    assert.match(
      (await reject({ remaining: 1, refill: { interval: "daily", amount: 5, refillDay: 1 } })).detail,
      /must not be provided when the refill interval is/,
    );
    for (const given of [
      null,
      {},
      { refill: monthly(1) },
      { remaining: -1 },
      { remaining: 1e15 + 1 },
      { remaining: 1, refill: { interval: "daily", amount: 0 } },
      { remaining: 1, refill: { interval: "fortnightly", amount: 1 } },
      { remaining: 1, refill: monthly(32) },
      { remaining: 1, refill: { ...monthly(1), refillDay: 0 } },
    ]) {
      const error = await reject(given);
      assert(error.errors!.length > 0);
    }
    assert.deepEqual(await server.rows(), before);
  });

  it("rejects values out of range and creates nothing (rule 19)", async () => {
    const apiId = await server.createApi();
    const before = await server.rows();
    const limit = { name: "requests", limit: 1, duration: 1_000 };
    for (const more of [
      { roles: [""] },
      { permissions: [""] },
      { roles: ["r".repeat(101)] },
      { permissions: ["p".repeat(101)] },
      { permissions: ["with space"] },
      { permissions: ["at@sign"] },
      { permissions: Array.from({ length: 1_001 }, (_, i) => `p${i}`) },
      { byteLength: 15 },
      { byteLength: 256 },
      { prefix: "p".repeat(17) },
      { prefix: "sk live" },
      { expires: -1 },
      { expires: 4_102_444_800_001 },
      { externalId: "with space" },
      { externalId: "e".repeat(256) },
      { ratelimits: [limit, limit] },
      { ratelimits: [{ ...limit, limit: 0 }] },
      { ratelimits: [{ ...limit, duration: 999 }] },
      { ratelimits: [{ ...limit, limit: 1e12 + 1 }] },
      { ratelimits: [{ ...limit, duration: 366 * 86_400_000 + 1 }] },
      { ratelimits: [{ limit: 1, duration: 1_000 }] },
      { apiId: "ab" },
    ]) {
      await server.rejected("keys.createKey", { apiId, ...more }, "invalid_input");
    }
    await server.rejected("keys.createKey", { apiId: "abc" }, "api_not_found");
    assert.deepEqual(await server.rows(), before);
    await server.createKey(apiId, { prefix: "a-b.c_d", roles: [], permissions: [], ratelimits: [] });
  });

  it("needs existing roles, and creates nothing without them", async () => {
    const apiId = await server.createApi();
    await server.createRole("create_known", "known.read");
    const before = await server.rows();
    const body = {
      apiId,
      roles: ["create_known", "Unknown role"],
      permissions: ["made.too"],
      externalId: "create_nobody",
    };
    const error = await server.rejected("keys.createKey", body, "role_not_found");
    assert.equal(error.detail, "Role 'Unknown role' was not found.");
    assert.deepEqual(await server.rows(), before);
  });

  it("creates missing permissions once each, without regard to case", async () => {
    const apiId = await server.createApi();
    const create = async (...permissions: string[]) =>
      (await server.getKey((await server.createKey(apiId, { permissions })).keyId)).permissions;
    assert.deepEqual(await create("Made.Once", "Made.Once"), ["Made.Once"]);
    assert.deepEqual(await create("MADE.ONCE", "made.once", "made.twice"), ["Made.Once", "made.twice"]);
    const { permissions } = await server.rows();
    assert.equal(permissions!.filter((row) => (row as string).includes("made.once")).length, 1);
    // That needs no permission.
    const { key: as } = await server.grant(`apis.${apiId}.create_key`);
    await server.ok(
      "keys.createKey",
      { apiId, permissions: ["made.by.creator"], externalId: "made_by_creator" },
      { as },
    );
  });

  it("accepts a thousand permissions and a hundred roles", async () => {
    const apiId = await server.createApi();
    const permissions = Array.from({ length: 1_000 }, (_, i) => `bulk.${String(i).padStart(4, "0")}`);
    const { keyId, key } = await server.createKey(apiId, { permissions });
    assert.deepEqual((await server.getKey(keyId)).permissions, permissions);
    assert.equal((await server.verify(key, { permissions: "bulk.0000 AND bulk.0999" })).code, "VALID");
  });

  it("creates one identity for many concurrent calls (rule 18)", async () => {
    const apiId = await server.createApi();
    const made = await Promise.all(
      Array.from({ length: 20 }, () => server.createKey(apiId, { externalId: "create_shared" })),
    );
    const identities = await Promise.all(made.map(async ({ keyId }) => (await server.getKey(keyId)).identity.id));
    assert.equal(new Set(identities).size, 1);
    assert.equal(new Set(made.map(({ key }) => key)).size, 20);
    const later = await server.createKey(apiId, { externalId: "create_shared" });
    assert.equal((await server.getKey(later.keyId)).identity.id, identities[0]);
    const { identity } = await server.getKey((await server.createKey(apiId, { externalId: "Create_shared" })).keyId);
    assert.notEqual(identity.id, identities[0]);
  });

  it("masks the API without the permission to create keys (rules 5, 6)", async () => {
    const [apiId, other] = [await server.createApi(), await server.createApi("other")];
    const absent = await server.rejected("keys.createKey", { apiId: "api_never0existed000" }, "api_not_found");
    assert.match(absent.detail, /The specified API was not found/);
    for (const grants of [["apis.*.read_key"], [`apis.${other}.create_key`], ["apis.*.update_key"]]) {
      const { key: as } = await server.grant(...grants);
      const hidden = await server.rejected("keys.createKey", { apiId }, "api_not_found", { as });
      assert.deepEqual(hidden, absent);
    }
    const { key: as } = await server.grant(`apis.${apiId}.create_key`);
    await server.ok("keys.createKey", { apiId }, { as });
    await server.rejected("keys.createKey", { apiId: other }, "api_not_found", { as });
  });

  it("writes an audit entry without the secret", async () => {
    const { keyId, key } = await server.createKey(await server.createApi(), { name: "audited" });
    const { audit_events } = await server.rows();
    const entries = audit_events!
      .filter((row) => (row as string).includes(keyId))
      .map((row) => JSON.parse(row as string));
    assert.equal(entries.length, 1);
    assert.equal(entries[0].action, "keys.createKey");
    assert(entries[0].actor.startsWith("rk_"));
    assert(!JSON.stringify(entries).includes(key));
  });
});
