/**
 * CPU per distinct key that is counted: `npm run bench:counting -- [--keys 200000] [--rate 20000] [--seconds 30]
 * [--postgres]`. Linux only.
 *
 * In each second, as many keys as `--rate` says are used once, in an order that repeats after all keys. So every event is
 * the only one of its key for some seconds, and no addition is shared. Recorder, spool, both stores and the writer of last
 * uses run as in the service, without HTTP. With `--postgres`, both stores are on a server that is started for the run.
 *
 * The CPU is that of the threads, with everything merged at the end; pauses of the main thread are listed by kind. Stages before
 * the statements are then repeated one by one.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type PerformanceEntry, PerformanceObserver } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { instantAt } from "../engine/src/clock/clock.ts";
import { systemClock } from "../engine/src/clock/system.ts";
import { Analytics } from "../server/src/features/analytics/analytics.ts";
import { eventsOf, keyCounts, minuteCounts, readBatch } from "../server/src/features/analytics/batch.ts";
import { levels } from "../server/src/features/analytics/levels.ts";
import { CELLS_PER_BATCH, type DrainedCounts, Recorder } from "../server/src/features/analytics/recorder.ts";
import { type AnalyticsProcedures, openRollupProcedures } from "../server/src/features/analytics/sql/procedures.ts";
import { analyticsModule, longReads, openSqlRollups } from "../server/src/features/analytics/sql/store.ts";
import { openPostgresStore } from "../server/src/platform/store/postgres/store.ts";
import { openSqliteStore } from "../server/src/platform/store/sqlite/store.ts";
import { freshDatabase, startPostgres } from "../server/test/services/postgres.ts";
import { openBenchStore } from "./lib/bench-store.ts";
import { type Collection, pausesByKind } from "./lib/collections.ts";
import { ROOT_KEY } from "./lib/keys.ts";
import { describeMachine } from "./lib/machine.ts";
import { wholeNumber } from "./lib/options.ts";
import { childrenCpu, threadCpu } from "./lib/thread-cpu.ts";

const MIB = 1024 ** 2;
const RETENTION = { minute: 7 * levels.day, hour: 90 * levels.day, day: 730 * levels.day };
const LOG = { life: 30 * levels.day, rowsPerWorkspace: 200_000 };
const KEYS_PER_TRANSACTION = 5_000;
/** Events are recorded in turns of this length, as calls arrive. */
const TURN_MS = 5;
/** Batches that are kept for the stages, and how often each stage is repeated: the system may count CPU in ticks of 4 ms. */
const KEPT_BATCHES = 8;
const REPEATS = 20;

type GcEntry = PerformanceEntry & { readonly detail: { readonly kind: number } };

const { values } = parseArgs({
  options: {
    keys: { type: "string", default: "200000" },
    rate: { type: "string", default: "20000" },
    seconds: { type: "string", default: "30" },
    postgres: { type: "boolean", default: false },
  },
});
const keyCount = wholeNumber(values as { keys: string }, "keys", 1_000, 2_000_000);
const rate = wholeNumber(values as { rate: string }, "rate", 100, 200_000);
const seconds = wholeNumber(values as { seconds: string }, "seconds", 1, 3_600);

console.log(`${describeMachine()}\n`);
const folder = mkdtempSync(join(tmpdir(), "latchkey-bench-"));
const server = values.postgres ? await startPostgres() : undefined;
if (server !== undefined) process.env.LATCHKEY_TEST_POSTGRES_URL = server.url;
const database = server && (await freshDatabase());
try {
  await measure();
} finally {
  await database?.drop();
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
}

