/**
 * Throughput of verifications compared with bare `node:http`: `npm run bench:verify -- [--keys 1000] [--pairs 11]
 * [--seconds 2] [--only warm|cold] [--profile folder]`.
 *
 * Both servers run on one core and get the same requests from wrk on another core, in turn, for windows of a few
 * seconds; a pair is one window of each. The service has every key in its cache before the first window. CPU is that of
 * the server's whole process. The second part is cold: the service starts anew on its folder, and a minute of windows shows
 * how it becomes fast. `--profile` writes a CPU profile of the service, which costs it a few per cent.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { seededRandom } from "../engine/src/random/seeded.ts";
import { measureCold } from "./lib/cold.ts";
import { compare } from "./lib/compare.ts";
import { createKeys, JSON_TYPE, post, ROOT_KEY, VERIFY_PATH } from "./lib/keys.ts";
import { canPin, describeMachine } from "./lib/machine.ts";
import { wholeNumber } from "./lib/options.ts";
import { type ServerUnderTest, startLatchkey, startServerUnderTest, stopServers } from "./lib/server-under-test.ts";
import { Wrk } from "./lib/wrk.ts";

const CALLS_AT_ONCE = 16;

const { values } = parseArgs({
  options: {
    keys: { type: "string", default: "1000" },
    pairs: { type: "string", default: "11" },
    seconds: { type: "string", default: "2" },
    only: { type: "string" },
    profile: { type: "string" },
  },
});
const keyCount = wholeNumber(values, "keys", 1, 100_000);
const pairs = wholeNumber(values, "pairs", 1, 100);
const seconds = wholeNumber(values, "seconds", 1, 60);

Wrk.require();

const folder = mkdtempSync(join(tmpdir(), "latchkey-bench-"));
try {
  const nodeFlags = values.profile === undefined ? [] : ["--cpu-prof", `--cpu-prof-dir=${values.profile}`];
  const latchkey = await startLatchkey({ folder, nodeFlags });
  const keys = await createKeys(latchkey.url, keyCount);
  console.log(describeMachine());
  console.log(
    `${keyCount.toLocaleString("en")} keys, ${pairs} pairs of ${seconds} s, ` +
      `${canPin ? "servers on core 0, wrk on core 1" : "not pinned: taskset or a second core is missing"}\n`,
  );
  const withRootKey = { Authorization: `Bearer ${ROOT_KEY}` };
  if (values.only !== "cold") {
    await verify(latchkey, keys, "without a root key", {});
    await verify(latchkey, keys, "with a root key", withRootKey);
  }
  if (values.only !== "warm") {
    const length = Buffer.byteLength(
      await post(latchkey.url + VERIFY_PATH, { ...JSON_TYPE, ...withRootKey }, bodyOf(keys[0]!)),
    );
    await latchkey.stop();
    await verifyCold(keys, length, withRootKey, nodeFlags);
  }
} finally {
  await stopServers();
  rmSync(folder, { recursive: true, force: true });
}

async function verify(latchkey: ServerUnderTest, keys: readonly string[], title: string, authorization: object) {
  const headers = { ...JSON_TYPE, ...authorization };
  const bodies = keys.map(bodyOf);
  let length = 0;
  // One call per key fills the cache and checks that the key is valid.
  await inTurn(bodies, async (body) => {
    const text = await post(latchkey.url + VERIFY_PATH, headers, body);
    if (JSON.parse(text).data.valid !== true) throw new Error(`A key is not valid: ${text}`);
    length = Buffer.byteLength(text);
  });
  const bare = await startServerUnderTest("lib/bare-server.ts", [String(length)]);
  const wrk = new Wrk({ path: VERIFY_PATH, headers, bodies });
  try {
    const servers = { "bare node:http": bare, latchkey };
    await compare({ title: `${title}, answers of ${length} bytes`, servers, wrk, rounds: pairs, seconds });
  } finally {
    wrk.close();
  }
}

async function verifyCold(
  keys: readonly string[],
  length: number,
  authorization: object,
  nodeFlags: readonly string[],
) {
  const random = seededRandom(1);
  const bodies = Array.from({ length: 10 * keys.length }, () => bodyOf(keys[random.below(keys.length)]!));
  const wrk = new Wrk({ path: VERIFY_PATH, headers: { ...JSON_TYPE, ...authorization }, bodies });
  try {
    await measureCold({
      title: "cold, with a root key, keys at random",
      bare: () => startServerUnderTest("lib/bare-server.ts", [String(length)]),
      latchkey: () => startLatchkey({ folder, nodeFlags }),
      wrk,
    });
  } finally {
    wrk.close();
  }
}

function bodyOf(key: string): string {
  return JSON.stringify({ key });
}

/** Does the work for each of the values, a few at a time. */
async function inTurn<T>(values: readonly T[], work: (value: T) => Promise<void>): Promise<void> {
  const rest = values.values();
  const worker = async () => {
    for (const value of rest) await work(value);
  };
  await Promise.all(Array.from({ length: CALLS_AT_ONCE }, worker));
}
