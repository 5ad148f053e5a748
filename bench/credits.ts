/**
 * Cost of credits: `npm run bench:credits -- [--seconds 4] [--postgres postgres://…]`; about a minute and a half.
 *
 * First the ledger alone, without HTTP, on one key, on many, and on many with one budget over all, compared with one UPDATE
 * per spend; and pairs of a hold and its settlement, with one budget and with one for each key. It fails if the ledger is below a floor. Then verifications over HTTP with load from
 * wrk. Last, how the ledger affects verifications that need no credits: their latency beside paying callers, and beside
 * as many callers that do not pay. On the embedded database and on PostgreSQL: the given one, or one started for the
 * run.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { systemClock } from "../engine/src/clock/system.ts";
import { Ledger } from "../engine/src/credits/ledger.ts";
import { newTimedId } from "../engine/src/random/random.ts";
import { systemRandom } from "../engine/src/random/system.ts";
import type { Store } from "../server/src/platform/store/store.ts";
import { freshDatabase, startPostgres } from "../server/test/services/postgres.ts";
import { type BenchProcedures, type CreatedKey, openBenchStore } from "./lib/bench-store.ts";
import { JSON_TYPE, ROOT_KEY, VERIFY_PATH, verifyEach } from "./lib/keys.ts";
import { describeMachine } from "./lib/machine.ts";
import { wholeNumber } from "./lib/options.ts";
import { repeat } from "./lib/repeat.ts";
import { startLatchkey } from "./lib/server-under-test.ts";
import { Wrk } from "./lib/wrk.ts";

/** More than a run spends. */
const CREDITS = 1e12;
const KEYS = 10_000;
/** Spends that are open at the same time, where the ledger is alone. */
const OPEN_SPENDS = 8_192;
/** Pairs of a hold and its settlement: fewer, because fewer changes of holds may wait for one balance. */
const OPEN_PAIRS = 2_048;
const OPEN_UPDATES = 64;
/** Connections of paying callers, and of the callers whose latency is measured. */
const PAYING_CONNECTIONS = 256;
const MEASURED_CONNECTIONS = 8;
const WARM_UP_SECONDS = 2;

const { values } = parseArgs({
  options: { seconds: { type: "string", default: "4" }, postgres: { type: "string" } },
});
const seconds = wholeNumber({ seconds: values.seconds }, "seconds", 1, 60);

interface Database {
  name: "SQLite" | "PostgreSQL";
  /**
   * Minima per second of the ledger alone: spends on one key, and on many keys with one budget over all; pairs of a hold and its
   * settlement with one budget, and with one for each key.
   */
  floors: { oneKey: number; oneBudget: number; pairsOfOneBudget: number; pairsOfBudgets: number };
  url: string | undefined;
  folder: string;
}

console.log(`${describeMachine()}\n`);
const folder = mkdtempSync(join(tmpdir(), "latchkey-bench-"));
const ownPostgres = values.postgres === undefined ? await startPostgres() : undefined;
process.env.LATCHKEY_TEST_POSTGRES_URL = values.postgres ?? ownPostgres!.url;
const postgres = await freshDatabase();
let isBelowFloor = false;
try {
  const embedded = { oneKey: 50_000, oneBudget: 15_000, pairsOfOneBudget: 10_000, pairsOfBudgets: 2_500 };
  await measure({ name: "SQLite", floors: embedded, url: undefined, folder: join(folder, "sqlite") });
  const shared = { oneKey: 20_000, oneBudget: 7_000, pairsOfOneBudget: 8_000, pairsOfBudgets: 2_000 };
  await measure({ name: "PostgreSQL", floors: shared, url: postgres.url, folder: join(folder, "postgres") });
} finally {
  await postgres.drop();
  await ownPostgres?.stop();
  rmSync(folder, { recursive: true, force: true });
}
if (isBelowFloor) process.exitCode = 1;

async function measure(database: Database): Promise<void> {
  console.log(database.name);
  const store = await openBenchStore(database.folder, database.url);
  const { workspaceId } = await store.transact("prepare", { now: systemClock.now(), rootKey: ROOT_KEY });
  const make = (count: number, remaining: number | null) =>
    store.transact("createKeys", { workspaceId, count, remaining, now: systemClock.now() });
  const paying = await make(KEYS, CREDITS);
  const free = await make(KEYS, null);

  const budgets = { workspaceId, count: KEYS, remaining: CREDITS, now: systemClock.now() };
  const budgetIds = await store.transact("createBudgets", budgets);

  const { oneKey, oneBudget, pairsOfOneBudget, pairsOfBudgets } = database.floors;
  const pools = paying.map(({ poolId }) => [poolId]);
  await measureLedger(store, "one key", pools.slice(0, 1), oneKey);
  await measureLedger(store, `${write(KEYS)} keys`, pools);
  const shared = pools.map((pool) => [...pool, budgetIds[0]!]);
  await measureLedger(store, `${write(KEYS)} keys, one budget`, shared, oneBudget);
  const owners = budgetIds.map((budgetId) => [budgetId]);
  await measurePairs(store, workspaceId, "one budget", owners.slice(0, 1), pairsOfOneBudget);
  await measurePairs(store, workspaceId, `${write(KEYS)} budgets`, owners, pairsOfBudgets);
  await measureUpdates(store, paying[0]!);
  await store.close();
  if (Wrk.isInstalled) await measureVerifications(database, paying, free);
  else console.log("  Verifications over HTTP skipped: wrk is not installed.");
  console.log();
}

