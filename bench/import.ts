/**
 * Latency of verifications during an import: `npm run bench:import -- [--import 200000] [--batch 1000] [--rate 500]
 * [--keys 1000] [--pairs 5]`.
 *
 * Callers verify cached keys at random (Poisson) while another caller imports keys, one batch after the other. A pair
 * is one window without and one with a part of the import; the second lasts as long as that part takes. The service's
 * event loop and the callers share one core. The other threads of the service, which the import keeps busy, and the
 * importing caller have another: on one core, the result would be the time slices of some milliseconds that the system
 * gives a busy thread. Target: during the import, the 99th percentile stays below twice its value without.
 */
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Callers, successful } from "./lib/callers.ts";
import { measureInterference } from "./lib/interference.ts";
import { createKeys, JSON_TYPE, post, ROOT_KEY, VERIFY_PATH } from "./lib/keys.ts";
import { describeMachine } from "./lib/machine.ts";
import { wholeNumber } from "./lib/options.ts";
import { LOOP_CORE, startLatchkey } from "./lib/server-under-test.ts";

const TARGET = 2;
/** Enough to compile the hot code before the first window. */
const WARM_UP_KEYS = 50_000;
const WARM_UP_SECONDS = 10;
const WINDOW_SECONDS = 5;
const PART_SECONDS_MAX = 300;

const { values } = parseArgs({
  options: {
    import: { type: "string", default: "200000" },
    batch: { type: "string", default: "1000" },
    rate: { type: "string", default: "500" },
    keys: { type: "string", default: "1000" },
    pairs: { type: "string", default: "5" },
  },
});
const imported = wholeNumber(values, "import", 1_000, 10_000_000);
const batch = wholeNumber(values, "batch", 1, 20_000);
const rate = wholeNumber(values, "rate", 50, 5_000);
const keyCount = wholeNumber(values, "keys", 1, 100_000);
const pairs = wholeNumber(values, "pairs", 1, 50);

const headers = { ...JSON_TYPE, Authorization: `Bearer ${ROOT_KEY}` };
const folder = mkdtempSync(join(tmpdir(), "latchkey-bench-"));
const server = await startLatchkey({ folder, threads: "loop apart" });
const callers = new Callers(server.url, LOOP_CORE);
const importer = new Callers(server.url);
try {
  const keys = (await createKeys(server.url, keyCount)).map((key) => JSON.stringify({ key }));
  for (const body of keys) await post(server.url + VERIFY_PATH, JSON_TYPE, body);
  const { apiId } = JSON.parse(await post(`${server.url}/v2/apis.createApi`, headers, '{"name":"imported"}')).data;
  const verifications = { path: VERIFY_PATH, bodies: keys, perSecond: rate };
  const baseline = async () => successful(await callers.run(WINDOW_SECONDS, verifications));
  let seconds = 0;
  const importKeys = async (count: number) => {
    const bodies = batches(apiId, count);
    const calls = { path: "/v2/keys.migrateKeys", headers, bodies };
    const load = callers.run(PART_SECONDS_MAX, verifications);
    const importLoad = await importer.run(PART_SECONDS_MAX, calls);
    callers.end();
    if (successful(importLoad).requests < bodies.length) throw new Error("The import takes too long");
    seconds += importLoad.seconds;
    return successful(await load);
  };
  console.log(describeMachine());
  console.log(
    `${rate} calls per second, ${imported.toLocaleString("en")} keys imported in batches of ${batch}, ${pairs} pairs\n`,
  );
  // Warms up both sides. The first import of a workspace also invalidates its negative cache entries, once.
  await importKeys(WARM_UP_KEYS);
  await callers.run(WARM_UP_SECONDS, { ...verifications, perSecond: 4 * rate });

  seconds = 0;
  const part = Math.ceil(imported / pairs);
  await measureInterference({ load: "the import", target: TARGET, pairs, baseline, loaded: () => importKeys(part) });
  console.log(`${Math.round((part * pairs) / seconds).toLocaleString("en")} keys imported per second.`);
} finally {
  await callers.close();
  await importer.close();
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
}

/** The bodies of an import of new keys. */
function batches(apiId: string, count: number): string[] {
  const bodies: string[] = [];
  for (let left = count; left > 0; left -= batch) {
    const keys = Array.from({ length: Math.min(left, batch) }, () => ({
      hash: randomBytes(32).toString("hex"),
      name: "imported",
    }));
    bodies.push(JSON.stringify({ migrationId: "bench", apiId, keys }));
  }
  return bodies;
}
