import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { deriveSealingKey } from "../../../engine/src/crypto/hash.ts";
import { SealBroken, seal, unseal } from "../../../engine/src/crypto/seal.ts";
import type { IdempotencyRecordRow } from "../../src/platform/store/schema.ts";
import { describeOnStores, openTestServer, stores, type TestServer } from "../harness.ts";
import { sharedRedis } from "../services/redis.ts";

const DAY = 24 * 3_600_000;
const repeat = (key: string) => ({ headers: { "idempotency-key": key } });

/** Named after this process, because counters in Redis can outlive a run, and ids are those of the run before. */
const chargedLimit = { name: `calls-${process.pid}`, limit: 100, duration: 86_400_000, autoApply: true };

/** Kinds of keys by where a verification of theirs charges, and so where its outcome is stored. */
const chargedKeys = {
  credits: { credits: { remaining: 100 } },
  "credits and limits": { credits: { remaining: 100 }, ratelimits: [chargedLimit] },
  limits: { ratelimits: [chargedLimit] },
};
const kindsOfKeys = { ...chargedKeys, nothing: {} };

/** The tests of calls that use one Idempotency-Key for keys that charge different things. */
function defineAcrossCharges(open: () => TestServer): void {
  it("belongs to one verification, whatever it and another one charge", async () => {
    const server = open();
    const apiId = await server.createApi();
    for (const [first, fields] of Object.entries(chargedKeys)) {
      for (const [second, others] of Object.entries(kindsOfKeys)) {
        const [one, other] = [await server.createKey(apiId, fields), await server.createKey(apiId, others)];
        const header = repeat(`${first} ${second}`.replaceAll(" ", "-"));
        const answer = await server.verify(one.key, {}, header);
        assert.equal(answer.code, "VALID");
        const title = `${first}, then ${second}`;
        const reply = await server.call("keys.verifyKey", { key: other.key }, header);
        assert.equal(reply.problem, "idempotency_mismatch", title);
        // It charged nothing, and the first call can be repeated.
        const after = await server.verify(other.key);
        if (after.credits !== undefined) assert.equal(after.credits, 99, title);
        if (after.ratelimits) assert.equal(after.ratelimits[0].remaining, 99, title);
        assert.deepEqual(await server.verify(one.key, {}, header), answer, title);
      }
    }
  });

  it("stays with its call when the key charges something else by the time of the repetition", async () => {
    const server = open();
    const apiId = await server.createApi();
    const ratelimits = [chargedLimit];
    const changes = {
      "credits become limits": [{ credits: { remaining: 9 } }, { credits: null, ratelimits }],
      "limits become credits": [{ ratelimits }, { credits: { remaining: 9 } }],
      "credits go": [{ credits: { remaining: 9 } }, { credits: null }],
      "limits go": [{ ratelimits }, { ratelimits: [] }],
    };
    for (const [title, [fields, update]] of Object.entries(changes)) {
      const { key, keyId } = await server.createKey(apiId, fields);
      const header = repeat(title.replaceAll(" ", "-"));
      const first = await server.verify(key, {}, header);
      await server.ok("keys.updateKey", { keyId, ...update });
      const again = await server.verify(key, {}, header);
      assert.deepEqual(
        [again.code, again.credits, again.ratelimits],
        ["VALID", first.credits, first.ratelimits],
        title,
      );
      // Nothing was charged twice.
      const after = await server.verify(key);
      if (after.credits !== undefined) assert.equal(after.credits, 8, title);
      if (after.ratelimits) assert.equal(after.ratelimits[0].remaining, title === "limits become credits" ? 98 : 99);
    }
  });

  it("belongs to one of two concurrent calls that charge different things", async () => {
    const server = open();
    const apiId = await server.createApi();
    for (let round = 0; round < 8; round++) {
      const kinds = [chargedKeys.credits, chargedKeys.limits];
      if (round % 2 === 1) kinds.reverse();
      const keys = await Promise.all(kinds.map((fields) => server.createKey(apiId, fields)));
      const header = repeat(`race-${round}`);
      const replies = await Promise.all(keys.map(({ key }) => server.call("keys.verifyKey", { key }, header)));
      const problems = replies.flatMap(({ status, problem }) => (status === 200 ? [] : [problem!]));
      assert.equal(problems.length, 1, JSON.stringify(replies.map(({ body }) => body)));
      assert.match(problems[0]!, /^idempotency_(mismatch|in_progress)$/);
    }
  });

  it("belongs to one operation and one root key, on each of which it is another call", async () => {
    const server = open();
    const apiId = await server.createApi();
    const other = await server.grant("apis.*.verify_key");
    const { key } = await server.createKey(apiId, chargedKeys.credits);
    const header = repeat("operations");
    const limit = { namespace: "operations", identifier: chargedLimit.name, limit: 10, duration: 86_400_000 };
    assert.equal((await server.verify(key, {}, header)).credits, 99);
    assert.equal((await server.ok("ratelimits.limit", limit, header)).remaining, 9);
    assert.equal((await server.verify(key, {}, { as: other.key, ...header })).credits, 98);
    assert.equal((await server.verify(key, {}, header)).credits, 99);
    assert.equal((await server.ok("ratelimits.limit", limit, header)).remaining, 9);
  });
}

