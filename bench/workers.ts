/**
 * CPU of verifications and limits on several threads compared with one:
 * `npm run bench:workers -- [--threads 2] [--keys 1000] [--pairs 7] [--seconds 2]`.
 *
 * The services run on core 0 and get the same requests from wrk on core 1, in turn, for windows of a few seconds, on 32
 * connections for each of the threads. On one core, more threads cannot give more throughput: the figure is the CPU per
 * request, of whole processes. The control is as many processes of one thread, which share nothing but the core, each
 * with 32 connections: what they take beyond one process is the price of taking turns on the core.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { compare } from "./lib/compare.ts";
import { createKeys, JSON_TYPE, LIMIT_PATH, post, ROOT_KEY, VERIFY_PATH } from "./lib/keys.ts";
import { canPin, describeMachine } from "./lib/machine.ts";
import { wholeNumber } from "./lib/options.ts";
import { type ServerUnderTest, startLatchkey, stopServers } from "./lib/server-under-test.ts";
import { type Load, Wrk } from "./lib/wrk.ts";

const CONNECTIONS_PER_THREAD = 32;

const { values } = parseArgs({
  options: {
    threads: { type: "string", default: "2" },
    keys: { type: "string", default: "1000" },
    pairs: { type: "string", default: "7" },
    seconds: { type: "string", default: "2" },
  },
});
const threads = wholeNumber(values, "threads", 2, 64);
const keyCount = wholeNumber(values, "keys", 1, 100_000);
const rounds = wholeNumber(values, "pairs", 1, 100);
const seconds = wholeNumber(values, "seconds", 1, 60);
const CONTROL = `${threads} processes`;

Wrk.require();

const headers = { ...JSON_TYPE, Authorization: `Bearer ${ROOT_KEY}` };
const folder = mkdtempSync(join(tmpdir(), "latchkey-bench-"));
try {
  const one = await start("one", 1);
  const several = await start("several", threads);
  const control: ServerUnderTest[] = [];
  for (let i = 0; i < threads; i++) control.push(await start(`control ${i}`, 1));
  console.log(describeMachine());
  console.log(
    `${rounds} rounds of ${seconds} s, ${canPin ? "services on core 0, wrk on core 1" : "not pinned: taskset or a second core is missing"}\n`,
  );
  const resident = await Promise.all([one, several].map((service) => service.residentBytes()));
  const [alone, together] = resident.map((bytes) => Math.round(bytes / 1024 ** 2));
  console.log(`resident at rest: ${alone} MiB with 1 thread, ${together} MiB with ${threads}\n`);
  // Each has a database of its own, so each needs keys of its own.
  await measure("verifications with a root key", VERIFY_PATH, async ({ url }) => {
    const keys = await createKeys(url, keyCount);
    return keys.map((key) => JSON.stringify({ key }));
  });
  const limits = Array.from({ length: 1_000 }, (_, i) =>
    JSON.stringify({ namespace: "bench", identifier: `user_${i}`, limit: 1_000_000, duration: 60_000 }),
  );
  await measure("limits of 1,000 identifiers", LIMIT_PATH, async () => limits);

  async function measure(title: string, path: string, bodiesFor: (server: ServerUnderTest) => Promise<string[]>) {
    const loads = new Map<string, (length: number) => Promise<Load>>();
    const wrks: Wrk[] = [];
    const prepare = async (server: ServerUnderTest, connections: number) => {
      const bodies = await bodiesFor(server);
      await post(server.url + path, headers, bodies[0]!);
      const wrk = new Wrk({ path, headers, bodies }, connections);
      wrks.push(wrk);
      loads.set(server.url, (length) => wrk.run(server.url, length));
    };
    try {
      for (const server of [one, several]) await prepare(server, CONNECTIONS_PER_THREAD * threads);
      for (const server of control) await prepare(server, CONNECTIONS_PER_THREAD);
      loads.set(CONTROL, async (length) => added(await Promise.all(control.map(({ url }) => loads.get(url)!(length)))));
      const servers = { "1 thread": one, [`${threads} threads`]: several, [CONTROL]: asOne(control) };
      await compare({ title, servers, wrk: { run: (url, length) => loads.get(url)!(length) }, rounds, seconds });
    } finally {
      for (const wrk of wrks) wrk.close();
    }
  }
} finally {
  await stopServers();
  rmSync(folder, { recursive: true, force: true });
}

function start(name: string, count: number) {
  return startLatchkey({ folder: join(folder, name), settings: { WORKERS: String(count) } });
}

/** Several servers with the sum of their figures. */
function asOne(servers: readonly ServerUnderTest[]): ServerUnderTest {
  const sum = async (figure: (server: ServerUnderTest) => Promise<number>) =>
    (await Promise.all(servers.map(figure))).reduce((all, one) => all + one, 0);
  return {
    url: CONTROL,
    cpuMs: () => sum((server) => server.cpuMs()),
    residentBytes: () => sum((server) => server.residentBytes()),
    stop: async () => void (await Promise.all(servers.map((server) => server.stop()))),
  };
}

/** The load of several generators that ran at the same time. */
function added(loads: readonly Load[]): Load {
  return loads.reduce((one, other) => ({
    requests: one.requests + other.requests,
    seconds: Math.max(one.seconds, other.seconds),
    rejected: one.rejected + other.rejected,
    medianMs: Math.max(one.medianMs, other.medianMs),
    p99Ms: Math.max(one.p99Ms, other.p99Ms),
  }));
}
