/** Verifications that spend from budgets. What a budget is, and who may assign it, is in the scenario of budgets. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate } from "node:timers/promises";
import { systemClock } from "../../../engine/src/clock/system.ts";
import { lockAvailableBalances } from "../../src/features/credits/statements/balances.ts";
import { describeOnStores, openTestServer, type TestServer } from "../harness.ts";

const HOUR = 3_600_000;

/** Creates budgets, keys and identities with little text. */
function maker(server: TestServer) {
  const budget = async (name: string, remaining: number, more: object = {}): Promise<string> =>
    (await server.ok("budgets.createBudget", { name, remaining, ...more })).budgetId;
  const key = async (more: object = {}) => server.createKey(await server.createApi(), more);
  const left = async (budgetId: string): Promise<number> =>
    (await server.ok("budgets.getBudget", { budgetId })).remaining;
  return { budget, key, left };
}

describeOnStores("verifications with budgets", (server) => {
  const { budget, key: createKey, left } = maker(server);

  it("are charged to the credits of the key and to each budget of the key and of its identity once (rule 86)", async () => {
    const root = await budget("company", 100);
    const [team, user] = [await budget("team", 50, { parentId: root }), await budget("user", 20, { parentId: root })];
    await server.ok("identities.createIdentity", { externalId: "ada", budgetId: user });
    const { key } = await createKey({ credits: { remaining: 10 }, externalId: "ada", budgetId: team });
    const answer = await server.verify(key, { credits: { cost: 4 } });
    assert.deepEqual([answer.code, answer.credits], ["VALID", 6]);
    const states = (exceeded: boolean, ...remaining: number[]) =>
      ["team", "company", "user"].map((name, i) => ({
        budgetId: [team, root, user][i],
        name,
        remaining: remaining[i],
        held: 0,
        exceeded,
      }));
    assert.deepEqual(answer.budgets, states(false, 46, 96, 16));
    const refused = await server.verify(key, { credits: { cost: 7 } });
    assert.deepEqual([refused.code, refused.credits], ["USAGE_EXCEEDED", 6]);
    assert.deepEqual(refused.budgets, states(false, 46, 96, 16), "nothing was charged, and no budget lacks");
    const free = await server.verify(key, { credits: { cost: 0 } });
    assert.deepEqual([free.code, free.credits, free.budgets], ["VALID", 6, refused.budgets]);
    assert.deepEqual(await Promise.all([team, root, user].map(left)), [46, 96, 16]);
  });

  it("are refused by a budget of a key without credits, with the time of its next refill", async () => {
    const root = await budget("hourly", 3, { refill: { interval: "hourly", amount: 3 } });
    const { key } = await createKey({ budgetId: root });
    assert.equal((await server.verify(key, { credits: { cost: 2 } })).code, "VALID");
    const answer = await server.verify(key, { credits: { cost: 2 } });
    assert.deepEqual([answer.valid, answer.code, answer.credits], [false, "USAGE_EXCEEDED", undefined]);
    const retryAfter = HOUR - (server.clock.now() % HOUR);
    assert.deepEqual(answer.budgets, [
      { budgetId: root, name: "hourly", remaining: 1, held: 0, exceeded: true, retryAfter },
    ]);
    server.clock.step(retryAfter);
    assert.deepEqual((await server.verify(key, { credits: { cost: 2 } })).budgets[0].remaining, 1);
  });

  it("are counted, and never refused, by a budget with onEmpty allow", async () => {
    const watched = await budget("watched", 1, { onEmpty: "allow" });
    const { key } = await createKey({ budgetId: watched });
    for (const remaining of [-1, -3]) {
      const { code, budgets } = await server.verify(key, { credits: { cost: 2 } });
      assert.deepEqual([code, budgets[0].remaining, budgets[0].exceeded], ["VALID", remaining, false]);
    }
    const { totals } = await server.ok("budgets.getBudget", { budgetId: watched });
    assert.deepEqual(totals, { granted: 1, spent: 4, lapsed: 0 });
  });

  it("charge nothing that a limit denies, and RATE_LIMITED precedes USAGE_EXCEEDED", async () => {
    const root = await budget("limited", 2);
    const ratelimits = [{ name: "requests", limit: 1, duration: HOUR, autoApply: true }];
    const { key } = await createKey({ budgetId: root, ratelimits });
    assert.equal((await server.verify(key)).code, "VALID");
    for (const cost of [1, 5]) {
      const { code, budgets } = await server.verify(key, { credits: { cost } });
      assert.deepEqual([code, budgets[0].remaining, budgets[0].exceeded], ["RATE_LIMITED", 1, false]);
    }
    assert.equal(await left(root), 1);
  });

  it("show budgets to callers with a root key only, and to rejected calls too", async () => {
    const root = await budget("hidden", 5);
    const { key, keyId } = await createKey({ budgetId: root });
    const anonymous = await server.verify(key, {}, { as: null });
    assert.deepEqual([anonymous.code, anonymous.budgets], ["VALID", undefined]);
    await server.ok("keys.updateKey", { keyId, enabled: false });
    const { code, budgets } = await server.verify(key);
    assert.deepEqual(
      [code, budgets],
      ["DISABLED", [{ budgetId: root, name: "hidden", remaining: 4, held: 0, exceeded: false }]],
    );
  });

  it("with an Idempotency-Key are charged once, and the repetition has the same answer", async () => {
    const root = await budget("repeated", 5);
    const { key } = await createKey({ budgetId: root });
    const header = { headers: { "idempotency-key": "budgets-once" } };
    const first = await server.verify(key, { credits: { cost: 3 } }, header);
    assert.equal(first.budgets[0].remaining, 2);
    assert.deepEqual(await server.verify(key, { credits: { cost: 3 } }, header), first);
    assert.equal(await left(root), 2);
  });

  it("spend from the new budget as soon as it was assigned, and from none that was removed", async () => {
    const [before, after] = [await budget("before", 5), await budget("after", 5)];
    const { key, keyId } = await createKey({ budgetId: before });
    await server.verify(key);
    await server.ok("keys.updateKey", { keyId, budgetId: after });
    await server.verify(key);
    await server.ok("keys.updateKey", { keyId, budgetId: null });
    assert.equal((await server.verify(key)).budgets, undefined);
    assert.deepEqual([await left(before), await left(after)], [4, 4]);
  });

  it("of budgets with different units are a mistake", async () => {
    await server.ok("identities.createIdentity", {
      externalId: "mixed",
      budgetId: await budget("tokens", 5, { unit: "token" }),
    });
    const { key } = await createKey({ externalId: "mixed", budgetId: await budget("money", 5, { unit: "usd_micro" }) });
    const { detail } = await server.rejected("keys.verifyKey", { key }, "invalid_input");
    assert.match(detail, /counts usd_micro, and bud_\w+ token\./);
    await server.rejected("keys.explainVerification", { key }, "invalid_input");
    const anonymous = await server.rejected("keys.verifyKey", { key }, "invalid_input", { as: null });
    assert(!/bud_|usd_micro|key_/.test(anonymous.detail), anonymous.detail);
    const free = { credits: { cost: 0 } };
    assert.equal((await server.verify(key, free)).code, "VALID");
    assert.equal((await server.ok("keys.explainVerification", { key, ...free })).code, "VALID");
  });

  it("are explained with each budget", async () => {
    const root = await budget("explained", 5, { refill: { interval: "monthly", amount: 9 }, unit: "token" });
    const watched = await budget("counted", 1, { parentId: root, onEmpty: "allow" });
    const { key } = await createKey({ budgetId: watched });
    const explained = await server.ok("keys.explainVerification", { key, credits: { cost: 6 } });
    assert.equal(explained.code, "USAGE_EXCEEDED");
    assert.deepEqual(
      explained.budgets.map(({ name, unit, onEmpty, remaining, cost, exceeded }: Record<string, unknown>) => [
        name,
        unit,
        onEmpty,
        remaining,
        cost,
        exceeded,
      ]),
      [
        ["counted", "token", "allow", 1, 6, false],
        ["explained", "token", "deny", 5, 6, true],
      ],
    );
    assert.equal(explained.budgets[1].refill.amount, 9);
    const { detail } = explained.steps.find(({ step }: { step: string }) => step === "credits");
    assert.equal(
      detail,
      "The call costs 6, and the budget 'counted', which never denies, has 1, and the budget 'explained' has 5.",
    );
    assert.equal(await left(root), 5);
  });

  it("of 1,000 callers of 20 keys at once pass exactly 500 times with a budget of 500, three levels deep", async () => {
    const root = await budget("crowd", 500);
    const apiId = await server.createApi();
    const teams = await Promise.all([1, 2].map((i) => budget(`crowd ${i}`, 1_000, { parentId: root })));
    const users = await Promise.all(teams.map((parentId, i) => budget(`crowd user ${i}`, 1_000, { parentId })));
    const keys = await Promise.all(
      Array.from({ length: 20 }, (_, i) => server.createKey(apiId, { budgetId: users[i % 2] })),
    );
    const answers = await Promise.all(Array.from({ length: 1_000 }, (_, i) => server.verify(keys[i % 20]!.key)));
    assert.equal(answers.filter(({ code }) => code === "VALID").length, 500);
    for (const { code, budgets } of answers) {
      if (code !== "VALID")
        assert.deepEqual([code, budgets[2].remaining, budgets[2].exceeded], ["USAGE_EXCEEDED", 0, true]);
    }
    assert.equal(await left(root), 0);
    const spent = 2_000 - (await left(teams[0]!)) - (await left(teams[1]!));
    assert.equal(spent, 500);
  });
});