describeOnStores("an Idempotency-Key", (server, store) => {
  /** The rows of idempotent calls in the database. */
  const records = () => server.rowsOf("idempotency_records") as Promise<{ outcome: string; key_id: string | null }[]>;

  it("makes a creation happen once, and returns the same secret again", async () => {
    const apiId = await server.createApi();
    const body = { apiId, name: "once" };
    const first = await server.ok("keys.createKey", body, repeat("create-1"));
    assert.deepEqual(await server.ok("keys.createKey", body, repeat("create-1")), first);
    const listed = await server.ok("apis.listKeys", { apiId });
    assert.equal(listed.length, 1);
    assert.notDeepEqual(await server.ok("keys.createKey", body, repeat("create-2")), first);
  });

  it("ignores the order of the members of a body", async () => {
    const apiId = await server.createApi();
    const first = await server.ok("keys.createKey", { apiId, name: "order" }, repeat("order"));
    const other = await server.ok("keys.createKey", { name: "order", apiId }, repeat("order"));
    assert.deepEqual(other, first);
  });

  it("with another body is rejected, and nothing changes", async () => {
    await server.ok("apis.createApi", { name: "one" }, repeat("mismatch"));
    const before = await server.rows();
    await server.rejected("apis.createApi", { name: "two" }, "idempotency_mismatch", repeat("mismatch"));
    assert.deepEqual(await server.rows(), before);
  });

  it("belongs to one root key, one operation and one workspace", async () => {
    const other = await server.grant("apis.*.create_api");
    const first = await server.ok("apis.createApi", { name: "scope" }, repeat("scope"));
    const second = await server.ok("apis.createApi", { name: "scope" }, { as: other.key, ...repeat("scope") });
    assert.notEqual(second.apiId, first.apiId);
    const { key: foreign } = await server.workspace("elsewhere");
    const third = await server.ok("apis.createApi", { name: "scope" }, { as: foreign, ...repeat("scope") });
    assert.notEqual(third.apiId, first.apiId);
    const key = await server.ok("keys.createKey", { apiId: first.apiId }, repeat("scope"));
    assert(key.keyId);
  });

  it("does not replay a failure", async () => {
    const missing = "api_doesNotExistYet";
    await server.rejected("keys.createKey", { apiId: missing }, "api_not_found", repeat("rejected"));
    const apiId = await server.createApi();
    assert((await server.ok("keys.createKey", { apiId }, repeat("rejected"))).keyId);
  });

  it("has 1 to 255 visible ASCII characters", async () => {
    for (const key of ["", "with blank", "ä", "x".repeat(256)]) {
      const error = await server.rejected("apis.createApi", { name: "chars" }, "invalid_input", repeat(key));
      assert.equal(error.errors?.[0]?.location, "header");
    }
    await server.ok("apis.createApi", { name: "chars" }, repeat("x".repeat(255)));
  });

  it("is kept for a day", async () => {
    const first = await server.ok("apis.createApi", { name: "day" }, repeat("day"));
    server.clock.step(DAY - 1);
    assert.deepEqual(await server.ok("apis.createApi", { name: "day" }, repeat("day")), first);
    server.clock.step(1);
    assert.notDeepEqual(await server.ok("apis.createApi", { name: "day" }, repeat("day")), first);
  });

  it("cannot be decrypted with the database and a guess of the Idempotency-Key", async () => {
    const apiId = await server.createApi();
    const body = { apiId, name: "guessed" };
    const { keyId } = await server.ok("keys.createKey", body, repeat("order-104217"));
    const [record] = ((await server.rowsOf("idempotency_records")) as IdempotencyRecordRow[]).filter(
      ({ key_id }) => key_id === keyId,
    );
    const { scope, outcome } = record!;
    for (const secret of ["order-104217", "\0order-104217", "order-104217\0"]) {
      assert.throws(() => unseal(deriveSealingKey(secret, scope), scope, outcome), SealBroken);
    }
    assert.equal(
      JSON.parse(
        unseal(deriveSealingKey(`${server.rootKey}\0order-104217`, scope), scope, outcome).toString(),
      ).body.includes(keyId),
      true,
    );

    // A record that an earlier version encrypted in another way is never replayed, and nothing happens twice.
    const former = seal(deriveSealingKey("order-104217", scope), scope, Buffer.from("{}"));
    await server.change([], ({ db }) =>
      db.updateTable("idempotency_records").set({ outcome: former }).where("scope", "=", scope).execute(),
    );
    const before = await server.rows();
    await server.rejected("keys.createKey", body, "idempotency_mismatch", repeat("order-104217"));
    assert.deepEqual(await server.rows(), before);
  });

  it("keeps a secret encrypted, and deletes it with its key", async () => {
    const apiId = await server.createApi();
    const { keyId, key } = await server.ok("keys.createKey", { apiId, name: "secret" }, repeat("secret"));
    const kept = (await records()).filter((record) => record.key_id === keyId);
    assert.equal(kept.length, 1);
    assert(!JSON.stringify(kept).includes(key));
    await server.ok("keys.deleteKey", { keyId });
    assert.deepEqual(
      (await records()).filter((record) => record.key_id === keyId),
      [],
    );
  });

  it("creates no second key when a repetition arrives after the deletion", async () => {
    const apiId = await server.createApi();
    const again = async (operation: string, body: object, key: string) => {
      const before = await server.rows();
      await server.rejected(operation, body, "idempotency_mismatch", repeat(key));
      assert.deepEqual(await server.rows(), before);
    };
    for (const permanent of [false, true]) {
      const body = { apiId, name: "deleted" };
      const { keyId } = await server.ok("keys.createKey", body, repeat(`deleted-${permanent}`));
      await server.ok("keys.deleteKey", { keyId, permanent });
      await again("keys.createKey", body, `deleted-${permanent}`);
    }
    const root = { name: "deleted", permissions: ["*"] };
    const { rootKeyId } = await server.ok("rootKeys.createRootKey", root, repeat("deleted-root"));
    await server.ok("rootKeys.deleteRootKey", { rootKeyId });
    await again("rootKeys.createRootKey", root, "deleted-root");
    await server.ok("keys.createKey", { apiId }, repeat("of-deleted-api"));
    await server.ok("apis.deleteApi", { apiId });
    await again("keys.createKey", { apiId }, "of-deleted-api");
  });

  it("deletes the secrets of an API's keys with the API", async () => {
    const apiId = await server.createApi();
    const { keyId } = await server.ok("keys.createKey", { apiId }, repeat("of-api"));
    await server.ok("apis.deleteApi", { apiId });
    assert.deepEqual(
      (await records()).filter((record) => record.key_id === keyId),
      [],
    );
  });

  it("rerolls once, and increments once", async () => {
    const apiId = await server.createApi();
    const { keyId } = await server.createKey(apiId, { credits: { remaining: 10 } });
    const increment = { keyId, operation: "increment", value: 5 };
    assert.deepEqual(await server.ok("keys.updateCredits", increment, repeat("inc")), { remaining: 15 });
    assert.deepEqual(await server.ok("keys.updateCredits", increment, repeat("inc")), { remaining: 15 });
    assert.equal((await server.getKey(keyId)).credits.remaining, 15);
    const reroll = { keyId, expiration: 60_000 };
    const rolled = await server.ok("keys.rerollKey", reroll, repeat("roll"));
    assert.deepEqual(await server.ok("keys.rerollKey", reroll, repeat("roll")), rolled);
    assert.equal((await server.ok("apis.listKeys", { apiId })).length, 2);
  });

  it("charges credits and limits of a verification once", async () => {
    const apiId = await server.createApi();
    const ratelimits = [{ name: "calls", limit: 2, duration: 60_000, autoApply: true }];
    const { key, keyId } = await server.createKey(apiId, { credits: { remaining: 2 }, ratelimits });
    const first = await server.verify(key, {}, repeat("pay"));
    assert.equal(first.credits, 1);
    for (let i = 0; i < 5; i++) assert.deepEqual(await server.verify(key, {}, repeat("pay")), first);
    assert.equal((await server.getKey(keyId)).credits.remaining, 1);
    assert.equal((await server.verify(key)).code, "VALID");
    assert.equal((await server.verify(key)).code, "RATE_LIMITED");
    // The limits and the balance are exhausted; the replay returns the outcome of the first call.
    assert.deepEqual(await server.verify(key, {}, repeat("pay")), first);
    await server.rejected("keys.verifyKey", { key, credits: { cost: 2 } }, "idempotency_mismatch", repeat("pay"));
  });

  it("charges a limit alone once", async () => {
    const apiId = await server.createApi();
    const ratelimits = [{ name: "calls", limit: 1, duration: 60_000, autoApply: true }];
    const { key } = await server.createKey(apiId, { ratelimits });
    const first = await server.verify(key, {}, repeat("limit"));
    assert.equal(first.code, "VALID");
    assert.deepEqual(await server.verify(key, {}, repeat("limit")), first);
    assert.equal((await server.verify(key)).code, "RATE_LIMITED");
    // For twice the duration of the window.
    server.clock.step(120_000);
    assert.equal((await server.verify(key, {}, repeat("limit"))).ratelimits[0].remaining, 0);
    assert.equal((await server.verify(key)).code, "RATE_LIMITED");
  });

  it("counts a standalone limit once", async () => {
    const body = { namespace: "idempotent", identifier: "user", limit: 2, duration: 60_000 };
    const first = await server.ok("ratelimits.limit", body, repeat("standalone"));
    assert.deepEqual(await server.ok("ratelimits.limit", body, repeat("standalone")), first);
    assert.equal((await server.ok("ratelimits.limit", body)).remaining, 0);
    const batch = [{ ...body, identifier: "other" }];
    const counted = await server.ok("ratelimits.multiLimit", batch, repeat("batch"));
    assert.deepEqual(await server.ok("ratelimits.multiLimit", batch, repeat("batch")), counted);
  });

  it("repeats every check that has no effect", async () => {
    const apiId = await server.createApi();
    const { key, keyId } = await server.createKey(apiId, { credits: { remaining: 5 } });
    assert.equal((await server.verify(key, {}, repeat("revoked"))).code, "VALID");
    await server.ok("keys.updateKey", { keyId, enabled: false });
    assert.equal((await server.verify(key, {}, repeat("revoked"))).code, "DISABLED");
    assert.equal((await server.getKey(keyId)).credits.remaining, 4);
  });

  it("separates callers without a root key by the key that they present", async () => {
    const apiId = await server.createApi();
    const one = await server.createKey(apiId, { credits: { remaining: 5 } });
    const two = await server.createKey(apiId, { credits: { remaining: 5 } });
    const anonymous = { as: null, ...repeat("shared") };
    assert.equal((await server.verify(one.key, {}, anonymous)).credits, 4);
    assert.equal((await server.verify(two.key, {}, anonymous)).credits, 4);
    assert.equal((await server.verify(one.key, {}, anonymous)).credits, 4);
  });

  it("charges one of many concurrent calls", async () => {
    const apiId = await server.createApi();
    const { key, keyId } = await server.createKey(apiId, { credits: { remaining: 100 } });
    const answers = await Promise.all(Array.from({ length: 50 }, () => server.verify(key, {}, repeat("flood"))));
    assert(answers.every(({ code, credits }) => code === "VALID" && credits === 99));
    assert.equal((await server.getKey(keyId)).credits.remaining, 99);
  });

  it("creates one key for many concurrent calls", async () => {
    const replies = await Promise.all(
      Array.from({ length: 8 }, () => server.call("apis.createApi", { name: "flood" }, repeat("create-flood"))),
    );
    const made = new Set(replies.filter(({ status }) => status === 200).map(({ body }) => body.data.apiId));
    assert.equal(made.size, 1);
    // On PostgreSQL, several transactions run concurrently, and calls that find one running get 409.
    const others = replies.filter(({ status }) => status !== 200);
    assert(others.every(({ problem }) => problem === "idempotency_in_progress"));
    if (store === "sqlite") assert.deepEqual(others, []);
  });

  defineAcrossCharges(() => server);

  it("is deleted after a day", async () => {
    await server.ok("apis.createApi", { name: "pruned" }, repeat("pruned"));
    server.clock.step(DAY);
    // The clock skips a day; the periodic job runs in the next minute.
    await server.pass(61_000);
    assert.deepEqual(await records(), []);
  });
});

