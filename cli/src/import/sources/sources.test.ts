import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { instantAt } from "../../../../engine/src/clock/clock.ts";
import { hashSecret, hashSecret512 } from "../../../../engine/src/crypto/hash.ts";
import type { HashAlgorithm } from "../../../../engine/src/rules/imported-keys.ts";
import { Fields } from "../fields.ts";
import { limitOf } from "./source.ts";
import { type SourceName, sources } from "./sources.ts";

const now = instantAt(1_768_478_400_000);
const HASH = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae";

function map(from: SourceName, row: Record<string, unknown>, algorithm: HashAlgorithm = "sha256") {
  return sources[from].mapping({ now, algorithm, sourceApi: undefined, others: [] })(new Fields(Object.entries(row)));
}

const key = (members: object) => ({ key: members });

describe("a rate as a limit", () => {
  it("is exact in whole numbers, or off by less than 1 %", () => {
    for (const [rate, seconds, limit, duration] of [
      [10, 1, 10, 1_000],
      [2.5, 1, 25, 10_000],
      [0.001, 1, 1, 1_000_000],
      [10, 0.5, 100, 5_000],
      [1 / 3, 1, 20, 60_000],
    ]) {
      assert.deepEqual(limitOf("rate", rate, seconds), { name: "rate", limit, duration, autoApply: true });
    }
    for (const rate of [Math.PI, 0.000_123, 17.171_717]) {
      const { limit, duration } = limitOf("rate", rate, 1)!;
      assert(Number.isInteger(limit) && Number.isInteger(duration) && duration >= 1_000);
      assert(Math.abs((limit / duration) * 1_000 - rate) < rate / 100, `${limit} in ${duration} for ${rate}`);
    }
    for (const [rate, seconds] of [
      [0, 1],
      [-1, 60],
      [5, 0],
      ["5", 1],
      [5, undefined],
    ]) {
      assert.equal(limitOf("rate", rate, seconds), undefined);
    }
  });
});

