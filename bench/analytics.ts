/**
 * Cost of the analytics: `npm run bench:analytics -- [--keys 1000] [--pairs 7] [--seconds 2] [--rows 10000000]`.
 *
 * 1. Verifications per second of a service with analytics and of one without, in turn, each with all its threads on
 *    core 0, the load on core 1.
 * 2. Memory and CPU of the recorder at a million distinct keys per minute, while its store is away.
 * 3. Queries to the embedded store with this many rollup rows, for an API with 100,000 keys, a month of hours and a
 *    year of days; and the longest delay of the event loop meanwhile.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { DatabaseSync } from "node:sqlite";
import { parseArgs } from "node:util";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { SimulatedClock } from "../engine/src/clock/simulated.ts";
import { systemClock } from "../engine/src/clock/system.ts";
import { Analytics } from "../server/src/features/analytics/analytics.ts";
import { rowsPerMinute } from "../server/src/features/analytics/decision-log.ts";
import { type Level, levels } from "../server/src/features/analytics/levels.ts";
import type { AnalyticsProcedures } from "../server/src/features/analytics/sql/procedures.ts";
import { analyticsModule, openSqlRollups } from "../server/src/features/analytics/sql/store.ts";
import { openSqliteStore } from "../server/src/platform/store/sqlite/store.ts";
import { createKeys, JSON_TYPE, post, ROOT_KEY, VERIFY_PATH } from "./lib/keys.ts";
import { describeMachine } from "./lib/machine.ts";
import { wholeNumber } from "./lib/options.ts";
import { type ServerUnderTest, startLatchkey } from "./lib/server-under-test.ts";
import { spread, writeSpread } from "./lib/statistics.ts";
import { Wrk } from "./lib/wrk.ts";

const WARM_UP_SECONDS = 2;
const LOG = { life: 30 * levels.day, rowsPerWorkspace: 200_000 };
/** What the events have in common. */
const call = { workspaceId: "ws_1", cost: undefined, limit: undefined, address: "203.0.113.7", requestId: "req_1" };
const MILLION = 1_000_000;
const NOON = 1_768_478_400_000;

const { values } = parseArgs({
  options: {
    keys: { type: "string", default: "1000" },
    pairs: { type: "string", default: "7" },
    seconds: { type: "string", default: "2" },
    rows: { type: "string", default: "10000000" },
  },
});
const keyCount = wholeNumber(values, "keys", 1, 100_000);
const pairs = wholeNumber(values, "pairs", 0, 100);
const seconds = wholeNumber(values, "seconds", 1, 60);
const rowCount = wholeNumber(values, "rows", 0, 100_000_000);

console.log(`${describeMachine()}\n`);
await inFolder(compareService);
await inFolder(recordMillionKeys);
await inFolder(queryRollups);

