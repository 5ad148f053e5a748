/** The credits and the limits of concurrency that plans give. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { VERSIONS_MAX } from "../../src/features/plans/record.ts";
import { describeOnStores } from "../harness.ts";

const SECOND = 1_000;
const MINUTE = 60_000;
const HOUR = 3_600_000;
const DAY = 24 * HOUR;

describeOnStores("a plan with credits", (server) => {
  let plans = 0;
  const create = async (credits: object | undefined, more: object = {}): Promise<string> => {
    const name = `sold-${++plans}`;
    await server.ok("plans.createPlan", { name, ...(credits && { credits }), ...more });
    return name;
  };
  const daily = (amount: number) => ({ amount, refill: { interval: "daily" } });
  /** Sets the wall clock forward: the jobs of a day would take minutes. */
  const later = async (length: number) => {
    server.clock.step(length);
    await server.pass(SECOND);
  };
  const newKey = async (body: object = {}) => server.createKey(await server.createApi(), body);
  const spend = async (key: string, cost: number) => {
    const { code, credits } = await server.verify(key, { credits: { cost } });
    return [code, credits];
  };
  const move = (keyId: string, plan: string | null, balances?: "keep" | "reset") =>
    server.ok("keys.updateKey", { keyId, plan, ...(balances && { balances }) });

  it("gives each key a balance, which is refilled, and says so (rule 106)", async () => {
    const plan = await create(daily(100));
    const { key, keyId } = await newKey({ plan });
    assert.deepEqual((await server.getKey(keyId)).credits, {
      remaining: 100,
      refill: { interval: "daily", amount: 100 },
    });
    assert.deepEqual(await spend(key, 70), ["VALID", 30]);
    assert.deepEqual(await spend(key, 70), ["USAGE_EXCEEDED", 30]);
    const explained = await server.ok("keys.explainVerification", { keyId });
    assert.deepEqual([explained.credits.remaining, explained.credits.plan], [30, plan]);
    await later(DAY);
    assert.deepEqual(await spend(key, 70), ["VALID", 30]);
    const [refill] = await server.ok("audit.listEvents", { target: keyId, action: "credits.refill" });
    assert.deepEqual([refill.meta.plan, refill.meta.version, refill.meta.remaining], [plan, 1, 100]);
  });

  it("gives them to keys that have the plan already, with their next call", async () => {
    const plan = await create(undefined);
    const { key, keyId } = await newKey({ plan });
    assert.deepEqual(await spend(key, 5), ["VALID", undefined]);
    await server.ok("plans.updatePlan", { plan, credits: daily(10) });
    // Several first calls at once make one balance.
    const codes = await Promise.all(Array.from({ length: 12 }, () => server.verify(key)));
    assert.equal(codes.filter(({ code }) => code === "VALID").length, 10);
    const [granted] = await server.ok("audit.listEvents", { target: keyId, action: "credits.grant" });
    assert.deepEqual(granted.meta, { plan, version: 1, cause: "granted", before: null, remaining: 10 });
    await server.ok("plans.updatePlan", { plan, credits: null });
    assert.deepEqual(await spend(key, 5), ["VALID", undefined]);
    assert.equal((await server.getKey(keyId)).credits, undefined);
    await server.ok("plans.updatePlan", { plan, credits: daily(10) });
    assert.deepEqual(await spend(key, 1), ["USAGE_EXCEEDED", 0]);
  });

  it("gives a new amount at the next refill, and a new schedule after the period that runs", async () => {
    const plan = await create(daily(100));
    const keys = [await newKey({ plan }), await newKey({ plan })];
    for (const { key } of keys) await spend(key, 60);
    await server.ok("plans.updatePlan", { plan, credits: daily(500) });
    assert.deepEqual(await spend(keys[0]!.key, 0), ["VALID", 40]);
    await later(DAY);
    // Readers see it before a call or the sweep has written it.
    const unused = keys[1]!;
    assert.equal((await server.getKey(unused.keyId)).credits.remaining, 500);
    assert.equal((await server.ok("keys.whoami", { key: unused.key })).credits.remaining, 500);
    const { apiId } = await server.getKey(unused.keyId);
    const listed = await server.ok("apis.listKeys", { apiId, plan });
    assert.deepEqual(
      listed.map(({ credits }: { credits: { remaining: number } }) => credits.remaining),
      [500],
    );
    assert.deepEqual(await spend(keys[0]!.key, 0), ["VALID", 500]);
    // A key that nobody used gets it too, by the version that was in force when its refill was due.
    await server.ok("plans.updatePlan", { plan, credits: daily(7) });
    assert.deepEqual(await spend(keys[1]!.key, 0), ["VALID", 500]);
    await server.ok("plans.updatePlan", { plan, credits: { amount: 9, refill: { interval: "hourly" } } });
    await later(HOUR);
    assert.deepEqual(await spend(keys[1]!.key, 0), ["VALID", 500]);
    await later(DAY);
    assert.deepEqual(await spend(keys[1]!.key, 0), ["VALID", 9]);
  });

  it("takes no change more while a hundred have not reached its balances", async () => {
    const plan = await create(daily(1));
    const { key } = await newKey({ plan });
    const change = (amount: number) => ({ plan, credits: daily(amount) });
    for (let i = 0; i < VERSIONS_MAX; i++) await server.ok("plans.updatePlan", change(2 + i));
    const { detail } = await server.rejected("plans.updatePlan", change(1_000), "precondition_failed");
    assert.match(detail, /Send the request again in a minute/);
    await server.pass(MINUTE);
    await server.ok("plans.updatePlan", change(1_000));
    await later(DAY);
    assert.deepEqual(await spend(key, 0), ["VALID", 1_000]);
  });

  it("keeps or resets what is left when a key moves, and resets once in a period (rule 107)", async () => {
    const [silver, gold] = [await create(daily(100)), await create(daily(1_000))];
    const { key, keyId } = await newKey({ plan: silver });
    await spend(key, 60);
    await move(keyId, gold);
    assert.deepEqual(await spend(key, 0), ["VALID", 40]);
    await move(keyId, gold, "reset");
    assert.deepEqual(await spend(key, 0), ["VALID", 1_000]);
    await spend(key, 900);
    for (const plan of [gold, silver]) {
      const refused = await server.rejected("keys.updateKey", { keyId, plan, balances: "reset" }, "invalid_input");
      assert.match(refused.detail, /reset in this period already/);
    }
    // Neither does leaving the plan and coming back fill it.
    await move(keyId, null);
    assert.deepEqual(await spend(key, 5), ["VALID", undefined]);
    await move(keyId, gold);
    assert.deepEqual(await spend(key, 0), ["VALID", 100]);
    await later(DAY);
    await move(keyId, silver, "reset");
    assert.deepEqual(await spend(key, 0), ["VALID", 100]);
    await server.rejected("keys.updateKey", { keyId, balances: "reset" }, "invalid_input");
  });

  it("gives way to credits of the key, and comes back with what was left", async () => {
    const plan = await create(daily(100));
    const { key, keyId } = await newKey({ plan });
    await spend(key, 30);
    await server.ok("keys.updateKey", { keyId, credits: { remaining: 5 } });
    assert.deepEqual(await spend(key, 1), ["VALID", 4]);
    assert.deepEqual((await server.getKey(keyId)).credits, { remaining: 4 });
    await server.rejected("keys.updateKey", { keyId, plan, balances: "reset" }, "invalid_input");
    await later(2 * HOUR);
    await server.ok("keys.updateKey", { keyId, credits: null });
    const back = (await spend(key, 0))[1];
    assert(back === 70 || back === 100, `${back}`);
    const own = await newKey({ plan, credits: { remaining: 3 } });
    assert.deepEqual(await spend(own.key, 0), ["VALID", 3]);
    const add = { keyId, operation: "increment", value: 11 };
    assert.equal((await server.ok("keys.updateCredits", add)).remaining, back + 11);
    await server.rejected("keys.updateCredits", { keyId, operation: "set", value: null }, "invalid_input");
  });

  it("is shared by a reroll chain, and refused for identities", async () => {
    const plan = await create(daily(10));
    const { key, keyId } = await newKey({ plan });
    const rerolled = await server.ok("keys.rerollKey", { keyId, expiration: null });
    assert.deepEqual(await spend(key, 4), ["VALID", 6]);
    assert.deepEqual(await spend(rerolled.key, 4), ["VALID", 2]);
    for (const [operation, body] of [
      ["identities.createIdentity", { externalId: `owner-of-${plan}`, plan }],
      ["plans.updatePlan", { plan: await withIdentity(), credits: daily(1) }],
    ] as const) {
      assert.match(
        (await server.rejected(operation, body, "invalid_input")).detail,
        /^A plan with credits is for keys/,
      );
    }
    async function withIdentity() {
      const other = await create(undefined);
      await server.ok("identities.createIdentity", { externalId: `owner-of-${other}`, plan: other });
      return other;
    }
  });

  it("counts concurrent calls of keys that have the plan already, and of all keys of an identity", async () => {
    const plan = await create(undefined);
    const externalId = `concurrent-${plan}`;
    const { key } = await newKey({ plan });
    await server.ok("identities.createIdentity", { externalId, plan });
    const owned = [await newKey({ externalId }), await newKey({ externalId })];
    await server.ok("plans.updatePlan", { plan, concurrency: [{ name: "streams", limit: 1 }] });
    const hold = (one: string) => server.verify(one, { hold: { ttl: 60_000 } });
    await server.rejected("keys.verifyKey", { key }, "hold_required");
    const codes = await Promise.all([hold(key), hold(key), ...owned.map(({ key: one }) => hold(one))]);
    assert.deepEqual(codes.map(({ code }) => code).sort(), ["RATE_LIMITED", "RATE_LIMITED", "VALID", "VALID"]);
    await server.ok("plans.updatePlan", { plan, concurrency: [{ name: "streams", limit: 2 }] });
    assert.equal((await hold(key)).code, "VALID");
    await server.ok("plans.updatePlan", { plan, concurrency: null });
    assert.equal((await server.verify(key)).code, "VALID");
  });

  it("is previewed: who gets other credits, and who keeps their own", async () => {
    const plan = await create(daily(10), { concurrency: [{ name: "streams", limit: 1 }] });
    await newKey({ plan });
    await newKey({ plan, credits: { remaining: 3 }, concurrency: [{ name: "streams", limit: 5 }] });
    const { changes } = await server.ok("plans.previewUpdate", {
      plan,
      credits: daily(20),
      concurrency: [{ name: "streams", limit: 2 }],
    });
    const counts = { keys: 1, keysKeeping: 1, identities: 0, identitiesKeeping: 0, startsAtZero: false };
    assert.deepEqual(changes, [
      {
        field: "concurrency",
        name: "streams",
        change: "changed",
        before: { limit: 1 },
        after: { limit: 2 },
        ...counts,
      },
      { field: "credits", change: "changed", before: daily(10), after: daily(20), ...counts },
    ]);
  });
});
