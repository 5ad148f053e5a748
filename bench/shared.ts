/**
 * The service on PostgreSQL and Redis compared with itself embedded: `npm run bench:shared -- [--rounds 7] [--seconds 2]
 * [--windows 5]`.
 *
 * Verifications of keys with one limit, which is counted in Redis, and `ratelimits.limit`, both with a root key and 1,000 different
 * bodies. First as fast as wrk can send them, then verifications that arrive at random, at half of what each service answers at
 * most. The services have core 0 in turn; the load, PostgreSQL and Redis have core 1, where they take turns with wrk, so that
 * a service may wait for them. Needs Linux, two cores and wrk.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { startPostgres } from "../server/test/services/postgres.ts";
import { startRedis } from "../server/test/services/redis.ts";
import { compare } from "./lib/compare.ts";
import { createKeys, JSON_TYPE, LIMIT_PATH, limitBodies, post, ROOT_KEY, VERIFY_PATH } from "./lib/keys.ts";
import { latencyCells, measureInTurn, p99RatioCell } from "./lib/latency.ts";
import { describeMachine, requirePinning } from "./lib/machine.ts";
import { wholeNumber } from "./lib/options.ts";
import { type ServerUnderTest, startLatchkey, stopServers } from "./lib/server-under-test.ts";
import { writeSpread } from "./lib/statistics.ts";
import { markdownTable } from "./lib/tables.ts";
import { childrenCpu } from "./lib/thread-cpu.ts";
import { Wrk } from "./lib/wrk.ts";

const KEYS = 1_000;
const SERVERS_CORE = 1;
const WINDOW_SECONDS = 4;
/** The names of their processes. */
const SERVERS = ["postgres", "redis-server", "valkey-server"];
const SHARED = "PostgreSQL and Redis";
const HEADERS = { ...JSON_TYPE, Authorization: `Bearer ${ROOT_KEY}` };
const LIMIT = { name: "calls", limit: 1e9, duration: 3_600_000, autoApply: true };

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "7" },
    seconds: { type: "string", default: "2" },
    windows: { type: "string", default: "5" },
  },
});
const rounds = wholeNumber(values, "rounds", 1, 100);
const seconds = wholeNumber(values, "seconds", 1, 60);
const windows = wholeNumber(values, "windows", 1, 100);
Wrk.require();
requirePinning();

console.log(`${describeMachine()}\n`);
// PostgreSQL and Redis inherit the core.
execFileSync("taskset", ["--all-tasks", "--cpu-list", "--pid", String(SERVERS_CORE), String(process.pid)], {
  stdio: "ignore",
});
const folder = mkdtempSync(join(tmpdir(), "latchkey-bench-"));
const [postgres, redis] = await Promise.all([startPostgres(), startRedis()]);
try {
  const settings = { DATABASE_URL: postgres.url, REDIS_URL: redis.url };
  const services = {
    embedded: await startLatchkey({ folder: join(folder, "embedded") }),
    [SHARED]: await startLatchkey({ folder: join(folder, "shared"), settings }),
  };
  const bodies: Record<string, string[]> = {};
  for (const [name, { url }] of Object.entries(services)) {
    const keys = await createKeys(url, KEYS, { ratelimits: [LIMIT] });
    bodies[name] = keys.map((key) => JSON.stringify({ key }));
  }
  const capacity = await measureCapacity("verifications", VERIFY_PATH, services, (name) => bodies[name]!);
  await measureCapacity("limits", LIMIT_PATH, services, () => limitBodies(KEYS));
  await measureLatency(services, bodies, capacity);
} finally {
  await stopServers();
  await Promise.all([postgres.stop(), redis.stop()]);
  rmSync(folder, { recursive: true, force: true });
}

/** Prints what each service answers at most, and returns it in calls per second. */
async function measureCapacity(
  title: string,
  path: string,
  services: Readonly<Record<string, ServerUnderTest>>,
  bodiesOf: (name: string) => readonly string[],
): Promise<Record<string, number>> {
  // Their keys differ.
  const loads = Object.entries(services).map(([name, { url }]) => {
    return [url, new Wrk({ path, headers: HEADERS, bodies: bodiesOf(name) })] as const;
  });
  const wrks = new Map(loads);
  for (const [name, { url }] of Object.entries(services)) {
    for (const body of bodiesOf(name)) await post(url + path, HEADERS, body);
  }
  let [requests, serversMs] = [0, 0];
  const wrk: Pick<Wrk, "run"> = {
    async run(url, length) {
      const before = childrenCpu(SERVERS);
      const load = await wrks.get(url)!.run(url, length);
      if (url === services[SHARED]!.url) {
        requests += load.requests;
        serversMs += childrenCpu(SERVERS) - before;
      }
      return load;
    },
  };
  try {
    const compared = await compare({ title, servers: services, wrk, rounds, seconds });
    const rows = compared.map(({ name, rate, rateRatio, cpu, cpuRatio }) => [
      name,
      writeSpread(rate),
      writeSpread(rateRatio, 2),
      writeSpread(cpu, 1),
      writeSpread(cpuRatio, 2),
      name === SHARED ? ((serversMs * 1_000) / requests).toFixed(1) : "",
    ]);
    const head = [
      title,
      "per second",
      "÷ embedded",
      "CPU of the node, µs",
      "÷ embedded",
      "of PostgreSQL and Redis, µs",
    ];
    console.log(`${markdownTable(head, rows).join("\n")}\n`);
    return Object.fromEntries(compared.map(({ name, rate }) => [name, rate.median]));
  } finally {
    for (const each of wrks.values()) each.close();
  }
}

async function measureLatency(
  services: Readonly<Record<string, ServerUnderTest>>,
  bodies: Readonly<Record<string, readonly string[]>>,
  capacity: Readonly<Record<string, number>>,
): Promise<void> {
  const loads = Object.entries(services).map(([name, { url }]) => {
    const calls = { path: VERIFY_PATH, headers: HEADERS, bodies: bodies[name]!, perSecond: capacity[name]! / 2 };
    return { name, url, calls };
  });
  const measured = await measureInTurn(loads, { windows, seconds: WINDOW_SECONDS });
  const rows = measured.map((load) => [load.name, ...latencyCells(load), p99RatioCell(load, measured[0]!)]);
  const head = ["verifications at half of that, ms", "calls per second", "p50", "p99", "p99.9", "p99 ÷ embedded"];
  console.log(markdownTable(head, rows).join("\n"));
}
