/** Credits that the ledger holds, on both databases. `SEED=17` repeats a run, and `STEPS` says how long it is. */
import assert from "node:assert/strict";
import { it } from "node:test";
import {
  type BudgetRow,
  type BudgetRule,
  charge,
  covers,
  refill,
  setRemaining,
  settle,
  hold as take,
} from "../../../bench/prototypes/budgets/budget-row.ts";
import type { Instant } from "../../../engine/src/clock/clock.ts";
import type { BatchAnswers, ExpiredHold, LedgerBatch } from "../../../engine/src/credits/batch.ts";
import type { ChangedHold, ChangeOutcome, HoldAction, OnExpiry } from "../../../engine/src/credits/hold.ts";
import { Ledger, type LedgerOptions } from "../../../engine/src/credits/ledger.ts";
import type { SpendOutcome } from "../../../engine/src/credits/spend.ts";
import { StoreUnavailable } from "../../../engine/src/errors/store-unavailable.ts";
import { newId, type Random } from "../../../engine/src/random/random.ts";
import { seededRandom } from "../../../engine/src/random/seeded.ts";
import { changeBooks, hasBooks, openBooks } from "../../../engine/src/rules/books.ts";
import { creditProcedures } from "../../src/features/credits/procedures.ts";
import { refillColumns } from "../../src/features/credits/record.ts";
import { BalanceWriter, findBalancesForUpdate } from "../../src/features/credits/statements/balances.ts";
import { claimScopes } from "../../src/platform/store/idempotency.ts";
import type { BalanceRow, HoldRow } from "../../src/platform/store/schema.ts";
import type { Sql } from "../../src/platform/store/store.ts";
import { describeOnStores, type TestServer } from "../harness.ts";

const STEPS = Number(process.env.STEPS ?? 500);
const seed = Number(process.env.SEED ?? 33);
const HOUR = 3_600_000;
const random = seededRandom(seed);

interface Limits {
  readonly allowed: boolean;
}

type Transact = (batch: LedgerBatch, answer: BatchAnswers) => ReturnType<LedgerOptions<boolean, Limits>["transact"]>;

/** How a balance is charged. */
interface Rule {
  readonly amount?: number;
  readonly rollover?: number;
  readonly isWatched?: boolean;
  /** Whether it is that of a key, which keeps no books. */
  readonly isPool?: boolean;
}

/** A ledger over the balances of one workspace, and what tests change beside it. */
class Book {
  readonly server: TestServer;
  readonly ledger: Ledger<boolean, Limits>;

  constructor(server: TestServer, transact?: Transact) {
    this.server = server;
    this.ledger = new Ledger({
      clock: server.clock,
      random,
      charge: (allowed) => ({ allowed }),
      transact: transact ?? ((batch, answer) => server.store.transact("spend", batch, answer)),
    });
  }

  async write(work: (sql: Sql, now: Instant) => Promise<void>): Promise<void> {
    const transaction = await this.server.openTransaction([], (sql) => work(sql, this.server.clock.now()));
    await transaction.commit();
  }

  open(id: string, remaining: number, { amount, rollover, isWatched = false, isPool = false }: Rule = {}) {
    return this.write(async (sql, now) => {
      const refill =
        amount === undefined
          ? null
          : { interval: "hourly" as const, amount, ...(rollover !== undefined && { rollover }) };
      const books = isPool
        ? { remaining }
        : { ...openBooks(remaining), watched: isWatched ? (1 as const) : (0 as const) };
      await new BalanceWriter(sql, this.server.workspaceId).put(
        { pool_id: id, ...refillColumns(refill, now), ...books },
        null,
      );
    });
  }

  /** The balances with their due refills. */
  async rows(ids: readonly string[]): Promise<Map<string, BalanceRow>> {
    let rows: BalanceRow[] = [];
    await this.write(async (sql, now) => {
      rows = await findBalancesForUpdate(sql, ids, random, now);
    });
    return new Map(rows.map((row) => [row.pool_id, row]));
  }

  async hold(holdId: string): Promise<HoldRow | undefined> {
    let found: HoldRow | undefined;
    await this.write(async ({ db }) => {
      found = await db.selectFrom("holds").selectAll().where("id", "=", holdId).executeTakeFirst();
    });
    return found;
  }