async function inFolder(measure: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "latchkey-bench-"));
  try {
    await measure(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function compareService(folder: string): Promise<void> {
  if (pairs === 0) return;
  if (!Wrk.isInstalled) throw new Error("This bench needs wrk: install it, or pass --pairs 0.");
  const servers: ServerUnderTest[] = [];
  const start = async (analytics: "on" | "off") => {
    const server = await startLatchkey({ folder: join(folder, analytics), settings: { ANALYTICS: analytics } });
    servers.push(server);
    const headers = { ...JSON_TYPE, Authorization: `Bearer ${ROOT_KEY}` };
    const keys = await createKeys(server.url, keyCount);
    const bodies = keys.map((key, i) => JSON.stringify({ key, tags: [`path=/${i % 10}`, "region=eu"] }));
    // Every key is in the cache before the first window.
    for (const body of bodies) await post(server.url + VERIFY_PATH, headers, body);
    return { server, wrk: new Wrk({ path: VERIFY_PATH, headers, bodies }) };
  };
  try {
    const [on, off] = [await start("on"), await start("off")];
    const measure = async ({ server, wrk }: typeof on, length: number) => {
      const before = await server.cpuMs();
      const load = await wrk.run(server.url, length);
      const used = (await server.cpuMs()) - before;
      return { rate: load.requests / load.seconds, cpu: (used * 1_000) / load.requests, p99: load.p99Ms };
    };
    for (const one of [on, off]) await measure(one, WARM_UP_SECONDS);
    const windows: { on: Awaited<ReturnType<typeof measure>>; off: Awaited<ReturnType<typeof measure>> }[] = [];
    for (let pair = 0; pair < pairs; pair++) {
      // The order alternates from pair to pair.
      const first = pair % 2 === 0 ? await measure(on, seconds) : undefined;
      const without = await measure(off, seconds);
      windows.push({ on: first ?? (await measure(on, seconds)), off: without });
    }
    const printRow = (title: string, of: (pair: (typeof windows)[number]) => number, digits: number) =>
      console.log(`  ${title.padEnd(32)}${writeSpread(spread(windows.map(of)), digits)}`);
    console.log(`Verification, two tags, ${keyCount} keys, ${pairs} pairs of ${seconds} s: median (min–max)`);
    printRow("requests/s, analytics on", (pair) => pair.on.rate, 0);
    printRow("requests/s, analytics off", (pair) => pair.off.rate, 0);
    printRow("ratio", (pair) => pair.on.rate / pair.off.rate, 3);
    printRow("CPU ratio, all threads", (pair) => pair.on.cpu / pair.off.cpu, 3);
    console.log();
    on.wrk.close();
    off.wrk.close();
  } finally {
    await Promise.all(servers.map((server) => server.stop()));
  }
}

async function recordMillionKeys(folder: string): Promise<void> {
  const clock = new SimulatedClock(NOON);
  const away = () => Promise.reject(new Error("away"));
  const analytics = new Analytics({
    clock,
    rollups: {
      write: away,
      stats: away,
      counts: away,
      top: away,
      decisions: away,
      merge: async () => false,
      prune: async () => ({ rows: 0, more: false }),
      close: async () => {},
    },
    recorderId: "rec_bench",
    loggedPerMinute: rowsPerMinute(LOG.rowsPerWorkspace),
    folder,
    bytesMax: { memory: 16 * 1024 ** 2, disk: 1024 ** 3 },
    recordKeyUses: async () => {},
    onReachability() {},
    onLoss(events) {
      console.log(`  lost ${events}`);
    },
    onSpoolUnreadable() {},
    onFailedMerge() {},
  });
  await analytics.start();
  const perSecond = Math.ceil(MILLION / 60);
  const keys = Array.from({ length: MILLION }, (_, i) => ({
    keyId: `key_${String(i).padStart(16, "0")}`,
    apiId: "api_0000000000000000",
    identity: { id: `id_${String(i).padStart(16, "0")}` },
  }));
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  collect();
  const before = process.memoryUsage();
  // CPU time, so that other work on the machine does not count.
  const cpuMs = () => {
    const { user, system } = process.threadCpuUsage();
    return (user + system) / 1_000;
  };
  let [peak, recording, longestFlush] = [0, 0, 0];
  for (let second = 0; second < 60; second++) {
    const begun = cpuMs();
    for (const key of keys.slice(second * perSecond, (second + 1) * perSecond)) {
      const event = { ...call, at: clock.now(), startedAt: clock.monotonic(), key };
      analytics.recorder.verification({ ...event, code: "VALID", tags: ["region=eu"], creditsSpent: 0 });
      // The next turn of the event loop.
      if (analytics.recorder.recorded % 2_000 === 0) {
        const flushBegun = cpuMs();
        clock.advance(0);
        longestFlush = Math.max(longestFlush, cpuMs() - flushBegun);
      }
    }
    recording += cpuMs() - begun;
    clock.advance(1_000);
    await analytics.outbox.settled();
    collect();
    const { heapUsed, external } = process.memoryUsage();
    peak = Math.max(peak, heapUsed + external - before.heapUsed - before.external);
  }
  const recorded = keys.slice(0, 1_000);
  const repeatedBegun = cpuMs();
  for (let i = 0; i < MILLION; i++) {
    const event = { ...call, at: clock.now(), startedAt: clock.monotonic(), key: recorded[i % 1_000]! };
    analytics.recorder.verification({ ...event, code: "VALID", tags: ["path=/a", "region=eu"], creditsSpent: 0 });
  }
  const repeated = cpuMs() - repeatedBegun;
  console.log("Events of 1,000 keys, repeated within a second, two tags");
  console.log(`  ${"an event".padEnd(32)}${((repeated / MILLION) * 1_000).toFixed(2)} µs`);
  console.log("A million distinct keys in a minute, store away");
  console.log(
    `  ${"an event".padEnd(32)}${((recording / MILLION) * 1_000).toFixed(2)} µs, including the text of its batch`,
  );
  console.log(`  ${"longest flush of a batch".padEnd(32)}${longestFlush.toFixed(1)} ms`);
  console.log(`  ${"peak memory".padEnd(32)}${(peak / 1024 ** 2).toFixed(0)} MiB`);
  console.log(`  ${"batches in memory".padEnd(32)}${(analytics.outbox.bytes / 1024 ** 2).toFixed(1)} MiB`);
  console.log(`  ${"on disk".padEnd(32)}${(analytics.spool.bytes / 1024 ** 2).toFixed(0)} MiB\n`);
}

async function queryRollups(folder: string): Promise<void> {
  if (rowCount === 0) return;
  const file = join(folder, "analytics.db");
  const retention = { minute: 7 * levels.day, hour: 90 * levels.day, day: 730 * levels.day };
  const open = async () => {
    const module = { module: analyticsModule, options: null };
    const store = await openSqliteStore<AnalyticsProcedures>(file, module, {
      clock: systemClock,
      durability: "normal",
    });
    return openSqlRollups(store, retention, LOG);
  };
  await (await open()).close();
  fill(file);
  const rollups = await open();
  const delay = monitorEventLoopDelay({ resolution: 1 });
  console.log(`Queries, ${rowCount.toLocaleString("en")} rows: median (min–max) of 21, ms`);
  const query = async (title: string, subject: string, level: Level, count: number) => {
    const end = NOON - (NOON % levels[level]);
    const range = { level, start: end - count * levels[level], end };
    const question = { about: "verifications", workspaceId: call.workspaceId, subject, ...range } as const;
    const times: number[] = [];
    let total = 0;
    for (let i = 0; i < 21; i++) {
      const begun = performance.now();
      total = JSON.parse(`{${await rollups.stats({ ...question, tags: [] })}}`).total;
      times.push(performance.now() - begun);
    }
    console.log(`  ${title.padEnd(32)}${writeSpread(spread(times), 1)}   total ${total.toLocaleString("en")}`);
  };
  delay.enable();
  await query("an API, a month of hours", "api_1", "hour", 720);
  await query("an API, a year of days", "api_1", "day", 365);
  await query("a key, a month of hours", "key_4242", "hour", 720);
  await query("a key, a year of days", "key_4242", "day", 365);
  delay.disable();
  console.log(`  ${"longest event loop delay".padEnd(32)}${(delay.max / 1e6).toFixed(1)} ms`);
  await rollups.close();
}

/** A month of hours and a year of days of an API with 100,000 keys and five tag sets. */
function fill(file: string): void {
  const db = new DatabaseSync(file);
  const insert = (table: string, level: Level, count: number, each: number) => {
    const end = NOON - (NOON % levels[level]);
    db.prepare(
      `with recursive buckets(i) as (select 0 union all select i + 1 from buckets where i + 1 < ?),
         keys(k) as (select 0 union all select k + 1 from keys where k + 1 < ?)
       insert or ignore into ${table}
       select ? + i * ?, 'key_' || ((k * 7919 + i * 31) % 100000), '', 'VALID', '', 3, 0, 100 from buckets, keys`,
    ).run(count, each, end - count * levels[level], levels[level]);
    db.prepare(
      `with recursive buckets(i) as (select 0 union all select i + 1 from buckets where i + 1 < ?),
         outcomes(o) as (values ('VALID'), ('NOT_FOUND'), ('RATE_LIMITED'), ('EXPIRED')),
         parts(p, label) as (values ('', ''), ('a', '["eu"]'), ('b', '["us"]'), ('c', '["eu","x"]'), ('d', '["ap"]'), ('e', '["z"]'))
       insert into ${table} select ? + i * ?, 'api_1', p, o, label, 1000, 0, 100 from buckets, outcomes, parts`,
    ).run(count, end - count * levels[level], levels[level]);
  };
  insert("analytics_hours", "hour", 720, Math.floor((rowCount * 0.7) / 720));
  insert("analytics_days", "day", 365, Math.floor((rowCount * 0.3) / 365));
  db.exec("pragma wal_checkpoint(truncate)");
  db.close();
}
