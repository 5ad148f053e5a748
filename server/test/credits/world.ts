/**
 * A small glass world: the production code that charges a verification, on one database file and one simulated clock,
 * with faults and deaths that a seed chooses, and with books that remember only what was acknowledged.
 */
import assert from "node:assert/strict";
import { copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { SimulatedClock } from "../../src/clock/simulated.ts";
import { BalanceReader } from "../../src/credits/balance-reader.ts";
import { Ledger, LedgerOverloaded } from "../../src/credits/ledger.ts";
import { sweepRefills } from "../../src/credits/sweep.ts";
import { Directories } from "../../src/directory/directories.ts";
import type { Charge, ChargeResult, Counters } from "../../src/limits/counters.ts";
import { Limiter } from "../../src/limits/limiter.ts";
import { MemoryCounters } from "../../src/limits/memory-counters.ts";
import { MemoryReplayStore } from "../../src/limits/memory-replay-store.ts";
import { MemoryTable, reserveTable } from "../../src/limits/memory-table.ts";
import { operations } from "../../src/operations/index.ts";
import type { Random } from "../../src/random/random.ts";
import { seededRandom } from "../../src/random/seeded.ts";
import type { OperationOutcome } from "../../src/rpc/execute.ts";
import type { PlainPrincipal } from "../../src/rpc/principal.ts";
import { lastDue, nextDue } from "../../src/rules/refill.ts";
import { type AppProcedures, openProcedures } from "../../src/service/procedures.ts";
import { refillOf } from "../../src/store/credits/balances.ts";
import type { AuditEventRow, BalanceRow, KeyRow } from "../../src/store/schema.ts";
import { openSqliteStoreHere } from "../../src/store/sqlite/store.ts";
import { type Claim, type Procedure, type Sql, type Store, StoreUnavailable } from "../../src/store/store.ts";
import { Verification } from "../../src/verification/verification.ts";
import { grantedClaim } from "../intercepted-store.ts";

/** Bugs made on purpose, which the books must catch. */
export const mutants = [
  "a failed transaction is kept",
  "a batch is answered before it is kept",
  "a spend is written twice",
  "a spend is not written",
  "what a limit refused is not given back",
  "a look at the limits charges them",
  "a rotation copies the balance",
  "a refill comes early",
  "a refill adds",
] as const;
export type Mutant = (typeof mutants)[number];

const START = 1_768_478_400_000;
const DAY = 86_400_000;
const MINUTE = 60_000;

/** Nothing here is asked to last, so it may lie where writing is cheap. */
const place = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();

/** The transaction failed, and nothing of it was kept: what every error of a store says but the next one. */
class Failed extends StoreUnavailable {}
/** It was kept, and its answer was lost. */
class AnswerLost extends StoreUnavailable {}
/** The process that wanted to go on is dead. */
class Dead extends Error {}

/** What happens to a writing transaction. */
type Fate = "kept" | "fails" | "answer lost" | "dies before" | "dies after";

/** A call on its way, and what became of it. */
interface Pool {
  id: string;
  /** Credits of spends that were acknowledged since the books were last closed. */
  acknowledged: number;
  /** What spends would have taken of which nobody knows whether they happened. */
  doubtful: number[];
}

interface Key {
  secret: string;
  keyId: string;
  pool: Pool;
}

/** May everything, for good. */
const caller = { may: () => true, isCurrent: () => true, renew: () => caller };

/** A migrated database with a workspace and an API, copied for each world. */
export class Template {
  readonly folder = mkdtempSync(join(place, "latchkey-world-"));
  readonly file = join(this.folder, "template.db");
  workspaceId = "";
  apiId = "";
  administrator: PlainPrincipal = { rootKeyId: "", workspaceId: "", grants: [] };

  static async make(): Promise<Template> {
    const template = new Template();
    const store = openSqliteStoreHere(template.file, openProcedures({ seed: 1, vault: { kind: "none" } }));
    const at = new SimulatedClock(START).now();
    const { workspaceId, issued } = await store.transact("prepare", { now: at, rootKey: undefined });
    template.workspaceId = workspaceId;
    template.administrator = { rootKeyId: issued!.rootKeyId, workspaceId, grants: ["*"] };
    const { outcome } = await store.transact("mutation", {
      operation: "apis.createApi",
      aliased: false,
      input: { name: "simulated" },
      principal: template.administrator,
      now: at,
      idempotent: undefined,
    });
    template.apiId = dataOf(outcome).apiId;
    await store.close();
    return template;
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** What is to be found in the database when the books are closed. */
interface Books {
  balances: BalanceRow[];
  keys: Pick<KeyRow, "id" | "pool_id">[];
  events: AuditEventRow[];
}

/** What one seed did, for the reader of a test's output. */
export interface Report {
  valid: number;
  denied: number;
  failed: number;
  doubtful: number;
  deaths: number;
  refills: number;
}

/** One process: everything that is gone when it dies, and its hold on the database. */
class Process {
  isDead = false;
  readonly directories: Directories;
  readonly verification: Verification;
  readonly store: Store<AppProcedures>;

  constructor(world: World, procedures: AppProcedures) {
    const { clock } = world;
    this.store = new FatefulStore(world, this, procedures);
    const { store } = this;
    this.directories = new Directories({
      clock,
      staleMax: 10 * MINUTE,
      bytesMax: 2 ** 24,
      lookupsPerSecond: 5_000,
      source: {
        keysAt: (places) => store.read("keysAt", places),
        rootKeysByHashes: (hashes) => store.read("rootKeysByHashes", hashes),
        workspaces: (ids) => store.read("workspacesByIds", ids),
        keyMigrations: (references) => store.read("keyMigrationsByReferences", references),
        namespaces: (references) => store.read("namespacesByReferences", references),
        changes: (cursor) => store.read("readChanges", cursor),
      },
      onReachability() {},
    });
    const limiter = new Limiter(world.counters, "closed", clock);
    const ledger = new Ledger({
      clock,
      charge: (charges: readonly Charge[]) => limiter.charge(charges),
      transact: (batch, settle) => store.transact("spend", batch, settle),
    });
    const balances = new BalanceReader({ clock, read: (question) => store.read("readBalances", question) });
    const replays = new MemoryReplayStore(clock);
    this.verification = new Verification({
      clock,
      directories: this.directories,
      limiter,
      ledger,
      balances,
      replays,
      recorder: null,
      async recordFirstUses() {},
    });
  }
}

/** The database as one process sees it: with a fate for every transaction. */
class FatefulStore implements Store<AppProcedures> {
  readonly dialect = "sqlite";
  readonly #world: World;
  readonly #process: Process;
  readonly #inner: Store<AppProcedures>;
  #fate: Fate = "kept";

  constructor(world: World, process: Process, procedures: AppProcedures) {
    this.#world = world;
    this.#process = process;
    const writing = Object.entries(procedures.writing).map(([name, procedure]) => [
      name,
      (sql: Sql, argument: never, ask: never) => this.#write(name, procedure as Procedure, sql, argument, ask),
    ]);
    this.#inner = openSqliteStoreHere(world.file, { ...procedures, writing: Object.fromEntries(writing) });
  }

  readonly read: Store<AppProcedures>["read"] = async (name, argument) => {
    this.#mustLive();
    if (this.#world.isFaulty && this.#world.chance(2)) throw new Failed("a read failed");
    const answer = await this.#inner.read(name, argument);
    this.#mustLive();
    return answer;
  };

  readonly transact: Store<AppProcedures>["transact"] = async (name, argument, ...rest) => {
    this.#mustLive();
    const answer = await this.#inner.transact(name, argument, ...rest);
    if (this.#fate === "dies after") this.#process.isDead = true;
    this.#mustLive();
    // Kept all the same: only a mutant gets here.
    if (this.#fate === "fails" && this.#world.mutant === "a failed transaction is kept") throw new Failed("failed");
    if (this.#fate === "answer lost") throw new AnswerLost("the answer was lost");
    return answer;
  };

  async claim(): Promise<Claim> {
    return grantedClaim;
  }

  listen(): void {}

  close(): Promise<void> {
    return this.#inner.close();
  }

  /** A procedure in its transaction, which is rolled back when it throws. */
  async #write(
    name: string,
    procedure: Procedure,
    sql: Sql,
    argument: never,
    ask: (question: unknown) => Promise<unknown>,
  ) {
    this.#mustLive();
    this.#fate = this.#world.nextFate();
    const isAdding = this.#world.mutant === "a refill adds" && name !== "prepare";
    const before = isAdding ? await sql.db.selectFrom("balances").selectAll().execute() : [];
    const answer = await procedure(sql, this.#mutated(name, argument), async (held: unknown) => {
      const taken = await ask(held);
      if ((held as { step?: string }).step === "choose") return taken;
      this.#mustLive();
      return this.#mutatedTaken(held as never, taken as never);
    });
    this.#mustLive();
    if (this.#fate === "dies before") {
      this.#process.isDead = true;
      this.#mustLive();
    }
    if (this.#fate === "fails" && this.#world.mutant !== "a failed transaction is kept") {
      if (name === "spend" && this.#world.mutant === "a batch is answered before it is kept") {
        await this.#undo(sql, argument);
        return answer;
      }
      throw new Failed("the transaction failed");
    }
    if (name === "mutation" && this.#world.mutant === "a rotation copies the balance") await this.#copyPool(sql);
    if (isAdding) await this.#add(sql, before);
    return answer;
  }

  #mustLive(): void {
    if (this.#process.isDead) throw new Dead("This process is dead");
  }

  #mutated(name: string, argument: { now: number }): unknown {
    if (name !== "spend" || this.#world.mutant !== "a refill comes early") return argument;
    return { ...argument, now: argument.now + DAY };
  }

  #mutatedTaken(
    held: { balances: { poolId: string; remaining: number }[] },
    taken: { spends: { poolId: string; amount: number }[] },
  ): unknown {
    const { mutant, refusedPools } = this.#world;
    const remaining = (poolId: string) => held.balances.find((balance) => balance.poolId === poolId)?.remaining ?? 0;
    if (mutant === "a spend is not written") return { ...taken, spends: taken.spends.slice(1) };
    if (mutant === "a spend is written twice") {
      const twice = taken.spends.map(({ poolId, amount }) =>
        2 * amount <= remaining(poolId) ? { poolId, amount: 2 * amount } : { poolId, amount },
      );
      return { ...taken, spends: twice };
    }
    if (mutant === "what a limit refused is not given back") {
      const kept = refusedPools.splice(0).filter((poolId) => {
        const amount = taken.spends.find((spend) => spend.poolId === poolId)?.amount;
        return amount === undefined && remaining(poolId) > 0;
      });
      return { ...taken, spends: [...taken.spends, ...[...new Set(kept)].map((poolId) => ({ poolId, amount: 1 }))] };
    }
    return taken;
  }

  /** For a mutant: gives back what the batch has taken. */
  async #undo(sql: Sql, { poolIds }: { poolIds: string[] }): Promise<void> {
    for (const [poolId, remaining] of this.#world.lastSeen) {
      if (!poolIds.includes(poolId)) continue;
      await sql.db.updateTable("balances").set({ remaining }).where("pool_id", "=", poolId).execute();
    }
  }

  /** For a mutant: puts what a refill has replaced on top of it. */
  async #add(sql: Sql, before: readonly BalanceRow[]): Promise<void> {
    for (const { pool_id, remaining, refill_due_at } of before) {
      const row = await sql.db.selectFrom("balances").selectAll().where("pool_id", "=", pool_id).executeTakeFirst();
      if (!row || row.refill_due_at === refill_due_at) continue;
      const sum = { remaining: row.remaining + remaining };
      await sql.db.updateTable("balances").set(sum).where("pool_id", "=", pool_id).execute();
    }
  }

  /** For a mutant: gives the youngest key a pool of its own. */
  async #copyPool(sql: Sql): Promise<void> {
    const keys = await sql.db
      .selectFrom("keys")
      .select(["id", "pool_id"])
      .orderBy("created_at")
      .orderBy("id")
      .execute();
    const shared = keys.filter((key) => key.id !== keys[0]!.id && this.#world.poolIds.has(key.pool_id));
    const rerolled = shared.find((key) => keys.filter(({ pool_id }) => pool_id === key.pool_id).length > 1);
    if (!rerolled) return;
    const pool = await sql.db
      .selectFrom("balances")
      .selectAll()
      .where("pool_id", "=", rerolled.pool_id)
      .executeTakeFirst();
    if (!pool) return;
    const pool_id = `${rerolled.pool_id}+`;
    await sql.db
      .insertInto("balances")
      .values({ ...pool, pool_id })
      .onConflict((conflict) => conflict.doNothing())
      .execute();
    await sql.db.updateTable("keys").set({ pool_id }).where("id", "=", rerolled.id).execute();
  }
}

/** Counters that answer now or later, as memory and Redis do, and count what they took. They outlive processes. */
class CountingCounters implements Counters {
  /** Calls whose limits were charged. */
  charged = 0;
  readonly #world: World;
  readonly #inner: MemoryCounters;

  constructor(world: World) {
    this.#world = world;
    this.#inner = new MemoryCounters(new MemoryTable(reserveTable(2 ** 22, false), 1, [7, 11]), world.clock);
  }

  charge(charges: readonly Charge[]): ChargeResult | Promise<ChargeResult> {
    return this.#sometimesLater(() => {
      const verdict = this.#inner.charge(charges);
      if (verdict.outcome === "decided" && verdict.allowed) this.charged++;
      else this.#world.refusedPools.push(charges[0]!.counter.split("\u0000").find((part) => part.startsWith("pool_"))!);
      return verdict;
    });
  }

  peek(charges: readonly Charge[]): ChargeResult | Promise<ChargeResult> {
    if (this.#world.mutant === "a look at the limits charges them") return this.charge(charges);
    return this.#sometimesLater(() => this.#inner.peek(charges));
  }

  #sometimesLater(decide: () => ChargeResult): ChargeResult | Promise<ChargeResult> {
    return this.#world.chance(30) ? setImmediate().then(decide) : decide();
  }
}

/** One world, from one seed. */
export class World {
  readonly clock = new SimulatedClock(START);
  readonly file: string;
  readonly mutant: Mutant | undefined;
  readonly counters: CountingCounters;
  /** Whether reads and transactions may fail at the moment. */
  isFaulty = true;
  /** Pools of calls that limits refused, for a mutant. */
  readonly refusedPools: string[] = [];
  /** Balances when the books were last closed, for a mutant. */
  readonly lastSeen = new Map<string, number>();
  readonly report: Report = { valid: 0, denied: 0, failed: 0, doubtful: 0, deaths: 0, refills: 0 };
  readonly #seed: number;
  readonly #random: Random;
  readonly #template: Template;
  readonly #keys: Key[] = [];
  readonly #pools: Pool[] = [];
  #open = new Set<Promise<void>>();
  #process!: Process;
  #lives = 0;
  /** Changes of credits: acknowledged, and those of which nobody knows. */
  #changes = { acknowledged: 0, doubtful: 0 };
  /** Calls with limits: those that were acknowledged as valid, and those that ended without an answer. */
  #limited = { valid: 0, unanswered: 0 };
  #latest = START;
  /** The first answer that should not have been. */
  #breach: unknown;

  constructor(template: Template, seed: number, mutant?: Mutant) {
    this.#template = template;
    this.#seed = seed;
    this.#random = seededRandom(seed * 7_919 + 13);
    this.mutant = mutant;
    this.file = join(template.folder, `${seed}-${mutant?.replaceAll(" ", "-") ?? "sound"}.db`);
    copyFileSync(template.file, this.file);
    this.counters = new CountingCounters(this);
  }

  get poolIds(): ReadonlySet<string> {
    return new Set(this.#pools.map(({ id }) => id));
  }

  chance(percent: number): boolean {
    return this.#random.below(100) < percent;
  }

  nextFate(): Fate {
    if (!this.isFaulty) return "kept";
    const dice = this.#random.below(100);
    if (dice < 86) return "kept";
    if (dice < 92) return "fails";
    if (dice < 96) return "answer lost";
    return dice < 98 ? "dies before" : "dies after";
  }

  /** Runs so many steps, with the books closed every now and then, and at the end. */
  async run(steps: number): Promise<Report> {
    try {
      await this.#start();
      await this.#populate();
      for (let step = 1; step <= steps; step++) {
        await this.#step();
        if (this.#process.isDead) await this.#restart();
        if (step % 40 === 0 || step === steps) await this.#closeBooks();
      }
      return this.report;
    } finally {
      await this.#settle();
      await this.#stop();
      for (const suffix of ["", "-wal", "-shm"]) rmSync(this.file + suffix, { force: true });
    }
  }

  async #start(): Promise<void> {
    const procedures = openProcedures({ seed: this.#seed * 1_000 + ++this.#lives, vault: { kind: "none" } });
    const reading = { ...procedures.reading, books: (sql: Sql) => this.#readBooks(sql) };
    this.#process = new Process(this, { ...procedures, reading } as AppProcedures);
    const faulty = this.isFaulty;
    this.isFaulty = false;
    await this.#process.directories.changes.start();
    this.isFaulty = faulty;
  }

  async #stop(): Promise<void> {
    await this.#process.directories.changes.close();
    await this.#process.store.close();
  }

  /** A dead process answers nobody; its database drops what it did not commit. */
  async #restart(): Promise<void> {
    this.report.deaths++;
    await this.#settle();
    await this.#stop();
    await this.#start();
  }

  async #populate(): Promise<void> {
    this.isFaulty = false;
    const { apiId } = this.#template;
    const limit = (name: string, limit: number, duration: number) => ({ name, limit, duration, autoApply: true });
    const specifications = [
      { credits: { remaining: 1_000 } },
      { credits: { remaining: 40, refill: { interval: "daily", amount: 60 } } },
      { credits: { remaining: 30 }, ratelimits: [limit("requests", 20, MINUTE)] },
      { credits: { remaining: 300 }, externalId: "somebody", ratelimits: [limit("own", 9, 1_000)] },
      {
        credits: { remaining: 0, refill: { interval: "monthly", amount: 50, refillDay: 31 } },
        externalId: "somebody",
        ratelimits: [limit("own", 12, 5_000)],
      },
    ];
    for (const specification of specifications) {
      const made = await this.#operate("keys.createKey", { apiId, ...specification });
      const pool: Pool = { id: "", acknowledged: 0, doubtful: [] };
      this.#pools.push(pool);
      this.#keys.push({ secret: made.key, keyId: made.keyId, pool });
    }
    const books = await this.#books();
    for (const { pool, keyId } of this.#keys) {
      pool.id = books.keys.find(({ id }) => id === keyId)!.pool_id;
      this.lastSeen.set(pool.id, books.balances.find(({ pool_id }) => pool_id === pool.id)!.remaining);
    }
    this.isFaulty = true;
  }

  async #step(): Promise<void> {
    const dice = this.#random.below(100);
    if (dice < 55) for (let n = 1 + this.#random.below(4); n > 0; n--) this.#verify();
    else if (dice < 75) for (let n = 1 + this.#random.below(6); n > 0; n--) await setImmediate();
    else if (dice < 85) this.#pass(this.#random.below(3) === 0 ? this.#random.below(90_000) : this.#random.below(400));
    else if (dice < 88) this.#jump();
    else if (dice < 94) this.#changeCredits();
    else if (dice < 96 && this.#keys.length < 12) this.#reroll();
    else if (dice < 98) this.#sweep();
    else if (this.chance(50)) this.#process.isDead = true;
  }

  #pick<T>(values: readonly T[]): T {
    return values[this.#random.below(values.length)]!;
  }

  #pass(length: number): void {
    this.clock.advance(length);
    this.#latest = Math.max(this.#latest, this.clock.now());
  }

  /** To an instant around the next midnight or the one after a month, or a correction of the clock. */
  #jump(): void {
    const dice = this.#random.below(10);
    const now = this.clock.now();
    if (dice < 4) this.clock.step((Math.floor(now / DAY) + 1) * DAY - now + this.#random.below(3) - 1);
    else if (dice < 6) this.clock.step((20 + this.#random.below(70)) * DAY);
    else if (dice < 9) this.clock.step(-this.#random.below(3_000));
    else this.clock.step(-this.#random.below(10) * DAY);
    this.#latest = Math.max(this.#latest, this.clock.now());
  }

  /** Follows a call to its end, which may be that nobody ever hears of it. */
  #follow(work: Promise<unknown>, heard: (error?: unknown) => void): void {
    const process = this.#process;
    const followed = work
      .then(
        () => heard(process.isDead ? new Dead() : undefined),
        (error: unknown) => heard(process.isDead ? new Dead() : error),
      )
      .catch((breach: unknown) => {
        this.#breach ??= breach;
      });
    this.#open.add(followed);
    void followed.then(() => this.#open.delete(followed));
  }

  #verify(): void {
    const key = this.#pick(this.#keys);
    const cost = this.#pick([0, 1, 1, 1, 2, 3, 5, 17]);
    const { pool } = key;
    // biome-ignore lint/suspicious/noExplicitAny: the shape is what other tests hold against its schema.
    let answer: any;
    const asked = (async () => {
      const text = await this.#process.verification.verify({
        key: key.secret,
        credits: { cost },
        workspaceId: this.#template.workspaceId,
        principal: caller,
        address: "127.0.0.1",
        now: this.clock.now(),
        startedAt: this.clock.monotonic(),
      });
      assert(typeof text === "string");
      answer = JSON.parse(text);
    })();
    this.#follow(asked, (error) => {
      if (error === undefined) this.#receive(pool, cost, answer);
      else {
        const isKnown = [StoreUnavailable, LedgerOverloaded, Dead].some((kind) => error instanceof kind);
        assert(isKnown, String((error as Error).stack));
        this.#limited.unanswered++;
        const lost = error instanceof AnswerLost || error instanceof Dead;
        if (lost) {
          pool.doubtful.push(cost);
          this.report.doubtful++;
        } else this.report.failed++;
      }
    });
  }

  // biome-ignore lint/suspicious/noExplicitAny: the shape is what other tests hold against its schema.
  #receive(pool: Pool, cost: number, answer: any): void {
    const { code, credits, ratelimits = [] } = answer;
    const exceeded = ratelimits.filter((limit: { exceeded: boolean }) => limit.exceeded).length;
    switch (code) {
      case "VALID":
        assert(Number.isInteger(credits) && credits >= 0, `VALID with credits ${credits}`);
        assert.equal(exceeded, 0);
        pool.acknowledged += cost;
        if (ratelimits.length > 0) this.#limited.valid++;
        this.report.valid++;
        return;
      case "USAGE_EXCEEDED":
        assert(credits >= 0 && credits < cost, `USAGE_EXCEEDED with credits ${credits} for ${cost}`);
        assert.equal(exceeded, 0, "RATE_LIMITED is decided before USAGE_EXCEEDED");
        this.report.denied++;
        return;
      case "RATE_LIMITED":
        assert(exceeded > 0);
        this.report.denied++;
        return;
      default:
        // A key that was rerolled may have come to its end.
        assert.equal(code, "EXPIRED");
        this.report.denied++;
    }
  }

  #changeCredits(): void {
    const { keyId } = this.#pick(this.#keys);
    const operation = this.#pick(["set", "increment", "increment", "decrement"]);
    const value = this.#random.below(60);
    this.#follow(this.#operate("keys.updateCredits", { keyId, operation, value }), (error) => {
      if (error === undefined) this.#changes.acknowledged++;
      else if (error instanceof AnswerLost || error instanceof Dead) this.#changes.doubtful++;
    });
  }

  #reroll(): void {
    const { keyId, pool } = this.#pick(this.#keys);
    const expiration = this.#pick([0, MINUTE, 10 * DAY]);
    const rerolled = this.#operate("keys.rerollKey", { keyId, expiration });
    this.#follow(
      rerolled.then(({ key, keyId }) => this.#keys.push({ secret: key, keyId, pool })),
      () => {},
    );
  }

  #sweep(): void {
    const { store } = this.#process;
    this.#follow(
      sweepRefills(this.clock.now(), (step) => store.transact("sweepRefills", step)),
      () => {},
    );
  }

  // biome-ignore lint/suspicious/noExplicitAny: the shape is what other tests hold against its schema.
  async #operate(operation: string, input: object): Promise<any> {
    const { directories, store } = this.#process;
    const { declaration } = operations.find(({ name }) => name === operation)!;
    const { outcome, change } = await store.transact("mutation", {
      operation,
      aliased: false,
      input: declaration.input.parse(input),
      principal: this.#template.administrator,
      now: this.clock.now(),
      idempotent: undefined,
    });
    if (change) {
      directories.generations.bump(change.tags);
      directories.changes.recordOwn(change.sequence);
    }
    return dataOf(outcome);
  }

  /** Waits until nothing is open any more. */
  async #settle(): Promise<void> {
    while (this.#open.size > 0) await Promise.race([Promise.all(this.#open), setImmediate()]);
  }

  /** Balances, what changed them beside spends, and which keys draw on them. */
  async #readBooks(sql: Sql): Promise<Books> {
    const balances = await sql.db.selectFrom("balances").selectAll().execute();
    const keys = await sql.db.selectFrom("keys").select(["id", "pool_id"]).execute();
    const events = await sql.db.selectFrom("audit_events").selectAll().orderBy("occurred_at").execute();
    return { balances, keys, events };
  }

  #books(): Promise<Books> {
    return this.#process.store.read("books" as never, null as never) as never;
  }

  readonly #booked = new Set<string>();
  #changesBooked = 0;

  /** Compares what is there with what was acknowledged. */
  async #closeBooks(): Promise<void> {
    await this.#settle();
    if (this.#breach) throw this.#breach;
    if (this.#process.isDead) await this.#restart();
    this.isFaulty = false;
    await sweepRefills(this.clock.now(), (step) => this.#process.store.transact("sweepRefills", step));
    const { balances, keys, events } = await this.#books();
    const fresh = events.filter(({ id }) => !this.#booked.has(id));
    const putIn = new Map<string, number>();
    for (const { id, action, targets, meta, occurred_at } of fresh) {
      this.#booked.add(id);
      if (action !== "credits.refill" && action !== "keys.updateCredits") continue;
      const target = JSON.parse(targets)[0];
      const { dueAt, operation, value, before, remaining } = JSON.parse(meta);
      const poolId = keys.find((key) => key.id === target)!.pool_id;
      const after =
        action === "credits.refill"
          ? remaining
          : { set: value, increment: before + value, decrement: Math.max(0, before - value) }[operation as "set"];
      putIn.set(poolId, (putIn.get(poolId) ?? 0) + after - before);
      if (action === "credits.refill") {
        this.report.refills++;
        const refill = refillOf(balances.find(({ pool_id }) => pool_id === poolId)!)!;
        assert.equal(remaining, refill.amount, "a refill sets the balance to its amount");
        assert.equal(dueAt, lastDue(refill, occurred_at as never));
        assert(occurred_at <= this.#latest, "a refill came before its time");
      } else this.#changesBooked++;
    }

    for (const pool of this.#pools) {
      const row = balances.find(({ pool_id }) => pool_id === pool.id)!;
      assert(row.remaining >= 0);
      const taken = this.lastSeen.get(pool.id)! + (putIn.get(pool.id) ?? 0) - row.remaining;
      const told = `${taken} were taken, ${pool.acknowledged} acknowledged, and perhaps ${pool.doubtful}`;
      assert(isSumOfSome(pool.doubtful, taken - pool.acknowledged), told);
      this.lastSeen.set(pool.id, row.remaining);
      pool.acknowledged = 0;
      pool.doubtful = [];
      const refill = refillOf(row);
      if (refill) {
        // What has fallen due was made up, and the next one is in the calendar.
        const next = nextDue(refill, this.clock.now());
        assert(row.refill_due_at! > this.clock.now(), "a refill is overdue");
        if (this.clock.now() === this.#latest) assert.equal(row.refill_due_at, next);
      }
    }
    for (const { keyId, pool } of this.#keys) {
      assert.equal(keys.find(({ id }) => id === keyId)!.pool_id, pool.id, "a rotation shares its pool");
    }

    const { charged } = this.counters;
    const { valid, unanswered } = this.#limited;
    assert(charged >= valid && charged <= valid + unanswered, `limits: ${charged} of ${valid} and ${unanswered}`);
    const { acknowledged, doubtful } = this.#changes;
    assert(this.#changesBooked >= acknowledged && this.#changesBooked <= acknowledged + doubtful);
    this.isFaulty = true;
  }
}

/** Whether some of the numbers, none of them twice, come to this sum. */
export function isSumOfSome(numbers: readonly number[], sum: number): boolean {
  let sums = new Set([0]);
  for (const number of numbers) sums = new Set([...sums].flatMap((one) => [one, one + number]));
  return sums.has(sum);
}

// biome-ignore lint/suspicious/noExplicitAny: the shape is what other tests hold against its schema.
function dataOf(outcome: OperationOutcome): any {
  if ("problem" in outcome) throw new Error(JSON.stringify(outcome.problem));
  return JSON.parse(`{${outcome.body}}`).data;
}