  async poolOf(keyId: string): Promise<string> {
    let poolId = "";
    await this.write(async ({ db }) => {
      ({ pool_id: poolId } = await db
        .selectFrom("keys")
        .select("pool_id")
        .where("id", "=", keyId)
        .executeTakeFirstOrThrow());
    });
    return poolId;
  }

  newHoldId(): string {
    return newId(random, "hold");
  }

  take(
    balances: readonly string[],
    cost: number,
    hold?: { holdId: string; onExpiry?: OnExpiry; ttl?: number },
    isAllowed?: boolean,
  ) {
    const more = { keyId: "key_1", apiId: "api_1" };
    return this.ledger.spend({
      workspaceId: this.server.workspaceId,
      balances,
      cost,
      charges: isAllowed,
      hold: hold && { ttl: 3 * HOUR, onExpiry: "release", ...hold, ...more },
    });
  }

  change(holdId: string, balances: readonly string[], action: HoldAction): Promise<ChangeOutcome> {
    return this.ledger.change({ workspaceId: this.server.workspaceId, holdId, balances, action });
  }

  settle(holdId: string, balances: readonly string[], amount: number): Promise<ChangeOutcome> {
    return this.change(holdId, balances, { kind: "settle", amount, settlement: JSON.stringify({ credits: amount }) });
  }

  /** As `updateCredits` with the operation `set`. */
  set(id: string, remaining: number): Promise<void> {
    return this.write(async (sql, now) => {
      const balances = new BalanceWriter(sql, this.server.workspaceId);
      const before = await balances.findForUpdate(id, random, now);
      assert(before);
      await balances.put(hasBooks(before) ? changeBooks(before, remaining) : { ...before, remaining }, null);
    });
  }

  /** Lets the refill of a balance be due; false if it has none. */
  async makeDue(id: string): Promise<boolean> {
    let isDue = false;
    await this.write(async ({ db }, now) => {
      const { numUpdatedRows } = await db
        .updateTable("balances")
        .set({ refill_due_at: now - (now % HOUR), refill_mark: null })
        .where("pool_id", "=", id)
        .where("refill_due_at", "is not", null)
        .executeTakeFirst();
      isDue = numUpdatedRows > 0n;
    });
    return isDue;
  }

  /** As if the time of holds had passed. */
  age(holdIds: readonly string[], balances: readonly string[]): Promise<void> {
    return this.write(async ({ db, dialect }) => {
      await db.updateTable("holds").set({ expires_at: 1 }).where(dialect.values.isOneOf("id", holdIds)).execute();
      await db
        .updateTable("balances")
        .set({ next_expiry_at: 1 })
        .where(dialect.values.isOneOf("pool_id", balances))
        .where("held", ">", 0)
        .execute();
    });
  }
}

function changedHold(outcome: ChangeOutcome): ChangedHold {
  assert.equal(outcome.outcome, "changed");
  return outcome as ChangedHold;
}

function spentOf(outcome: SpendOutcome<Limits>) {
  return outcome.outcome === "spent" ? outcome.remaining : outcome.outcome;
}

/** What is known of a hold. */
interface ModelHold {
  readonly id: string;
  /** The period of each balance when it was held. */
  readonly periods: ReadonlyMap<string, number>;
  readonly cost: number;
  readonly onExpiry: OnExpiry;
  state: ChangedHold["state"];
  isAged: boolean;
  charged: number;
  amount: number;
}

/** The balances and holds as they have to be, by the functions of the prototype. */
class Model {
  readonly #book: Book;
  readonly #rows = new Map<string, { row: BudgetRow; rule: BudgetRule; isPool: boolean }>();
  readonly #holds: ModelHold[] = [];
  #names = 0;

  constructor(book: Book) {
    this.#book = book;
  }

