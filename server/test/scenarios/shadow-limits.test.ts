/** Limits in shadow mode, over the API. How they decide is compared with limits in force in `limiter-shadow.test.ts`. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { sql as raw } from "kysely";
import { describeOnStores, type TestServer } from "../harness.ts";

const MINUTE = 60_000;
const tried = { name: "tried", limit: 2, duration: MINUTE, autoApply: true, shadow: true };
const requests = { name: "requests", limit: 4, duration: MINUTE, autoApply: true };
const HASH = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae";

/** Lets the window begin, so that it does not end during a test. */
async function nextWindow(server: TestServer) {
  await server.pass(MINUTE - (server.clock.now() % MINUTE));
}

describeOnStores("the first limit in shadow mode", (server, store) => {
  it("is not stored beside an earlier release, which cannot be started afterwards (rule 152)", async () => {
    const apiId = await server.createApi();
    const { keyId } = await server.createKey(apiId);
    await server.ok("ratelimits.limit", { namespace: "emails", identifier: "a", limit: 1, duration: MINUTE });
    await server.ok("identities.createIdentity", { externalId: "acme" });
    await server.ok("plans.createPlan", { name: "silver" });
    const before = await needs();
    const calls: [name: string, body: object][] = [
      ["keys.createKey", { apiId, ratelimits: [tried] }],
      ["keys.updateKey", { keyId, ratelimits: [tried] }],
      ["keys.migrateKeys", { apiId, migrationId: "table", keys: [{ hash: HASH, ratelimits: [tried] }] }],
      ["identities.createIdentity", { externalId: "umbrella", ratelimits: [tried] }],
      ["identities.updateIdentity", { identity: "acme", ratelimits: [tried] }],
      ["plans.createPlan", { name: "gold", ratelimits: [tried] }],
      ["plans.updatePlan", { plan: "silver", ratelimits: [tried] }],
      ["ratelimits.setOverride", { namespace: "emails", identifier: "a", limit: 1, duration: MINUTE, shadow: true }],
    ];
    if (store === "postgres") {
      await server.besideEarlierRelease(async () => {
        for (const [name, body] of calls) {
          const { detail } = await server.rejected(name, body, "precondition_failed");
          assert.match(detail, /would enforce the limit|plans/, name);
        }
        await server.ok("ratelimits.setOverride", { namespace: "emails", identifier: "b", limit: 1, duration: MINUTE });
      });
    }
    assert.equal(await needs(), before);
    for (const [name, body] of calls) await server.ok(name, body);
    assert.equal(await needs(), 53);
  });

  const needs = () =>
    server.change([], async ({ db }) => {
      const { rows } = await raw<{ needs: number }>`select max(needs) as needs from schema_steps`.execute(db);
      return Number(rows[0]!.needs);
    });
});

