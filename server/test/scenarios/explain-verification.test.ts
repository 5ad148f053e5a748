import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Random } from "../../../engine/src/random/random.ts";
import { seededRandom } from "../../../engine/src/random/seeded.ts";
import { describeOnStores, openTestServer, type TestServer } from "../harness.ts";
import { sharedRedis } from "../services/redis.ts";

const MINUTE = 60_000;
const SEED = Number(process.env.SEED ?? 20);

interface Step {
  step: string;
  code: string;
  result: string;
  detail: string;
}

/** The result of each step of an explanation, by name. */
const resultsOf = ({ steps }: { steps: Step[] }) => Object.fromEntries(steps.map(({ step, result }) => [step, result]));

/** The sentence of one step. */
const detailOf = ({ steps }: { steps: Step[] }, step: string) => steps.find((one) => one.step === step)!.detail;

describeOnStores("keys.explainVerification", (server) => {
  const explain = (body: object, options?: Parameters<TestServer["ok"]>[2]) =>
    server.ok("keys.explainVerification", body, options);

  it("lists every step of a valid key in the order of the contract, with what it compared (rule 80)", async () => {
    const apiId = await server.createApi();
    const { key, keyId } = await server.createKey(apiId, { expires: server.clock.now() + MINUTE });
    const explained = await explain({ key });
    assert.equal(explained.code, "VALID");
    assert.deepEqual(
      explained.steps.map(({ step, result }: Step) => `${step} ${result}`),
      [
        "lookup passed",
        "deletion passed",
        "api passed",
        "rootKey passed",
        "workspace passed",
        "enabled passed",
        "expiry passed",
        "address passed",
        "permissions passed",
        "concurrency passed",
        "limits passed",
        "credits passed",
      ],
    );
    assert.deepEqual(explained.key, { keyId, apiId });
    assert.match(detailOf(explained, "expiry"), /^The key expires at 20.*Z, and it is 20.*Z\.$/);
    assert.deepEqual(await explain({ keyId }), {
      ...explained,
      record: { ...explained.record, source: "cache" },
      steps: [{ ...explained.steps[0], detail: `The key ${keyId} exists.` }, ...explained.steps.slice(1)],
    });
  });

  it("names the step that decides, and does not reach later ones", async () => {
    const apiId = await server.createApi();
    const { key } = await server.createKey(apiId, { enabled: false, expires: 0 });
    const explained = await explain({ key });
    assert.deepEqual([explained.valid, explained.code], [false, "DISABLED"]);
    const { enabled, workspace, expiry, credits } = resultsOf(explained);
    assert.deepEqual([workspace, enabled, expiry, credits], ["passed", "decided", "notReached", "notReached"]);
    assert.match(detailOf(explained, "expiry"), /^The key expired at 1970/);
  });

  it("explains why a key is not found only to those who may read it (rule 81)", async () => {
    const apiId = await server.createApi();
    const other = await server.createApi("other");
    const { key, keyId } = await server.createKey(apiId);
    assert.equal(
      detailOf(await explain({ key, apiId: other }), "api"),
      `The key belongs to ${apiId}, and the call accepts ${other}.`,
    );
    const { key: reader } = await server.grant("apis.*.read_key");
    const unverifiable = await explain({ key }, { as: reader });
    assert.equal(unverifiable.code, "NOT_FOUND");
    assert.equal(detailOf(unverifiable, "rootKey"), `The root key lacks the permission 'apis.${apiId}.verify_key'.`);
    assert.equal(unverifiable.ratelimits, undefined);

    const absent = await explain({ key: `${key.slice(0, -1)}${key.endsWith("1") ? "2" : "1"}` });
    assert.match(absent.steps[0].detail, /checksum is wrong/);
    const unknown = {
      ...absent,
      steps: [{ ...absent.steps[0], detail: "No key that this root key may read has this string." }],
    };
    for (const grants of [["apis.*.verify_key"], [`apis.${other}.read_key`, "apis.*.verify_key"]]) {
      const { key: as } = await server.grant(...grants);
      assert.deepEqual(await explain({ key }, { as }), unknown);
      await server.rejected("keys.explainVerification", { keyId }, "insufficient_permissions", { as });
    }
    await server.ok("keys.deleteKey", { keyId });
    assert.match(detailOf(await explain({ key }), "deletion"), /was deleted/);
    assert.deepEqual(await explain({ key }, { as: (await server.grant(`apis.${other}.*`)).key }), unknown);
    await server.rejected("keys.explainVerification", { keyId }, "key_not_found");
  });

  it("says which part of a permission query failed, and where each permission comes from", async () => {
    const apiId = await server.createApi();
    await server.createRole("explained editor", "documents.*", "shared");
    await server.createRole("explained viewer", "documents.read", "shared");
    const { key } = await server.createKey(apiId, {
      permissions: ["billing.read", "shared"],
      roles: ["explained editor", "explained viewer"],
    });
    const permissions = "(documents.write and (billing.read OR team.a)) AND (admin or team.a)";
    const explained = await explain({ key, permissions });
    assert.equal(explained.code, "INSUFFICIENT_PERMISSIONS");
    assert.equal(detailOf(explained, "permissions"), "The permissions of the key do not satisfy (admin OR team.a).");
    const { query, effective, count } = explained.permissions;
    assert.deepEqual(query, {
      text: "(documents.write AND (billing.read OR team.a)) AND (admin OR team.a)",
      satisfied: false,
      parts: [
        { text: "(documents.write AND (billing.read OR team.a))", satisfied: true },
        { text: "(admin OR team.a)", satisfied: false },
      ],
      slugs: [
        { slug: "documents.write", grantedBy: "documents.*" },
        { slug: "billing.read", grantedBy: "billing.read" },
        { slug: "team.a" },
        { slug: "admin" },
      ],
    });
    assert.deepEqual(effective, [
      { slug: "documents.*", direct: false, roles: ["explained editor"] },
      { slug: "billing.read", direct: true, roles: [] },
      { slug: "documents.read", direct: false, roles: ["explained viewer"] },
      { slug: "shared", direct: true, roles: ["explained editor", "explained viewer"] },
    ]);
    assert.equal(count, 4);
  });

  it("shows each limit with its counter and where it comes from, and the credits with the next refill", async () => {
    const apiId = await server.createApi();
    await server.pass(MINUTE - (server.clock.now() % MINUTE));
    await server.ok("identities.createIdentity", {
      externalId: "explained",
      ratelimits: [{ name: "team", limit: 5, duration: MINUTE }],
    });
    const { key } = await server.createKey(apiId, {
      externalId: "explained",
      ratelimits: [
        { name: "requests", limit: 3, duration: MINUTE, autoApply: true },
        { name: "tokens", limit: 100, duration: 2 * MINUTE },
      ],
      credits: { remaining: 10, refill: { interval: "daily", amount: 10 } },
    });
    for (let i = 0; i < 3; i++) await server.verify(key);
    const start = server.clock.now();
    const window = { startAt: start, endAt: start + MINUTE };
    const explained = await explain({ key });
    assert.equal(explained.code, "RATE_LIMITED");
    assert.match(
      detailOf(explained, "limits"),
      /^These limits are exhausted: requests\. Without other calls it passes in 1 minute 1 second\.$/,
    );
    const limits = explained.ratelimits.map(({ id: _, ...limit }: { id: string }) => limit);
    const retryAfter = limits[0].retryAfter;
    assert(retryAfter > 0);
    const of = (limit: number, duration: number) => ({ limit, duration });
    assert.deepEqual(limits, [
      {
        name: "requests",
        ...of(3, MINUTE),
        from: "key",
        use: "charged",
        cost: 1,
        exceeded: true,
        retryAfter,
        used: 3,
        window,
      },
      {
        name: "team",
        ...of(5, MINUTE),
        from: "identity",
        use: "charged",
        cost: 1,
        exceeded: false,
        retryAfter: 0,
        used: 3,
        window,
      },
      {
        name: "tokens",
        ...of(100, 2 * MINUTE),
        from: "key",
        use: "unused",
        used: 0,
        window: { startAt: start - (start % (2 * MINUTE)), endAt: start - (start % (2 * MINUTE)) + 2 * MINUTE },
      },
    ]);
    const midnight = Math.ceil(start / 86_400_000) * 86_400_000;
    assert.deepEqual(explained.credits, {
      remaining: 7,
      held: 0,
      cost: 1,
      refill: { interval: "daily", amount: 10, nextAt: midnight },
    });
    const named = await explain({ key, ratelimits: [{ name: "tokens", cost: 7, limit: 5, duration: 1_000 }] });
    assert.deepEqual(
      named.ratelimits.map(({ name, from, use }: { name: string; from: string; use: string }) => [name, from, use]),
      [
        ["tokens", "call", "charged"],
        ["requests", "key", "checked"],
        ["team", "identity", "checked"],
        ["tokens", "key", "replaced"],
      ],
    );
    assert.match(detailOf(named, "limits"), /exhausted: tokens, requests\. With this cost the call can never pass/);
  });

  it("says whether the record was cached, and how current it is", async () => {
    const { key, keyId } = await server.createKey(await server.createApi());
    const first = await explain({ keyId });
    assert.deepEqual(first.record, { source: "database", currentAt: server.clock.now() });
    const { record } = await explain({ key });
    assert.equal(record.source, "cache");
    assert(record.currentAt <= server.clock.now() && record.currentAt > server.clock.now() - 1_000);
  });

  it("fails like a verification if the query or the limit of the call is wrong", async () => {
    const apiId = await server.createApi();
    const { key, keyId } = await server.createKey(apiId);
    for (const by of [{ key }, { keyId }]) {
      const body = (more: object) => ({ ...by, ...more });
      await server.rejected(
        "keys.explainVerification",
        body({ permissions: "a AND" }),
        "permissions_query_syntax_error",
      );
      const wrong = { ratelimits: [{ name: "nothing" }] };
      const error = await server.rejected("keys.explainVerification", body(wrong), "precondition_failed");
      assert.equal(
        error.detail,
        (await server.rejected("keys.verifyKey", { key, ...wrong }, "precondition_failed")).detail,
      );
    }
    for (const by of [{}, { key, keyId }]) {
      const error = await server.rejected("keys.explainVerification", by, "invalid_input");
      assert.equal(error.detail, "Give `key` or `keyId`, and not both.");
    }
  });

  it(`reports the code that a verification answers, and changes nothing (SEED=${SEED})`, async () => {
    const random = seededRandom(SEED);
    const seen = new Map<string, number>();
    const world = await randomWorld(server, random);
    for (let i = 0; i < 120; i++) {
      if (random.below(4) === 0) await server.pass(1 + random.below(3_000));
      const { key, keyId, body, as, string } = await world.request();
      // Reading all rows takes longer than the calls.
      const before = i % 20 === 0 ? await server.rows() : undefined;
      const explained = await server.call("keys.explainVerification", { key, ...body }, { as });
      const again = await server.call("keys.explainVerification", { key, ...body }, { as });
      if (before) assert.deepEqual(await server.rows(), before);
      const { at: _, record: __, ...first } = explained.body.data ?? explained.body.error;
      const { at: ___, record: ____, ...second } = again.body.data ?? again.body.error;
      assert.deepEqual(first, second, "An explanation changed what it explains.");
      const byId = await server.call("keys.explainVerification", { keyId, ...body }, { as });
      const verified = await server.call("keys.verifyKey", { key, ...body }, { as });
      const outcome = verified.problem ?? verified.body.data.code;
      const context = JSON.stringify({ i, body, outcome, explained: explained.body });
      assert.equal(explained.problem ?? explained.body.data.code, outcome, context);
      if (key === string && byId.problem !== "key_not_found")
        assert.equal(byId.problem ?? byId.body.data.code, outcome, context);
      if (outcome === "RATE_LIMITED") assert.equal(verified.body.data.retryAfter, waitOf(explained.body.data), context);
      seen.set(outcome, (seen.get(outcome) ?? 0) + 1);
    }
    const codes = ["VALID", "NOT_FOUND", "FORBIDDEN", "INSUFFICIENT_PERMISSIONS", "USAGE_EXCEEDED", "RATE_LIMITED"];
    const others = ["DISABLED", "EXPIRED", "permissions_query_syntax_error", "precondition_failed"];
    for (const outcome of [...codes, ...others])
      assert(seen.has(outcome), `${outcome} in ${JSON.stringify([...seen])}`);
  });
});

