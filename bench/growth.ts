/**
 * What a service with many keys does before they are cached: `npm run bench:growth -- [--keys 100000] [--seconds 15]
 * [--postgres postgres://…]`.
 *
 * Imports keys with `keys.migrateKeys` and verifies each of them twice in random order. Then a tenth of the keys gets 90 %
 * of the calls, before a restart and after it; the rate of each second is printed with its part of the rate before. All
 * threads of the service share core 0, and the load has core 1. CPU is that of each thread of the service, per key or call,
 * so that these figures hold on a busy machine too; analytics are off until the restart. Linux only.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { parseArgs } from "node:util";
import { seededRandom } from "../engine/src/random/seeded.ts";
import { createApi, importKeys, newKeys, ROOT_KEY, VERIFY_PATH } from "./lib/keys.ts";
import { describeMachine } from "./lib/machine.ts";
import { wholeNumber } from "./lib/options.ts";
import { Pipeline } from "./lib/pipeline.ts";
import { type ProcessUnderTest, startLatchkey, stopServers } from "./lib/server-under-test.ts";

/** Calls of one connection that wait for the database are few, so the calls are those of several connections. */
const CONNECTIONS = 8;
const CALLS_PER_CONNECTION = 8;
const WARM_UP_KEYS = 5_000;
/** The part of the keys that gets most of the calls around the restart, and its part of the calls. */
const BUSY_KEYS = 0.1;
const BUSY_CALLS = 0.9;
/** What idle threads use in a second at most. */
const IDLE_MS = 20;
/** Last uses are stored every half minute. */
const USES_STORED_MS = 35_000;

const { values } = parseArgs({
  options: {
    keys: { type: "string", default: "100000" },
    seconds: { type: "string", default: "15" },
    postgres: { type: "string" },
  },
});
const count = wholeNumber(values, "keys", 10_000, 10_000_000);
const seconds = wholeNumber(values, "seconds", 1, 300);
const random = seededRandom(1);
const folder = mkdtempSync(join(tmpdir(), "latchkey-bench-"));
const settings = { ...(values.postgres !== undefined && { DATABASE_URL: values.postgres }) };

console.log(`${describeMachine()}\n`);
console.log("| | per second | CPU, µs: all threads | by thread |\n|---|---|---|---|");
try {
  const first = await startLatchkey({ folder, settings: { ...settings, ANALYTICS: "off" } });
  const apiId = await createApi(first.url);
  await importKeys(first.url, apiId, newKeys(WARM_UP_KEYS));
  const keys = newKeys(count);
  await measure("import", first, count, () => importKeys(first.url, apiId, keys));
  await verifyAll(first, keys.slice(0, WARM_UP_KEYS));
  const unused = shuffled(keys.slice(WARM_UP_KEYS));
  await measure("first use", first, unused.length, () => verifyAll(first, unused));
  await measure("second use", first, unused.length, () => verifyAll(first, shuffled(unused)));
  await first.stop();

  // With analytics: they store the last uses, by which a start knows what to load.
  const server = await startLatchkey({ folder, settings });
  await verifyAll(server, shuffled(keys));
  const busy = shuffled(keys).slice(0, count * BUSY_KEYS);
  const anyKey = () => {
    const from = random.below(1_000) < BUSY_CALLS * 1_000 ? busy : keys;
    return from[random.below(from.length)]!;
  };
  await setTimeout(USES_STORED_MS);
  // The busy keys are those that were used last.
  await verifyAll(server, busy);
  const before = await ratesOf(server, anyKey, seconds);
  await server.stop();
  const restarted = await startLatchkey({ folder, settings });
  const after = await ratesOf(restarted, anyKey, seconds);
  const steady = before.reduce((sum, rate) => sum + rate, 0) / before.length;
  console.log(
    `\n| second after a restart | calls | ÷ before |\n|---|---|---|\n| before | ${Math.round(steady)} | 1.00 |`,
  );
  for (const [second, rate] of after.entries())
    console.log(`| ${second + 1} | ${rate} | ${(rate / steady).toFixed(2)} |`);
} finally {
  await stopServers();
  rmSync(folder, { recursive: true, force: true });
}

function shuffled<T>(of: readonly T[]): T[] {
  const list = [...of];
  for (let i = list.length - 1; i > 0; i--) {
    const j = random.below(i + 1);
    [list[i], list[j]] = [list[j]!, list[i]!];
  }
  return list;
}

async function verifyAll(server: ProcessUnderTest, keys: readonly string[]): Promise<void> {
  const rest = keys.values();
  await verifyWhile(server, () => rest.next().value);
}

/** Verifies keys until there is none. */
async function verifyWhile(server: ProcessUnderTest, next: () => string | undefined): Promise<void> {
  const headers = { Authorization: `Bearer ${ROOT_KEY}` };
  const pipelines = await Promise.all(Array.from({ length: CONNECTIONS }, () => Pipeline.open(server.url, headers)));
  const caller = async (pipeline: Pipeline) => {
    for (let key = next(); key !== undefined; key = next()) {
      const status = await pipeline.post(VERIFY_PATH, JSON.stringify({ key }));
      if (status !== 200) throw new Error(`A verification was answered with ${status}`);
    }
  };
  await Promise.all(
    pipelines.flatMap((pipeline) => Array.from({ length: CALLS_PER_CONNECTION }, () => caller(pipeline))),
  );
  for (const pipeline of pipelines) pipeline.close();
}

/** The calls of each second. */
async function ratesOf(server: ProcessUnderTest, anyKey: () => string, length: number): Promise<number[]> {
  const rates: number[] = [];
  const startedAt = performance.now();
  await verifyWhile(server, () => {
    const second = Math.floor((performance.now() - startedAt) / 1_000);
    if (second >= length) return undefined;
    rates[second] = (rates[second] ?? 0) + 1;
    return anyKey();
  });
  return Array.from({ length }, (_, second) => rates[second] ?? 0);
}

/** Resolves when the threads of the database do nothing more. */
async function settled(server: ProcessUnderTest): Promise<void> {
  const databaseMs = async () => {
    const { "sqlite-write": write = 0, "sqlite-read": read = 0 } = await server.cpuMsByThread();
    return write + read;
  };
  for (let before = -Infinity, now = await databaseMs(); now - before > IDLE_MS; now = await databaseMs()) {
    before = now;
    await setTimeout(1_000);
  }
}

async function measure(name: string, server: ProcessUnderTest, of: number, work: () => Promise<void>): Promise<void> {
  const before = await server.cpuMsByThread();
  const startedAt = performance.now();
  await work();
  const seconds = (performance.now() - startedAt) / 1_000;
  // What the calls have left to be written.
  await settled(server);
  const after = await server.cpuMsByThread();
  const used = Object.entries(after).map(
    ([thread, cpuMs]) => [thread, ((cpuMs - (before[thread] ?? 0)) * 1_000) / of] as const,
  );
  const all = used.reduce((sum, [, each]) => sum + each, 0);
  const byThread = used
    .filter(([, each]) => each >= 0.5)
    .sort(([, a], [, b]) => b - a)
    .map(([thread, each]) => `${thread} ${each.toFixed(1)}`);
  console.log(`| ${name} | ${Math.round(of / seconds)} | ${all.toFixed(1)} | ${byThread.join(", ")} |`);
}