function openLedger(store: Store<BenchProcedures>) {
  return new Ledger<never, { allowed: boolean }>({
    clock: systemClock,
    random: systemRandom,
    charge: () => ({ allowed: true }),
    transact: (batch, settle) => store.transact("spend", batch, settle),
  });
}

/** Spends as fast as they are answered, from these balances in turn. */
async function measureLedger(
  store: Store<BenchProcedures>,
  label: string,
  payers: readonly (readonly string[])[],
  floor = 0,
): Promise<void> {
  const ledger = openLedger(store);
  let turn = 0;
  const spend = async () => {
    const balances = payers[turn++ % payers.length]!;
    const { outcome } = await ledger.spend({ workspaceId: "bench", balances, cost: 1, charges: undefined });
    if (outcome !== "spent") throw new Error(`A spend was ${outcome}`);
  };
  const rate = await repeat({ open: OPEN_SPENDS, seconds, warmUp: WARM_UP_SECONDS }, spend);
  const { batches, calls } = ledger.counts;
  report(`ledger alone, ${label}`, `${write(rate)} spends/s, ${write(calls / batches)} to a commit`);
  compareToFloor(rate, floor);
}

/** Holds and settles as fast as they are answered, with these balances in turn. */
async function measurePairs(
  store: Store<BenchProcedures>,
  workspaceId: string,
  label: string,
  payers: readonly (readonly string[])[],
  floor: number,
): Promise<void> {
  const ledger = openLedger(store);
  let turn = 0;
  const pair = async () => {
    const balances = payers[turn++ % payers.length]!;
    const holdId = newTimedId(systemRandom, "hold", systemClock.now());
    const hold = { holdId, ttl: 60_000, onExpiry: "release", keyId: "bench", apiId: "bench" } as const;
    const { outcome } = await ledger.spend({ workspaceId, balances, cost: 10, charges: undefined, hold });
    if (outcome !== "spent") throw new Error(`A hold was ${outcome}`);
    const action = { kind: "settle", amount: 7, settlement: "7" } as const;
    const changed = await ledger.change({ workspaceId, holdId, balances, action });
    if (changed.outcome !== "changed" || changed.charged !== 7) throw new Error(`A settlement was ${changed.outcome}`);
  };
  const rate = await repeat({ open: OPEN_PAIRS, seconds, warmUp: WARM_UP_SECONDS }, pair);
  report(`ledger alone, pairs, ${label}`, `${write(rate)} pairs of hold and settlement/s`);
  compareToFloor(rate, floor);
}

function compareToFloor(rate: number, floor: number): void {
  if (rate >= floor) return;
  isBelowFloor = true;
  console.log(`  That is below the floor of ${write(floor)} per second.`);
}

async function measureUpdates(store: Store<BenchProcedures>, { poolId }: CreatedKey): Promise<void> {
  const rate = await repeat({ open: OPEN_UPDATES, seconds, warmUp: WARM_UP_SECONDS }, async () => {
    if ((await store.transact("updateOne", { poolId, cost: 1 })) === undefined)
      throw new Error("The balance is too low");
  });
  report("one UPDATE each, one key", `${write(rate)} spends/s`);
}

async function measureVerifications(
  { folder, url }: Database,
  paying: readonly CreatedKey[],
  free: readonly CreatedKey[],
): Promise<void> {
  const server = await startLatchkey({ folder, settings: url === undefined ? {} : { DATABASE_URL: url } });
  const loadOf = (keys: readonly CreatedKey[], connections: number) => {
    const bodies = keys.map(({ key }) => JSON.stringify({ key }));
    return new Wrk({ path: VERIFY_PATH, headers: JSON_TYPE, bodies }, connections);
  };
  const hot = loadOf(paying.slice(0, 1), PAYING_CONNECTIONS);
  const all = loadOf(paying, PAYING_CONNECTIONS);
  const freeLoad = loadOf(free, PAYING_CONNECTIONS);
  const measured = loadOf(free.slice(0, 1_000), MEASURED_CONNECTIONS);
  try {
    for (const keys of [paying, free]) await verifyEach(server.url, keys);
    for (const [label, wrk] of [
      ["verifications, one key", hot],
      [`verifications, ${write(KEYS)} keys`, all],
    ] as const) {
      await wrk.run(server.url, WARM_UP_SECONDS);
      const { requests, seconds: took, p99Ms } = await wrk.run(server.url, seconds);
      report(
        label,
        `${write(requests / took)} per second on ${PAYING_CONNECTIONS} connections, p99 ${p99Ms.toFixed(1)} ms`,
      );
    }
    for (const [label, others] of [
      ["free verifications beside free ones", freeLoad],
      ["free verifications beside paying ones", all],
    ] as const) {
      await others.run(server.url, WARM_UP_SECONDS);
      const [load] = await Promise.all([measured.run(server.url, seconds), others.run(server.url, seconds)]);
      report(label, `p99 ${load.p99Ms.toFixed(1)} ms, median ${load.medianMs.toFixed(1)} ms`);
    }
  } finally {
    for (const wrk of [hot, all, freeLoad, measured]) wrk.close();
    await server.stop();
  }
}

function report(label: string, text: string): void {
  console.log(`  ${label.padEnd(40)}${text}`);
}

function write(value: number): string {
  return Math.round(value).toLocaleString("en");
}