  async run(random: Random): Promise<void> {
    for (let i = 0; i < 5; i++) await this.#create(random, i);
    for (let step = 0; step < STEPS; step++) {
      const what = await this.#step(random);
      const rows = await this.#book.rows([...this.#rows.keys()]);
      for (const [id, { row, isPool }] of this.#rows) {
        const found = rows.get(id);
        const { remaining, held, period } = row;
        const of = `step ${step}: ${what}, ${id}`;
        assert.deepEqual([found?.remaining, found?.held ?? 0, found?.period ?? 0], [remaining, held, period], of);
        assert.equal(held, sum(this.#open.map(({ periods, cost }) => (periods.has(id) ? cost : 0))), of);
        if (isPool) continue;
        const { granted, spent, lapsed } = row;
        assert.deepEqual([found?.granted, found?.spent, found?.lapsed], [granted, spent, lapsed], of);
        assert.equal(granted, spent + held + remaining + lapsed, of);
      }
    }
    for (const { id, state, charged } of this.#holds) {
      const found = await this.#book.hold(id);
      assert.deepEqual([found?.state, found?.charged ?? 0], [state, charged], id);
    }
  }

  get #open(): ModelHold[] {
    return this.#holds.filter(({ state }) => state === "open");
  }

  async #create(random: Random, kind: number): Promise<void> {
    const id = `${kind === 0 ? "pool" : "bud"}_model_${this.#names++}`;
    const remaining = random.below(80);
    const rule: Rule = {
      ...(kind % 2 === 0 && { amount: 1 + random.below(80) }),
      ...(kind === 4 && { rollover: random.below(40) }),
      ...(kind === 3 && { isWatched: true }),
    };
    await this.#book.open(id, remaining, { ...rule, isPool: kind === 0 });
    const row = { granted: remaining, spent: 0, held: 0, remaining, lapsed: 0, period: 0 };
    this.#rows.set(id, { row, rule: { isWatched: false, ...rule }, isPool: kind === 0 });
  }