describeOnStores("an Idempotency-Key that is used on two nodes", (server) => {
  it("applies on both", async () => {
    const beside = await openTestServer({ beside: server });
    try {
      await defineOnBoth(server, beside);
    } finally {
      await beside.close();
    }
  });
});

async function defineOnBoth(server: TestServer, beside: TestServer): Promise<void> {
  const apiId = await server.createApi();
  const { key, keyId } = await server.createKey(apiId, { credits: { remaining: 10 } });
  const first = await server.verify(key, {}, repeat("nodes"));
  await beside.pass(1_000);
  assert.deepEqual(await beside.verify(key, {}, repeat("nodes")), first);
  assert.equal((await beside.getKey(keyId)).credits.remaining, 9);
  const created = await server.ok("keys.createKey", { apiId }, repeat("nodes"));
  assert.deepEqual(await beside.ok("keys.createKey", { apiId }, repeat("nodes")), created);
}

for (const store of stores) {
  describe(`an Idempotency-Key on nodes with counters in Redis, on ${store}`, () => {
    let one: TestServer;
    let other: TestServer;
    before(async () => {
      const settings = { REDIS_URL: await sharedRedis() };
      one = await openTestServer({ store, settings });
      other = await openTestServer({ beside: one, settings });
    });
    after(async () => {
      await other.close();
      await one.close();
    });

    defineAcrossCharges(() => one);

    it("charges a limit alone once, on whichever node the call is repeated", async () => {
      const apiId = await one.createApi();
      const ratelimits = [{ name: "calls", limit: 2, duration: 86_400_000, autoApply: true }];
      const { key } = await one.createKey(apiId, { ratelimits });
      const first = await one.verify(key, {}, repeat("redis"));
      await other.pass(1_000);
      assert.deepEqual(await other.verify(key, {}, repeat("redis")), first);
      assert.equal((await other.verify(key)).ratelimits[0].remaining, 0);
      assert.equal((await one.verify(key)).code, "RATE_LIMITED");
      await other.rejected("keys.verifyKey", { key, tags: ["other"] }, "idempotency_mismatch", repeat("redis"));
    });

    it("counts a standalone limit once, and does not replay a denial", async () => {
      const body = { namespace: "shared", identifier: one.workspaceId, limit: 1, duration: 86_400_000 };
      const first = await one.ok("ratelimits.limit", body, repeat("shared"));
      await other.pass(1_000);
      assert.deepEqual(await other.ok("ratelimits.limit", body, repeat("shared")), first);
      assert.equal((await other.ok("ratelimits.limit", body, repeat("denied"))).success, false);
      const more = await other.ok("ratelimits.limit", { ...body, limit: 2 }, repeat("anew"));
      assert.equal(more.success, true);
    });
  });
}
