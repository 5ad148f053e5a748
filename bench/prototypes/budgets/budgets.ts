/**
 * Prototype of the ledger for budgets and holds (decisions/050): charges several balances of a call together, and holds
 * of them, on the tables of the service. `node bench/prototypes/budgets/budgets.ts [--seconds 3] [--only postgres|sqlite]`;
 * `--contention` measures several nodes on shared balances, with `--nodes`, `--waiters`, and `--recent`, the milliseconds for which
 * a contended balance is left to the waiter.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { systemClock } from "../../../engine/src/clock/system.ts";
import { Ledger } from "../../../engine/src/credits/ledger.ts";
import { systemRandom } from "../../../engine/src/random/system.ts";
import type { Store } from "../../../server/src/platform/store/store.ts";
import { freshDatabase, startPostgres } from "../../../server/test/services/postgres.ts";
import { ROOT_KEY } from "../../lib/keys.ts";
import { describeMachine } from "../../lib/machine.ts";
import { repeat } from "../../lib/repeat.ts";
import { type BudgetProcedures, openBudgetStore, type RowState } from "./budget-store.ts";

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "3" },
    only: { type: "string" },
    nodes: { type: "string", default: "2" },
    keys: { type: "string", default: "10000" },
    waiters: { type: "string", default: "1" },
    recent: { type: "string", default: "1000" },
    contention: { type: "boolean", default: false },
  },
});
const seconds = Number(values.seconds);
const KEYS = Number(values.keys);
const OPEN = 8_192;
const LOAD = { open: OPEN, seconds, warmUp: 1 };
const WEIGHT_MAX = 8_192;
const ROWS_MAX = 8_192;
const WAITERS_MAX = Number(values.waiters);
const RECENT = Number(values.recent);
const LOCK_TIMEOUT = 3_000;

interface Call {
  /** All balances of the call, its own first. */
  rows: readonly string[];
  cost: number;
  /** A charge, a hold, or the settlement of a hold. */
  kind: "charge" | "hold" | "settle";
  holdId: string | undefined;
  arrivedAt: number;
  resolve(answer: string): void;
  reject(error: unknown): void;
}

let holdCount = 0;

/** A node: one batch that waits for nothing, and waiters that wait for one row while they hold no other. */
class Node {
  readonly #store: Store<BudgetProcedures>;
  readonly #name: string;
  #ready: Call[] = [];
  /** Calls of which a row was locked by another transaction when they were tried, with that row. */
  #contended: { call: Call; missing: string }[] = [];
  readonly #missing = new Map<string, number>();
  readonly #waitedFor = new Set<string>();
  /** Rows that were contended lately, with the time until which only waiters lock them. */
  readonly #recent = new Map<string, number>();
  #isWriting = false;
  readonly counts = { batches: 0, calls: 0, contended: 0, waits: 0 };
  readonly latencies: number[] = [];

  constructor(store: Store<BudgetProcedures>, name: string) {
    this.#store = store;
    this.#name = name;
  }