describe("explanations with counters in Redis", () => {
  it("read the counts of all nodes without charging them", async (t) => {
    const settings = { REDIS_URL: await sharedRedis() };
    const one = await openTestServer({ store: "postgres", settings });
    const other = await openTestServer({ beside: one, settings });
    t.after(async () => {
      await other.close();
      await one.close();
    });
    // Redis has its own clock: no window of this length ends during the test, except at midnight.
    const duration = 86_400_000;
    const { key } = await one.createKey(await one.createApi(), {
      ratelimits: [{ name: "requests", limit: 3, duration, autoApply: true }],
    });
    const call = { namespace: "explained", identifier: "a", limit: 3, duration };
    for (let used = 0; used <= 3; used++) {
      for (const server of [one, other, one]) {
        const verification = await server.ok("keys.explainVerification", { key });
        const code = used < 3 ? "VALID" : "RATE_LIMITED";
        assert.deepEqual([verification.code, verification.ratelimits[0].used], [code, used]);
        if (used === 0) continue;
        const limit = await server.ok("ratelimits.explainLimit", call);
        assert.deepEqual([limit.success, limit.used], [used < 3, used]);
      }
      const [counting, verifying] = used % 2 === 0 ? [one, other] : [other, one];
      await counting.ok("ratelimits.limit", call);
      await verifying.verify(key);
    }
  });
});

