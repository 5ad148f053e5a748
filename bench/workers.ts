/**
 * CPU of verifications and limits on several threads compared with one:
 * `npm run bench:workers -- [--threads 2] [--keys 1000] [--pairs 7] [--seconds 2]`.
 *
 * Both services run on core 0 and get the same requests from wrk on core 1, in turn, for windows of a few seconds, on 32
 * connections for each of the threads. On one core, more threads cannot give more throughput: the figure is the CPU per request, of the whole process.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { compare } from "./lib/compare.ts";
import { createKeys, JSON_TYPE, post, ROOT_KEY, VERIFY_PATH } from "./lib/keys.ts";
import { canPin, describeMachine } from "./lib/machine.ts";
import { wholeNumber } from "./lib/options.ts";
import { startLatchkey, stopServers } from "./lib/server-under-test.ts";
import { Wrk } from "./lib/wrk.ts";

const LIMIT_PATH = "/v2/ratelimits.limit";

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

Wrk.require();

const headers = { ...JSON_TYPE, Authorization: `Bearer ${ROOT_KEY}` };
const folder = mkdtempSync(join(tmpdir(), "latchkey-bench-"));
try {
  const one = await start(1);
  const several = await start(threads);
  const services = [one, several];
  console.log(describeMachine());
  console.log(
    `${rounds} pairs of ${seconds} s, ${canPin ? "services on core 0, wrk on core 1" : "not pinned: taskset or a second core is missing"}\n`,
  );
  const resident = await Promise.all(services.map((service) => service.residentBytes()));
  const [alone, together] = resident.map((bytes) => Math.round(bytes / 1024 ** 2));
  console.log(`resident at rest: ${alone} MiB with 1 thread, ${together} MiB with ${threads}\n`);
  const names = ["1 thread", `${threads} threads`] as const;
  // Each has a database of its own, so each needs keys of its own.
  const keys = await Promise.all(services.map(({ url }) => createKeys(url, keyCount)));
  const bodies = keys.map((own) => own.map((key) => JSON.stringify({ key })));
  await measure("verifications with a root key", VERIFY_PATH, bodies);
  const limits = Array.from({ length: 1_000 }, (_, i) =>
    JSON.stringify({ namespace: "bench", identifier: `user_${i}`, limit: 1_000_000, duration: 60_000 }),
  );
  await measure("limits of 1,000 identifiers", LIMIT_PATH, [limits, limits]);

  async function measure(title: string, path: string, requests: readonly (readonly string[])[]) {
    for (const [i, { url }] of services.entries()) await post(url + path, headers, requests[i]![0]!);
    const wrks = requests.map((own) => new Wrk({ path, headers, bodies: own }, CONNECTIONS_PER_THREAD * threads));
    // Both get the requests that their own database knows.
    const wrk = { run: (url: string, length: number) => wrks[url === one.url ? 0 : 1]!.run(url, length) };
    try {
      await compare({ title, servers: { [names[0]]: one, [names[1]]: several }, wrk, rounds, seconds });
    } finally {
      for (const own of wrks) own.close();
    }
  }
} finally {
  await stopServers();
  rmSync(folder, { recursive: true, force: true });
}

function start(count: number) {
  return startLatchkey({ folder: join(folder, String(count)), settings: { WORKERS: String(count) } });
}