async function measure(): Promise<void> {
  const before = threadCpu();
  const store = await openBenchStore(folder, database?.url);
  const ofKeys = newThreads(before);
  const counts = await openCounts();
  const ofCounts = newThreads(before).filter((thread) => !ofKeys.includes(thread));
  const { workspaceId } = await store.transact("prepare", { now: systemClock.now(), rootKey: ROOT_KEY });
  const keys: Used[] = [];
  while (keys.length < keyCount) {
    const count = Math.min(KEYS_PER_TRANSACTION, keyCount - keys.length);
    const now = systemClock.now();
    const made = await store.transact("createKeys", { workspaceId, count, remaining: null, areUsed: true, now });
    for (const { keyId } of made) keys.push({ keyId, apiId: "api_1", identity: null });
  }
  const kept: string[] = [];
  let usesWritten = 0;
  let ended = { threads: before, children: 0 };
  const analytics = new Analytics({
    clock: systemClock,
    rollups: {
      ...counts,
      async write(batches) {
        await counts.write(batches);
        kept.push(...batches);
        kept.splice(0, kept.length - KEPT_BATCHES);
      },
      async close() {
        // What is left for later costs too: it is merged as if it were a day old.
        const later = instantAt(systemClock.now() + levels.day);
        for (let i = 0; i < 2; i++) while (await counts.merge(later));
        // Before the threads end.
        ended = { threads: threadCpu(), children: childrenCpu() };
        await counts.close();
      },
    },
    recorderId: "rec_bench",
    loggedPerMinute: 0,
    folder: join(folder, "spool"),
    bytesMax: { memory: 16 * MIB, disk: 4096 * MIB },
    async recordKeyUses(uses) {
      await store.transact("recordKeyUses", uses);
      usesWritten += uses.length;
    },
    onReachability: (reachable, cause) => console.log(reachable ? "  reachable" : `  unreachable: ${cause}`),
    onLoss: (events, cause) => console.log(`  lost ${events}: ${cause}`),
    onSpoolUnreadable: (cause) => console.log(`  unreadable: ${cause}`),
    onFailedMerge: (cause) => console.log(`  not merged: ${cause}`),
  });
  await analytics.start();

  const collections: Collection[] = [];
  const collected = new PerformanceObserver((list) => {
    for (const { detail, duration } of list.getEntries() as GcEntry[]) {
      collections.push({ kind: detail.kind, ms: duration });
    }
  });
  collected.observe({ entryTypes: ["gc"] });
  const started = { threads: threadCpu(), children: childrenCpu(), at: systemClock.monotonic() };
  let recorded = 0;
  let spoolMax = 0;
  let behindMax = 0;
  while (recorded < rate * seconds) {
    const due = Math.min(rate * seconds, Math.floor(((systemClock.monotonic() - started.at) * rate) / 1_000));
    recordUses(analytics.recorder, workspaceId, keys, recorded, due);
    recorded = due;
    spoolMax = Math.max(spoolMax, analytics.spool.bytes);
    behindMax = Math.max(behindMax, recorded - analytics.outbox.counts.delivered);
    await sleep(TURN_MS);
  }
  const delivered = analytics.outbox.counts.delivered;
  collected.disconnect();
  const took = systemClock.monotonic() - started.at;
  await analytics.stop();
  await store.close();

  const perKey = (ms: number) => ((ms * 1_000) / recorded).toFixed(2);
  const used = (threads: readonly string[]) =>
    threads.reduce((sum, id) => sum + (ended.threads.get(id) ?? 0) - (started.threads.get(id) ?? 0), 0);
  const main = String(process.pid);
  const known = new Set([main, ...ofKeys, ...ofCounts]);
  const others = [...ended.threads.keys()].filter((id) => !known.has(id));
  const all = used([...ended.threads.keys()]);
  const ofServer = ended.children - started.children;
  const where = values.postgres ? "PostgreSQL" : "embedded";
  console.log(`| ${keyCount} keys, ${rate} a second for ${(took / 1_000).toFixed(0)} s, ${where} | |\n|---|---|`);
  const row = (title: string, value: string) => console.log(`| ${title} | ${value} |`);
  row("µs of CPU per distinct key: main thread (recorder, JSON, spool, last uses)", perKey(used([main])));
  row("threads of the counts", perKey(used(ofCounts)));
  row("threads of the keys: last uses", perKey(used(ofKeys)));
  row("other threads: files, garbage collection", perKey(used(others)));
  if (values.postgres) row("PostgreSQL", perKey(ofServer));
  row("all", perKey(all + ofServer));
  row("delivered when the last key was used", `${((100 * delivered) / recorded).toFixed(1)} %`);
  row("most events that waited", behindMax.toLocaleString("en"));
  row("most of the spool", `${(spoolMax / MIB).toFixed(1)} MiB`);
  row("last uses written", usesWritten.toLocaleString("en"));
  for (const { name, count, ms, longest } of pausesByKind(collections)) {
    row(`pauses of the main thread: ${name}`, `${count}, ${ms.toFixed(0)} ms, the longest ${longest.toFixed(1)} ms`);
  }
  row("resident memory", `${(process.memoryUsage.rss() / MIB).toFixed(0)} MiB`);
  console.log();
  printStages(kept, workspaceId, keys);
}