describe("rows of other systems", () => {
  it("unkey: the table keys as CSV", () => {
    const row = {
      id: "key_1",
      hash: HASH,
      name: "Acme",
      owner_id: "acme",
      meta: '{"plan":"pro"}',
      expires: "2027-01-31 00:00:00",
      enabled: "1",
      remaining_requests: "100",
      refill_amount: "1000",
      refill_day: "",
      deleted_at_m: "",
      for_workspace_id: "",
      ratelimit_limit: "10",
      ratelimit_duration: "60000",
    };
    assert.deepEqual(
      map("unkey", row),
      key({
        hash: HASH,
        name: "Acme",
        externalId: "acme",
        meta: { plan: "pro" },
        expires: Date.UTC(2027, 0, 31),
        enabled: true,
        credits: { remaining: 100, refill: { interval: "daily", amount: 1_000 } },
        ratelimits: [{ name: "default", limit: 10, duration: 60_000, autoApply: true }],
      }),
    );
    assert.deepEqual(map("unkey", { ...row, deleted_at_m: "1768478400000" }), { skipped: "was deleted" });
    assert.deepEqual(map("unkey", { ...row, for_workspace_id: "ws_1" }), { skipped: "is a root key of Unkey" });
    const fields = new Fields(Object.entries({ hash: HASH, identity_id: "id_1", pending_migration_id: "mig_1" }));
    sources.unkey.mapping({ now, algorithm: "sha256", sourceApi: undefined, others: [] })(fields);
    assert.deepEqual(
      fields.notes.map(({ field }) => field),
      ["pending_migration_id", "identity_id"],
    );
    assert.deepEqual(map("unkey", { ...row, hash: "" }), { rejected: "has no hash" });
  });

  it("better-auth: the table apikey, with JSON in JSON", () => {
    const row = {
      key: hashSecret("a"),
      name: "ci",
      userId: "u1",
      enabled: true,
      expiresAt: "2027-01-31T12:00:00.000Z",
      metadata: '"{\\"plan\\":\\"pro\\"}"',
      permissions: '{"files":["read","write"]}',
      remaining: 5,
      refillInterval: 86_400_000,
      refillAmount: 10,
      rateLimitEnabled: true,
      rateLimitMax: 10,
      rateLimitTimeWindow: 60_000,
    };
    assert.deepEqual(
      map("better-auth", row),
      key({
        hash: hashSecret("a"),
        name: "ci",
        externalId: "u1",
        meta: { plan: "pro" },
        enabled: true,
        permissions: ["files.read", "files.write"],
        expires: Date.UTC(2027, 0, 31, 12),
        credits: { remaining: 5, refill: { interval: "daily", amount: 10 } },
        ratelimits: [{ name: "requests", limit: 10, duration: 60_000, autoApply: true }],
      }),
    );
    assert.deepEqual(
      map("better-auth", { key: hashSecret("b"), referenceId: "org", rateLimitEnabled: false, rateLimitMax: 1 }),
      key({ hash: hashSecret("b"), externalId: "org" }),
    );
    for (const [refillInterval, interval] of [
      [3_600_000, "hourly"],
      [7 * 86_400_000, "weekly"],
      [30 * 86_400_000, "monthly"],
    ] as const) {
      const credits = { remaining: 5, refill: { interval, amount: 10 } };
      assert.partialDeepStrictEqual(map("better-auth", { ...row, refillInterval }), key({ credits }));
    }
    assert.match(
      (map("better-auth", { ...row, refillInterval: 7_200_000 }) as { rejected: string }).rejected,
      /^has a refill every 7200000 ms\./,
    );
  });

  it("litellm: the table LiteLLM_VerificationToken, with arrays of PostgreSQL", () => {
    const row = {
      token: HASH,
      key_alias: "ci",
      user_id: "u1",
      models: '{gpt-4o,"claude"}',
      max_budget: "12.5",
      spend: "0",
      rpm_limit: "60",
      blocked: "t",
      expires: "2027-01-31 00:00:00+00",
      metadata: '{"plan":"pro"}',
    };
    assert.deepEqual(
      map("litellm", row),
      key({
        hash: HASH,
        name: "ci",
        externalId: "u1",
        enabled: false,
        expires: Date.UTC(2027, 0, 31),
        credits: { remaining: 12_500_000 },
        meta: { plan: "pro", litellm: { models: ["gpt-4o", "claude"], spend: 0 } },
        ratelimits: [{ name: "requests", limit: 60, duration: 60_000, autoApply: true }],
      }),
    );
    assert.deepEqual(
      map("litellm", { token: "sk-1234", blocked: "f", models: "{}" }),
      key({ hash: hashSecret("sk-1234") }),
    );
  });

  it("kong: credentials of the Admin API and of the table", () => {
    const listed = { id: "c1", key: "plain", consumer: { id: "uuid", username: "acme" }, ttl: 60, tags: ["a"] };
    assert.deepEqual(
      map("kong", listed),
      key({ hash: hashSecret("plain"), name: "c1", externalId: "acme", meta: { tags: ["a"] }, expires: now + 60_000 }),
    );
    assert.deepEqual(
      map("kong", { key: "plain", consumer_id: "uuid", ttl: "2027-01-31 00:00:00+00", tags: "" }),
      key({ hash: hashSecret("plain"), externalId: "uuid", expires: Date.UTC(2027, 0, 31) }),
    );
  });

  it("aws: get-api-keys and the CSV file of import-api-keys", () => {
    assert.deepEqual(
      map("aws", {
        id: "x",
        value: "plain",
        name: "ci",
        customerId: "acme",
        enabled: false,
        tags: { a: "b" },
        stageKeys: [],
      }),
      key({
        hash: hashSecret("plain"),
        name: "ci",
        externalId: "acme",
        enabled: false,
        meta: { tags: { a: "b" } },
      }),
    );
    assert.deepEqual(
      map("aws", { Name: "ci", key: "plain", description: "mine", Enabled: "TRUE", usageplanIds: "c7y23b,glvrsr" }),
      key({
        hash: hashSecret("plain"),
        name: "ci",
        enabled: true,
        meta: { description: "mine", usagePlanIds: ["c7y23b", "glvrsr"] },
      }),
    );
    assert.match((map("aws", { name: "ci" }) as { rejected: string }).rejected, /--include-values/);
  });

  it("tyk: keys as the dashboard lists them, and hashes of every kind", () => {
    const rowsOf = (row: Record<string, unknown>) => sources.tyk.unfold!(row).map((one) => map("tyk", one));
    assert.deepEqual(
      rowsOf({ api_model: {}, key_id: HASH, key_hash: HASH, data: { alias: "ci", expires: -1, rate: 10, per: 1 } }),
      [key({ hash: HASH, name: "ci", ratelimits: [{ name: "rate", limit: 10, duration: 1_000, autoApply: true }] })],
    );
    // An id of 32 hexadecimal characters is a murmur128; that of a session is no hash.
    assert.match(
      (map("tyk", { key_id: HASH.slice(0, 32) }) as { rejected: string }).rejected,
      /^is stored as murmur128/,
    );
    assert.deepEqual(rowsOf({ key_hash: HASH, session: { key_id: HASH.slice(0, 32) } }), [key({ hash: HASH })]);
    const token = Buffer.from('{"org":"o","id":"own","h":"sha256"}').toString("base64");
    const stored = Buffer.from(hashSecret(token), "base64url").toString("hex");
    assert.deepEqual(rowsOf({ key_hash: stored, session: { key_id: "own", org_id: "o" } }), [
      key({ hash: hashSecret("own") }),
    ]);
    assert.deepEqual(rowsOf({ key_id: token, data: {} }), [key({ hash: hashSecret(token) })]);
    assert.deepEqual(map("tyk", { alias: "ci" }), { rejected: "has no key and no hash" });
    for (const session of [
      { hmac_enabled: true },
      { oauth_client_id: "c" },
      { certificate: "c" },
      { jwt_data: { secret: "s" } },
      { enable_http_signature_validation: true },
    ]) {
      assert("skipped" in map("tyk", { key_hash: HASH, ...session }));
    }
  });

  it("rejects texts that are neither a hash of the system nor one of its keys", () => {
    for (const [from, row, reason] of [
      ["better-auth", { key: "abc", start: "xyz" }, /neither the SHA-256 of a key as base64url nor a key string/],
      ["better-auth", { key: HASH }, /neither the SHA-256/],
      ["litellm", { token: "abc" }, /neither a SHA-256 as hex nor a key string/],
      ["kong", { key: "x", key_ident: "abcd" }, /credential of key-auth-enc/],
    ] as const) {
      assert.match((map(from, row) as { rejected: string }).rejected, reason);
    }
  });

  it("generic: fields with the names of the operation", () => {
    assert.deepEqual(
      map("generic", {
        key: "plain",
        name: "ci",
        "meta.Plan_Name": "pro",
        roles: "a;b",
        permissions: '["x.y"]',
        expires: "2027-01-31",
        "credits.remaining": "5",
        "credits.refill.interval": "monthly",
        "credits.refill.amount": "9",
        "credits.refill.refillDay": "1",
      }),
      key({
        hash: hashSecret("plain"),
        name: "ci",
        meta: { Plan_Name: "pro" },
        roles: ["a", "b"],
        permissions: ["x.y"],
        expires: Date.UTC(2027, 0, 31),
        credits: { remaining: 5, refill: { interval: "monthly", amount: 9, refillDay: 1 } },
      }),
    );
    assert.deepEqual(map("generic", { key: "plain" }, "sha512"), key({ hash: hashSecret512("plain") }));
    for (const [row, algorithm, reason] of [
      [{ key: "plain" }, "hmac-sha256", /^has a key, which is hashed with sha256 or sha512 only/],
      [{ key: "plain", hash: HASH }, "sha256", /^has both hash and key$/],
      [{ name: "ci" }, "sha256", /^has neither hash nor key$/],
      [{ hash: HASH, colour: "red" }, "sha256", /^has a field colour\. The fields are hash, key, /],
    ] as const) {
      assert.match((map("generic", row, algorithm) as { rejected: string }).rejected, reason);
    }
  });
});
