/**
 * Cost of permissions in a verification: `npm run bench:permissions -- [--rounds 7] [--seconds 2]`.
 *
 * Compares a key with one permission, queried by its slug, with a key that has 1,000 permissions and a query of 1,000
 * characters that only its last part satisfies. The service has one core, wrk another; both keys are on the same
 * service. Target: at most three times the CPU. With a root key, each answer lists the key's permissions.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { JSON_TYPE, post, ROOT_KEY, VERIFY_PATH } from "./lib/keys.ts";
import { canPin, describeMachine } from "./lib/machine.ts";
import { wholeNumber } from "./lib/options.ts";
import { startLatchkey } from "./lib/server-under-test.ts";
import { spread, writeSpread } from "./lib/statistics.ts";
import { Wrk } from "./lib/wrk.ts";

const PERMISSIONS = 1_000;
const QUERY_LENGTH = 1_000;
const WARM_UP_SECONDS = 3;
const TARGET = 3;

const { values } = parseArgs({
  options: { rounds: { type: "string", default: "7" }, seconds: { type: "string", default: "2" } },
});
const rounds = wholeNumber(values, "rounds", 1, 100);
const seconds = wholeNumber(values, "seconds", 1, 60);

const authorized = { ...JSON_TYPE, Authorization: `Bearer ${ROOT_KEY}` };
const folder = mkdtempSync(join(tmpdir(), "latchkey-bench-"));
const server = await startLatchkey({ folder });
try {
  const slugs = Array.from({ length: PERMISSIONS }, (_, i) => `documents.${i}.read`);
  const bodies = {
    "one permission": JSON.stringify({ key: await createKey(slugs.slice(0, 1)), permissions: slugs[0] }),
    "a thousand": JSON.stringify({ key: await createKey(slugs), permissions: longQuery(slugs) }),
  };
  console.log(describeMachine());
  console.log(`${rounds} rounds of ${seconds} s, ${canPin ? "service on core 0, wrk on core 1" : "not pinned"}\n`);
  await compareKeys("without a root key", bodies, JSON_TYPE);
  await compareKeys("with a root key", bodies, authorized);
} finally {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
}

async function call(operation: string, input: object) {
  return JSON.parse(await post(`${server.url}/v2/${operation}`, authorized, JSON.stringify(input))).data;
}

async function createKey(permissions: readonly string[]): Promise<string> {
  const { apiId } = await call("apis.createApi", { name: "bench" });
  return (await call("keys.createKey", { apiId, permissions })).key;
}

/** As many alternatives as fit; only the last is granted. */
function longQuery(slugs: readonly string[]): string {
  const last = slugs.at(-1)!;
  const parts: string[] = [];
  for (let i = 0; [...parts, last].join(" OR ").length < QUERY_LENGTH - "documents.99.write OR ".length; i++) {
    parts.push(`documents.${i}.write`);
  }
  return [...parts, last].join(" OR ");
}

async function compareKeys(title: string, bodies: Record<string, string>, headers: Record<string, string>) {
  const named: [string, Wrk][] = [];
  for (const [name, body] of Object.entries(bodies)) {
    const { data } = JSON.parse(await post(server.url + VERIFY_PATH, headers, body));
    if (data.code !== "VALID") throw new Error(`The key with ${name} is ${data.code}`);
    named.push([name, new Wrk({ path: VERIFY_PATH, headers, bodies: [body] })]);
  }
  const measure = async (wrk: Wrk, length: number) => {
    const before = await server.cpuMs();
    const load = await wrk.run(server.url, length);
    const cpu = (((await server.cpuMs()) - before) * 1_000) / load.requests;
    return { rate: load.requests / load.seconds, cpu };
  };
  const windows: Awaited<ReturnType<typeof measure>>[][] = named.map(() => []);
  for (const [, wrk] of named) await measure(wrk, WARM_UP_SECONDS);
  for (let round = 0; round < rounds; round++) {
    for (const [i, [, wrk]] of named.entries()) windows[i]!.push(await measure(wrk, seconds));
  }
  console.log(`${title}: median (min–max)`);
  console.log(`  ${"".padEnd(18)}${"requests per second".padStart(26)}${"CPU per request, µs".padStart(26)}`);
  for (const [i, [name, wrk]] of named.entries()) {
    const column = (of: (window: { rate: number; cpu: number }) => number, digits: number) =>
      writeSpread(spread(windows[i]!.map(of)), digits).padStart(26);
    console.log(`  ${name.padEnd(18)}${column(({ rate }) => rate, 0)}${column(({ cpu }) => cpu, 1)}`);
    wrk.close();
  }
  const [few, many] = [windows[0]!, windows[1]!];
  const ratio = spread(many.map(({ cpu }, round) => cpu / few[round]!.cpu)).median;
  console.log(`  costs ${ratio.toFixed(2)} times as much CPU (median of the rounds); target: at most ${TARGET}.\n`);
}
