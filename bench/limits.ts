/**
 * Cost of a limit: `npm run bench:limits -- [--identifiers 10000000] [--rounds 7] [--seconds 2] [--only engine|http|cold]`.
 *
 * First the counters alone, on one core, with new strings for each charge, as parsing a request makes them
 * (`bench/counters.ts`). Then `ratelimits.limit` over HTTP, compared with bare `node:http` that answers the same POST
 * with as many bytes, and with `rate-limiter-flexible` in memory behind the same bare server: all three on one core, in
 * turn, with the same load from wrk on another core. At last the same from the start of the process (cold).
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { seededRandom } from "../engine/src/random/seeded.ts";
import { measureCold } from "./lib/cold.ts";
import { compare } from "./lib/compare.ts";
import { JSON_TYPE, LIMIT_PATH, post, ROOT_KEY } from "./lib/keys.ts";
import { canPin, describeMachine, pinned } from "./lib/machine.ts";
import { wholeNumber } from "./lib/options.ts";
import { type ServerUnderTest, startLatchkey, startServerUnderTest, stopServers } from "./lib/server-under-test.ts";
import { Wrk } from "./lib/wrk.ts";

const HEADERS = { ...JSON_TYPE, Authorization: `Bearer ${ROOT_KEY}` };
const IDENTIFIERS_OVER_HTTP = 1_000;
const HOUR = 3_600_000;
const ENGINE_CORE = 0;

const { values } = parseArgs({
  options: {
    identifiers: { type: "string", default: "10000000" },
    rounds: { type: "string", default: "7" },
    seconds: { type: "string", default: "2" },
    only: { type: "string" },
  },
});
const rounds = wholeNumber(values, "rounds", 1, 100);
const seconds = wholeNumber(values, "seconds", 1, 60);

console.log(`${describeMachine()}, ${canPin ? "servers on core 0, wrk on core 1" : "not pinned"}\n`);
if (values.only === undefined || values.only === "engine") await measureEngine();
if (values.only !== "engine") await measureHttp();

async function measureEngine(): Promise<void> {
  const program = join(import.meta.dirname, "counters.ts");
  const [command, ...args] = pinned(ENGINE_CORE, [process.execPath, program, values.identifiers]);
  const [code] = await once(spawn(command!, args, { stdio: "inherit" }), "exit");
  if (code !== 0) process.exit(code ?? 1);
  console.log();
}

async function measureHttp(): Promise<void> {
  Wrk.require();
  const folder = mkdtempSync(join(tmpdir(), "latchkey-bench-"));
  try {
    if (values.only === "cold") return await measureFromStart(folder);
    const latchkey = await startLatchkey({ folder });
    const flexible = await startServerUnderTest("lib/flexible-server.ts");
    for (const [title, limit, isAdmitted] of [
      [`ratelimits.limit, ${IDENTIFIERS_OVER_HTTP.toLocaleString("en")} identifiers, all admitted`, 1e9, true],
      [`ratelimits.limit, ${IDENTIFIERS_OVER_HTTP.toLocaleString("en")} identifiers, all denied`, 1, false],
    ] as const) {
      const bodies = Array.from({ length: IDENTIFIERS_OVER_HTTP }, (_, i) =>
        JSON.stringify({ namespace: "bench", identifier: `${limit} user ${i}`, limit, duration: HOUR }),
      );
      const length = await warmUp([latchkey, flexible], bodies, isAdmitted);
      const bare = await startServerUnderTest("lib/bare-server.ts", [String(length)]);
      const wrk = new Wrk({ path: LIMIT_PATH, headers: HEADERS, bodies });
      const servers = { "bare node:http": bare, latchkey, "rate-limiter-flexible": flexible };
      try {
        await compare({ title: `${title}, answers of ${length} bytes`, servers, wrk, rounds, seconds });
      } finally {
        wrk.close();
      }
    }
    await latchkey.stop();
    if (values.only === undefined) await measureFromStart(folder);
  } finally {
    await stopServers();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function measureFromStart(folder: string): Promise<void> {
  const random = seededRandom(1);
  const bodies = Array.from({ length: 10 * IDENTIFIERS_OVER_HTTP }, () =>
    JSON.stringify({
      namespace: "bench",
      identifier: `cold user ${random.below(IDENTIFIERS_OVER_HTTP)}`,
      limit: 1e9,
      duration: HOUR,
    }),
  );
  const first = await startLatchkey({ folder });
  const length = Buffer.byteLength(await post(first.url + LIMIT_PATH, HEADERS, bodies[0]!));
  await first.stop();
  const wrk = new Wrk({ path: LIMIT_PATH, headers: HEADERS, bodies });
  try {
    await measureCold({
      title: "cold, ratelimits.limit, identifiers at random, all admitted",
      bare: () => startServerUnderTest("lib/bare-server.ts", [String(length)]),
      latchkey: () => startLatchkey({ folder }),
      wrk,
    });
  } finally {
    wrk.close();
  }
}

/** Calls twice for each identifier; returns the length of the service's last answer, which stays the same. */
async function warmUp(
  [latchkey, flexible]: readonly [ServerUnderTest, ServerUnderTest],
  bodies: readonly string[],
  isAdmitted: boolean,
): Promise<number> {
  let length = 0;
  for (const { url } of [flexible, latchkey]) {
    for (const body of bodies) {
      await post(url + LIMIT_PATH, HEADERS, body);
      const text = await post(url + LIMIT_PATH, HEADERS, body);
      if (JSON.parse(text).data.success !== isAdmitted) throw new Error(`Unexpected answer: ${text}`);
      length = Buffer.byteLength(text);
    }
  }
  return length;
}
