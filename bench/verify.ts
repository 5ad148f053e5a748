/**
 * What a verification costs beside bare HTTP: `npm run bench:verify -- [--keys 1000] [--pairs 11] [--seconds 2]
 * [--profile folder]`.
 *
 * Both servers run on one core and get the same requests from wrk on another, in turn, for windows of a few seconds; a
 * pair is one window of each. Every key is known to the service before the first one. CPU is that of the server's whole
 * process. `--profile` keeps a CPU profile of the service, which costs it a few per cent.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { compare } from "./lib/compare.ts";
import { canPin, describeMachine } from "./lib/machine.ts";
import { type Subject, startSubject } from "./lib/subject.ts";
import { Wrk } from "./lib/wrk.ts";

const PATH = "/v2/keys.verifyKey";
const JSON_TYPE = { "Content-Type": "application/json" };
/** Of this bench's own service only, which is gone with its folder. */
const ROOT_KEY = "lk_root_of_a_bench_that_is_over_in_a_minute";
const CALLS_AT_ONCE = 16;

const { values } = parseArgs({
  options: {
    keys: { type: "string", default: "1000" },
    pairs: { type: "string", default: "11" },
    seconds: { type: "string", default: "2" },
    profile: { type: "string" },
  },
});
const keyCount = wholeNumber("keys", 1, 100_000);
const pairs = wholeNumber("pairs", 1, 100);
const seconds = wholeNumber("seconds", 1, 60);

if (!Wrk.isInstalled) {
  console.error("This bench gets its load from wrk: install it, on Debian and Ubuntu by `apt-get install wrk`.");
  process.exit(1);
}

const folder = mkdtempSync(join(tmpdir(), "latchkey-bench-"));
const started: Subject[] = [];
try {
  const profiling = values.profile === undefined ? [] : ["--cpu-prof", `--cpu-prof-dir=${values.profile}`];
  const latchkey = await start("lib/latchkey.ts", [folder, ROOT_KEY], profiling);
  const keys = await createKeys(latchkey.url);
  console.log(describeMachine());
  console.log(
    `${keyCount.toLocaleString("en")} keys, ${pairs} pairs of ${seconds} s, ` +
      `${canPin ? "servers on core 0, wrk on core 1" : "nothing pinned: there is no taskset or no second core"}\n`,
  );
  await verify(latchkey, keys, "without a root key", {});
  await verify(latchkey, keys, "with a root key", { Authorization: `Bearer ${ROOT_KEY}` });
} finally {
  await Promise.all(started.map((subject) => subject.stop()));
  rmSync(folder, { recursive: true, force: true });
}

async function start(...program: Parameters<typeof startSubject>): Promise<Subject> {
  const subject = await startSubject(...program);
  started.push(subject);
  return subject;
}

async function verify(latchkey: Subject, keys: readonly string[], title: string, authorization: object) {
  const headers = { ...JSON_TYPE, ...authorization };
  const bodies = keys.map((key) => JSON.stringify({ key }));
  let length = 0;
  // One call for each key makes it known, and shows that what is measured are verifications.
  await inTurn(bodies, async (body) => {
    const text = await post(latchkey.url + PATH, headers, body);
    if (JSON.parse(text).data.valid !== true) throw new Error(`A key is not valid: ${text}`);
    length = Buffer.byteLength(text);
  });
  const bare = await start("lib/bare.ts", [String(length)]);
  const wrk = new Wrk({ path: PATH, headers, bodies });
  try {
    const subjects = { "bare node:http": bare, latchkey };
    await compare({ title: `${title}, answers of ${length} bytes`, subjects, wrk, rounds: pairs, seconds });
  } finally {
    wrk.close();
  }
}

/** Keys of one API in the service, as plain as keys are. */
async function createKeys(url: string): Promise<string[]> {
  const call = async (operation: string, input: object) => {
    const headers = { ...JSON_TYPE, Authorization: `Bearer ${ROOT_KEY}` };
    return JSON.parse(await post(`${url}/v2/${operation}`, headers, JSON.stringify(input))).data;
  };
  const { apiId } = await call("apis.createApi", { name: "bench" });
  const keys: string[] = [];
  await inTurn(Array.from({ length: keyCount }), async () => {
    keys.push((await call("keys.createKey", { apiId, prefix: "bench" })).key);
  });
  return keys;
}

async function post(url: string, headers: Record<string, string>, body: string): Promise<string> {
  const response = await fetch(url, { method: "POST", headers, body });
  const text = await response.text();
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${text}`);
  return text;
}

/** Does the work for each of the values, a few at a time. */
async function inTurn<T>(values: readonly T[], work: (value: T) => Promise<void>): Promise<void> {
  const rest = values.values();
  const worker = async () => {
    for (const value of rest) await work(value);
  };
  await Promise.all(Array.from({ length: CALLS_AT_ONCE }, worker));
}

function wholeNumber(name: "keys" | "pairs" | "seconds", minimum: number, maximum: number): number {
  const value = Number(values[name]);
  if (Number.isInteger(value) && value >= minimum && value <= maximum) return value;
  console.error(`--${name} is a whole number from ${minimum} to ${maximum}, not ${values[name]}.`);
  return process.exit(1);
}