  run(kind: Call["kind"], rows: readonly string[], cost: number, holdId?: string): Promise<string> {
    return new Promise((resolve, reject) => {
      const id = kind === "hold" ? `hold_${this.#name}${holdCount++}` : holdId;
      this.#ready.push({ kind, rows, cost, holdId: id, arrivedAt: systemClock.monotonic(), resolve, reject });
      if (this.#isWriting) return;
      this.#isWriting = true;
      setImmediate(() => void this.#write());
    });
  }

  async #write(): Promise<void> {
    while (this.#ready.length > 0) {
      const calls: Call[] = [];
      const rest: Call[] = [];
      const rows = new Set<string>();
      const now = systemClock.monotonic();
      for (const [row, until] of this.#recent) if (until < now) this.#recent.delete(row);
      for (const call of this.#ready) {
        // A row that is contended anyway is left to the waiter.
        const missing =
          (this.#missing.size > 0 || this.#recent.size > 0) &&
          call.rows.find((row) => this.#missing.has(row) || this.#recent.has(row));
        if (missing) this.#markContended(call, missing);
        else if (calls.length < WEIGHT_MAX && rows.size < ROWS_MAX) {
          calls.push(call);
          for (const row of call.rows) rows.add(row);
        } else rest.push(call);
      }
      this.#ready = rest;
      if (calls.length > 0) await this.#transact(undefined, () => ({ calls, rows: [...rows] }));
      this.#wait();
    }
    this.#isWriting = false;
  }

  #markContended(call: Call, missing: string): void {
    this.#contended.push({ call, missing });
    this.#missing.set(missing, (this.#missing.get(missing) ?? 0) + 1);
    this.counts.contended++;
    if (RECENT > 0) this.#recent.set(missing, systemClock.monotonic() + RECENT);
  }

  #wait(): void {
    for (const { missing } of this.#contended) {
      if (this.#waitedFor.size >= WAITERS_MAX) return;
      if (this.#waitedFor.has(missing)) continue;
      this.#waitedFor.add(missing);
      this.counts.waits++;
      void this.#transact(missing, () => this.#takeContended(missing)).finally(() => {
        this.#waitedFor.delete(missing);
        this.#wait();
      });
    }
  }

  /** When the row of a waiter is locked: its calls, and all other contended ones, whose rows may be free now too. */
  #takeContended(first: string): { calls: Call[]; rows: string[] } {
    const calls: Call[] = [];
    const rows = new Set<string>();
    const rest: { call: Call; missing: string }[] = [];
    for (const entry of this.#contended) {
      const isOther = entry.missing !== first && this.#waitedFor.has(entry.missing);
      if (isOther || calls.length >= WEIGHT_MAX || rows.size >= ROWS_MAX) {
        rest.push(entry);
        continue;
      }
      calls.push(entry.call);
      for (const row of entry.call.rows) rows.add(row);
      const count = this.#missing.get(entry.missing)! - 1;
      if (count === 0) this.#missing.delete(entry.missing);
      else this.#missing.set(entry.missing, count);
    }
    this.#contended = rest;
    return { calls, rows: [...rows] };
  }

  async #transact(first: string | undefined, choose: () => { calls: Call[]; rows: string[] }): Promise<void> {
    let calls: Call[] = [];
    let answers: [Call, string][] = [];
    const lockTimeout = first === undefined ? undefined : LOCK_TIMEOUT;
    try {
      const rows = first === undefined ? choose() : undefined;
      if (rows) calls = rows.calls;
      await this.#store.transact(
        "chargeRows",
        { first, rows: rows?.rows ?? [], lockTimeout, now: systemClock.now() },
        (question) => {
          if (question.step === "choose") {
            const chosen = choose();
            calls = chosen.calls;
            return { rows: chosen.rows };
          }
          if (question.step === "locked") {
            const missing = new Set(question.missing);
            if (missing.size > 0) {
              const complete: Call[] = [];
              for (const call of calls) {
                const row = call.rows.find((id) => missing.has(id));
                if (row === undefined) complete.push(call);
                else this.#markContended(call, row);
              }
              calls = complete;
            }
            return { holds: calls.flatMap(({ kind, holdId }) => (kind === "settle" ? holdId! : [])) };
          }
          const decided = decide(calls, question.balances, question.holds);
          answers = decided.answers;
          return decided.changes;
        },
      );
    } catch (error) {
      for (const call of calls) call.reject(error);
      return;
    }
    this.counts.batches++;
    this.counts.calls += answers.length;
    const now = systemClock.monotonic();
    for (const [call, answer] of answers) {
      this.latencies.push(now - call.arrivedAt);
      call.resolve(answer);
    }
  }
}

