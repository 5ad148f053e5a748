/**
 * Latency of verifications during a flood of invented keys: `npm run bench:abuse -- [--flood 3000] [--rate 500] [--keys
 * 1000] [--pairs 7] [--seconds 5] [--mistyped]`.
 *
 * Regular callers verify cached keys. The flood verifies keys that do not exist, each one once, with valid checksums,
 * so only the filter of keys saves a query. With `--mistyped` their checksums are wrong. All calls arrive at random
 * (Poisson). The service's event loop and the regular callers share one core, everything else has another. Target: with
 * the flood, the 99th percentile stays below 1.5 times its value without.
 */
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { formatKey } from "../engine/src/rules/key-string.ts";
import { Callers, successful } from "./lib/callers.ts";
import { measureInterference } from "./lib/interference.ts";
import { createKeys, JSON_TYPE, post, VERIFY_PATH } from "./lib/keys.ts";
import { canPin, describeMachine } from "./lib/machine.ts";
import { wholeNumber } from "./lib/options.ts";
import { LOOP_CORE, startLatchkey } from "./lib/server-under-test.ts";

const TARGET = 1.5;
const WARM_UPS = 5;

const { values } = parseArgs({
  options: {
    flood: { type: "string", default: "3000" },
    rate: { type: "string", default: "500" },
    keys: { type: "string", default: "1000" },
    pairs: { type: "string", default: "7" },
    seconds: { type: "string", default: "5" },
    mistyped: { type: "boolean", default: false },
  },
});
const flood = wholeNumber(values, "flood", 1, 20_000);
const rate = wholeNumber(values, "rate", 50, 5_000);
const keyCount = wholeNumber(values, "keys", 1, 100_000);
const pairs = wholeNumber(values, "pairs", 1, 50);
const seconds = wholeNumber(values, "seconds", 1, 30);

const folder = mkdtempSync(join(tmpdir(), "latchkey-bench-"));
const server = await startLatchkey({ folder, threads: "loop apart" });
const callers = new Callers(server.url, LOOP_CORE);
const floodCallers = new Callers(server.url);
try {
  const keys = (await createKeys(server.url, keyCount)).map((key) => JSON.stringify({ key }));
  for (const body of keys) await post(server.url + VERIFY_PATH, JSON_TYPE, body);
  const regular = { path: VERIFY_PATH, bodies: keys, perSecond: rate };
  const baseline = async () => successful(await callers.run(seconds, regular));
  let floodRejected = 0;
  const duringFlood = async () => {
    // More than will be sent, so that no key is sent twice.
    const bodies = Array.from({ length: 2 * flood * seconds }, () => JSON.stringify({ key: inventedKey() }));
    const [load, flooding] = await Promise.all([
      callers.run(seconds, regular),
      floodCallers.run(seconds, { path: VERIFY_PATH, bodies, perSecond: flood }),
    ]);
    floodRejected += flooding.rejected;
    return successful(load);
  };
  console.log(describeMachine());
  console.log(
    `${rate} regular calls per second, ${flood} invented keys per second, ${pairs} pairs of ${seconds} s, ` +
      `${canPin ? "event loop and regular callers on core 0, everything else on core 1" : "not pinned: taskset or a second core is missing"}\n`,
  );
  // Until the hot code of both processes is compiled.
  for (let i = 0; i < WARM_UPS; i++) await duringFlood();
  await measureInterference({ load: "the flood", target: TARGET, pairs, baseline, loaded: duringFlood });
  console.log(`${floodRejected.toLocaleString("en")} calls of the flood were rejected.`);
} finally {
  await callers.close();
  await floodCallers.close();
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
}

function inventedKey(): string {
  const { key } = formatKey("bench", randomBytes(16));
  return values.mistyped ? `${key.slice(0, -1)}${key.at(-1) === "a" ? "b" : "a"}` : key;
}
