/**
 * Simulates a process and its database: the production code that charges a verification, on one database file and one
 * simulated clock. A seed chooses faults and crashes. The ledger of the simulation remembers only what was
 * acknowledged, and audits compare the database with it.
 */

import assert from "node:assert/strict";
import { copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { SimulatedClock } from "../../../engine/src/clock/simulated.ts";
import { BalanceReader } from "../../../engine/src/credits/balance-reader.ts";
import type { BatchNeeds, EarlierCalls, LockedBatch, SettledBatch } from "../../../engine/src/credits/batch.ts";
import { Ledger, LedgerOverloaded } from "../../../engine/src/credits/ledger.ts";
import { sweepRefills } from "../../../engine/src/credits/sweep.ts";
import { applyOwnChange, Directories } from "../../../engine/src/directory/directories.ts";
import { StoreUnavailable } from "../../../engine/src/errors/store-unavailable.ts";
import type { Charge, ChargeResult, Counters, Receipt } from "../../../engine/src/limits/counters.ts";
import { Limiter } from "../../../engine/src/limits/limiter.ts";
import { MemoryCounters } from "../../../engine/src/limits/memory-counters.ts";
import { MemoryReplayStore } from "../../../engine/src/limits/memory-replay-store.ts";
import { MemoryTable, reserveTable } from "../../../engine/src/limits/memory-table.ts";
import type { Random } from "../../../engine/src/random/random.ts";
import { seededRandom } from "../../../engine/src/random/seeded.ts";
import { lastDue, nextDue, refillOf } from "../../../engine/src/rules/refill.ts";
import { jsonAnswers } from "../../../engine/src/verification/answers.ts";
import { SingleCalls } from "../../../engine/src/verification/single-calls.ts";
import { Verification } from "../../../engine/src/verification/verification.ts";
import type { OperationOutcome } from "../../src/platform/rpc/execute.ts";
import type { PlainPrincipal } from "../../src/platform/rpc/principal.ts";
import type { AuditEventRow, BalanceRow, KeyRow } from "../../src/platform/store/schema.ts";
import { openSqliteStoreHere } from "../../src/platform/store/sqlite/store-here.ts";
import type { Claim, Procedure, Sql, Store } from "../../src/platform/store/store.ts";
import { directorySource } from "../../src/service/directory-source.ts";
import { operations } from "../../src/service/operations.ts";
import { type AppProcedures, openProcedures } from "../../src/service/procedures.ts";
import { grantedClaim } from "../intercepted-store.ts";

/** Deliberate bugs, which the audits must detect. */
export const mutants = [
  "a failed transaction is committed",
  "a batch is answered before its commit",
  "a spend is written twice",
  "a spend is not written",
  "the credits of a denied call are not released",
  "a peek at the limits charges them",
  "a rotation copies the balance",
  "a refill comes early",
  "a refill adds to the balance",
] as const;
export type Mutant = (typeof mutants)[number];

const START = 1_768_478_400_000;
const DAY = 86_400_000;
const MINUTE = 60_000;

/** The data need not be durable, so the files are in memory where possible. */
const temporaryFolder = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();

/** The transaction failed and was rolled back. All errors of a store mean this, except for `AnswerLost`. */
class TransactionFailed extends StoreUnavailable {}
/** The transaction was committed, and its answer was lost. */
class AnswerLost extends StoreUnavailable {}
/** The process of this call has crashed. */
class Crashed extends Error {}

/** The fate of a writing transaction. */
type TransactionFate = "committed" | "fails" | "answer lost" | "crashes before" | "crashes after";

/** A pool of credits, with the spends of its calls since the last audit. */
interface Pool {
  id: string;
  /** Credits of acknowledged spends. */
  acknowledged: number;
  /** Amounts of spends with an unknown outcome. */
  uncertain: number[];
}

interface Key {
  secret: string;
  keyId: string;
  pool: Pool;
}

/** A principal with all permissions, which never change. */
const caller = { may: () => true, isCurrent: () => true, renew: () => caller };

/** A migrated database with a workspace and an API, copied for each simulation. */
export class Template {
  readonly folder = mkdtempSync(join(temporaryFolder, "latchkey-simulation-"));
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

/** The rows that an audit reads. */
interface AuditRows {
  balances: BalanceRow[];
  keys: Pick<KeyRow, "id" | "pool_id">[];
  events: AuditEventRow[];
}

/** The counts of one seed, for the output of the test. */
export interface Report {
  valid: number;
  denied: number;
  failed: number;
  uncertain: number;
  crashes: number;
  refills: number;
}

/** One process: the state that a crash loses, and its connection to the database. */
class Process {
  hasCrashed = false;
  readonly directories: Directories;
  readonly verification: Verification;
  readonly store: Store<AppProcedures>;

  constructor(simulation: LedgerSimulation, procedures: AppProcedures) {
    const { clock } = simulation;
    this.store = new FaultyStore(simulation, this, procedures);
    const { store } = this;
    this.directories = new Directories({
      clock,
      staleMax: 10 * MINUTE,
      bytesMax: 2 ** 24,
      lookupsPerSecond: 5_000,
      source: directorySource(store, clock),
      onReachability() {},
    });
    const limiter = new Limiter(simulation.counters, "closed", clock);
    const ledger = new Ledger({
      clock,
      random: seededRandom(1),
      charge: (charges: readonly Charge[]) => limiter.charge(charges),
      transact: (batch, settle) => store.transact("spend", batch, settle),
    });
    const balances = new BalanceReader({ clock, read: (question) => store.read("readBalances", question) });
    const singleCalls = new SingleCalls({
      clock,
      replays: new MemoryReplayStore(clock),
      isReachable: () => true,
      findRecorded: (question) => store.read("idempotencyRecords", question),
    });
    this.verification = new Verification({
      form: jsonAnswers,
      clock,
      directories: this.directories,
      limiter,
      ledger,
      balances,
      openHolds: { async add() {}, remove() {} },
      random: seededRandom(2),
      singleCalls,
      upstreams: { ask: () => false },
      recorder: null,
      async prepareBalances() {
        return [];
      },
      async recordFirstUses() {},
    });
  }
}

/** The database as one process sees it: every transaction has a fate. */
class FaultyStore implements Store<AppProcedures> {
  readonly isEmbedded = true;
  readonly monthlyTables = [];
  readonly #simulation: LedgerSimulation;
  readonly #process: Process;
  readonly #inner: Store<AppProcedures>;
  #fate: TransactionFate = "committed";

  constructor(simulation: LedgerSimulation, process: Process, procedures: AppProcedures) {
    this.#simulation = simulation;
    this.#process = process;
    const writing = Object.entries(procedures.writing).map(([name, procedure]) => [
      name,
      (sql: Sql, argument: never, ask: never) => this.#write(name, procedure as Procedure, sql, argument, ask),
    ]);
    this.#inner = openSqliteStoreHere(simulation.file, { ...procedures, writing: Object.fromEntries(writing) });
  }

  readonly read: Store<AppProcedures>["read"] = async (name, argument) => {
    this.#assertRunning();
    if (this.#simulation.isFaulty && this.#simulation.chance(2)) throw new TransactionFailed("a read failed");
    const answer = await this.#inner.read(name, argument);
    this.#assertRunning();
    return answer;
  };

  readonly transact: Store<AppProcedures>["transact"] = async (name, argument, ...rest) => {
    this.#assertRunning();
    const answer = await this.#inner.transact(name, argument, ...rest);
    if (this.#fate === "crashes after") this.#process.hasCrashed = true;
    this.#assertRunning();
    // It was committed: only the mutant gets here.
    if (this.#fate === "fails" && this.#simulation.mutant === "a failed transaction is committed")
      throw new TransactionFailed("failed");
    if (this.#fate === "answer lost") throw new AnswerLost("the answer was lost");
    return answer;
  };

  async claim(): Promise<Claim> {
    return grantedClaim;
  }

  get writesInFlight(): number {
    return this.#inner.writesInFlight;
  }

  listen(): void {}

  close(): Promise<void> {
    return this.#inner.close();
  }

  /** Runs a procedure in its transaction, which is rolled back if it throws. */
  async #write(
    name: string,
    procedure: Procedure,
    sql: Sql,
    argument: never,
    ask: (question: unknown) => Promise<unknown>,
  ) {
    this.#assertRunning();
    this.#fate = this.#simulation.nextFate();
    const isAdding = this.#simulation.mutant === "a refill adds to the balance" && name !== "prepare";
    const before = isAdding ? await sql.db.selectFrom("balances").selectAll().execute() : [];
    let balances: LockedBatch["balances"] = [];
    const answer = await procedure(sql, this.#mutated(name, argument), async (question: LockedBatch | EarlierCalls) => {
      if (question.step === "choose") balances = question.balances;
      const reply = (await ask(question)) as BatchNeeds | SettledBatch;
      if ("scopes" in reply) return reply;
      this.#assertRunning();
      return this.#mutatedSettlement(balances, reply);
    });
    this.#assertRunning();
    if (this.#fate === "crashes before") {
      this.#process.hasCrashed = true;
      this.#assertRunning();
    }
    if (this.#fate === "fails" && this.#simulation.mutant !== "a failed transaction is committed") {
      if (name === "spend" && this.#simulation.mutant === "a batch is answered before its commit") {
        await this.#undo(sql, argument);
        return answer;
      }
      throw new TransactionFailed("the transaction failed");
    }
    if (name === "mutation" && this.#simulation.mutant === "a rotation copies the balance") await this.#copyPool(sql);
    if (isAdding) await this.#add(sql, before);
    return answer;
  }

  #assertRunning(): void {
    if (this.#process.hasCrashed) throw new Crashed("This process has crashed");
  }

  #mutated(name: string, argument: { now: number }): unknown {
    if (name !== "spend" || this.#simulation.mutant !== "a refill comes early") return argument;
    return { ...argument, now: argument.now + DAY };
  }

  #mutatedSettlement(balances: LockedBatch["balances"], settlement: SettledBatch): SettledBatch {
    const { mutant, deniedPools } = this.#simulation;
    const remaining = (id: string) => balances.find((balance) => balance.id === id)?.remaining ?? 0;
    if (mutant === "a spend is not written") return { ...settlement, spends: settlement.spends.slice(1) };
    if (mutant === "a spend is written twice") {
      const twice = settlement.spends.map(({ balanceId, amount }) =>
        2 * amount <= remaining(balanceId) ? { balanceId, amount: 2 * amount } : { balanceId, amount },
      );
      return { ...settlement, spends: twice };
    }
    if (mutant === "the credits of a denied call are not released") {
      const kept = deniedPools.splice(0).filter((poolId) => {
        const amount = settlement.spends.find(({ balanceId }) => balanceId === poolId)?.amount;
        return amount === undefined && remaining(poolId) > 0;
      });
      return {
        ...settlement,
        spends: [...settlement.spends, ...[...new Set(kept)].map((balanceId) => ({ balanceId, amount: 1 }))],
      };
    }
    return settlement;
  }

  /** For a mutant: reverts what the batch spent. */
  async #undo(sql: Sql, { balanceIds }: { balanceIds: string[] }): Promise<void> {
    for (const [poolId, remaining] of this.#simulation.lastAudited) {
      if (!balanceIds.includes(poolId)) continue;
      await sql.db.updateTable("balances").set({ remaining }).where("pool_id", "=", poolId).execute();
    }
  }

  /** For a mutant: adds the previous balance to a refill. */
  async #add(sql: Sql, before: readonly BalanceRow[]): Promise<void> {
    for (const { pool_id, remaining, refill_due_at } of before) {
      const row = await sql.db.selectFrom("balances").selectAll().where("pool_id", "=", pool_id).executeTakeFirst();
      if (!row || row.refill_due_at === refill_due_at) continue;
      const sum = { remaining: row.remaining + remaining };
      await sql.db.updateTable("balances").set(sum).where("pool_id", "=", pool_id).execute();
    }
  }

  /** For a mutant: gives the newest key a pool of its own. */
  async #copyPool(sql: Sql): Promise<void> {
    const keys = await sql.db
      .selectFrom("keys")
      .select(["id", "pool_id"])
      .orderBy("created_at")
      .orderBy("id")
      .execute();
    const shared = keys.filter((key) => key.id !== keys[0]!.id && this.#simulation.poolIds.has(key.pool_id));
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

/**
 * Counters that answer synchronously or later, like memory and Redis, and count charged calls. They survive crashes.
 */
class CountingCounters implements Counters {
  /** Calls whose limits were charged. */
  charged = 0;
  readonly #simulation: LedgerSimulation;
  readonly #inner: MemoryCounters;

  constructor(simulation: LedgerSimulation) {
    this.#simulation = simulation;
    this.#inner = new MemoryCounters(new MemoryTable(reserveTable(2 ** 22, false), 1, [7, 11]), simulation.clock);
  }

  charge(charges: readonly Charge[]): ChargeResult | Promise<ChargeResult> {
    return this.#sometimesLater(() => {
      const verdict = this.#inner.charge(charges);
      if (verdict.outcome === "decided" && verdict.allowed) this.charged++;
      else
        this.#simulation.deniedPools.push(
          charges[0]!.counter.split("\u0000").find((part) => part.startsWith("pool_"))!,
        );
      return verdict;
    });
  }

  peek(charges: readonly Charge[]): ChargeResult | Promise<ChargeResult> {
    if (this.#simulation.mutant === "a peek at the limits charges them") return this.charge(charges);
    return this.#sometimesLater(() => this.#inner.peek(charges));
  }

  adjust(receipt: Receipt, costs: readonly (number | undefined)[]): readonly boolean[] {
    return this.#inner.adjust(receipt, costs);
  }

  #sometimesLater(decide: () => ChargeResult): ChargeResult | Promise<ChargeResult> {
    return this.#simulation.chance(30) ? setImmediate().then(decide) : decide();
  }
}

/** The simulation of one seed. */
export class LedgerSimulation {
  readonly clock = new SimulatedClock(START);
  readonly file: string;
  readonly mutant: Mutant | undefined;
  readonly counters: CountingCounters;
  /** Whether reads and transactions may fail at the moment. */
  isFaulty = true;
  /** Pools of calls that limits denied, for a mutant. */
  readonly deniedPools: string[] = [];
  /** Balances at the last audit. */
  readonly lastAudited = new Map<string, number>();
  readonly report: Report = { valid: 0, denied: 0, failed: 0, uncertain: 0, crashes: 0, refills: 0 };
  readonly #seed: number;
  readonly #random: Random;
  readonly #template: Template;
  readonly #keys: Key[] = [];
  readonly #pools: Pool[] = [];
  #open = new Set<Promise<void>>();
  #process!: Process;
  #starts = 0;
  /** Changes of credits: acknowledged, and with an unknown outcome. */
  #changes = { acknowledged: 0, uncertain: 0 };
  /** Calls with limits: acknowledged as valid, and without an answer. */
  #limitedCalls = { valid: 0, unanswered: 0 };
  #latest = START;
  /** The first wrong answer. */
  #violation: unknown;

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

  nextFate(): TransactionFate {
    if (!this.isFaulty) return "committed";
    const draw = this.#random.below(100);
    if (draw < 86) return "committed";
    if (draw < 92) return "fails";
    if (draw < 96) return "answer lost";
    return draw < 98 ? "crashes before" : "crashes after";
  }

  /** Runs this many steps, with audits in between and at the end. */
  async run(steps: number): Promise<Report> {
    try {
      await this.#start();
      await this.#populate();
      for (let step = 1; step <= steps; step++) {
        await this.#step();
        if (this.#process.hasCrashed) await this.#restart();
        if (step % 40 === 0 || step === steps) await this.#audit();
      }
      return this.report;
    } finally {
      await this.#finishCalls();
      await this.#stop();
      for (const suffix of ["", "-wal", "-shm"]) rmSync(this.file + suffix, { force: true });
    }
  }

  async #start(): Promise<void> {
    const procedures = openProcedures({ seed: this.#seed * 1_000 + ++this.#starts, vault: { kind: "none" } });
    const reading = { ...procedures.reading, auditRows: (sql: Sql) => this.#readAuditRows(sql) };
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

  /** A crashed process answers no call; its database rolls back what was not committed. */
  async #restart(): Promise<void> {
    this.report.crashes++;
    await this.#finishCalls();
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
      { credits: { remaining: 300 }, externalId: "user", ratelimits: [limit("own", 9, 1_000)] },
      {
        credits: { remaining: 0, refill: { interval: "monthly", amount: 50, refillDay: 31 } },
        externalId: "user",
        ratelimits: [limit("own", 12, 5_000)],
      },
    ];
    for (const specification of specifications) {
      const made = await this.#operate("keys.createKey", { apiId, ...specification });
      const pool: Pool = { id: "", acknowledged: 0, uncertain: [] };
      this.#pools.push(pool);
      this.#keys.push({ secret: made.key, keyId: made.keyId, pool });
    }
    const rows = await this.#auditRows();
    for (const { pool, keyId } of this.#keys) {
      pool.id = rows.keys.find(({ id }) => id === keyId)!.pool_id;
      this.lastAudited.set(pool.id, rows.balances.find(({ pool_id }) => pool_id === pool.id)!.remaining);
    }
    this.isFaulty = true;
  }

  async #step(): Promise<void> {
    const draw = this.#random.below(100);
    if (draw < 55) for (let n = 1 + this.#random.below(4); n > 0; n--) this.#verify();
    else if (draw < 75) for (let n = 1 + this.#random.below(6); n > 0; n--) await setImmediate();
    else if (draw < 85)
      this.#advance(this.#random.below(3) === 0 ? this.#random.below(90_000) : this.#random.below(400));
    else if (draw < 88) this.#jumpClock();
    else if (draw < 94) this.#changeCredits();
    else if (draw < 96 && this.#keys.length < 12) this.#reroll();
    else if (draw < 98) this.#sweep();
    else if (this.chance(50)) this.#process.hasCrashed = true;
  }

  #pick<T>(values: readonly T[]): T {
    return values[this.#random.below(values.length)]!;
  }

  #advance(length: number): void {
    this.clock.advance(length);
    this.#latest = Math.max(this.#latest, this.clock.now());
  }

  /** Jumps to a time near the next midnight or some weeks ahead, or corrects the clock. */
  #jumpClock(): void {
    const draw = this.#random.below(10);
    const now = this.clock.now();
    if (draw < 4) this.clock.step((Math.floor(now / DAY) + 1) * DAY - now + this.#random.below(3) - 1);
    else if (draw < 6) this.clock.step((20 + this.#random.below(70)) * DAY);
    else if (draw < 9) this.clock.step(-this.#random.below(3_000));
    else this.clock.step(-this.#random.below(10) * DAY);
    this.#latest = Math.max(this.#latest, this.clock.now());
  }

  /** Follows a call to its end. A call of a crashed process ends with `Crashed`. */
  #follow(work: Promise<unknown>, onEnd: (error?: unknown) => void): void {
    const process = this.#process;
    const followed = work
      .then(
        () => onEnd(process.hasCrashed ? new Crashed() : undefined),
        (error: unknown) => onEnd(process.hasCrashed ? new Crashed() : error),
      )
      .catch((violation: unknown) => {
        this.#violation ??= violation;
      });
    this.#open.add(followed);
    void followed.then(() => this.#open.delete(followed));
  }

  #verify(): void {
    const key = this.#pick(this.#keys);
    const cost = this.#pick([0, 1, 1, 1, 2, 3, 5, 17]);
    const { pool } = key;
    // biome-ignore lint/suspicious/noExplicitAny: other tests check the shape by its schema.
    let answer: any;
    const call = (async () => {
      const text = await this.#process.verification.verify({
        key: key.secret,
        credits: { cost },
        workspaceId: this.#template.workspaceId,
        principal: caller,
        address: "127.0.0.1",
        requestId: "req_1",
        now: this.clock.now(),
        startedAt: this.clock.monotonic(),
      });
      assert(typeof text === "string");
      answer = JSON.parse(text);
    })();
    this.#follow(call, (error) => {
      if (error === undefined) this.#receive(pool, cost, answer);
      else {
        const isKnown = [StoreUnavailable, LedgerOverloaded, Crashed].some((kind) => error instanceof kind);
        assert(isKnown, String((error as Error).stack));
        this.#limitedCalls.unanswered++;
        const lost = error instanceof AnswerLost || error instanceof Crashed;
        if (lost) {
          pool.uncertain.push(cost);
          this.report.uncertain++;
        } else this.report.failed++;
      }
    });
  }

  // biome-ignore lint/suspicious/noExplicitAny: other tests check the shape by its schema.
  #receive(pool: Pool, cost: number, answer: any): void {
    const { code, credits, ratelimits = [] } = answer;
    const exceeded = ratelimits.filter((limit: { exceeded: boolean }) => limit.exceeded).length;
    switch (code) {
      case "VALID":
        assert(Number.isInteger(credits) && credits >= 0, `VALID with credits ${credits}`);
        assert.equal(exceeded, 0);
        pool.acknowledged += cost;
        if (ratelimits.length > 0) this.#limitedCalls.valid++;
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
        // A rerolled key may have expired.
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
      else if (error instanceof AnswerLost || error instanceof Crashed) this.#changes.uncertain++;
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

  // biome-ignore lint/suspicious/noExplicitAny: other tests check the shape by its schema.
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
    if (change) applyOwnChange(directories, change);
    return dataOf(outcome);
  }

  /** Waits until no call is open. */
  async #finishCalls(): Promise<void> {
    while (this.#open.size > 0) await Promise.race([Promise.all(this.#open), setImmediate()]);
  }

  /** Reads the balances, their changes other than spends, and the pool of each key. */
  async #readAuditRows(sql: Sql): Promise<AuditRows> {
    const balances = await sql.db.selectFrom("balances").selectAll().execute();
    const keys = await sql.db.selectFrom("keys").select(["id", "pool_id"]).execute();
    const events = await sql.db.selectFrom("audit_events").selectAll().orderBy("occurred_at").execute();
    return { balances, keys, events };
  }

  #auditRows(): Promise<AuditRows> {
    return this.#process.store.read("auditRows" as never, null as never) as never;
  }

  readonly #auditedEvents = new Set<string>();
  #changesAudited = 0;

  /** Compares the database with what was acknowledged. */
  async #audit(): Promise<void> {
    await this.#finishCalls();
    if (this.#violation) throw this.#violation;
    if (this.#process.hasCrashed) await this.#restart();
    this.isFaulty = false;
    await sweepRefills(this.clock.now(), (step) => this.#process.store.transact("sweepRefills", step));
    const { balances, keys, events } = await this.#auditRows();
    const fresh = events.filter(({ id }) => !this.#auditedEvents.has(id));
    const added = new Map<string, number>();
    for (const { id, action, targets, meta, occurred_at } of fresh) {
      this.#auditedEvents.add(id);
      if (action !== "credits.refill" && action !== "keys.updateCredits") continue;
      const target = JSON.parse(targets)[0];
      const { dueAt, operation, value, before, remaining } = JSON.parse(meta);
      const poolId = keys.find((key) => key.id === target)!.pool_id;
      const after =
        action === "credits.refill"
          ? remaining
          : { set: value, increment: before + value, decrement: Math.max(0, before - value) }[operation as "set"];
      added.set(poolId, (added.get(poolId) ?? 0) + after - before);
      if (action === "credits.refill") {
        this.report.refills++;
        const refill = refillOf(balances.find(({ pool_id }) => pool_id === poolId)!)!;
        assert.equal(remaining, refill.amount, "a refill sets the balance to its amount");
        assert.equal(dueAt, lastDue(refill, occurred_at as never));
        assert(occurred_at <= this.#latest, "a refill came before its time");
      } else this.#changesAudited++;
    }

    for (const pool of this.#pools) {
      const row = balances.find(({ pool_id }) => pool_id === pool.id)!;
      assert(row.remaining >= 0);
      const spent = this.lastAudited.get(pool.id)! + (added.get(pool.id) ?? 0) - row.remaining;
      const sums = `${spent} were spent, ${pool.acknowledged} acknowledged, and possibly ${pool.uncertain}`;
      assert(isSumOfSome(pool.uncertain, spent - pool.acknowledged), sums);
      this.lastAudited.set(pool.id, row.remaining);
      pool.acknowledged = 0;
      pool.uncertain = [];
      const refill = refillOf(row);
      if (refill) {
        // Due refills were applied, and the next one is scheduled.
        const next = nextDue(refill, this.clock.now());
        assert(row.refill_due_at! > this.clock.now(), "a refill is overdue");
        if (this.clock.now() === this.#latest) assert.equal(row.refill_due_at, next);
      }
    }
    for (const { keyId, pool } of this.#keys) {
      assert.equal(keys.find(({ id }) => id === keyId)!.pool_id, pool.id, "a rotation shares its pool");
    }

    const { charged } = this.counters;
    const { valid, unanswered } = this.#limitedCalls;
    assert(charged >= valid && charged <= valid + unanswered, `limits: ${charged} of ${valid} and ${unanswered}`);
    const { acknowledged, uncertain } = this.#changes;
    assert(this.#changesAudited >= acknowledged && this.#changesAudited <= acknowledged + uncertain);
    this.isFaulty = true;
  }
}

/** Whether some of the numbers, each used at most once, have this sum. */
export function isSumOfSome(numbers: readonly number[], sum: number): boolean {
  let sums = new Set([0]);
  for (const number of numbers) sums = new Set([...sums].flatMap((one) => [one, one + number]));
  return sums.has(sum);
}

// biome-ignore lint/suspicious/noExplicitAny: other tests check the shape by its schema.
function dataOf(outcome: OperationOutcome): any {
  if ("problem" in outcome) throw new Error(JSON.stringify(outcome.problem));
  return JSON.parse(`{${outcome.body}}`).data;
}