/** Decides calls of locked rows. Settlements come first: what they give back is free for the calls that follow. */
function decide(
  calls: readonly Call[],
  balances: readonly RowState[],
  holds: readonly { id: string; state: number; cost: number }[],
) {
  const rows = new Map(
    balances.map((row) => [row.id, { id: row.id, free: row.remaining, remaining: 0, held: 0, spent: 0 }]),
  );
  const known = new Map(holds.map((hold) => [hold.id, hold]));
  const answers: [Call, string][] = [];
  const opened: { id: string; cost: number; rows: string }[] = [];
  const closed: { id: string; charged: number }[] = [];
  for (const call of calls) {
    if (call.kind !== "settle") continue;
    const hold = known.get(call.holdId!);
    if (hold?.state !== 0) {
      answers.push([call, "closed"]);
      continue;
    }
    hold.state = 1;
    closed.push({ id: hold.id, charged: call.cost });
    for (const id of call.rows) {
      const row = rows.get(id)!;
      const back = hold.cost - call.cost;
      row.free += back;
      row.remaining += back;
      row.held -= hold.cost;
      row.spent += call.cost;
    }
    answers.push([call, "settled"]);
  }
  for (const call of calls) {
    if (call.kind === "settle") continue;
    let isCovered = true;
    for (const id of call.rows) if (rows.get(id)!.free < call.cost) isCovered = false;
    if (!isCovered) {
      answers.push([call, "insufficient"]);
      continue;
    }
    for (const id of call.rows) {
      const row = rows.get(id)!;
      row.free -= call.cost;
      row.remaining -= call.cost;
      if (call.kind === "hold") row.held += call.cost;
      else row.spent += call.cost;
    }
    if (call.kind === "hold") opened.push({ id: call.holdId!, cost: call.cost, rows: JSON.stringify(call.rows) });
    answers.push([call, call.holdId ?? "spent"]);
  }
  const changed = [...rows.values()].filter(
    ({ remaining, held, spent }) => remaining !== 0 || held !== 0 || spent !== 0,
  );
  return { answers, changes: { rows: changed, opened, closed } };
}

