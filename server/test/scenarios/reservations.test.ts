/**
 * What others found out about reservations, as tests of holds: the cases of Limitador's Reserve and Commit
 * (Kuadrant/limitador#506), and reservations and slots that LiteLLM never gave back (BerriAI/litellm#27639, #20256).
 */
import assert from "node:assert/strict";
import { it } from "node:test";
import { describeOnStores } from "../harness.ts";

const HOUR = 3_600_000;

describeOnStores("a reservation", (server) => {
  /** A key below a budget of its own, which only it spends from. */
  async function open(remaining: number) {
    const { budgetId } = await server.ok("budgets.createBudget", { name: "reservations", remaining });
    const { key } = await server.createKey(await server.createApi(), { budgetId });
    const reserve = (cost: number, more: object = {}) =>
      server.verify(key, { credits: { cost }, hold: { ttl: HOUR, ...more } });
    return {
      key,
      reserve,
      reserved: async (cost: number, more: object = {}): Promise<string> => (await reserve(cost, more)).hold.holdId,
      commit: (holdId: string, credits: number) => server.ok("holds.settleHold", { holdId, credits }),
      /** Remaining, held and spent. */
      async books(): Promise<number[]> {
        const { remaining, held, totals } = await server.ok("budgets.getBudget", { budgetId });
        assert.equal(totals.granted, totals.spent + held + remaining + totals.lapsed);
        return [remaining, held, totals.spent];
      },
      /** Lets the time of these holds pass. */
      pass: (holdIds: readonly string[]) =>
        server.change([], async ({ db, dialect }) => {
          await db.updateTable("holds").set({ expires_at: 1 }).where(dialect.values.isOneOf("id", holdIds)).execute();
          await db.updateTable("balances").set({ next_expiry_at: 1 }).where("pool_id", "=", budgetId).execute();
        }),
    };
  }

  it("counts for the calls that arrive before its commit (limitador#506)", async () => {
    const { key, reserve, reserved, commit, books } = await open(10);
    const first = await reserved(6);
    assert.equal((await reserve(6)).code, "USAGE_EXCEEDED", "spent 0 and reserved 6 leave 4");
    assert.equal((await server.verify(key, { credits: { cost: 5 } })).code, "USAGE_EXCEEDED", "also without a hold");
    const second = await reserved(4);
    assert.deepEqual(await books(), [0, 10, 0]);
    await commit(first, 2);
    assert.equal((await reserve(5)).code, "USAGE_EXCEEDED");
    assert.deepEqual(await books(), [4, 4, 2]);
    await commit(second, 4);
    assert.deepEqual(await books(), [4, 0, 6]);
  });

  it("is refused as a whole and reserves nothing if one of several balances lacks (limitador#506)", async () => {
    const { books, reserve } = await open(10);
    assert.equal((await reserve(11)).code, "USAGE_EXCEEDED");
    const { budgetId: root } = await server.ok("budgets.createBudget", { name: "root", remaining: 5 });
    const body = { name: "child", remaining: 50, parentId: root };
    const { budgetId } = await server.ok("budgets.createBudget", body);
    const { key } = await server.createKey(await server.createApi(), { budgetId, credits: { remaining: 50 } });
    const answer = await server.verify(key, { credits: { cost: 6 }, hold: { ttl: HOUR } });
    assert.deepEqual([answer.code, answer.credits, answer.hold], ["USAGE_EXCEEDED", 50, undefined]);
    assert.deepEqual(
      answer.budgets.map(({ remaining, held }: Record<string, number>) => [remaining, held]),
      [
        [50, 0],
        [5, 0],
      ],
    );
    assert.deepEqual(await books(), [10, 0, 0]);
  });

  it("of many calls at once is admitted up to the capacity, and not beyond (limitador#506)", async () => {
    const { reserve, books } = await open(100);
    const answers = await Promise.all(Array.from({ length: 40 }, () => reserve(7)));
    assert.equal(answers.filter(({ code }) => code === "VALID").length, 14);
    assert.deepEqual(await books(), [2, 98, 0]);
  });

  it("that is committed with more than it reserved charges what was used (limitador#506)", async () => {
    const { reserved, commit, books } = await open(10);
    const { charged, uncovered } = await commit(await reserved(4), 9);
    assert.deepEqual([charged, uncovered, await books()], [9, 0, [1, 0, 9]]);
  });

  it("that is committed twice is charged once, and with another amount not at all (limitador#506)", async () => {
    const { reserved, commit, books } = await open(10);
    const holdId = await reserved(4);
    const first = await commit(holdId, 3);
    assert.deepEqual(await commit(holdId, 3), first);
    await server.rejected("holds.settleHold", { holdId, credits: 4 }, "hold_closed");
    assert.deepEqual(await books(), [7, 0, 3]);
  });

  it("that never existed cannot be committed, and nothing is charged (limitador#506)", async () => {
    const { books } = await open(10);
    await server.rejected("holds.settleHold", { holdId: "hold_never0existed000", credits: 3 }, "hold_not_found");
    assert.deepEqual(await books(), [10, 0, 0]);
  });

  it("whose commit never comes ends at its time, and a commit after it counts what was used (limitador#506)", async () => {
    const { reserve, reserved, commit, books, pass } = await open(10);
    const holdId = await reserved(10);
    await pass([holdId]);
    const next = await reserve(6);
    assert.equal(next.code, "VALID", "its capacity is free again");
    const { charged, uncovered } = await commit(holdId, 7);
    assert.deepEqual([charged, uncovered], [4, 3], "as far as there is capacity");
    await commit(next.hold.holdId, 6);
    assert.deepEqual(await books(), [0, 0, 10]);
  });

  it("that is lost again and again never blocks its budget for longer than its time (litellm#27639)", async () => {
    const { key, reserve, books, pass } = await open(100);
    for (let round = 0; round < 5; round++) {
      // Requests of which some fail before an answer, and whose reservations nobody finalizes.
      const answers = await Promise.all(Array.from({ length: 12 }, () => reserve(9)));
      const lost = answers.flatMap(({ hold }) => (hold ? [hold.holdId] : []));
      assert.equal(lost.length, 11);
      assert.equal((await server.verify(key, { credits: { cost: 9 } })).code, "USAGE_EXCEEDED");
      await pass(lost);
    }
    // Nothing was spent, so the whole budget is there: no phantom spend, whoever asks first.
    assert.equal((await server.verify(key, { credits: { cost: 100 } })).code, "VALID");
    assert.deepEqual(await books(), [0, 0, 100]);
  });

  it("of calls that time out upstream is given back by each way to end (litellm#20256)", async () => {
    // As many as may run at once.
    const { reserve, reserved, commit, books, pass } = await open(3);
    const running = [await reserved(1), await reserved(1), await reserved(1)];
    assert.equal((await reserve(1)).code, "USAGE_EXCEEDED");
    await server.ok("holds.releaseHold", { holdId: running[0] });
    await commit(running[1]!, 0);
    await pass([running[2]!]);
    const again = await Promise.all([reserve(1), reserve(1), reserve(1), reserve(1)]);
    assert.deepEqual(again.map(({ code }) => code).sort(), ["USAGE_EXCEEDED", "VALID", "VALID", "VALID"]);
    // The callers that hung come back at last, and end what has ended: no place is given back twice.
    await server.rejected("holds.releaseHold", { holdId: running[2] }, "hold_closed");
    await server.ok("holds.releaseHold", { holdId: running[0] });
    await commit(running[1]!, 0);
    assert.equal((await reserve(1)).code, "USAGE_EXCEEDED");
    assert.deepEqual(await books(), [0, 3, 0]);
  });

  it("of a slot is given back by each way to end, too, and once (litellm#20256)", async () => {
    const concurrency = [{ name: "streams", limit: 3 }];
    const { key } = await server.createKey(await server.createApi(), { concurrency });
    const take = () => server.verify(key, { credits: { cost: 0 }, hold: { ttl: HOUR } });
    const take3 = async (): Promise<string[]> => {
      const answers = await Promise.all([take(), take(), take(), take()]);
      assert.deepEqual(answers.map(({ code }) => code).sort(), ["RATE_LIMITED", "VALID", "VALID", "VALID"]);
      return answers.flatMap(({ hold }) => (hold ? [hold.holdId] : []));
    };
    const [released, settled, hung] = (await take3()) as [string, string, string];
    const end = async () => {
      await server.ok("holds.releaseHold", { holdId: released });
      await server.ok("holds.settleHold", { holdId: settled, credits: 0 });
    };
    await end();
    await server.change([], async ({ db }) => {
      await db.updateTable("holds").set({ expires_at: 1 }).where("id", "=", hung).execute();
      await db.updateTable("balances").set({ next_expiry_at: 1 }).where("held", ">", 0).execute();
    });
    const again = await take3();
    await end();
    await server.rejected("holds.releaseHold", { holdId: hung }, "hold_closed");
    assert.equal((await take()).code, "RATE_LIMITED");
    for (const holdId of again) await server.ok("holds.releaseHold", { holdId });
    await take3();
  });
});