describe("two nodes on postgres", () => {
  /** Runs work on two services with one database. Their clock, by which the ledger pauses, passes as that of the machine. */
  async function withNodes(work: (nodes: [TestServer, TestServer]) => Promise<void>): Promise<void> {
    const server = await openTestServer({ store: "postgres" });
    const beside = await openTestServer({ store: "postgres", beside: server });
    let isOver = false;
    const working = work([server, beside]).finally(() => {
      isOver = true;
    });
    const passing = (async () => {
      const startedAt = systemClock.monotonic();
      for (let passed = 0; !isOver; ) {
        await setImmediate();
        const now = Math.floor(systemClock.monotonic() - startedAt);
        await server.advance(now - passed);
        passed = now;
      }
    })();
    try {
      await Promise.all([working, passing]);
    } finally {
      await beside.close();
      await server.close();
    }
  }

  it("charge two roots in opposite order, and both add up", async () => {
    await withNodes(async (nodes) => {
      const { budget, left } = maker(nodes[0]);
      const roots = [await budget("one", 10_000), await budget("two", 10_000)] as const;
      const apiId = await nodes[0].createApi();
      const keys = await Promise.all(
        [0, 1].map(async (i) => {
          const externalId = `opposite-${i}`;
          await nodes[0].ok("identities.createIdentity", { externalId, budgetId: roots[1 - i] });
          return nodes[0].createKey(apiId, { externalId, budgetId: roots[i] });
        }),
      );
      const spender = async (i: number) => {
        for (let calls = 0; calls < 25; calls++) {
          assert.equal((await nodes[i % 2]!.verify(keys[(i >> 1) % 2]!.key)).code, "VALID");
        }
      };
      await Promise.all(Array.from({ length: 16 }, (_, i) => spender(i)));
      assert.deepEqual(await Promise.all(roots.map(left)), [9_600, 9_600]);
    });
  });

  it("delay only the calls below a root while another transaction has it", async () => {
    await withNodes(async ([server]) => {
      const { budget, left } = maker(server);
      const [frozen, other] = [await budget("frozen", 10), await budget("other", 10)];
      const apiId = await server.createApi();
      const below = await server.createKey(apiId, { budgetId: frozen });
      const beside = await server.createKey(apiId, { budgetId: other });
      const random = { below: () => 0 };
      const transaction = await server.openTransaction([], async (sql) => {
        const { balances } = await lockAvailableBalances(sql, [frozen], { random, now: server.clock.now() });
        assert.equal(balances.length, 1);
      });
      let isAnswered = false;
      const delayed = server.verify(below.key).finally(() => {
        isAnswered = true;
      });
      for (let calls = 0; calls < 5; calls++) assert.equal((await server.verify(beside.key)).code, "VALID");
      assert.equal(isAnswered, false);
      await transaction.commit();
      assert.equal((await delayed).code, "VALID");
      assert.deepEqual([await left(frozen), await left(other)], [9, 5]);
    });
  });

  it("are contended, not unlimited, when another transaction has the only one beside the first", async () => {
    await withNodes(async ([server]) => {
      const { budget } = maker(server);
      const [first, frozen] = [await budget("first", 10), await budget("frozen", 10)];
      const options = { random: { below: () => 0 }, now: server.clock.now() };
      const holder = await server.openTransaction([], async (sql) => {
        await lockAvailableBalances(sql, [frozen], options);
      });
      const turn = await server.openTransaction([], async (sql) => {
        const locked = await lockAvailableBalances(sql, [frozen], {
          ...options,
          first: { balanceId: first, laterTimeout: 1_000 },
        });
        assert.deepEqual(locked.contended, [frozen]);
        assert.deepEqual(
          locked.balances.map((balance) => balance.pool_id),
          [first],
        );
      });
      await turn.commit();
      await holder.commit();
    });
  });
});
