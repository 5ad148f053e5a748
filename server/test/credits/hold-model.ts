/**
 * Random calls of a ledger on a database, compared with a model after each of them: what each balance has, what is held of it
 * and what was spent and lapsed, and what becomes of each hold.
 */
import assert from "node:assert/strict";
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
import type { BatchAnswers, LedgerBatch } from "../../../engine/src/credits/batch.ts";
import type { ChangedHold, ChangeOutcome, HoldAction, OnExpiry } from "../../../engine/src/credits/hold.ts";
import { Ledger, type LedgerOptions } from "../../../engine/src/credits/ledger.ts";
import { newId, type Random } from "../../../engine/src/random/random.ts";
import { seededRandom } from "../../../engine/src/random/seeded.ts";
import { changeBooks, hasBooks, openBooks } from "../../../engine/src/rules/books.ts";
import { refillColumns } from "../../src/features/credits/record.ts";
import { BalanceWriter, findBalancesForUpdate } from "../../src/features/credits/statements/balances.ts";
import type { BalanceRow, HoldRow } from "../../src/platform/store/schema.ts";
import type { Sql } from "../../src/platform/store/store.ts";
import type { TestServer } from "../harness.ts";

const HOUR = 3_600_000;
/** Models that make calls at the same time, and the steps of each until new ones follow. */
const MODELS = 10;
const STEPS_PER_MODEL = 500;
/** Far from the small seeds, with one of which the server makes ids. */
const BOOK_SEED = 1_000_000_007;

export interface Limits {
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
export class Book {
  readonly server: TestServer;
  readonly ledger: Ledger<boolean, Limits>;
  readonly #random: Random;

  constructor(server: TestServer, random: Random, transact?: Transact) {
    this.server = server;
    this.#random = random;
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
      rows = await findBalancesForUpdate(sql, ids, this.#random, now);
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
    return newId(this.#random, "hold");
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
      const before = await balances.findForUpdate(id, this.#random, now);
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

export function changedHold(outcome: ChangeOutcome): ChangedHold {
  assert.equal(outcome.outcome, "changed");
  return outcome as ChangedHold;
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
  uncovered: number;
  amount: number;
}

/**
 * Compares a ledger on the database of a service with models that make this many random calls together, with balances of
 * their own and in the same batches.
 *
 * @returns how many holds were made.
 */
export async function compareHolds(
  server: TestServer,
  { steps, seed, onRound = () => {} }: { steps: number; seed: number; onRound?: (steps: number) => void },
): Promise<{ holds: number }> {
  const book = new Book(server, seededRandom(seed + BOOK_SEED));
  let holds = 0;
  for (let made = 0; made < steps; ) {
    const each = Math.min(STEPS_PER_MODEL, Math.ceil((steps - made) / MODELS));
    const models = Array.from(
      { length: MODELS },
      (_, i) => new Model(book, seededRandom(seed + made + i), `model_${made + i}`),
    );
    await Promise.all(models.map((model) => model.run(each)));
    for (const { made } of models) holds += made;
    made += MODELS * each;
    onRound(made);
  }
  return { holds };
}

/** The balances and holds as they have to be, by the functions of the prototype. */
class Model {
  readonly #book: Book;
  readonly #rows = new Map<string, { row: BudgetRow; rule: BudgetRule; isPool: boolean }>();
  readonly #holds: ModelHold[] = [];
  readonly #random: Random;
  readonly #name: string;
  #names = 0;

  /** `name`: that of its balances, which no other model has. */
  constructor(book: Book, random: Random, name: string) {
    this.#book = book;
    this.#random = random;
    this.#name = name;
  }

  /** How many holds it has made. */
  get made(): number {
    return this.#holds.length;
  }

  async run(steps: number): Promise<void> {
    for (let i = 0; i < 5; i++) await this.#create(i);
    for (let step = 0; step < steps; step++) {
      const what = await this.#step();
      const rows = await this.#book.rows([...this.#rows.keys()]);
      for (const [id, { row, isPool }] of this.#rows) {
        const found = rows.get(id);
        const { remaining, held, period } = row;
        const of = `${this.#name}, step ${step}: ${what}, ${id}`;
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
      assert.deepEqual([found?.state, found?.charged ?? 0], [state, charged], `${this.#name}, ${id}`);
    }
  }

  get #open(): ModelHold[] {
    return this.#holds.filter(({ state }) => state === "open");
  }

  async #create(kind: number): Promise<void> {
    const random = this.#random;
    const id = `${kind === 0 ? "pool" : "bud"}_${this.#name}_${this.#names++}`;
    const remaining = random.below(400);
    const rule: Rule = {
      ...(kind % 2 === 0 && { amount: 1 + random.below(400) }),
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

  async #step(): Promise<string> {
    const random = this.#random;
    const kinds = ["spend", "hold", "hold", "hold", "settle", "settle", "release", "extend", "age", "expire", "refill"];
    const kind = [...kinds, "late", "set", "increment", "decrement", "delete"][random.below(kinds.length + 5)];
    const all = [...this.#rows.keys()];
    const id = all[random.below(all.length)] ?? "";
    const amount = random.below(100);
    const hold = this.#open[random.below(Math.max(1, this.#open.length))];
    const ids = [...(hold?.periods.keys() ?? [])];
    switch (kind) {
      case "spend":
      case "hold":
        return this.#take(kind, 1 + random.below(15));
      case "refill":
        await this.#refill(id);
        return `refill ${id}`;
      case "set":
      case "increment":
      case "decrement": {
        const { remaining } = this.#rows.get(id)!.row;
        const by = kind === "increment" ? amount : -Math.min(amount, Math.max(0, remaining));
        const next = kind === "set" ? amount : remaining + by;
        await this.#book.set(id, next);
        this.#update(id, (row) => setRemaining(row, next));
        return `${kind} ${id} to ${next}`;
      }
      case "delete": {
        const [unused] = [...this.#rows].filter(([, { row, isPool }]) => row.held === 0 && !isPool);
        if (!unused) return "nothing";
        await this.#book.write((sql, now) =>
          new BalanceWriter(sql, this.#book.server.workspaceId).remove(unused[0], now),
        );
        this.#rows.delete(unused[0]);
        await this.#create(1 + random.below(4));
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

  async #take(kind: "spend" | "hold", cost: number): Promise<string> {
    const random = this.#random;
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
    this.#holds.push({
      id: holdId,
      periods,
      cost,
      onExpiry,
      state: "open",
      isAged: false,
      charged: 0,
      uncovered: 0,
      amount: 0,
    });
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
      [hold.charged, hold.uncovered, isRepeated],
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
    // What is deleted is neither charged nor given back to.
    const isCounted = [...hold.periods.keys()].some((id) => this.#rows.has(id));
    for (const [id, period] of hold.periods) {
      this.#update(id, (row, rule) => {
        const settled = settle(row, rule, { from, amount: hold.cost, period }, amount);
        lack = Math.max(lack, settled.uncovered);
        return settled.row;
      });
    }
    Object.assign(hold, { state, amount, charged: isCounted ? amount - lack : hold.charged, uncovered: lack });
  }

  async #refill(id: string): Promise<void> {
    const isDue = await this.#book.makeDue(id);
    if (isDue) this.#update(id, refill);
  }
}

function sum(amounts: readonly number[]): number {
  return amounts.reduce((total, amount) => total + amount, 0);
}
