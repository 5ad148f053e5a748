/** What strangers learn from `keys.getOwnKey`, and what they can make the service do. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { seededRandom } from "../../../engine/src/random/seeded.ts";
import { formatKey } from "../../../engine/src/rules/key-string.ts";
import { HOLDER_REQUESTS_PER_MINUTE } from "../../src/features/keys/getOwnKey.ts";
import { describeOnStores, openTestServer } from "../harness.ts";

const MINUTE = 60_000;
const anonymously = { as: null };

const random = seededRandom(22);
/** A key string that was never issued, with a valid checksum. */
const inventedKey = () =>
  formatKey(
    null,
    Uint8Array.from({ length: 16 }, () => random.below(256)),
  ).key;

describeOnStores("keys.getOwnKey", (server) => {
  const readableApi = async () => (await server.ok("apis.createApi", { name: "readable", ownKeyAccess: true })).apiId;

  it("answers a holder what is left, and charges nothing (rule 83)", async () => {
    await server.pass(MINUTE - (server.clock.now() % MINUTE));
    const apiId = await readableApi();
    const identity = { externalId: "own_acme", ratelimits: [{ name: "team", limit: 9, duration: MINUTE }] };
    await server.ok("identities.createIdentity", identity);
    const expires = server.clock.now() + 10 * MINUTE;
    const { key, keyId } = await server.createKey(apiId, {
      externalId: "own_acme",
      name: "for the operator",
      permissions: ["a"],
      meta: { plan: "pro" },
      expires,
      credits: { remaining: 100, refill: { interval: "daily", amount: 100 } },
      ratelimits: [{ name: "requests", limit: 5, duration: MINUTE, autoApply: true }],
    });
    await server.verify(key, { credits: { cost: 7 } });
    await server.pass(2_000);
    const now = server.clock.now();
    const today = Math.floor(now / 86_400_000) * 86_400_000;
    const first = await server.ok("keys.getOwnKey", { key }, anonymously);
    const counts = { total: 1, valid: 1, creditsSpent: 7 };
    assert.deepEqual(first, {
      keyId,
      enabled: true,
      expires,
      credits: { remaining: 93, refill: { interval: "daily", amount: 100, nextAt: today + 86_400_000 } },
      ratelimits: [
        {
          name: "requests",
          limit: 5,
          duration: MINUTE,
          used: 1,
          remaining: 4,
          resetAt: now - (now % MINUTE) + MINUTE,
          shared: false,
        },
        {
          name: "team",
          limit: 9,
          duration: MINUTE,
          used: 1,
          remaining: 8,
          resetAt: now - (now % MINUTE) + MINUTE,
          shared: true,
        },
      ],
      usage: {
        startAt: today - 29 * 86_400_000,
        endAt: today + 86_400_000,
        ...counts,
        days: [{ startAt: today, ...counts }],
      },
    });
    assert.deepEqual(await server.ok("keys.getOwnKey", { key }, anonymously), first);
    await server.ok("keys.updateKey", { keyId, enabled: false, expires: null, credits: null });
    const { enabled, expires: never, credits } = await server.ok("keys.getOwnKey", { key }, anonymously);
    assert.deepEqual([enabled, never, credits], [false, undefined, undefined]);
  });

  it("answers every other string alike (rule 84)", async () => {
    const closed = await server.createApi();
    const open = await readableApi();
    const { key: as } = await server.workspace("own stranger");
    const { apiId: theirs } = await server.ok("apis.createApi", { name: "theirs", ownKeyAccess: true }, { as });
    const foreign = await server.ok("keys.createKey", { apiId: theirs }, { as });
    const deleted = await server.createKey(open);
    await server.ok("keys.deleteKey", { keyId: deleted.keyId });
    const listed = await readableApi();
    await server.ok("apis.updateApi", { apiId: listed, allowedIps: ["192.0.2.0/24"] });
    const strings = {
      invented: inventedKey(),
      mistyped: `${inventedKey()}x`,
      "of an API without the setting": (await server.createKey(closed)).key,
      "of another workspace": foreign.key,
      deleted: deleted.key,
      "from another address": (await server.createKey(listed)).key,
    };
    const unknown = await server.rejected("keys.getOwnKey", { key: inventedKey() }, "key_not_found", anonymously);
    for (const [what, key] of Object.entries(strings)) {
      const error = await server.rejected("keys.getOwnKey", { key }, "key_not_found", anonymously);
      assert.deepEqual(error, unknown, what);
    }
    assert.equal((await server.ok("keys.getOwnKey", { key: foreign.key }, { as })).keyId, foreign.keyId);
    const { key } = await server.createKey(open);
    await server.ok("keys.getOwnKey", { key }, anonymously);
    await server.ok("apis.updateApi", { apiId: open, ownKeyAccess: false });
    await server.rejected("keys.getOwnKey", { key }, "key_not_found", anonymously);
  });

  it("reads a key a bounded number of times per minute", async () => {
    const { key } = await server.createKey(await readableApi());
    await server.pass(MINUTE - (server.clock.now() % MINUTE));
    for (let i = 0; i < HOLDER_REQUESTS_PER_MINUTE; i++) await server.ok("keys.getOwnKey", { key }, anonymously);
    const reply = await server.call("keys.getOwnKey", { key }, anonymously);
    assert.equal(reply.problem, "workspace_rate_limited");
    assert(Number(reply.headers["retry-after"]) > 0);
    // Verifications and other keys do not share this limit.
    assert.equal((await server.verify(key)).valid, true);
    await server.ok("keys.getOwnKey", { key: (await server.createKey(await readableApi())).key }, anonymously);
  });
});

it("looks unknown keys up within the budget of verifications", async (t) => {
  const server = await openTestServer({ settings: { LOOKUPS_PER_SECOND: "5", VERIFY_AUTH: "required" } });
  t.after(() => server.close());
  const { apiId } = await server.ok("apis.createApi", { name: "readable", ownKeyAccess: true });
  const { key } = await server.createKey(apiId);
  await server.ok("keys.getOwnKey", { key }, anonymously);
  const outcomes = new Map<string, number>();
  for (let i = 0; i < 20; i++) {
    const { problem } = await server.call("keys.getOwnKey", { key: inventedKey() }, anonymously);
    outcomes.set(problem!, (outcomes.get(problem!) ?? 0) + 1);
  }
  assert((outcomes.get("lookups_exhausted") ?? 0) >= 14, JSON.stringify([...outcomes]));
  await server.ok("keys.getOwnKey", { key }, anonymously);
});
