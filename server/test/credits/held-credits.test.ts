/** Credits that the ledger holds, on both databases. `SEED=17` repeats a run. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { sql as raw } from "kysely";
import type { ExpiredHold } from "../../../engine/src/credits/batch.ts";
import { LedgerFailed } from "../../../engine/src/credits/ledger.ts";
import type { SpendOutcome } from "../../../engine/src/credits/spend.ts";
import { StoreUnavailable } from "../../../engine/src/errors/store-unavailable.ts";
import { seededRandom } from "../../../engine/src/random/seeded.ts";
import { creditProcedures } from "../../src/features/credits/procedures.ts";
import { BalanceWriter } from "../../src/features/credits/statements/balances.ts";
import { claimScopes } from "../../src/platform/store/idempotency.ts";
import type { Sql } from "../../src/platform/store/store.ts";
import { describeOnStores } from "../harness.ts";

import { Book, changedHold, compareHolds, type Limits } from "./hold-model.ts";

/** PostgreSQL needs milliseconds for each; `held-credits.slow.test.ts` makes more of them there. */
const STEPS = { sqlite: 5_000, postgres: 1_000 };
const seed = Number(process.env.SEED ?? 33);
const HOUR = 3_600_000;
const random = seededRandom(33);

function spentOf(outcome: SpendOutcome<Limits>) {
  return outcome.outcome === "spent" ? outcome.remaining : outcome.outcome;
}

