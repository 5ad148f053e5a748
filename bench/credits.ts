/**
 * Cost of credits: `npm run bench:credits -- [--seconds 4] [--postgres postgres://…]`; about a minute and a half.
 *
 * First the ledger alone, without HTTP, compared with one UPDATE per spend. Then verifications over HTTP with load from
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
import type { Store } from "../server/src/platform/store/store.ts";
import { freshDatabase, startPostgres } from "../server/test/services/postgres.ts";
import { type BenchProcedures, type CreatedKey, openBenchStore } from "./lib/bench-store.ts";
import { JSON_TYPE, ROOT_KEY, VERIFY_PATH } from "./lib/keys.ts";
import { describeMachine } from "./lib/machine.ts";
import { wholeNumber } from "./lib/options.ts";
import { startLatchkey } from "./lib/server-under-test.ts";
import { Wrk } from "./lib/wrk.ts";

/** More than a run spends. */
const CREDITS = 1e12;
const KEYS = 10_000;
/** Spends that are open at the same time, where the ledger is alone. */
const OPEN_SPENDS = 8_192;
const OPEN_UPDATES = 64;
/** Connections of paying callers, and of the callers whose latency is measured. */
const PAYING_CONNECTIONS = 256;
const MEASURED_CONNECTIONS = 8;
const WARM_UP_SECONDS = 2;
const CALLS_AT_ONCE = 128;

const { values } = parseArgs({
  options: { seconds: { type: "string", default: "4" }, postgres: { type: "string" } },
});
const seconds = wholeNumber({ seconds: values.seconds }, "seconds", 1, 60);

interface Database {
  name: "SQLite" | "PostgreSQL";
  /** Minimum of spends per second of the ledger alone on one key. */
  floor: number;
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
  await measure({ name: "SQLite", floor: 50_000, url: undefined, folder: join(folder, "sqlite") });
  await measure({ name: "PostgreSQL", floor: 20_000, url: postgres.url, folder: join(folder, "postgres") });
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

  const hot = await measureLedger(store, paying.slice(0, 1));
  await measureLedger(store, paying);
  await measureUpdates(store, paying[0]!);
  if (hot < database.floor) {
    isBelowFloor = true;
    console.log(`  The ledger alone is below ${write(database.floor)} spends per second.`);
  }
  await store.close();
  if (Wrk.isInstalled) await measureVerifications(database, paying, free);
  else console.log("  Verifications over HTTP skipped: wrk is not installed.");
  console.log();
}

/** Spends as fast as they are answered. */
async function measureLedger(store: Store<BenchProcedures>, keys: readonly CreatedKey[]): Promise<number> {
  const ledger = new Ledger<never, { allowed: boolean }>({
    clock: systemClock,
    charge: () => ({ allowed: true }),
    transact: (batch, settle) => store.transact("spend", batch, settle),
  });
  let turn = 0;
  const spend = async () => {
    const { poolId } = keys[turn++ % keys.length]!;
    const { outcome } = await ledger.spend({ workspaceId: "bench", poolId, cost: 1, charges: undefined });
    if (outcome !== "spent") throw new Error(`A spend was ${outcome}`);
  };
  const rate = await repeat(OPEN_SPENDS, spend);
  const { batches, calls } = ledger.counts;
  const label = `ledger alone, ${keys.length === 1 ? "one key" : `${write(keys.length)} keys`}`;
  report(label, `${write(rate)} spends/s, ${write(calls / batches)} to a commit`);
  return rate;
}

async function measureUpdates(store: Store<BenchProcedures>, { poolId }: CreatedKey): Promise<void> {
  const rate = await repeat(OPEN_UPDATES, async () => {
    if ((await store.transact("updateOne", { poolId, cost: 1 })) === undefined)
      throw new Error("The balance is too low");
  });
  report("one UPDATE each, one key", `${write(rate)} spends/s`);
}

/** How many times per second `work` completes with `open` runs at the same time. */
async function repeat(open: number, work: () => Promise<void>): Promise<number> {
  let done = 0;
  const run = async (length: number) => {
    const end = systemClock.monotonic() + length * 1_000;
    const worker = async () => {
      while (systemClock.monotonic() < end) {
        await work();
        done++;
      }
    };
    await Promise.all(Array.from({ length: open }, worker));
  };
  await run(WARM_UP_SECONDS);
  done = 0;
  const begin = systemClock.monotonic();
  await run(seconds);
  return (done * 1_000) / (systemClock.monotonic() - begin);
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
    for (const keys of [paying, free]) await warmUp(server.url, keys);
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

/** Fills the cache with every key and checks that the keys are valid. */
async function warmUp(url: string, keys: readonly CreatedKey[]): Promise<void> {
  const rest = keys.values();
  const worker = async () => {
    for (const { key } of rest) {
      const response = await fetch(url + VERIFY_PATH, {
        method: "POST",
        headers: JSON_TYPE,
        body: JSON.stringify({ key }),
      });
      const text = await response.text();
      if (!text.includes('"code":"VALID"')) throw new Error(`A key is not valid: ${text}`);
    }
  };
  await Promise.all(Array.from({ length: CALLS_AT_ONCE }, worker));
}

function report(label: string, text: string): void {
  console.log(`  ${label.padEnd(40)}${text}`);
}

function write(value: number): string {
  return Math.round(value).toLocaleString("en");
}
