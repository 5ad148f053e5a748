/**
 * Latency of verifications while the plan of their keys changes: `npm run bench:plans -- [--keys 100000] [--rate 500]
 * [--changes 5] [--pairs 5] [--seconds 4]`.
 *
 * Callers verify cached keys at random (Poisson), which all have one plan, while another caller changes the plan some times
 * a second. A pair is one window without and one with changes. The event loop of the service and the callers share one core,
 * and the other threads of the service have another. Target: while the plan changes, the 99th percentile stays below twice
 * its value without.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { hashSecret } from "../engine/src/crypto/hash.ts";
import { Callers, successful } from "./lib/callers.ts";
import { measureInterference } from "./lib/interference.ts";
import { JSON_TYPE, post, ROOT_KEY, VERIFY_PATH, verifyEach } from "./lib/keys.ts";
import { describeMachine } from "./lib/machine.ts";
import { wholeNumber } from "./lib/options.ts";
import { LOOP_CORE, startLatchkey } from "./lib/server-under-test.ts";

const TARGET = 2;
const WARM_UP_SECONDS = 5;
const BATCH = 1_000;
const PLAN = "gold";

const { values } = parseArgs({
  options: {
    keys: { type: "string", default: "100000" },
    rate: { type: "string", default: "500" },
    changes: { type: "string", default: "5" },
    pairs: { type: "string", default: "5" },
    seconds: { type: "string", default: "4" },
  },
});
const keyCount = wholeNumber(values, "keys", 1_000, 1_000_000);
const rate = wholeNumber(values, "rate", 50, 5_000);
const changesPerSecond = wholeNumber(values, "changes", 1, 100);
const pairs = wholeNumber(values, "pairs", 1, 50);
const seconds = wholeNumber(values, "seconds", 1, 60);

const headers = { ...JSON_TYPE, Authorization: `Bearer ${ROOT_KEY}` };
const folder = mkdtempSync(join(tmpdir(), "latchkey-bench-"));
const server = await startLatchkey({ folder, threads: "loop apart" });
const callers = new Callers(server.url, LOOP_CORE);
const changer = new Callers(server.url);
const call = async (operation: string, input: object) =>
  JSON.parse(await post(`${server.url}/v2/${operation}`, headers, JSON.stringify(input))).data;
try {
  await call("plans.createPlan", { name: PLAN, ...versionOf(0) });
  const { apiId } = await call("apis.createApi", { name: "bench" });
  const keys = Array.from({ length: keyCount }, (_, i) => ({ key: `bench_${String(i).padStart(20, "0")}` }));
  for (let i = 0; i < keyCount; i += BATCH) {
    const part = keys.slice(i, i + BATCH).map(({ key }) => ({ hash: hashSecret(key), plan: PLAN }));
    await call("keys.migrateKeys", { migrationId: "bench", apiId, keys: part });
  }
  await verifyEach(server.url, keys);
  const verifications = { path: VERIFY_PATH, bodies: keys.map((key) => JSON.stringify(key)), perSecond: rate };
  let version = 0;
  const baseline = async () => successful(await callers.run(seconds, verifications));
  const changing = async () => {
    const bodies = Array.from({ length: 2 * seconds * changesPerSecond }, () =>
      JSON.stringify({ plan: PLAN, ...versionOf(++version) }),
    );
    const changes = changer.run(seconds, {
      path: "/v2/plans.updatePlan",
      headers,
      bodies,
      perSecond: changesPerSecond,
    });
    const load = successful(await callers.run(seconds, verifications));
    made += successful(await changes).requests;
    return load;
  };
  let made = 0;
  console.log(describeMachine());
  console.log(
    `${keyCount.toLocaleString("en")} keys with one plan, ${rate} calls and ${changesPerSecond} changes of the plan per ` +
      `second, ${pairs} pairs of ${seconds} s\n`,
  );
  await callers.run(WARM_UP_SECONDS, { ...verifications, perSecond: 4 * rate });
  await changing();
  made = 0;
  await measureInterference({ load: "changes", target: TARGET, pairs, baseline, loaded: changing });
  console.log(`${made} changes were made; each reached all keys.`);
} finally {
  await callers.close();
  await changer.close();
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
}

/** What the plan gives in a version: a limit that no call reaches. */
function versionOf(version: number) {
  return {
    ratelimits: [{ name: "requests", limit: 1_000_000_000 + version, duration: 60_000, autoApply: true }],
    permissions: ["documents.read"],
  };
}
