/**
 * What good callers notice of a flood of invented keys: `npm run bench:abuse -- [--flood 3000] [--rate 500] [--keys 1000]
 * [--pairs 7] [--seconds 5] [--mistyped]`.
 *
 * Good callers verify known keys. The flood verifies keys that nobody made, each another one, with valid checksums, so
 * that only the filter of keys stands before the database. `--mistyped`: their checksums are wrong.
 * All come at random moments. The service's event loop and the good callers have one core, all others another. The aim:
 * with the flood the 99th percentile stays under 1.5 times what it is without.
 */
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { formatKey } from "../server/src/rules/key-string.ts";
import { Callers, successful } from "./lib/callers.ts";
import { compareBeside } from "./lib/interference.ts";
import { createKeys, JSON_TYPE, post, ROOT_KEY, VERIFY_PATH } from "./lib/keys.ts";
import { canPin, describeMachine } from "./lib/machine.ts";
import { wholeNumber } from "./lib/options.ts";
import { LOOP_CORE, startServerUnderTest } from "./lib/server-under-test.ts";

const AIM = 1.5;
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
const subject = await startServerUnderTest("lib/latchkey.ts", [folder, ROOT_KEY], [], "loop apart");
const callers = new Callers(subject.url, LOOP_CORE);
const inventors = new Callers(subject.url);
try {
  const keys = (await createKeys(subject.url, keyCount)).map((key) => JSON.stringify({ key }));
  for (const body of keys) await post(subject.url + VERIFY_PATH, JSON_TYPE, body);
  const good = { path: VERIFY_PATH, bodies: keys, perSecond: rate };
  const without = async () => successful(await callers.run(seconds, good));
  let refused = 0;
  const beside = async () => {
    // More than will come, so that none comes twice.
    const bodies = Array.from({ length: 2 * flood * seconds }, () => JSON.stringify({ key: invented() }));
    const [load, bad] = await Promise.all([
      callers.run(seconds, good),
      inventors.run(seconds, { path: VERIFY_PATH, bodies, perSecond: flood }),
    ]);
    refused += bad.refused;
    return successful(load);
  };
  console.log(describeMachine());
  console.log(
    `${rate} good calls a second beside ${flood} invented keys a second, ${pairs} pairs of ${seconds} s, ` +
      `${canPin ? "event loop and good callers on core 0, all else on core 1" : "nothing pinned: there is no taskset or no second core"}\n`,
  );
  // Until what runs thousands of times a second is compiled, here and there.
  for (let i = 0; i < WARM_UPS; i++) await beside();
  await compareBeside({ what: "the flood", aim: AIM, pairs, without, beside });
  console.log(`Of the flood ${refused.toLocaleString("en")} calls were refused.`);
} finally {
  await callers.close();
  await inventors.close();
  await subject.stop();
  rmSync(folder, { recursive: true, force: true });
}

function invented(): string {
  const { key } = formatKey("bench", randomBytes(16));
  return values.mistyped ? `${key.slice(0, -1)}${key.at(-1) === "a" ? "b" : "a"}` : key;
}