/** The longest wait of the limits that deny a call; undefined: for ever. */
function waitOf({ ratelimits }: { ratelimits: { exceeded?: boolean; retryAfter?: number }[] }): number | undefined {
  const waits = ratelimits.filter(({ exceeded }) => exceeded).map(({ retryAfter }) => retryAfter);
  return waits.includes(undefined) ? undefined : Math.max(...(waits as number[]));
}

/** Keys in all states, and random verifications of them. */
async function randomWorld(server: TestServer, random: Random) {
  const pick = <T>(list: readonly T[]) => list[random.below(list.length)]!;
  const maybe = <T>(part: number, value: () => T): T | undefined => (random.below(part) === 0 ? value() : undefined);
  const apis = [await server.createApi("open"), await server.createApi("listed")];
  await server.ok("apis.updateApi", { apiId: apis[1], allowedIps: ["10.0.0.0/8"] });
  await server.createRole("random role", "documents.*", "a");
  const externalIds = ["random 1", "random 2"].map((name) => name.replace(" ", "_"));
  for (const externalId of externalIds) {
    const ratelimits = [
      { name: pick(["x", "team"]), limit: 1 + random.below(20), duration: 1_000 * (1 + random.below(6)) },
    ];
    await server.ok("identities.createIdentity", { externalId, ratelimits });
  }
  const slugs = ["a", "b.c", "documents.read", "documents.*", "*"];
  const keys: { key: string; keyId: string }[] = [];
  for (let i = 0; i < 24; i++) {
    const created = await server.createKey(pick(apis), {
      ...(random.below(3) > 0 && { permissions: slugs.filter(() => random.below(3) === 0) }),
      ...(random.below(4) === 0 && { roles: ["random role"] }),
      ...(random.below(3) === 0 && { externalId: pick(externalIds) }),
      ...(random.below(3) === 0 && { credits: { remaining: random.below(12) } }),
      ...(random.below(6) === 0 && { enabled: false }),
      ...(random.below(4) === 0 && { expires: server.clock.now() + random.below(90_000) }),
      ratelimits: ["x", "y"].flatMap((name) =>
        random.below(2) === 0
          ? []
          : [
              {
                name,
                limit: 1 + random.below(8),
                duration: 1_000 * (1 + random.below(6)),
                autoApply: random.below(2) === 0,
              },
            ],
      ),
    });
    keys.push(created);
  }
  for (const { keyId } of keys.slice(0, 2)) await server.ok("keys.deleteKey", { keyId });
  const root = [server.rootKey, (await server.grant(`apis.${apis[0]}.verify_key`, "apis.*.read_key")).key];
  return {
    async request() {
      const { key, keyId } = pick(keys);
      const query = () => pick(["a", "b.c OR a", "documents.write AND (a OR b.c)", "z", "a AND", "*"]);
      const body = {
        apiId: maybe(8, () => pick(apis)),
        keyspaces: maybe(10, () => [pick(apis)]),
        permissions: maybe(3, query),
        credits: maybe(3, () => ({ cost: random.below(5) })),
        clientIp: maybe(2, () => pick(["10.1.2.3", "192.0.2.1"])),
        ratelimits: maybe(4, () =>
          ["x", "y", "team"]
            .filter(() => random.below(2) === 0)
            .map((name) => ({
              name,
              cost: random.below(4),
              ...(random.below(2) === 0 && { limit: random.below(6), duration: 1_000 * (1 + random.below(6)) }),
            })),
        ),
      };
      // A mistyped key, whose id is then not compared.
      return { key: random.below(15) === 0 ? `${key}1` : key, keyId, body, as: pick(root), string: key };
    },
  };
}