describeOnStores("a limit in shadow mode", (server) => {
  const states = ({ ratelimits = [] }: { ratelimits?: Record<string, unknown>[] }) =>
    ratelimits.map(({ name, exceeded, remaining, shadow }) => [name, exceeded, remaining, shadow]);

  it("counts and reports, and never denies, of a key and of its identity (rule 150)", async () => {
    await nextWindow(server);
    await server.ok("identities.createIdentity", { externalId: "acme", ratelimits: [{ ...tried, limit: 3 }] });
    const apiId = await server.createApi();
    const { key, keyId } = await server.createKey(apiId, { externalId: "acme", ratelimits: [tried, requests] });
    assert.equal(
      (await server.getKey(keyId)).ratelimits.find(({ name }: { name: string }) => name === "tried").shadow,
      true,
    );
    const answers: Awaited<ReturnType<TestServer["verify"]>>[] = [];
    for (let i = 0; i < 5; i++) answers.push(await server.verify(key));
    assert.deepEqual(
      answers.map(({ code }) => code),
      ["VALID", "VALID", "VALID", "VALID", "RATE_LIMITED"],
    );
    const byName = (answer: (typeof answers)[0]) => states(answer).sort();
    assert.deepEqual(byName(answers[1]), [
      ["requests", false, 2, undefined],
      ["tried", false, 0, true],
      ["tried", false, 1, true],
    ]);
    assert.deepEqual(byName(answers[3]), [
      ["requests", false, 0, undefined],
      ["tried", true, 0, true],
      ["tried", true, 0, true],
    ]);
    // The call waits for the limit that denies it, and charges none.
    const [, ofKey, ofIdentity] = byName(answers[4]);
    assert.deepEqual(
      [ofKey, ofIdentity],
      [
        ["tried", true, 0, true],
        ["tried", true, 0, true],
      ],
    );
    assert.equal(
      answers[4].retryAfter,
      answers[4].ratelimits.find(({ name }: { name: string }) => name === "requests").retryAfter,
    );
  });

  it("says in events what it would have denied, once a window (rule 150)", async () => {
    await nextWindow(server);
    const { key, keyId } = await server.createKey(await server.createApi(), { ratelimits: [tried] });
    const shadowed = async () => Number(/^latchkey_limits_shadowed_total (\d+)$/m.exec(await server.scrape())?.[1]);
    const before = await shadowed();
    for (let i = 0; i < 5; i++) assert.equal((await server.verify(key)).code, "VALID");
    assert.equal((await shadowed()) - before, 3);
    await server.pass(3_000);
    const { data } = { data: await server.ok("events.listEvents", { types: ["limit.exceeded"] }) };
    const own = data.filter((event: { data: { keyId: string } }) => event.data.keyId === keyId);
    assert.deepEqual(
      own.map((event: { data: { name: string; shadow: boolean } }) => [event.data.name, event.data.shadow]),
      [["tried", true]],
    );
  });

  it("keeps its count when it comes into force, and when it leaves it", async () => {
    await nextWindow(server);
    const { key, keyId } = await server.createKey(await server.createApi(), { ratelimits: [tried] });
    await server.verify(key);
    await server.verify(key);
    await server.ok("keys.updateKey", { keyId, ratelimits: [{ ...tried, shadow: false }] });
    const denied = await server.verify(key);
    assert.deepEqual([denied.code, states(denied)], ["RATE_LIMITED", [["tried", true, 0, undefined]]]);
    await server.ok("keys.updateKey", { keyId, ratelimits: [tried] });
    assert.equal((await server.verify(key)).code, "VALID");
    const { key: rerolled } = await server.ok("keys.rerollKey", { keyId, expiration: 0 });
    const again = await server.verify(rerolled);
    assert.deepEqual([again.code, states(again)], ["VALID", [["tried", true, 0, true]]]);
  });

  it("can be one that the call gives, or one of a plan", async () => {
    await nextWindow(server);
    await server.ok("plans.createPlan", { name: "trial", ratelimits: [tried] });
    const { key } = await server.createKey(await server.createApi(), { plan: "trial" });
    for (let i = 0; i < 3; i++) assert.equal((await server.verify(key)).code, "VALID");
    const adHoc = { name: "burst", limit: 1, duration: MINUTE, shadow: true };
    for (const exceeded of [false, true]) {
      const answer = await server.verify(key, { ratelimits: [adHoc] });
      assert.deepEqual([answer.code, states(answer)[0]], ["VALID", ["burst", exceeded, 0, true]]);
    }
    const { ratelimits } = await server.ok("keys.explainVerification", { key, ratelimits: [adHoc] });
    assert.deepEqual(
      ratelimits.map((limit: Record<string, unknown>) => [
        limit.name,
        limit.plan,
        limit.shadow,
        limit.exceeded,
        limit.used,
      ]),
      [
        ["burst", undefined, true, true, 1],
        ["tried", "trial", true, true, 2],
      ],
    );
  });

  it("is charged with credits and corrected by settlements, unless it was over (rule 151)", async () => {
    await nextWindow(server);
    const tokens = { name: "tokens", limit: 1_000, duration: MINUTE, shadow: true };
    const { key } = await server.createKey(await server.createApi(), {
      credits: { remaining: 10 },
      ratelimits: [tokens],
    });
    const used = async () => {
      const { ratelimits } = await server.ok("keys.explainVerification", { key });
      return ratelimits[0].used;
    };
    const hold = { ttl: 60_000 };
    const make = (cost: number) => server.verify(key, { hold, ratelimits: [{ name: "tokens", cost }] });
    const settle = (holdId: string, cost: number) =>
      server.ok("holds.settleHold", { holdId, credits: 1, ratelimits: [{ name: "tokens", cost }] });
    const first = await make(900);
    const second = await make(500);
    assert.deepEqual(
      [first.code, second.code, second.ratelimits[0].exceeded, await used()],
      ["VALID", "VALID", true, 900],
    );
    await settle(first.hold.holdId, 300);
    assert.equal(await used(), 300);
    await settle(second.hold.holdId, 400);
    assert.equal(await used(), 300);
    const third = await make(100);
    await settle(third.hold.holdId, 250);
    assert.equal(await used(), 550);
  });

  it("is one of an identifier, by the call or by an override, which has precedence (rule 150)", async () => {
    await nextWindow(server);
    const call = { namespace: "shadow", identifier: "user_1", limit: 1, duration: MINUTE };
    const limit = (more: object = {}) => server.call("ratelimits.limit", { ...call, ...more });
    const first = await limit({ shadow: true });
    const second = await limit({ shadow: true });
    assert.deepEqual(
      [first, second].map(({ body: { data } }) => [data.success, data.shadow, data.exceeded, data.remaining]),
      [
        [true, true, false, 0],
        [true, true, true, 0],
      ],
    );
    assert.equal(second.headers.ratelimit, undefined);
    assert.equal((await limit()).body.data.success, false);
    const override = { ...call, limit: 0 };
    await server.ok("ratelimits.setOverride", { ...override, shadow: true });
    const { success, exceeded, overrideId } = (await limit()).body.data;
    assert.deepEqual([success, exceeded], [true, true]);
    assert.equal(
      (await server.ok("ratelimits.getOverride", { namespace: "shadow", identifier: "user_1" })).shadow,
      true,
    );
    const explained = await server.ok("ratelimits.explainLimit", call);
    assert.deepEqual([explained.success, explained.shadow, explained.override.shadow], [true, true, true]);
    assert.match(explained.detail, /shadow mode and would deny/);
    const several = await server.ok("ratelimits.multiLimit", [call, { ...call, identifier: "user_2" }]);
    assert.equal(several.passed, true);
    assert.deepEqual(
      several.limits.map(({ passed, exceeded }: { passed: boolean; exceeded?: boolean }) => [passed, exceeded]),
      [
        [true, true],
        [true, undefined],
      ],
    );
    await server.ok("ratelimits.setOverride", { ...override, shadow: false });
    const enforced = (await limit({ shadow: true })).body.data;
    assert.deepEqual([enforced.success, enforced.overrideId, enforced.shadow], [false, overrideId, undefined]);
    await server.ok("ratelimits.setOverride", override);
    assert.equal((await limit({ shadow: true })).body.data.success, true);
    assert.equal((await limit()).body.data.success, false);
  });

  it("is not shown to owners of keys and to their clients", async () => {
    const { apiId } = await server.ok("apis.createApi", { name: "open", ownKeyAccess: true });
    const { key } = await server.createKey(apiId, { ratelimits: [tried, requests] });
    const own = await server.ok("keys.getOwnKey", { key }, { as: null });
    assert.deepEqual(
      own.ratelimits.map(({ name }: { name: string }) => name),
      ["requests"],
    );
  });
});
