/** Limits of concurrency over the API. Their slots are compared with a model in the tests of the ledger. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { sql as raw } from "kysely";
import { sha256 } from "../../../engine/src/crypto/digest.ts";
import { describeOnStores } from "../harness.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

describeOnStores("the first limit of concurrency", (server, store) => {
  it("is not stored beside an earlier release, which cannot be started afterwards", async () => {
    const concurrency = [{ name: "streams", limit: 1 }];
    const apiId = await server.createApi();
    const { keyId } = await server.createKey(apiId);
    const { identityId } = await server.ok("identities.createIdentity", { externalId: "acme" });
    const hash = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae";
    const calls: [name: string, body: object][] = [
      ["keys.createKey", { apiId, concurrency }],
      ["keys.updateKey", { keyId, concurrency }],
      ["keys.migrateKeys", { apiId, migrationId: "table", keys: [{ hash, concurrency }] }],
      ["identities.createIdentity", { externalId: "globex", concurrency }],
      ["identities.updateIdentity", { identity: identityId, concurrency }],
    ];
    if (store === "postgres") {
      await server.besideEarlierRelease(async () => {
        for (const [name, body] of calls) {
          const { detail } = await server.rejected(name, body, "precondition_failed");
          assert.match(detail, /would not count concurrent calls/);
        }
        await server.ok("keys.updateKey", { keyId, concurrency: [] });
      });
    }
    const needs = () =>
      server.change([], async ({ db }) => {
        const { rows } = await raw<{ needs: number }>`select max(needs) as needs from schema_steps`.execute(db);
        return Number(rows[0]!.needs);
      });
    assert.equal(await needs(), 0);
    for (const [name, body] of calls) await server.ok(name, body);
    assert.equal(await needs(), 39);
  });
});

describeOnStores("limits of concurrency", (server) => {
  const streams = (limit: number) => ({ concurrency: [{ name: "streams", limit }] });
  const createKey = async (more: object) => server.createKey(await server.createApi(), more);
  const begin = (key: string, hold: object = {}, more: object = {}) =>
    server.verify(key, { hold: { ttl: MINUTE, ...hold }, ...more });
  const settle = (holdId: string, credits = 0) => server.ok("holds.settleHold", { holdId, credits });
  /** How many holds of the key are open for each limit, without one more. */
  const inUse = async (keyId: string): Promise<number[]> => {
    const { concurrency } = await server.ok("keys.explainVerification", { keyId, hold: { ttl: MINUTE } });
    return concurrency.map((one: { inUse: number }) => one.inUse);
  };
  /** Lets open holds reach their expiry by the clock that decides. */
  const reachExpiry = (holdIds: readonly string[]) =>
    server.change([], async (sql) => {
      const isOne = sql.dialect.values.isOneOf("id", holdIds);
      await sql.db.updateTable("holds").set({ expires_at: 1 }).where(isOne).execute();
      await sql.db.updateTable("balances").set({ next_expiry_at: 1 }).where("held", ">", 0).execute();
    });

  it("are shown where they were set, in the order of their names", async () => {
    const apiId = await server.createApi();
    const concurrency = [
      { name: "streams", limit: 3 },
      { name: "jobs", limit: 1_000_000 },
    ];
    const sorted = concurrency.toReversed();
    const unused = sorted.map((one) => ({ ...one, inUse: 0 }));
    const { keyId, key } = await server.createKey(apiId, { externalId: "acme", concurrency });
    assert.deepEqual((await server.getKey(keyId)).concurrency, unused);
    assert.deepEqual((await server.ok("apis.listKeys", { apiId }))[0].concurrency, sorted);
    assert.deepEqual((await server.ok("keys.whoami", { key })).concurrency, sorted);
    await server.ok("identities.updateIdentity", { identity: "acme", concurrency });
    const identity = await server.ok("identities.getIdentity", { identity: "acme" });
    assert.deepEqual(identity.concurrency, unused);
    assert.deepEqual((await server.getKey(keyId)).identity.concurrency, unused);
    assert.deepEqual((await server.ok("identities.listIdentities", {}))[0].concurrency, sorted);
    await server.advance(1);
    await server.ok("keys.updateKey", { keyId, concurrency: null });
    await server.ok("identities.updateIdentity", { identity: "acme", concurrency: [] });
    assert.equal("concurrency" in (await server.getKey(keyId)), false);
    assert.equal("concurrency" in (await server.ok("identities.getIdentity", { identity: "acme" })), false);
    assert.equal((await server.verify(key)).code, "VALID");
    const events: { action: string; meta: Record<string, unknown> }[] = await server.ok("audit.listEvents", {});
    const { before, after } = events.find(({ action }) => action === "keys.updateKey")?.meta ?? {};
    assert.deepEqual([before, after], [{ concurrency: sorted }, { concurrency: [] }]);
  });

  it("are returned with how many holds are open, for a key and its identity (rule 131)", async () => {
    const apiId = await server.createApi();
    const concurrency = [
      { name: "jobs", limit: 5 },
      { name: "streams", limit: 2 },
    ];
    await server.ok("identities.createIdentity", { externalId: "busy", ...streams(4) });
    const { keyId, key } = await server.createKey(apiId, { externalId: "busy", concurrency });
    const other = await server.createKey(apiId, { externalId: "busy" });
    const read = async () => {
      const of = (limits: { name: string; inUse: number }[]) => limits.map(({ name, inUse }) => `${name} ${inUse}`);
      const { concurrency, identity } = await server.getKey(keyId);
      const found = await server.ok("identities.getIdentity", { identity: "busy" });
      assert.deepEqual(found.concurrency, identity.concurrency);
      return [of(concurrency), of(identity.concurrency)];
    };
    assert.deepEqual(await read(), [["jobs 0", "streams 0"], ["streams 0"]]);
    const { hold } = await begin(key);
    await begin(other.key);
    assert.deepEqual(await read(), [["jobs 1", "streams 1"], ["streams 2"]]);
    await settle(hold.holdId);
    assert.deepEqual(await read(), [["jobs 0", "streams 0"], ["streams 1"]]);
    // More than a lower limit allows.
    await server.ok("identities.updateIdentity", { identity: "busy", ...streams(4) });
    await begin(key);
    await begin(key);
    await server.ok("keys.updateKey", { keyId, ...streams(1) });
    assert.deepEqual(await read(), [["streams 2"], ["streams 3"]]);
  });

  it("are not shown to callers without a root key, who can make no hold", async () => {
    await server.ok("identities.createIdentity", { externalId: "quiet", ...streams(4) });
    const { keyId, key } = await createKey({ externalId: "quiet" });
    await server.ok("keys.updateKey", { keyId, enabled: false });
    const { identity } = await server.ok("keys.verifyKey", { key });
    assert.deepEqual(identity.concurrency, streams(4).concurrency);
    const anonymous = await server.ok("keys.verifyKey", { key }, { as: null });
    assert.deepEqual([anonymous.code, anonymous.identity.externalId], ["DISABLED", "quiet"]);
    assert.equal("concurrency" in anonymous.identity, false);
  });

  it("are rejected where they make no sense", async () => {
    const apiId = await server.createApi();
    const one = { name: "streams", limit: 1 };
    for (const concurrency of [
      [one, one],
      [{ ...one, limit: 0 }],
      [{ ...one, limit: 1_000_001 }],
      [{ ...one, name: "" }],
      [{ ...one, duration: 1_000 }],
      Array.from({ length: 6 }, (_, i) => ({ ...one, name: `${i}` })),
    ]) {
      await server.rejected("keys.createKey", { apiId, concurrency }, "invalid_input");
      await server.rejected("identities.createIdentity", { externalId: "wrong", concurrency }, "invalid_input");
    }
  });

  it("let as many holds be open at once, and each end gives its slot back (rule 96)", async () => {
    const { keyId, key } = await createKey(streams(2));
    const first = await begin(key, { ttl: 2 * MINUTE });
    const state = { name: "streams", limit: 2, from: "key", exceeded: false };
    assert.deepEqual([first.code, first.concurrency], ["VALID", [{ ...state, inUse: 1 }]]);
    const second = await begin(key);
    assert.deepEqual(second.concurrency, [{ ...state, inUse: 2 }]);

    const refused = await begin(key);
    const { retryAfter } = refused;
    assert(retryAfter > 50_000 && retryAfter <= MINUTE, `${retryAfter}`);
    assert.deepEqual([refused.code, refused.hold], ["RATE_LIMITED", undefined]);
    assert.deepEqual(refused.concurrency, [{ ...state, inUse: 2, exceeded: true, retryAfter }]);
    const { code, steps, concurrency } = await server.ok("keys.explainVerification", { keyId, hold: { ttl: MINUTE } });
    assert.equal(code, "RATE_LIMITED");
    assert.deepEqual(concurrency, [{ ...state, inUse: 2, exceeded: true, retryAfter: concurrency[0].retryAfter }]);
    const decided = steps.find(({ result }: { result: string }) => result === "decided");
    assert.equal(decided.step, "concurrency");
    assert.match(decided.detail, /^In use are 2 of 2 slots of 'streams'\. A slot is free in /);

    const { charged, uncovered } = await settle(first.hold.holdId, 9);
    assert.deepEqual([charged, uncovered], [0, 0]);
    const third = await begin(key);
    assert.equal(third.code, "VALID");
    await server.ok("holds.releaseHold", { holdId: second.hold.holdId });
    await server.ok("holds.releaseHold", { holdId: second.hold.holdId });
    await settle(first.hold.holdId, 9);
    assert.deepEqual(await inUse(keyId), [1]);
    await reachExpiry([third.hold.holdId]);
    for (let pass = 0; pass < 20 && (await inUse(keyId))[0] !== 0; pass++) await server.pass(1_000);
    assert.deepEqual(await inUse(keyId), [0]);
    await settle(third.hold.holdId);
    assert.deepEqual(await inUse(keyId), [0]);
  });

  it("get the slots of dead callers back for a call that lacks them, without the sweep (rule 96)", async () => {
    const { keyId, key } = await createKey({ ...streams(3), credits: { remaining: 100 } });
    const opened = await Promise.all([1, 2, 3].map(() => begin(key, { onExpiry: "charge" })));
    assert.equal((await begin(key)).code, "RATE_LIMITED");
    await reachExpiry(opened.map(({ hold }) => hold.holdId));
    assert.equal((await begin(key)).code, "VALID");
    assert.deepEqual(await inUse(keyId), [1]);
    assert.equal((await server.getKey(keyId)).credits.remaining, 96);
  });

  it("take slots of the key and of its identity together, or none (rule 96)", async () => {
    await server.ok("identities.createIdentity", { externalId: "team", ...streams(3) });
    const apiId = await server.createApi();
    const [one, other] = await Promise.all(
      [1, 2].map(() => server.createKey(apiId, { externalId: "team", ...streams(2) })),
    );
    const made = [await begin(one!.key), await begin(one!.key), await begin(other!.key)];
    assert.deepEqual(
      made[2].concurrency.map(({ from, inUse }: { from: string; inUse: number }) => [from, inUse]),
      [
        ["key", 1],
        ["identity", 3],
      ],
    );
    const refused = await begin(other!.key);
    const exceeded = refused.concurrency.map(({ from, exceeded }: { from: string; exceeded: boolean }) => [
      from,
      exceeded,
    ]);
    assert.deepEqual(
      [refused.code, exceeded],
      [
        "RATE_LIMITED",
        [
          ["key", false],
          ["identity", true],
        ],
      ],
    );
    assert.deepEqual(await inUse(other!.keyId), [1, 3]);
    await settle(made[0].hold.holdId);
    assert.deepEqual(await inUse(one!.keyId), [1, 2]);
    // A hold gives back what it took, also after its key has left the identity.
    await server.ok("keys.updateKey", { keyId: one!.keyId, externalId: null });
    await settle(made[1].hold.holdId);
    assert.deepEqual([await inUse(one!.keyId), await inUse(other!.keyId)], [[0], [1, 1]]);
  });

  it("come before limits and credits: what they refuse costs neither (rule 97)", async () => {
    const ratelimits = [{ name: "calls", limit: 2, duration: HOUR, autoApply: true }];
    const { keyId, key } = await createKey({ ...streams(1), ratelimits, credits: { remaining: 10 } });
    const first = await begin(key, {}, { credits: { cost: 4 } });
    assert.deepEqual([first.code, first.credits, first.ratelimits[0].remaining], ["VALID", 6, 1]);
    const refused = await begin(key, {}, { credits: { cost: 100 } });
    assert.deepEqual([refused.code, refused.credits, refused.ratelimits[0].remaining], ["RATE_LIMITED", 6, 1]);
    assert.equal(refused.ratelimits[0].exceeded, false);
    await settle(first.hold.holdId, 4);
    const tooDear = await begin(key, {}, { credits: { cost: 100 } });
    assert.deepEqual([tooDear.code, tooDear.concurrency[0].inUse], ["USAGE_EXCEEDED", 0]);
    const second = await begin(key, {}, { credits: { cost: 0 } });
    assert.equal(second.code, "VALID");
    assert.equal((await server.getKey(keyId)).credits.remaining, 6);
    await settle(second.hold.holdId);
    // The limit refuses now, and takes no slot.
    assert.equal((await begin(key)).code, "RATE_LIMITED");
    assert.deepEqual(await inUse(keyId), [0]);
  });

  it("are not passed by a verification without a hold (rule 98)", async () => {
    const { keyId, key } = await createKey({ ...streams(1), credits: { remaining: 10 } });
    for (const more of [{}, { credits: { cost: 0 } }]) {
      const { detail } = await server.rejected("keys.verifyKey", { key, ...more }, "hold_required");
      assert.match(detail, /send `hold`/);
      await server.rejected("keys.explainVerification", { keyId, ...more }, "hold_required");
    }
    await server.rejected("keys.verifyKey", { key }, "hold_required", { as: null });
    assert.equal((await server.getKey(keyId)).credits.remaining, 10);
    // The reason that comes first is answered first.
    await server.ok("keys.updateKey", { keyId, enabled: false });
    assert.equal((await server.verify(key)).code, "DISABLED");
  });

  it("count for a changed limit at once, and open holds stay where they are too many (rule 99)", async () => {
    const { keyId, key } = await createKey(streams(3));
    const made = [await begin(key), await begin(key), await begin(key)];
    await server.ok("keys.updateKey", { keyId, ...streams(1) });
    const full = await begin(key);
    assert.deepEqual([full.code, full.concurrency[0].inUse, full.concurrency[0].limit], ["RATE_LIMITED", 3, 1]);
    await settle(made[0].hold.holdId);
    await settle(made[1].hold.holdId);
    assert.equal((await begin(key)).code, "RATE_LIMITED");
    await server.ok("keys.updateKey", { keyId, ...streams(2) });
    assert.equal((await begin(key)).code, "VALID");

    // Removed and set again, or renamed and named back, it counts the holds that are still open.
    await server.ok("keys.updateKey", { keyId, concurrency: null });
    assert.equal((await server.verify(key)).code, "VALID");
    await server.ok("keys.updateKey", { keyId, concurrency: [{ name: "jobs", limit: 5 }] });
    assert.equal((await begin(key)).code, "VALID");
    await server.ok("keys.updateKey", { keyId, ...streams(2) });
    assert.deepEqual(await inUse(keyId), [2]);
    assert.equal((await begin(key)).code, "RATE_LIMITED");
  });

  it("are not doubled by a reroll, and each key of the chain has its own limit (rule 99)", async () => {
    const { keyId, key } = await createKey(streams(2));
    const first = await begin(key);
    const rerolled = await server.ok("keys.rerollKey", { keyId, expiration: HOUR });
    assert.deepEqual((await server.getKey(rerolled.keyId)).concurrency, [{ ...streams(2).concurrency[0], inUse: 1 }]);
    assert.equal((await begin(rerolled.key)).code, "VALID");
    assert.equal((await begin(rerolled.key)).code, "RATE_LIMITED");
    assert.equal((await begin(key)).code, "RATE_LIMITED");
    await settle(first.hold.holdId);
    assert.equal((await begin(key)).code, "VALID");
    await server.ok("keys.updateKey", { keyId: rerolled.keyId, ...streams(3) });
    assert.equal((await begin(key)).code, "RATE_LIMITED");
    assert.equal((await begin(rerolled.key)).code, "VALID");
    // The other key still has the limit, so its slots stay.
    await server.ok("keys.updateKey", { keyId: rerolled.keyId, concurrency: null });
    assert.deepEqual(await inUse(keyId), [3]);
  });

  it("take one slot for a call and its repetitions (rule 96)", async () => {
    const { keyId, key } = await createKey(streams(2));
    const headers = { "Idempotency-Key": "stream-1" };
    const body = { key, hold: { ttl: MINUTE }, credits: { cost: 0 } };
    const first = await server.ok("keys.verifyKey", body, { headers });
    assert.deepEqual(await server.ok("keys.verifyKey", body, { headers }), first);
    assert.deepEqual(await inUse(keyId), [1]);
    await begin(key);
    assert.deepEqual(await server.ok("keys.verifyKey", body, { headers }), first);
    assert.equal((await begin(key)).code, "RATE_LIMITED");
  });

  it("are those of imported keys too", async () => {
    const apiId = await server.createApi();
    const hash = sha256("imported").toString("hex");
    await server.ok("keys.migrateKeys", { apiId, migrationId: "streams", keys: [{ hash, ...streams(1) }] });
    assert.equal((await begin("imported")).code, "VALID");
    assert.equal((await begin("imported")).code, "RATE_LIMITED");
  });

  it("let exactly 50 of 1,000 calls at once begin (rule 96)", async () => {
    const { keyId, key } = await createKey({ ...streams(50), credits: { remaining: 1_000_000 } });
    const answers = await Promise.all(Array.from({ length: 1_000 }, () => begin(key)));
    const open = answers.filter(({ code }) => code === "VALID");
    assert.deepEqual([open.length, answers.filter(({ code }) => code === "RATE_LIMITED").length], [50, 950]);
    assert.deepEqual(await inUse(keyId), [50]);
    await Promise.all(open.map(({ hold }) => settle(hold.holdId, 1)));
    assert.deepEqual(await inUse(keyId), [0]);
    assert.equal((await server.getKey(keyId)).credits.remaining, 1_000_000 - 50);
  });

  it("satisfy the rules of verify-store, which notice slots that nobody holds and limits without slots", async () => {
    const broken = async () =>
      (await server.store.read("brokenRules", null)).flatMap(({ rule, rows }) => (rows > 0 ? [rule] : []));
    const { keyId, key } = await createKey(streams(2));
    const { hold } = await begin(key);
    assert.deepEqual(await broken(), []);
    const [one] = await server.change([], ({ db }) =>
      db
        .selectFrom("balances")
        .innerJoin("keys", "keys.pool_id", "balances.slots_of")
        .select(["balances.pool_id", "balances.remaining"])
        .where("keys.id", "=", keyId)
        .execute(),
    );
    assert(one);
    const set = (values: { remaining?: number; held?: number }) =>
      server.change([], ({ db }) =>
        db.updateTable("balances").set(values).where("pool_id", "=", one.pool_id).execute(),
      );
    await set({ remaining: one.remaining - 1 });
    assert.deepEqual(await broken(), ["slots that no open hold has are left"]);
    await set({ remaining: one.remaining - 1, held: 2 });
    assert.deepEqual(await broken(), ["a balance holds the credits or slots of its open holds"]);
    await set({ remaining: one.remaining, held: 1 });
    await settle(hold.holdId);
    await server.change([], ({ db }) => db.deleteFrom("balances").where("pool_id", "=", one.pool_id).execute());
    assert.deepEqual(await broken(), ["every limit of concurrency has its slots"]);
    await server.ok("keys.updateKey", { keyId, ...streams(2) });
    assert.deepEqual(await broken(), []);
  });

  it("of ever other names leave no more rows than there are open holds and limits", async () => {
    const { keyId, key } = await createKey(streams(1));
    const poolRows = async (): Promise<(string | null)[]> =>
      server.change([], async ({ db }) => {
        const rows = await db
          .selectFrom("balances")
          .innerJoin("keys", "keys.pool_id", "balances.slots_of")
          .select("balances.slots_name")
          .where("keys.id", "=", keyId)
          .orderBy("balances.slots_name")
          .execute();
        return rows.map(({ slots_name }) => slots_name);
      });
    const opened = [];
    for (let i = 0; i < 20; i++) {
      const concurrency = Array.from({ length: 5 }, (_, j) => ({ name: `${i}-${j}`, limit: 1 }));
      await server.ok("keys.updateKey", { keyId, concurrency });
      if (i === 7) opened.push((await begin(key)).hold.holdId);
    }
    const names = (i: number) => [0, 1, 2, 3, 4].map((j) => `${i}-${j}`);
    assert.deepEqual(await poolRows(), [...names(19), ...names(7)].sort());
    await settle(opened[0]);
    await server.ok("keys.updateKey", { keyId, concurrency: null });
    assert.deepEqual(await poolRows(), []);
  });

  it("leave nothing behind when their owner is deleted for good", async () => {
    const { keyId, key } = await createKey({ ...streams(1), externalId: "gone" });
    await server.ok("identities.updateIdentity", { identity: "gone", ...streams(1) });
    assert.equal((await begin(key)).code, "VALID");
    const slots = () =>
      server.change([], ({ db }) =>
        db
          .selectFrom("balances")
          .selectAll()
          .where("slots_of", "is not", null)
          .where("slots_name", "=", "streams")
          .execute(),
      );
    const before = (await slots()).length;
    await server.ok("keys.deleteKey", { keyId, permanent: true });
    assert.equal((await slots()).length, before - 1);
  });
});