async function openCounts() {
  if (database !== undefined) {
    const options = { url: database.url, clock: systemClock, connectionsMax: 4, allowUnsafe: true };
    return openSqlRollups(
      await openPostgresStore<AnalyticsProcedures>(options, openRollupProcedures()),
      RETENTION,
      LOG,
    );
  }
  const module = { module: analyticsModule, options: null };
  const options = { clock: systemClock, durability: "normal", writePriority: "low", readsRarely: true } as const;
  const store = await openSqliteStore<AnalyticsProcedures>(join(folder, "analytics.db"), module, {
    ...options,
    longReads,
  });
  return openSqlRollups(store, RETENTION, LOG);
}

/** The threads that were not there before. */
function newThreads(before: ReadonlyMap<string, number>): string[] {
  return [...threadCpu().keys()].filter((id) => !before.has(id));
}

interface Used {
  readonly keyId: string;
  readonly apiId: string;
  readonly identity: null;
}

/** Records one use of each of some keys, which repeat after the last one. */
function recordUses(recorder: Recorder, workspaceId: string, keys: readonly Used[], from: number, until: number): void {
  const at = systemClock.now();
  for (let i = from; i < until; i++) {
    recorder.verification({
      at,
      startedAt: systemClock.monotonic(),
      workspaceId,
      key: keys[i % keys.length] ?? null,
      code: "VALID",
      tags: undefined,
      creditsSpent: 0,
      cost: undefined,
      limit: undefined,
      address: "203.0.113.7",
      requestId: "req_1",
    });
  }
}

/** What precedes the statements, again in this thread. */
function printStages(texts: readonly string[], workspaceId: string, keys: readonly Used[]): void {
  const batches = texts.map(readBatch);
  const cells = batches.reduce((sum, batch) => sum + eventsOf(batch), 0);
  const stage = (title: string, work: () => void) => {
    // The second time, the code is compiled.
    work();
    const begun = process.threadCpuUsage();
    for (let i = 0; i < REPEATS; i++) work();
    const { user, system } = process.threadCpuUsage(begun);
    console.log(`| ${title} | ${((user + system) / cells / REPEATS).toFixed(2)} |`);
  };
  console.log(`| ${cells} of these keys again, µs of CPU stage by stage | |\n|---|---|`);
  const drained: DrainedCounts[] = [];
  stage("main thread: record, drain", () => {
    drained.length = 0;
    const recorder = new Recorder(systemClock);
    for (let i = 0; i < cells; i += CELLS_PER_BATCH) {
      recordUses(recorder, workspaceId, keys, i, Math.min(cells, i + CELLS_PER_BATCH));
      drained.push(recorder.drain()!);
    }
  });
  stage("main thread: print JSON", () => {
    for (const { keys } of drained) JSON.stringify(keys.map((columns) => keyCounts(columns)));
  });
  stage("thread of the counts: parse JSON", () => {
    for (const text of texts) readBatch(text);
  });
  stage("thread of the counts: count by minute", () => {
    minuteCounts(batches);
  });
  console.log(`| bytes of a batch for each | ${(texts.join("").length / cells).toFixed(0)} |`);
}
