import assert from "node:assert/strict";
import { it } from "node:test";
import type { VerifyKeyAnswer } from "../../src/features/keys/verifyKey.ts";
import { describeOnStores } from "../harness.ts";

const MINUTE = 60_000;

type VerifiedLimit = NonNullable<VerifyKeyAnswer["ratelimits"]>[number];

const calls = { name: "calls", limit: 10, duration: MINUTE, autoApply: true };
const tokens = { name: "tokens", limit: 200, duration: MINUTE };

/** The rest of each limit of an answer, by name. */
const left = ({ ratelimits = [] }: VerifyKeyAnswer) =>
  Object.fromEntries(ratelimits.map(({ name, remaining }) => [name, remaining]));

/** The state of one limit of an answer. */
const stateOf = ({ ratelimits = [] }: VerifyKeyAnswer, name: string) =>
  ratelimits.find((limit) => limit.name === name)!;

describeOnStores("keys.verifyKey with limits", (server) => {
  /** Creates a key with these limits, of an identity with those limits; returns a call that verifies it. */
  async function keyWith(ratelimits: object[], more: object = {}) {
    const created = await server.createKey(await server.createApi(), { ratelimits, ...more });
    const verify = (named?: object[], others: object = {}): Promise<VerifyKeyAnswer> =>
      server.verify(created.key, { ...(named && { ratelimits: named }), ...others });
    return { ...created, verify };
  }

  let identities = 0;
  async function identityWith(ratelimits: object[]): Promise<string> {
    const externalId = `limited_${++identities}`;
    await server.ok("identities.createIdentity", { externalId, ratelimits });
    return externalId;
  }

  /** The start of the next window of a minute. */
  async function nextWindow(duration = MINUTE) {
    await server.pass(duration - (server.clock.now() % duration));
  }

  it("charges limits with autoApply, and no other limit unless it is named (rule 41)", async () => {
    const { verify } = await keyWith([{ ...calls, limit: 3 }, tokens]);
    for (const remaining of [2, 1, 0]) assert.deepEqual(left(await verify()), { calls: remaining });
    const rejected = await verify();
    assert.deepEqual([rejected.code, rejected.valid, left(rejected)], ["RATE_LIMITED", false, { calls: 0 }]);
    const other = await keyWith([tokens]);
    const untouched = await other.verify();
    assert.deepEqual([untouched.code, untouched.ratelimits], ["VALID", undefined]);
    assert.deepEqual(left(await other.verify([{ name: "tokens" }])), { tokens: 199 });
  });

  it("returns every limit that it checked, with its settings and state (rule 43)", async () => {
    const externalId = await identityWith([{ name: "daily", limit: 50, duration: 86_400_000 }]);
    const { verify, keyId } = await keyWith([calls, tokens], { externalId });
    const { ratelimits } = await verify([{ name: "tokens", cost: 7 }, { name: "calls" }]);
    const stored = await server.getKey(keyId);
    const idOf = (name: string) => stored.ratelimits.find((limit: VerifiedLimit) => limit.name === name).id;
    const now = server.clock.now();
    const reset = (duration: number) => Math.floor(now / duration) * duration + duration;
    const passed = { exceeded: false, retryAfter: 0 };
    const byName = (a: VerifiedLimit, b: VerifiedLimit) => a.name.localeCompare(b.name);
    assert.deepEqual(ratelimits!.toSorted(byName), [
      { ...calls, id: idOf("calls"), remaining: 9, reset: reset(MINUTE), ...passed },
      {
        name: "daily",
        limit: 50,
        duration: 86_400_000,
        // Limits of an identity always apply.
        autoApply: true,
        id: stored.identity.ratelimits[0].id,
        from: "identity",
        remaining: 50,
        reset: reset(86_400_000),
        ...passed,
      },
      { ...tokens, autoApply: false, id: idOf("tokens"), remaining: 193, reset: reset(MINUTE), ...passed },
    ]);
    for (const { reset } of ratelimits!) assert(reset > now);
  });

  it("charges a named limit its cost, once even if it has autoApply (rule 41)", async () => {
    const { verify } = await keyWith([calls, tokens]);
    assert.deepEqual(left(await verify([{ name: "calls", cost: 4 }])), { calls: 6 });
    assert.deepEqual(left(await verify([{ name: "calls" }])), { calls: 5 });
    assert.deepEqual(left(await verify([{ name: "calls", cost: 0 }])), { calls: 5 });
    assert.deepEqual(left(await verify()), { calls: 4 });
    // An empty list names no limit.
    assert.deepEqual(left(await verify([])), { calls: 3 });
    const tooMuch = await verify([{ name: "calls", cost: 4 }]);
    assert.deepEqual([tooMuch.code, left(tooMuch)], ["RATE_LIMITED", { calls: 3 }]);
    assert.deepEqual(left(await verify([{ name: "calls", cost: 3 }])), { calls: 0 });
    // A cost of 0 passes within the limit, also when nothing is left.
    assert.equal((await verify([{ name: "calls", cost: 0 }])).code, "VALID");
  });

  it("checks limits with autoApply without a charge when another limit is named", async () => {
    const { verify } = await keyWith([{ ...calls, limit: 1 }, tokens]);
    for (const remaining of [195, 190]) {
      assert.deepEqual(left(await verify([{ name: "tokens", cost: 5 }])), { calls: 1, tokens: remaining });
    }
    assert.deepEqual(left(await verify()), { calls: 0 });
    const rejected = await verify([{ name: "tokens", cost: 2 }]);
    assert.equal(rejected.code, "RATE_LIMITED");
    assert.deepEqual(left(rejected), { calls: 0, tokens: 190 });
    assert.deepEqual([stateOf(rejected, "calls").exceeded, stateOf(rejected, "tokens").exceeded], [true, false]);
    // It denies like a charge of 1, until the same time.
    assert.equal(rejected.retryAfter, (await verify()).retryAfter);
  });

  it("keeps the count when another limit denies, for any order of their names (rule 42)", async () => {
    const { verify } = await keyWith([{ name: "few", limit: 2, duration: MINUTE }, tokens]);
    const both = [
      { name: "few", cost: 1 },
      { name: "tokens", cost: 6 },
    ];
    assert.deepEqual(left(await verify(both)), { few: 1, tokens: 194 });
    assert.deepEqual(left(await verify(both.toReversed())), { few: 0, tokens: 188 });
    for (const named of [both, both.toReversed(), both, both.toReversed()]) {
      const rejected = await verify(named);
      assert.equal(rejected.code, "RATE_LIMITED");
      assert.deepEqual(left(rejected), { few: 0, tokens: 188 });
      assert.deepEqual([stateOf(rejected, "few").exceeded, stateOf(rejected, "tokens").exceeded], [true, false]);
      assert.equal(stateOf(rejected, "tokens").retryAfter, 0);
      assert.equal(rejected.retryAfter, stateOf(rejected, "few").retryAfter);
    }
    assert.deepEqual(left(await verify([{ name: "tokens", cost: 188 }])), { tokens: 0 });
  });

  it("returns what is left and the retry time, exact to the millisecond", async () => {
    await nextWindow();
    const { verify } = await keyWith([
      { name: "a", limit: 10, duration: MINUTE },
      { name: "b", limit: 7, duration: 25_000 },
    ]);
    const named = [
      { name: "a", cost: 4 },
      { name: "b", cost: 3 },
    ];
    await server.pass(12_345);
    assert.deepEqual(left(await verify(named)), { a: 6, b: 4 });
    assert.deepEqual(left(await verify(named)), { a: 2, b: 1 });
    const rejected = await verify(named);
    assert.deepEqual(left(rejected), { a: 2, b: 1 });
    const waits = ["a", "b"].map((name) => stateOf(rejected, name).retryAfter!);
    // The largest of several, since both denied.
    assert.equal(rejected.retryAfter, Math.max(...waits));
    const first = waits[0]! < waits[1]! ? "a" : "b";
    await server.pass(Math.min(...waits) - 1);
    assert.equal(stateOf(await verify(named), first).exceeded, true);
    await server.pass(1);
    assert.equal(stateOf(await verify(named), first).exceeded, false);
    await server.pass(Math.abs(waits[0]! - waits[1]!) - 1);
    const still = await verify(named);
    assert.deepEqual([still.code, still.retryAfter], ["RATE_LIMITED", 1]);
    await server.pass(1);
    assert.equal((await verify(named)).code, "VALID");
  });

  it("returns no retry time for a cost that can never fit, and charges nothing for it", async () => {
    const { verify } = await keyWith([calls, tokens]);
    const never = await verify([{ name: "tokens", cost: 201 }, { name: "calls" }]);
    assert.equal(never.code, "RATE_LIMITED");
    assert.deepEqual(left(never), { calls: 10, tokens: 200 });
    assert.equal("retryAfter" in never, false);
    assert.equal("retryAfter" in stateOf(never, "tokens"), false);
    assert.equal(stateOf(never, "calls").retryAfter, 0);
  });

  it("weighs the previous window, and passes exactly what it leaves", async () => {
    await nextWindow();
    const startedAt = server.clock.now();
    const { verify } = await keyWith([calls]);
    assert.equal((await verify([{ name: "calls", cost: 10 }])).code, "VALID");
    await server.pass(startedAt + MINUTE + 24_000 - server.clock.now());
    // Of the ten in the previous window, 0.6 still count: 6.
    assert.deepEqual(left(await verify([{ name: "calls", cost: 0 }])), { calls: 4 });
    assert.equal((await verify([{ name: "calls", cost: 5 }])).code, "RATE_LIMITED");
    assert.deepEqual(left(await verify([{ name: "calls", cost: 4 }])), { calls: 0 });
  });

  it("shares an identity's limits among all of its keys, and with no other identity (rule 41)", async () => {
    const pool = [{ name: "pool", limit: 3, duration: MINUTE, autoApply: false }];
    const externalId = await identityWith(pool);
    const [one, two] = [await keyWith([], { externalId }), await keyWith([calls], { externalId })];
    const stranger = await keyWith([], { externalId: await identityWith(pool) });
    assert.deepEqual(left(await one.verify()), { pool: 2 });
    assert.deepEqual(left(await two.verify()), { calls: 9, pool: 1 });
    assert.deepEqual(left(await one.verify([{ name: "pool", cost: 1 }])), { pool: 0 });
    for (const { verify } of [one, two]) assert.equal((await verify()).code, "RATE_LIMITED");
    // A denial by the identity's limit charged nothing to the key.
    assert.equal(stateOf(await two.verify(), "calls").remaining, 9);
    assert.deepEqual(left(await stranger.verify()), { pool: 2 });
  });

  it("counts keys and names separately (rule 41)", async () => {
    const one = [
      { ...calls, limit: 1 },
      { ...calls, name: "Calls", limit: 2 },
    ];
    const [first, second] = [await keyWith(one), await keyWith(one)];
    assert.deepEqual(left(await first.verify()), { calls: 0, Calls: 1 });
    assert.deepEqual(left(await second.verify()), { calls: 0, Calls: 1 });
    assert.equal(stateOf(await first.verify([{ name: "Calls" }]), "Calls").remaining, 1);
    assert.equal((await first.verify([{ name: "Calls" }])).code, "RATE_LIMITED");
  });

  it("enforces both limits if key and identity have one of the same name", async () => {
    const externalId = await identityWith([{ ...calls, limit: 5 }]);
    const { verify } = await keyWith([{ ...calls, limit: 100 }], { externalId });
    const first = await verify([{ name: "calls", cost: 2 }]);
    const shown = first.ratelimits!.map(({ limit, remaining }) => [limit, remaining]).sort();
    assert.deepEqual(shown, [
      [100, 98],
      [5, 3],
    ]);
    assert.equal(new Set(first.ratelimits!.map(({ id }) => id)).size, 2);
    assert.equal((await verify([{ name: "calls", cost: 3 }])).code, "VALID");
    // The key's own limit has room for 95 more.
    const rejected = await verify();
    assert.equal(rejected.code, "RATE_LIMITED");
    assert.deepEqual(
      rejected.ratelimits!.map(({ limit, exceeded, remaining }) => [limit, exceeded, remaining]).sort(),
      [
        [100, false, 95],
        [5, true, 0],
      ],
    );
  });

  it("counts an ad-hoc limit, for callers with a root key", async () => {
    const { verify, key } = await keyWith([tokens]);
    const adHoc = { name: "burst", limit: 5, duration: 10_000 };
    const first = await verify([{ ...adHoc, cost: 2 }]);
    const { reset, ...shown } = stateOf(first, "burst");
    assert.deepEqual(shown, { ...adHoc, id: "", autoApply: false, exceeded: false, remaining: 3, retryAfter: 0 });
    assert.equal(reset % 10_000, 0);
    assert.equal((await verify([{ ...adHoc, cost: 4 }])).code, "RATE_LIMITED");
    assert.deepEqual(left(await verify([{ ...adHoc, cost: 3 }])), { burst: 0 });
    // The same limit of another key is another counter.
    assert.deepEqual(left(await (await keyWith([])).verify([adHoc])), { burst: 4 });
    const body = { key, ratelimits: [adHoc] };
    await server.rejected("keys.verifyKey", body, "authentication_missing", { as: null });
    for (const part of [{ limit: 5 }, { duration: 10_000 }]) {
      const partial = { key, ratelimits: [{ name: "tokens", ...part }] };
      await server.rejected("keys.verifyKey", partial, "authentication_missing", { as: null });
    }
    // Naming a stored limit creates no ad-hoc limit.
    await server.verify(key, { ratelimits: [{ name: "tokens", cost: 2 }] }, { as: null });
  });

  it("replaces a limit of the key by an ad-hoc limit, but never one of the identity", async () => {
    const externalId = await identityWith([{ ...calls, limit: 3 }]);
    const { verify } = await keyWith([{ ...calls, limit: 1 }], { externalId });
    const adHoc = [{ name: "calls", limit: 100, duration: MINUTE, cost: 2 }];
    const { ratelimits } = await verify(adHoc);
    assert.deepEqual(ratelimits!.map(({ limit, remaining }) => [limit, remaining]).sort(), [
      [100, 98],
      [3, 1],
    ]);
    const rejected = await verify(adHoc);
    assert.equal(rejected.code, "RATE_LIMITED");
    assert.deepEqual(rejected.ratelimits!.map(({ exceeded, remaining }) => [exceeded, remaining]).sort(), [
      [false, 98],
      [true, 1],
    ]);
  });

  it("uses the stored limit if only half of an ad-hoc limit is given", async () => {
    const { verify } = await keyWith([tokens]);
    for (const half of [{ limit: 1 }, { duration: 1_000 }]) {
      const { limit, duration } = stateOf(await verify([{ name: "tokens", ...half }]), "tokens");
      assert.deepEqual([limit, duration], [tokens.limit, tokens.duration]);
    }
    assert.deepEqual(left(await verify([{ name: "tokens", cost: 0 }])), { tokens: 198 });
  });

  it("denies everything with an ad-hoc limit of 0, including a cost of 0", async () => {
    const { verify, key } = await keyWith([calls]);
    for (const cost of [0, 1]) {
      const rejected = await verify([{ name: "closed", limit: 0, duration: 1_000, cost }]);
      assert.equal(rejected.code, "RATE_LIMITED");
      const { exceeded, remaining, retryAfter } = stateOf(rejected, "closed");
      assert.deepEqual([exceeded, remaining, retryAfter], [true, 0, undefined]);
      assert.equal("retryAfter" in rejected, false);
    }
    // Limits with autoApply were checked and not charged.
    assert.deepEqual(left(await verify()), { calls: 9 });
    for (const duration of [0, 999]) {
      const body = { key, ratelimits: [{ name: "short", limit: 1, duration }] };
      await server.rejected("keys.verifyKey", body, "invalid_input");
      await server.rejected("keys.verifyKey", { key, ratelimits: [{ name: "short", duration }] }, "invalid_input");
    }
  });

  it("rejects the name of a limit that is not stored anywhere, and lists where it looked (rule 44)", async () => {
    const { key, keyId, verify } = await keyWith([calls]);
    const error = await server.rejected(
      "keys.verifyKey",
      { key, ratelimits: [{ name: "calls" }, { name: "nowhere" }] },
      "precondition_failed",
    );
    for (const expected of [/'nowhere'/, new RegExp(keyId), /no identity/]) assert.match(error.detail, expected);
    // The existing limit was not charged.
    assert.deepEqual(left(await verify()), { calls: 9 });

    const externalId = await identityWith([]);
    const linked = await keyWith([], { externalId });
    const body = { key: linked.key, ratelimits: [{ name: "nowhere" }] };
    const { detail } = await server.rejected("keys.verifyKey", body, "precondition_failed");
    const { identity } = await server.getKey(linked.keyId);
    for (const expected of [linked.keyId, identity.id, externalId]) assert(detail.includes(expected), detail);
  });

  it("accepts each name once, and at most fifty", async () => {
    const { key, verify } = await keyWith([calls]);
    for (const ratelimits of [
      [{ name: "calls" }, { name: "calls", cost: 2 }],
      Array.from({ length: 51 }, (_, i) => ({ name: `n${i}`, limit: 1, duration: MINUTE })),
      [{ name: "calls", cost: -1 }],
      [{ cost: 1 }],
    ]) {
      await server.rejected("keys.verifyKey", { key, ratelimits }, "invalid_input");
    }
    const fifty = Array.from({ length: 50 }, (_, i) => ({ name: `n${i}`, limit: 2, duration: MINUTE }));
    assert.equal((await verify(fifty)).ratelimits!.length, 51);
  });

  it("keeps the count when a limit changes, and starts another with another duration", async () => {
    const { keyId, verify } = await keyWith([calls]);
    await verify([{ name: "calls", cost: 8 }]);
    const change = (limit: object) => server.ok("keys.updateKey", { keyId, ratelimits: [{ ...calls, ...limit }] });
    await change({ limit: 20 });
    assert.deepEqual(left(await verify()), { calls: 11 });
    await change({ limit: 5 });
    const rejected = await verify();
    assert.deepEqual([rejected.code, left(rejected)], ["RATE_LIMITED", { calls: 0 }]);
    await change({ limit: 5, duration: 2 * MINUTE });
    assert.deepEqual(left(await verify()), { calls: 4 });
    await change({ limit: 20 });
    assert.deepEqual(left(await verify()), { calls: 10 });
  });

  it("counts for a whole reroll chain, so that a reroll gives no additional calls", async () => {
    const limits = [{ ...calls, limit: 4 }];
    const { keyId, verify } = await keyWith(limits);
    assert.deepEqual(left(await verify()), { calls: 3 });
    const { key: successor, keyId: next } = await server.ok("keys.rerollKey", { keyId, expiration: MINUTE });
    assert.deepEqual(left(await server.verify(successor)), { calls: 2 });
    assert.deepEqual(left(await verify()), { calls: 1 });
    const { key: third } = await server.ok("keys.rerollKey", { keyId: next, expiration: 0 });
    assert.deepEqual(left(await server.verify(third)), { calls: 0 });
    for (const answer of [await verify(), await server.verify(third)]) assert.equal(answer.code, "RATE_LIMITED");
    // An ad-hoc limit counts for the chain too.
    const adHoc = [{ name: "burst", limit: 1, duration: MINUTE }];
    const fresh = await keyWith([]);
    await fresh.verify(adHoc);
    const { key } = await server.ok("keys.rerollKey", { keyId: fresh.keyId, expiration: MINUTE });
    assert.equal((await server.verify(key, { ratelimits: adHoc })).code, "RATE_LIMITED");
  });

  it("checks no limit of a key that fails before", async () => {
    const { keyId, verify } = await keyWith([{ ...calls, limit: 1 }]);
    for (const [state, code] of [
      [{ enabled: false }, "DISABLED"],
      [{ enabled: true, expires: 100_000_000_000 }, "EXPIRED"],
    ] as const) {
      await server.ok("keys.updateKey", { keyId, ...state });
      const rejected = await verify();
      assert.deepEqual([rejected.code, rejected.ratelimits], [code, undefined]);
    }
    await server.ok("keys.updateKey", { keyId, expires: null });
    const rejected = await verify(undefined, { permissions: "not.granted" });
    assert.deepEqual([rejected.code, rejected.ratelimits], ["INSUFFICIENT_PERMISSIONS", undefined]);
    assert.deepEqual(left(await verify()), { calls: 0 });
  });

  it("charges limits and credits together or not at all (rule 40)", async () => {
    const limited = await keyWith([{ ...calls, limit: 3 }], { credits: { remaining: 5 } });
    const costing = (cost: number) => limited.verify(undefined, { credits: { cost } });
    const shown = (answer: VerifyKeyAnswer) => [answer.code, answer.credits, left(answer).calls];
    assert.deepEqual(shown(await costing(2)), ["VALID", 3, 2]);
    // Insufficient credits charge nothing to the limit.
    assert.deepEqual(shown(await costing(4)), ["USAGE_EXCEEDED", 3, 2]);
    assert.deepEqual(shown(await costing(0)), ["VALID", 3, 1]);
    assert.deepEqual(shown(await costing(1)), ["VALID", 2, 0]);
    // A denial by the limit spends no credits; it comes first if both would fail.
    assert.deepEqual(shown(await costing(1)), ["RATE_LIMITED", 2, 0]);
    assert.deepEqual(shown(await costing(9)), ["RATE_LIMITED", 2, 0]);
  });

  it("admits exactly 100 of 1,000 simultaneous verifications at a limit of 100 (rule 41)", async () => {
    const externalId = await identityWith([{ ...calls, limit: 100 }]);
    const keys = [await keyWith([tokens], { externalId }), await keyWith([tokens], { externalId })];
    const answers = await Promise.all(
      Array.from({ length: 1_000 }, (_, i) => keys[i % 2]!.verify([{ name: "calls" }, { name: "tokens" }])),
    );
    assert.equal(answers.filter(({ valid }) => valid).length, 100);
    let spent = 0;
    for (const { verify } of keys) spent += 200 - left(await verify([{ name: "tokens", cost: 0 }])).tokens!;
    assert.equal(spent, 100);
  });
});
