/**
 * What credits cost: `npm run bench:credits -- [--seconds 4] [--postgres postgres://…]`, about a minute and a half.
 *
 * First the ledger alone, without HTTP, beside one UPDATE per spend; then verifications over HTTP, whose load comes from
 * wrk; last, what verifications that need no credits notice of the ledger: how long they take beside callers that pay,
 * and beside as many that do not. On the embedded database and on PostgreSQL: the one that is given, else one that is
 * started for the occasion.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { systemClock } from "../server/src/clock/system.ts";
import { Ledger } from "../server/src/credits/ledger.ts";
import { openPostgresStore } from "../server/src/store/postgres/store.ts";
import { openSqliteStore } from "../server/src/store/sqlite/store.ts";
import type { Store } from "../server/src/store/store.ts";
import { freshDatabase, startPostgres } from "../server/test/services/postgres.ts";
import { type CreditProcedures, type MadeKey, openProcedures } from "./lib/credit-procedures.ts";
import { JSON_TYPE, ROOT_KEY, VERIFY_PATH } from "./lib/keys.ts";
import { describeMachine } from "./lib/machine.ts";
import { wholeNumber } from "./lib/options.ts";
import { startServerUnderTest } from "./lib/server-under-test.ts";
import { Wrk } from "./lib/wrk.ts";

/** More than anybody spends in a minute. */
const CREDITS = 1e12;
const KEYS = 10_000;
/** Spends that are open at the same time, where the ledger is alone. */
const OPEN_SPENDS = 8_192;
const OPEN_UPDATES = 64;
/** Connections of those who pay, and of those who do not and are watched. */
const PAYING_CONNECTIONS = 256;
const WATCHED_CONNECTIONS = 8;
const WARM_UP_SECONDS = 2;
const CALLS_AT_ONCE = 128;

const { values } = parseArgs({
  options: { seconds: { type: "string", default: "4" }, postgres: { type: "string" } },
});
const seconds = wholeNumber({ seconds: values.seconds }, "seconds", 1, 60);

interface Database {
  name: "SQLite" | "PostgreSQL";
  /** Spends per second that the ledger alone has to reach on one key. */
  floor: number;
  url: string | undefined;
  folder: string;
}

console.log(`${describeMachine()}\n`);
const folder = mkdtempSync(join(tmpdir(), "latchkey-bench-"));
const server = values.postgres === undefined ? await startPostgres() : undefined;
process.env.LATCHKEY_TEST_POSTGRES_URL = values.postgres ?? server!.url;
const postgres = await freshDatabase();
let isTooSlow = false;
try {
  await measure({ name: "SQLite", floor: 50_000, url: undefined, folder: join(folder, "sqlite") });
  await measure({ name: "PostgreSQL", floor: 20_000, url: postgres.url, folder: join(folder, "postgres") });
} finally {
  await postgres.drop();
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
}
if (isTooSlow) process.exitCode = 1;

async function measure(database: Database): Promise<void> {
  console.log(database.name);
  const store = await openStore(database);
  const { workspaceId } = await store.transact("prepare", { now: systemClock.now(), rootKey: ROOT_KEY });
  const make = (count: number, remaining: number | null) =>
    store.transact("makeKeys", { workspaceId, count, remaining, now: systemClock.now() });
  const paying = await make(KEYS, CREDITS);
  const free = await make(KEYS, null);

  const hot = await measureLedger(store, paying.slice(0, 1));
  await measureLedger(store, paying);
  await measureUpdates(store, paying[0]!);
  if (hot < database.floor) {
    isTooSlow = true;
    console.log(`  The ledger alone is below ${write(database.floor)} spends per second.`);
  }
  await store.close();
  if (Wrk.isInstalled) await measureVerifications(database, paying, free);
  else console.log("  No verifications over HTTP: their load comes from wrk, which is not installed.");
  console.log();
}

async function openStore({ url, folder }: Database): Promise<Store<CreditProcedures>> {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (url !== undefined) {
    return openPostgresStore(
      { url, clock: systemClock, connectionsMax: 16 },
      openProcedures({ vault: { kind: "none" } }),
    );
  }
  const module = new URL("./lib/credit-procedures.ts", import.meta.url).href;
  const options = { vault: { kind: "folder", folder } };
  return openSqliteStore(join(folder, "latchkey.db"), { module, options }, { clock: systemClock });
}

/** Spends as fast as they are answered. */
async function measureLedger(store: Store<CreditProcedures>, keys: readonly MadeKey[]): Promise<number> {
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

async function measureUpdates(store: Store<CreditProcedures>, { poolId }: MadeKey): Promise<void> {
  const rate = await repeat(OPEN_UPDATES, async () => {
    if ((await store.transact("updateOne", { poolId, cost: 1 })) === undefined) throw new Error("Too little is left");
  });
  report("one UPDATE each, one key", `${write(rate)} spends/s`);
}

/** How often a second `work` is done by so many at a time. */
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
  paying: readonly MadeKey[],
  free: readonly MadeKey[],
): Promise<void> {
  const subject = await startServerUnderTest("lib/latchkey.ts", [
    folder,
    ROOT_KEY,
    ...(url === undefined ? [] : [`DATABASE_URL=${url}`]),
  ]);
  const load = (keys: readonly MadeKey[], connections: number) => {
    const bodies = keys.map(({ key }) => JSON.stringify({ key }));
    return new Wrk({ path: VERIFY_PATH, headers: JSON_TYPE, bodies }, connections);
  };
  const hot = load(paying.slice(0, 1), PAYING_CONNECTIONS);
  const all = load(paying, PAYING_CONNECTIONS);
  const crowd = load(free, PAYING_CONNECTIONS);
  const watched = load(free.slice(0, 1_000), WATCHED_CONNECTIONS);
  try {
    for (const keys of [paying, free]) await warmUp(subject.url, keys);
    for (const [label, wrk] of [
      ["verifications, one key", hot],
      [`verifications, ${write(KEYS)} keys`, all],
    ] as const) {
      await wrk.run(subject.url, WARM_UP_SECONDS);
      const { requests, seconds: took, p99Ms } = await wrk.run(subject.url, seconds);
      report(
        label,
        `${write(requests / took)} per second on ${PAYING_CONNECTIONS} connections, p99 ${p99Ms.toFixed(1)} ms`,
      );
    }
    for (const [label, others] of [
      ["free verifications beside free ones", crowd],
      ["free verifications beside paying ones", all],
    ] as const) {
      await others.run(subject.url, WARM_UP_SECONDS);
      const [seen] = await Promise.all([watched.run(subject.url, seconds), others.run(subject.url, seconds)]);
      report(label, `p99 ${seen.p99Ms.toFixed(1)} ms, median ${seen.medianMs.toFixed(1)} ms`);
    }
  } finally {
    for (const wrk of [hot, all, crowd, watched]) wrk.close();
    await subject.stop();
  }
}

/** Makes every key known to the service, and shows that what is measured are verifications. */
async function warmUp(url: string, keys: readonly MadeKey[]): Promise<void> {
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