describeOnStores("credits held in the ledger", (server, kind) => {
  const book = () => new Book(server, random);

  it("are settled for less, for the same and for more, as far as each balance covers it", async () => {
    const one = book();
    await one.open("pool_a", 100, { isPool: true });
    await one.open("bud_a", 150);
    await one.open("bud_watched", 10, { isWatched: true });
    const ids = ["pool_a", "bud_a", "bud_watched"];
    const settled = async (cost: number, amount: number) => {
      const holdId = one.newHoldId();
      const taken = await one.take(ids, cost, { holdId });
      assert(taken.outcome === "spent" && taken.hold?.holdId === holdId);
      assert.deepEqual(taken.held, [cost, cost, cost]);
      const { state, charged, uncovered, lacks, isRepeated, former } = changedHold(
        await one.settle(holdId, ids, amount),
      );
      assert.deepEqual([state, isRepeated, former], ["settled", false, { state: "open", charged: 0 }]);
      const rows = await one.rows(ids);
      for (const [id, row] of rows)
        if (id !== "pool_a") assert.equal(row.granted, row.spent! + row.held! + row.remaining);
      return [charged, uncovered, lacks, ...ids.map((id) => rows.get(id)?.remaining)];
    };
    assert.deepEqual(await settled(60, 20), [20, 0, [], 80, 130, -10]);
    assert.deepEqual(await settled(30, 30), [30, 0, [], 50, 100, -40]);
    const lacks = [
      { balanceId: "pool_a", lack: 70 },
      { balanceId: "bud_a", lack: 20 },
    ];
    assert.deepEqual(await settled(10, 120), [50, 70, lacks, 0, 0, -160]);
  });

  it("are settled once: the same amounts have the same answer, and others conflict", async () => {
    const one = book();
    await one.open("bud_once", 10);
    const holdId = one.newHoldId();
    await one.take(["bud_once"], 6, { holdId });
    const first = changedHold(await one.settle(holdId, ["bud_once"], 25));
    assert.deepEqual([first.charged, first.uncovered], [10, 15]);
    const again = await one.settle(holdId, ["bud_once"], 25);
    assert.deepEqual(again, { ...first, isRepeated: true, former: { state: "settled", charged: 10 } });
    const conflict = { outcome: "conflict", state: "settled", settlement: '{"credits":25}' };
    for (const action of [
      { kind: "settle", amount: 3, settlement: "other" },
      { kind: "release" },
      { kind: "extend", ttl: HOUR },
    ] as const) {
      assert.deepEqual(await one.change(holdId, ["bud_once"], action), conflict);
    }
    const [expired, twice] = await Promise.all([
      one.change(holdId, ["bud_once"], { kind: "expire" }),
      one.settle(one.newHoldId(), ["bud_once"], 1),
    ]);
    assert.deepEqual([changedHold(expired).isRepeated, twice], [true, { outcome: "gone" }]);
    const { remaining, held, spent } = (await one.rows(["bud_once"])).get("bud_once")!;
    assert.deepEqual([remaining, held, spent], [0, 0, 10]);
  });

  it("are not read again by the ledger that made them, until anything else has changed a hold", async () => {
    let reads = 0;
    const [one, other] = [
      new Book(server, random, (batch, answer) =>
        server.store.transact("spend", batch, (question) => {
          if (question.step === "settle") reads++;
          return answer(question);
        }),
      ),
      book(),
    ];
    const ids = ["bud_own", "bud_left"];
    for (const id of ids) await one.open(id, 100);
    const make = async (by = one) => {
      const holdId = by.newHoldId();
      assert.equal((await by.take(ids, 10, { holdId })).outcome, "spent");
      return holdId;
    };
    const readsOf = async (work: () => Promise<unknown>) => {
      const before = reads;
      await work();
      return reads - before;
    };
    /** What PostgreSQL, where other nodes change holds, reads each time. */
    const always = kind === "postgres" ? 1 : 0;
    await make();
    const [first, second, third] = [await make(), await make(), await make()];
    assert.equal(await readsOf(make), always);
    assert.equal(
      await readsOf(async () => assert.equal(changedHold(await one.settle(first, ids, 4)).charged, 4)),
      always,
    );
    // Once it has ended, it is read.
    assert.equal(await readsOf(async () => assert(changedHold(await one.settle(first, ids, 4)).isRepeated)), 1);
    const extend = { kind: "extend", ttl: HOUR } as const;
    let expiresAt = 0;
    const extended = async () => ({ expiresAt } = changedHold(await one.change(second, ids, extend)));
    assert.equal(await readsOf(extended), always);
    const settled = async () => assert.equal(changedHold(await one.settle(second, ids, 5)).expiresAt, expiresAt);
    assert.equal(await readsOf(settled), always);

    // Another ledger, a direct change, and a balance that is removed and set again.
    assert.equal(changedHold(await other.settle(third, ids, 3)).charged, 3);
    const conflict = { outcome: "conflict", state: "settled", settlement: '{"credits":3}' };
    assert.equal(await readsOf(async () => assert.deepEqual(await one.settle(third, ids, 2), conflict)), 1);
    const aged = await make();
    await one.age([aged], ids);
    const late = async () =>
      assert.equal(changedHold(await one.change(aged, ids, { kind: "expire" })).state, "expired");
    assert.equal(await readsOf(late), 1);
    const left = await make();
    await one.write((sql, now) => new BalanceWriter(sql, server.workspaceId).remove("bud_left", now));
    await one.open("bud_left", 50);
    assert.equal(await readsOf(async () => assert.equal(changedHold(await one.settle(left, ids, 9)).charged, 9)), 1);
    const rows = await one.rows(ids);
    for (const row of rows.values()) assert.equal(row.granted, row.spent! + row.held! + row.remaining + row.lapsed!);
    // Two of the holds are open, which had both balances before one of them was removed.
    assert.deepEqual(
      ids.map((id) => [rows.get(id)?.remaining, rows.get(id)?.held]),
      [
        [100 - 4 - 5 - 3 - 9 - 20, 20],
        [50, null],
      ],
    );
  });

  it("are released once, and a batch with two settlements of a hold settles it once", async () => {
    const one = book();
    await one.open("bud_two", 10);
    const [released, settled] = [one.newHoldId(), one.newHoldId()];
    await Promise.all([released, settled].map((holdId) => one.take(["bud_two"], 5, { holdId })));
    const outcomes = await Promise.all([
      one.change(released, ["bud_two"], { kind: "release" }),
      one.change(released, ["bud_two"], { kind: "release" }),
      one.settle(settled, ["bud_two"], 2),
      one.settle(settled, ["bud_two"], 2),
      one.settle(settled, ["bud_two"], 3),
    ]);
    assert.deepEqual(
      outcomes.map((outcome) => (outcome.outcome === "changed" ? outcome.isRepeated : outcome.outcome)),
      [false, true, false, true, "conflict"],
    );
    const { remaining, held } = (await one.rows(["bud_two"])).get("bud_two")!;
    assert.deepEqual([remaining, held], [8, 0]);
  });

  it("expire for a call that lacks them, without a sweep, and are settled late", async () => {
    const one = book();
    for (const [onExpiry, left, late] of [
      ["release", 3, [7, 1, 0]],
      ["charge", 0, [8, 0, 2]],
    ] as const) {
      const id = `bud_${onExpiry}`;
      await one.open(id, 10);
      const holdId = one.newHoldId();
      await one.take([id], 10, { holdId, onExpiry });
      assert.equal(spentOf(await one.take([id], 7)), "insufficient");
      await one.age([holdId], [id]);
      assert.deepEqual(spentOf(await one.take([id], 7)), onExpiry === "release" ? [3] : "insufficient");
      const expired = await one.hold(holdId);
      assert.deepEqual([expired?.state, expired?.charged], ["expired", onExpiry === "charge" ? 10 : 0]);
      assert.equal((await one.rows([id])).get(id)?.remaining, left);
      assert.equal((await one.change(holdId, [id], { kind: "release" })).outcome, "conflict");
      const { charged, uncovered } = changedHold(await one.settle(holdId, [id], 8));
      const { remaining } = (await one.rows([id])).get(id)!;
      // After the release, the 3 that are left cover what they can.
      assert.deepEqual([charged, uncovered, remaining], onExpiry === "release" ? [3, 5, 0] : late);
    }
  });

  it("that an ended period gives back lapse, unless rollover has room for them", async () => {
    const one = book();
    await one.open("bud_lapse", 10, { amount: 10 });
    await one.open("bud_keep", 10, { amount: 10, rollover: 4 });
    const ids = ["bud_lapse", "bud_keep"];
    const [less, more] = [one.newHoldId(), one.newHoldId()];
    await one.take(ids, 5, { holdId: less });
    await one.take(ids, 4, { holdId: more });
    server.clock.step(HOUR - (server.clock.now() % HOUR));
    assert.deepEqual([...(await one.rows(ids)).values()].map(({ remaining, held }) => [remaining, held]).sort(), [
      [10, 9],
      [11, 9],
    ]);
    await one.change(less, ids, { kind: "release" });
    await one.settle(more, ids, 7);
    const rows = await one.rows(ids);
    const of = (id: string) => {
      const { remaining, held, spent, lapsed } = rows.get(id)!;
      return { remaining, held, spent, lapsed };
    };
    assert.deepEqual(of("bud_lapse"), { remaining: 7, held: 0, spent: 7, lapsed: 1 + 5 });
    assert.deepEqual(of("bud_keep"), { remaining: 14 - 3, held: 0, spent: 7, lapsed: 2 });
  });

  it("are extended, never past 24 hours, and the balance of a call at cost 0 is not changed", async () => {
    const one = book();
    await one.open("bud_long", 10);
    const holdId = one.newHoldId();
    const taken = await one.take(["bud_long"], 0, { holdId, ttl: HOUR });
    assert(taken.outcome === "spent" && taken.hold);
    const { expiresAt } = taken.hold;
    const extended = async (ttl: number) =>
      changedHold(await one.change(holdId, ["bud_long"], { kind: "extend", ttl })).expiresAt;
    assert.equal(await extended(1), expiresAt);
    assert((await extended(2 * HOUR)) >= expiresAt + HOUR);
    assert.equal(await extended(48 * HOUR), expiresAt + 23 * HOUR);
    assert.equal((await one.rows(["bud_long"])).get("bud_long")?.remaining, 10);
  });

  it("do not come back to a balance that was removed, and the one that follows holds nothing of it", async () => {
    const one = book();
    await one.open("pool_gone", 10, { isPool: true });
    const [before, after] = [one.newHoldId(), one.newHoldId()];
    await one.open("bud_stays", 10);
    await one.take(["pool_gone", "bud_stays"], 10, { holdId: before });
    await one.write((sql, now) => new BalanceWriter(sql, server.workspaceId).remove("pool_gone", now));
    assert.deepEqual(spentOf(await one.take(["pool_gone"], 5)), [undefined], "it is unlimited");
    await one.open("pool_gone", 3, { isPool: true });
    await one.take(["pool_gone"], 1, { holdId: after });
    await one.change(after, ["pool_gone"], { kind: "release" });
    const [settled, conflict] = await Promise.all([
      one.settle(before, ["pool_gone", "bud_stays"], 4),
      one.settle(before, ["pool_gone", "bud_stays"], 5),
    ]);
    assert.deepEqual([changedHold(settled).charged, conflict.outcome], [4, "conflict"]);
    const rows = await one.rows(["pool_gone", "bud_stays"]);
    const left = ["pool_gone", "bud_stays"].map((id) => [rows.get(id)?.remaining, rows.get(id)?.held]);
    assert.deepEqual(left, [
      [3, 0],
      [6, 0],
    ]);
  });

  it("stay beside the credits of a key that are set, incremented, refilled differently or made unlimited", async () => {
    const one = book();
    const { keyId } = await server.createKey(await server.createApi(), { credits: { remaining: 10 } });
    const poolId = await one.poolOf(keyId);
    const holdId = one.newHoldId();
    await one.take([poolId], 6, { holdId });
    const row = async () => {
      const { remaining, held, next_expiry_at } = (await one.rows([poolId])).get(poolId)!;
      return [remaining, held, next_expiry_at !== null];
    };
    await server.ok("keys.updateCredits", { keyId, operation: "set", value: 20 });
    assert.deepEqual(await row(), [20, 6, true]);
    await server.ok("keys.updateCredits", { keyId, operation: "increment", value: 1 });
    assert.deepEqual(await row(), [21, 6, true]);
    await server.ok("keys.updateKey", { keyId, credits: { remaining: 5, refill: { interval: "daily", amount: 5 } } });
    assert.deepEqual(await row(), [5, 6, true]);
    const { charged, uncovered } = changedHold(await one.settle(holdId, [poolId], 8));
    assert.deepEqual([charged, uncovered, await row()], [8, 0, [3, 0, false]]);
    const open = one.newHoldId();
    await one.take([poolId], 2, { holdId: open });
    await server.ok("keys.updateCredits", { keyId, operation: "set", value: null });
    assert.equal((await one.hold(open))?.balances, "[]");
    assert.equal(changedHold(await one.settle(open, [poolId], 7)).charged, 0);
  });

  it("that expired give nothing back to credits that a key got after it had none", async () => {
    const one = book();
    const { keyId } = await server.createKey(await server.createApi(), { credits: { remaining: 1_000 } });
    const poolId = await one.poolOf(keyId);
    const holdId = one.newHoldId();
    await one.take([poolId], 1_000, { holdId, onExpiry: "charge" });
    await one.age([holdId], [poolId]);
    await one.change(holdId, [poolId], { kind: "expire" });
    await server.ok("keys.updateCredits", { keyId, operation: "set", value: null });
    await server.ok("keys.updateCredits", { keyId, operation: "set", value: 10 });
    await one.settle(holdId, [poolId], 0);
    assert.equal((await one.rows([poolId])).get(poolId)?.remaining, 10);
  });

  it("of which no balance is locked are changed by one transaction at a time", async () => {
    const one = book();
    const holdId = one.newHoldId();
    await one.take(["pool_unlimited"], 5, { holdId });
    // Another node has claimed the hold, and settles it before this one reads it.
    const other = await server.openTransaction([], async (sql) => {
      await claimScopes(sql, [holdId]);
      const closed = {
        state: "settled",
        charged: 4,
        uncovered: 0,
        settlement: "of another node",
        closed_at: 1,
      } as const;
      await sql.db.updateTable("holds").set(closed).where("id", "=", holdId).execute();
    });
    const settling = one.settle(holdId, [], 3).catch((error: Error) => error);
    if (kind === "postgres") assert((await settling) instanceof StoreUnavailable);
    await other.commit();
    await settling;
    const conflict = { outcome: "conflict", state: "settled", settlement: "of another node" };
    assert.deepEqual(await one.settle(holdId, [], 3), conflict);
    if (kind === "sqlite") return;

    // Another node settles the hold after this one has begun.
    const late = one.newHoldId();
    await one.take(["pool_unlimited"], 5, { holdId: late });
    const { spend } = creditProcedures(random).writing;
    const beside = new Book(server, random, async (batch, answer) => {
      let due: readonly ExpiredHold[] = [];
      await one.write(async (sql) => {
        const { locks } = sql.dialect;
        const tryLockTexts: Sql["dialect"]["locks"]["tryLockTexts"] = async (connection, texts) => {
          await one.settle(late, [], 3);
          return locks.tryLockTexts(connection, texts);
        };
        const dialect = { ...sql.dialect, locks: { ...locks, tryLockTexts } };
        ({ due } = await spend({ ...sql, dialect }, batch, answer as Parameters<typeof spend>[2]));
      });
      return { due };
    });
    assert.equal((await beside.settle(late, [], 4)).outcome, "conflict");
  });

  if (kind === "postgres") {
    it("are not settled by a batch after another transaction has ended them", async () => {
      const one = book();
      await one.open("bud_raced", 10);
      const holdId = one.newHoldId();
      await one.take(["bud_raced"], 6, { holdId });
      let isRaced = false;
      const beside = new Book(server, random, (batch, answer) =>
        server.store.transact("spend", batch, async (question) => {
          const reply = await answer(question);
          if (question.step === "settle" && !isRaced) {
            isRaced = true;
            await one.write(async ({ db }) => {
              const released = { state: "released", charged: 0, closed_at: 1 } as const;
              await db.updateTable("holds").set(released).where("id", "=", holdId).execute();
            });
          }
          return reply;
        }),
      );
      await assert.rejects(beside.settle(holdId, ["bud_raced"], 4), LedgerFailed);
      assert.equal((await one.hold(holdId))?.state, "released");
      const { remaining, held, spent } = (await one.rows(["bud_raced"])).get("bud_raced")!;
      assert.deepEqual([remaining, held, spent], [4, 6, 0], "the batch has changed nothing");
    });
  }

  it("of a key without a balance are settled too, and charge nothing", async () => {
    const one = book();
    const holdId = one.newHoldId();
    assert.equal((await one.take(["pool_unlimited"], 5, { holdId })).outcome, "spent");
    assert.equal((await one.hold(holdId))?.balances, "[]");
    const { charged, uncovered } = changedHold(await one.settle(holdId, [], 9));
    assert.deepEqual([charged, uncovered], [0, 0]);
    assert.equal((await one.settle(holdId, [], 8)).outcome, "conflict");
  });

  it("are held by exactly 500 of 1,000 calls at once, and given back once", async () => {
    const one = book();
    await one.open("bud_500", 500 * 7);
    const ids = Array.from({ length: 1_000 }, () => one.newHoldId());
    const outcomes = await Promise.all(ids.map((holdId) => one.take(["bud_500"], 7, { holdId })));
    const open = ids.filter((_, i) => outcomes[i]?.outcome === "spent");
    assert.equal(open.length, 500);
    const closing = [...open, ...open].map((holdId) => one.settle(holdId, ["bud_500"], 3));
    const charged = (await Promise.all(closing)).map((outcome) => changedHold(outcome).isRepeated);
    assert.equal(charged.filter((isRepeated) => !isRepeated).length, 500);
    const { remaining, held, spent } = (await one.rows(["bud_500"])).get("bud_500")!;
    assert.deepEqual([remaining, held, spent], [500 * 4, 0, 500 * 3]);
  });

  it("of 300 callers that died all come back for a call that lacks them", async () => {
    const one = book();
    await one.open("bud_died", 300);
    const holdIds = Array.from({ length: 300 }, () => one.newHoldId());
    await Promise.all(holdIds.map((holdId) => one.take(["bud_died"], 1, { holdId })));
    await one.age(holdIds, ["bud_died"]);
    assert.deepEqual(spentOf(await one.take(["bud_died"], 300)), [0]);
    const { held, next_expiry_at } = (await one.rows(["bud_died"])).get("bud_died")!;
    assert.deepEqual([held, next_expiry_at], [0, null]);
  });

  it("are found for a call behind thousands that others hold, and behind many that are closed", async () => {
    const one = book();
    await Promise.all(["bud_mine", "bud_beside"].map((id) => one.open(id, 10)));
    const [mine, beside] = [one.newHoldId(), one.newHoldId()];
    await one.take(["bud_mine"], 10, { holdId: mine });
    await one.take(["bud_beside"], 1, { holdId: beside });
    await one.age([mine], ["bud_mine", "bud_beside"]);
    await one.write(async ({ db }) => {
      const more = async (name: string, workspaceId: string, state: string, count: number) => {
        await raw`
          with recursive numbers (i) as (select 1 union all select i + 1 from numbers where i < ${raw.lit(count)})
          insert into holds (id, workspace_id, key_id, api_id, cost, balances, on_expiry, state, created_at, expires_at)
          select ${`hold_${name}_`} || i, ${workspaceId}, key_id, api_id, cost, balances, on_expiry, ${state}, 0, 1
          from holds, numbers where id = ${beside}`.execute(db);
      };
      // Before mine in the order of expiries.
      await more("a_theirs", "ws_other", "open", 12_000);
      await more("b_beside", server.workspaceId, "open", 2_000);
      await more("c_closed", server.workspaceId, "settled", 6_000);
      await db.updateTable("holds").set({ id: "hold_z_mine" }).where("id", "=", mine).execute();
    });
    assert.deepEqual(spentOf(await one.take(["bud_mine"], 10)), [0]);
    assert.equal((await one.hold("hold_z_mine"))?.state, "expired");
    await one.write(async ({ db }) => {
      await db.deleteFrom("holds").where(raw<boolean>`id like 'hold\\_%\\_%' escape '\\'`).execute();
    });
  });

  it("are looked for once while none of them has expired", async () => {
    const one = book();
    await one.open("bud_early", 10);
    const [first, second] = [one.newHoldId(), one.newHoldId()];
    await Promise.all([first, second].map((holdId) => one.take(["bud_early"], 5, { holdId })));
    await one.age([first], ["bud_early"]);
    await one.change(first, ["bud_early"], { kind: "release" });
    const early = (await one.rows(["bud_early"])).get("bud_early");
    assert.equal(early?.next_expiry_at, 1, "a settlement leaves it as it is");
    assert.equal(spentOf(await one.take(["bud_early"], 6)), "insufficient");
    const next = (await one.rows(["bud_early"])).get("bud_early");
    assert.equal(next?.next_expiry_at, (await one.hold(second))?.expires_at);
  });

  it(`add up after each of ${STEPS[kind]} random steps, seed ${seed}`, async () => {
    await compareHolds(server, { steps: STEPS[kind], seed });
  });
});
