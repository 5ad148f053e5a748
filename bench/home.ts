/**
 * What edges cost the service that they ask: `npm run bench:home -- [--rounds 5] [--seconds 6]`.
 *
 * Leases and reports as 100 edges ask for them, of which each verifies 100 keys with a limit each 100 times a second: a million
 * verifications a second in all. Nothing else of an edge runs. First with the counters in memory and the embedded database, then
 * with Redis and PostgreSQL. CPU of the processes; analytics are on, and their writes are part of what a report costs. Linux only.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { parseArgs } from "node:util";
import { systemClock } from "../engine/src/clock/system.ts";
import { hashSecret } from "../engine/src/crypto/hash.ts";
import type { CountCell } from "../engine/src/replica/report.ts";
import { freshDatabase, startPostgres } from "../server/test/services/postgres.ts";
import { startRedis } from "../server/test/services/redis.ts";
import { createKeys, JSON_TYPE, post, ROOT_KEY, VERIFY_PATH } from "./lib/keys.ts";
import { describeMachine } from "./lib/machine.ts";
import { wholeNumber } from "./lib/options.ts";
import { startLatchkey, stopServers } from "./lib/server-under-test.ts";
import { spread, writeSpread } from "./lib/statistics.ts";
import { markdownTable } from "./lib/tables.ts";
import { childrenCpu } from "./lib/thread-cpu.ts";

const EDGES = 100;
const KEYS = 100;
/** Verifications of each key at each edge, per second. */
const PER_SECOND = 100;
/** What an edge leases: the use of this many seconds. */
const LEASE_SECONDS = 5;
const LIMIT = { name: "requests", limit: 1e9, duration: 3_600_000 };
/** Questions of leases in a round, each of which has leases of half of the keys. */
const QUESTIONS = 60;
/** For what was reported last to be written. */
const WRITTEN_MS = 3_000;
const MINUTE_MS = 60_000;
const headers = { ...JSON_TYPE, authorization: `Bearer ${ROOT_KEY}` };

const { values } = parseArgs({
  options: { rounds: { type: "string", default: "5" }, seconds: { type: "string", default: "6" } },
});
const rounds = wholeNumber(values, "rounds", 1, 100);
const seconds = wholeNumber(values, "seconds", 1, 60);

/** A service with its servers, whose programs are the columns after that of the node. */
interface Home {
  readonly title: string;
  readonly settings: Readonly<Record<string, string>>;
  readonly servers: Readonly<Record<string, readonly string[]>>;
}

console.log(`${describeMachine()}\n`);
const folder = mkdtempSync(join(tmpdir(), "latchkey-bench-"));
const [postgres, redis] = await Promise.all([startPostgres(), startRedis()]);
process.env.LATCHKEY_TEST_POSTGRES_URL = postgres.url;
const database = await freshDatabase();
try {
  await measure({ title: "in memory, embedded database", settings: {}, servers: {} });
  await measure({
    title: "Redis, PostgreSQL",
    settings: { DATABASE_URL: database.url, REDIS_URL: redis.url },
    servers: { PostgreSQL: ["postgres"], Redis: ["redis-server", "valkey-server"] },
  });
} finally {
  await stopServers();
  await database.drop();
  await Promise.all([postgres.stop(), redis.stop()]);
  rmSync(folder, { recursive: true, force: true });
}

async function measure({ title, settings, servers }: Home): Promise<void> {
  const node = await startLatchkey({ folder: join(folder, title), settings });
  const cpu = async () => [await node.cpuMs(), ...Object.values(servers).map((programs) => childrenCpu(programs))];
  const keys = await createKeys(node.url, KEYS, { ratelimits: [{ ...LIMIT, autoApply: true }] });
  const lease = await costOfLeases(node.url, cpu, keys);
  const report = await costOfReports(node.url, cpu, keys);
  await node.stop();
  const leasesPerSecond = (EDGES * KEYS) / LEASE_SECONDS;
  const cells = (of: readonly number[]) => [...of, of.reduce((sum, each) => sum + each, 0)];
  const perSecond = lease.map((us, i) => (us * leasesPerSecond + report[i]! * EDGES) / 1e6);
  console.log(
    [
      ...markdownTable(
        [title, "node", ...Object.keys(servers), "all"],
        [
          ["a lease, with the return of the one before, µs", ...cells(lease).map((us) => us.toFixed(1))],
          [`a report of ${KEYS} keys, µs`, ...cells(report).map((us) => us.toFixed(0))],
          [
            `${EDGES} edges, ${(EDGES * KEYS * PER_SECOND).toLocaleString("en")} verifications a second, cores`,
            ...cells(perSecond).map((cores) => cores.toFixed(3)),
          ],
        ],
      ),
      "",
    ].join("\n"),
  );
}