console.log(`${describeMachine()}\n`);
const folder = mkdtempSync(join(tmpdir(), "latchkey-bench-"));
try {
  if (values.only !== "postgres") {
    const store = await openBudgetStore(join(folder, "sqlite"));
    await measure("SQLite", [store]);
    await store.close();
  }
  if (values.only !== "sqlite") {
    const server = await startPostgres();
    process.env.LATCHKEY_TEST_POSTGRES_URL = server.url;
    const database = await freshDatabase();
    const stores = [];
    for (let i = 0; i < Number(values.nodes); i++) stores.push(await openBudgetStore(folder, database.url));
    await measure("PostgreSQL", stores);
    for (const store of stores) await store.close();
    await database.drop();
    await server.stop();
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}

async function measure(name: string, stores: Store<BudgetProcedures>[]): Promise<void> {
  console.log(name);
  const store = stores[0]!;
  const { workspaceId } = await store.transact("prepare", { now: systemClock.now(), rootKey: ROOT_KEY });
  await store.transact("prepareBudgets", {});
  const now = systemClock.now();
  const keys = await store.transact("createKeys", { workspaceId, count: KEYS, remaining: 1e12, now });
  const budgets = await store.transact("createBudgets", { workspaceId, count: 10_000 });
  const pool = (i: number) => keys[i % keys.length]!.poolId;
  const budget = (i: number) => budgets[i % budgets.length]!;

  const before = new Ledger<never, { allowed: boolean }>({
    clock: systemClock,
    random: systemRandom,
    charge: () => ({ allowed: true }),
    transact: (batch, settle) => store.transact("spend", batch, settle),
  });
  let turn = 0;
  const report = (label: string, rate: number, more = "") =>
    console.log(`  ${label.padEnd(58)}${Math.round(rate).toLocaleString("en").padStart(9)} /s  ${more}`);
  const today = (of: number) => () =>
    before.spend({ workspaceId: "bench", balances: [pool(turn++ % of)], cost: 1, charges: undefined });
  if (values.contention) return contention(stores, pool, budget, report);
  report("charges, ledger of today, one key", await repeat(LOAD, today(1)));
  report(`charges, ledger of today, ${KEYS} keys`, await repeat(LOAD, today(KEYS)));

  if (values.contention) return contention(stores, pool, budget, report);
  const chains: [string, (i: number) => string[]][] = [
    ["one key", () => [pool(0)]],
    ["keys", (i) => [pool(i)]],
    ["one budget without credits", () => [budget(0)]],
    ["keys under one budget", (i) => [pool(i), budget(0)]],
    ["keys, each with a budget", (i) => [pool(i), budget(i)]],
    [
      "keys under 1,000 / 100 / 10 / 1 budgets",
      (i) => [pool(i), budget(1000 + (i % 1000)), budget(100 + (i % 100)), budget(10 + (i % 10)), budget(0)],
    ],
  ];
  const node = new Node(store, "a");
  const rates = new Map<string, number>();
  for (const [label, chain] of chains) {
    const rate = await repeat(LOAD, () => node.run("charge", chain(turn++), 1));
    rates.set(label, rate);
    report(`charges, ${label}`, rate);
  }
  for (const [label, chain] of chains) {
    const pairs = await repeat(LOAD, async () => {
      const rows = chain(turn++);
      const holdId = await node.run("hold", rows, 10);
      if ((await node.run("settle", rows, 7, holdId)) !== "settled") throw new Error("not settled");
    });
    report(`pairs of hold and settle, ${label}`, pairs, `${(pairs / rates.get(label)!).toFixed(2)} of the charges`);
  }
  const wrong = await store.transact("checkBooks", {});
  console.log(`  books: ${wrong.balances} balances and ${wrong.holds} open holds do not add up`);

  if (stores.length > 1) await contention(stores, pool, budget, report);
  const after = await store.transact("checkBooks", {});
  console.log(`  books: ${after.balances} balances and ${after.holds} open holds do not add up`);
}

async function contention(
  stores: Store<BudgetProcedures>[],
  pool: (i: number) => string,
  budget: (i: number) => string,
  report: (label: string, rate: number, more?: string) => void,
): Promise<void> {
  let turn = 0;
  for (const [label, chain] of [
    ["100 shared roots", (i: number) => [pool(i), budget(i % 100)]],
    ["one shared root", (i: number) => [pool(i), budget(0)]],
    ["opposite pairs of roots", (i: number) => (i % 2 ? [budget(1), budget(2)] : [budget(2), budget(1)])],
    ["3 levels, 100 roots", (i: number) => [pool(i), budget(1000 + (i % 1000)), budget(i % 100)]],
  ] as [string, (i: number) => string[]][]) {
    for (const count of [1, stores.length]) {
      const nodes = stores.slice(0, count).map((one, i) => new Node(one, `${label.length}-${count}-${i}-`));
      const rate = await repeat({ ...LOAD, open: 2_048 * count }, () => {
        const i = turn++;
        return nodes[i % count]!.run("charge", chain(Math.floor(i / count)), 1);
      });
      const latencies = nodes.flatMap((one) => one.latencies).toSorted((a, b) => a - b);
      const sum = nodes.reduce(
        (all, { counts }) => ({
          batches: all.batches + counts.batches,
          contended: all.contended + counts.contended,
          waits: all.waits + counts.waits,
        }),
        { batches: 0, contended: 0, waits: 0 },
      );
      const p99 = latencies[Math.floor(latencies.length * 0.99)]!;
      report(
        `${label}, ${count} nodes`,
        rate,
        `p99 ${p99.toFixed(0)} ms, max ${latencies.at(-1)!.toFixed(0)} ms, ${JSON.stringify(sum)}`,
      );
    }
  }
}