  #update(id: string, change: (row: BudgetRow, rule: BudgetRule) => BudgetRow): void {
    const entry = this.#rows.get(id);
    if (entry) entry.row = change(entry.row, entry.rule);
  }

  async #step(random: Random): Promise<string> {
    const kinds = ["spend", "hold", "hold", "hold", "settle", "settle", "release", "extend", "age", "expire", "refill"];
    const kind = [...kinds, "late", "set", "delete"][random.below(kinds.length + 3)];
    const all = [...this.#rows.keys()];
    const id = all[random.below(all.length)] ?? "";
    const amount = random.below(60);
    const hold = this.#open[random.below(Math.max(1, this.#open.length))];
    const ids = [...(hold?.periods.keys() ?? [])];
    switch (kind) {
      case "spend":
      case "hold":
        return this.#take(random, kind, 1 + amount);
      case "refill":
        await this.#refill(id);
        return `refill ${id}`;
      case "set":
        await this.#book.set(id, amount);
        this.#update(id, (row) => setRemaining(row, amount));
        return `set ${id} to ${amount}`;
      case "delete": {
        const [unused] = [...this.#rows].filter(([, { row, isPool }]) => row.held === 0 && !isPool);
        if (!unused) return "nothing";
        await this.#book.write((sql) => new BalanceWriter(sql, this.#book.server.workspaceId).remove(unused[0]));
        this.#rows.delete(unused[0]);
        await this.#create(random, 1 + random.below(4));
        return `delete ${unused[0]}`;
      }
      case "late": {
        const closed = this.#holds.filter(({ state }) => state !== "open");
        const late = closed[random.below(Math.max(1, closed.length))];
        return late ? this.#settle(late, random.below(2) === 0 ? late.amount : amount) : "nothing";
      }
    }
    if (!hold) return "nothing";
    switch (kind) {
      case "settle":
        return this.#settle(hold, amount);
      case "release": {
        const outcome = await this.#book.change(hold.id, ids, { kind: "release" });
        if (this.#expireAged(hold)) assert.equal(outcome.outcome, "conflict");
        else {
          this.#close(hold, "released", 0);
          assert.equal(changedHold(outcome).charged, 0);
        }
        return `release ${hold.id}`;
      }
      case "extend": {
        const { outcome } = await this.#book.change(hold.id, ids, { kind: "extend", ttl: 2 * HOUR });
        assert.equal(outcome, this.#expireAged(hold) ? "conflict" : "changed");
        return `extend ${hold.id}`;
      }
      case "age":
        hold.isAged = true;
        await this.#book.age([hold.id], ids);
        return `age ${hold.id}`;
      default: {
        const { state } = changedHold(await this.#book.change(hold.id, ids, { kind: "expire" }));
        assert.equal(state, this.#expireAged(hold) ? "expired" : "open");
        return `expire ${hold.id}`;
      }
    }
  }

  async #take(random: Random, kind: "spend" | "hold", cost: number): Promise<string> {
    const ids = [...this.#rows.keys()].filter(() => random.below(2) === 0);
    if (ids.length === 0) return "nothing";
    const isAllowed = [undefined, true, false][random.below(3)];
    const onExpiry = random.below(2) === 0 ? "release" : "charge";
    const holdId = this.#book.newHoldId();
    const outcome = await this.#book.take(ids, cost, kind === "hold" ? { holdId, onExpiry } : undefined, isAllowed);
    const lacking = () =>
      ids.filter((id) => {
        const entry = this.#rows.get(id);
        return entry && !covers(entry.row, entry.rule, cost);
      });
    const lacks = lacking();
    const due = this.#open.filter(({ isAged, periods }) => isAged && lacks.some((id) => periods.has(id)));
    for (const hold of due) this.#expireAged(hold);
    const what = `${kind} ${cost} of ${ids.join()}, ${isAllowed}`;
    if (lacking().length > 0) {
      assert.equal(outcome.outcome, "insufficient", what);
      return what;
    }
    if (isAllowed === false) {
      assert.equal(outcome.outcome, "limited", what);
      return what;
    }
    assert.equal(outcome.outcome, "spent", what);
    for (const id of ids) this.#update(id, (row) => (kind === "hold" ? take(row, cost) : charge(row, cost)));
    if (kind === "spend") return what;
    const periods = new Map(ids.map((id) => [id, this.#rows.get(id)?.row.period ?? 0]));
    this.#holds.push({ id: holdId, periods, cost, onExpiry, state: "open", isAged: false, charged: 0, amount: 0 });
    return `${what} as ${holdId}`;
  }

  async #settle(hold: ModelHold, amount: number): Promise<string> {
    const outcome = await this.#book.settle(hold.id, [...hold.periods.keys()], amount);
    this.#expireAged(hold);
    const what = `settle ${hold.id}, ${hold.state}, with ${amount}`;
    if (hold.state === "released" || (hold.state === "settled" && hold.amount !== amount)) {
      assert.equal(outcome.outcome, "conflict", what);
      return what;
    }
    const isRepeated = hold.state === "settled";
    if (!isRepeated) this.#close(hold, "settled", amount);
    const changed = changedHold(outcome);
    assert.deepEqual(
      [changed.charged, changed.uncovered, changed.isRepeated],
      [hold.charged, amount - hold.charged, isRepeated],
      what,
    );
    return what;
  }

  /** Returns whether it has expired now. */
  #expireAged(hold: ModelHold): boolean {
    if (!hold.isAged || hold.state !== "open") return false;
    this.#close(hold, "expired", hold.onExpiry === "charge" ? hold.cost : 0);
    return true;
  }

  #close(hold: ModelHold, state: ModelHold["state"], amount: number): void {
    const returned = hold.onExpiry === "charge" ? "spent" : "returned";
    const from = hold.state === "open" ? "held" : returned;
    let lack = 0;
    for (const [id, period] of hold.periods) {
      this.#update(id, (row, rule) => {
        const settled = settle(row, rule, { from, amount: hold.cost, period }, amount);
        lack = Math.max(lack, settled.uncovered);
        return settled.row;
      });
    }
    Object.assign(hold, { state, amount, charged: amount - lack });
  }

  async #refill(id: string): Promise<void> {
    const isDue = await this.#book.makeDue(id);
    if (isDue) this.#update(id, refill);
  }
}

function sum(amounts: readonly number[]): number {
  return amounts.reduce((total, amount) => total + amount, 0);
}

describeOnStores("credits held in the ledger", (server, kind) => {
  const book = () => new Book(server);

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
    await one.write((sql) => new BalanceWriter(sql, server.workspaceId).remove("pool_gone"));
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
    const beside = new Book(server, async (batch, answer) => {
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

  it(`add up after each of ${STEPS} random steps, seed ${seed}`, async () => {
    await new Model(new Book(server)).run(random);
  });
});