/** CPU of each process in milliseconds. */
type Cpu = () => Promise<readonly number[]>;

/** Microseconds of each process for each of so many. */
async function costOf(cpu: Cpu, work: () => Promise<number>): Promise<number[]> {
  const before = await cpu();
  const count = await work();
  const after = await cpu();
  return after.map((ms, i) => ((ms - before[i]!) * 1_000) / count);
}

/** The median of each process, over rounds of which the first warms up. */
async function medianOf(name: string, round: () => Promise<number[]>): Promise<number[]> {
  const costs: number[][] = [];
  for (let i = 0; i <= rounds; i++) {
    const cost = await round();
    if (i > 0) costs.push(cost);
  }
  const all = spread(costs.map((cost) => cost.reduce((sum, each) => sum + each, 0)));
  console.log(`  ${name}, all processes, µs: ${writeSpread(all, 1)}`);
  return costs[0]!.map((_, i) => spread(costs.map((cost) => cost[i]!)).median);
}

/** What a lease costs, which takes the one before back. */
async function costOfLeases(url: string, cpu: Cpu, keys: readonly string[]): Promise<number[]> {
  const want = PER_SECOND * LEASE_SECONDS;
  const { name, limit, duration } = LIMIT;
  const owned = keys.map((key) => ({ hash: hashSecret(key), name, owner: "key" }));
  const held = new Map<string, string>();
  const ask = async (some: typeof owned): Promise<void> => {
    const leases = some.map((key) => {
      const id = held.get(key.hash);
      const returns = id === undefined ? {} : { returns: [{ id, amount: want, spent: want }] };
      return { key, limit, duration, want, ...returns };
    });
    const text = await post(`${url}/v2/replica.lease`, headers, JSON.stringify({ leases }));
    const granted = JSON.parse(text).data.leases as ({ id: string; amount: number } | null)[];
    for (const [i, lease] of granted.entries()) {
      if (lease?.amount !== want) throw new Error(`A lease of ${lease?.amount}`);
      held.set(some[i]!.hash, lease.id);
    }
  };
  // As short as an edge asks.
  const halves = [owned.slice(0, KEYS / 2), owned.slice(KEYS / 2)];
  return medianOf("a lease", () =>
    costOf(cpu, async () => {
      for (let i = 0; i < QUESTIONS; i++) await ask(halves[i % 2]!);
      return (QUESTIONS * KEYS) / 2;
    }),
  );
}

/** What a report costs with what is written of it, beside a node that gets none. */
async function costOfReports(url: string, cpu: Cpu, keys: readonly string[]): Promise<number[]> {
  const ids: { apiId: string; keyId: string }[] = [];
  for (const key of keys) ids.push(JSON.parse(await post(url + VERIFY_PATH, headers, JSON.stringify({ key }))).data);
  const edges = Array.from({ length: EDGES }, (_, i) => ({ recorder: `bench_edge_${i}`, sequence: 0 }));
  const report = async (edge: (typeof edges)[number]): Promise<void> => {
    const now = systemClock.now();
    const minute = now - (now % MINUTE_MS);
    const verifications = ids.map(
      ({ apiId, keyId }): CountCell => [minute, apiId, keyId, null, "", "VALID", PER_SECOND, 10 * PER_SECOND],
    );
    const uses = ids.map(({ keyId }) => ({ keyId, at: now }));
    const body = JSON.stringify({ ...edge, sequence: ++edge.sequence, verifications, uses });
    const { leftOut } = JSON.parse(await post(`${url}/v2/replica.report`, headers, body)).data;
    if (leftOut !== 0) throw new Error(`${leftOut} verifications were left out`);
  };
  return medianOf("a report", async () => {
    await setTimeout(WRITTEN_MS);
    const length = seconds * 1_000 + WRITTEN_MS;
    const idle = await costOf(cpu, () => setTimeout(length, 1));
    const busy = await costOf(cpu, async () => {
      const startedAt = performance.now();
      for (let second = 0; second < seconds; second++) {
        await setTimeout(Math.max(0, startedAt + second * 1_000 - performance.now()));
        const rest = edges.values();
        const worker = async () => {
          for (const edge of rest) await report(edge);
        };
        await Promise.all(Array.from({ length: 8 }, worker));
      }
      await setTimeout(Math.max(0, startedAt + length - performance.now()));
      return 1;
    });
    return busy.map((us, i) => Math.max(0, us - idle[i]!) / (seconds * EDGES));
  });
}
