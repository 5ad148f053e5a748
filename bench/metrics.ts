/**
 * Cost of the metrics: `npm run bench:metrics -- [--keys 1000] [--pairs 11] [--seconds 2]`.
 *
 * Two services run on one core, with LATCHKEY_METRICS=on and off, and get the same verifications from wrk on another
 * core, in turn, for windows of a few seconds. A pair is one window of each; the order alternates. Nothing scrapes
 * meanwhile. Target: less than 3 % difference.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { createKeys, JSON_TYPE, post, VERIFY_PATH } from "./lib/keys.ts";
import { canPin, describeMachine } from "./lib/machine.ts";
import { wholeNumber } from "./lib/options.ts";
import { type ServerUnderTest, startLatchkey } from "./lib/server-under-test.ts";
import { spread, writeSpread } from "./lib/statistics.ts";
import { Wrk } from "./lib/wrk.ts";

const WARM_UP_SECONDS = 3;
const TARGET = 0.03;

interface Window {
  /** Requests per second. */
  rate: number;
  /** Microseconds of CPU per request. */
  cpu: number;
}

type Mode = "off" | "on";

const { values } = parseArgs({
  options: {
    keys: { type: "string", default: "1000" },
    pairs: { type: "string", default: "11" },
    seconds: { type: "string", default: "2" },
  },
});
const keyCount = wholeNumber(values, "keys", 1, 100_000);
const pairs = wholeNumber(values, "pairs", 1, 100);
const seconds = wholeNumber(values, "seconds", 1, 60);

Wrk.require();

const folder = mkdtempSync(join(tmpdir(), "latchkey-bench-"));
const servers = new Map<Mode, { server: ServerUnderTest; wrk: Wrk }>();
try {
  for (const mode of ["off", "on"] as const) {
    const server = await startLatchkey({ folder: join(folder, mode), settings: { METRICS: mode } });
    const bodies = (await createKeys(server.url, keyCount)).map((key) => JSON.stringify({ key }));
    // One call per key fills the cache and checks that the key is valid.
    for (const body of bodies) {
      const text = await post(server.url + VERIFY_PATH, JSON_TYPE, body);
      if (JSON.parse(text).data.valid !== true) throw new Error(`A key is not valid: ${text}`);
    }
    servers.set(mode, { server, wrk: new Wrk({ path: VERIFY_PATH, headers: JSON_TYPE, bodies }) });
  }
  console.log(describeMachine());
  console.log(
    `${keyCount.toLocaleString("en")} keys, ${pairs} pairs of ${seconds} s, ` +
      `${canPin ? "services on core 0, wrk on core 1" : "not pinned: taskset or a second core is missing"}\n`,
  );
  for (const mode of ["off", "on"] as const) await measure(mode, WARM_UP_SECONDS);
  const windows: Record<Mode, Window>[] = [];
  for (let pair = 0; pair < pairs; pair++) {
    const order: Mode[] = pair % 2 === 0 ? ["off", "on"] : ["on", "off"];
    const first = await measure(order[0]!, seconds);
    const second = await measure(order[1]!, seconds);
    windows.push(order[0] === "off" ? { off: first, on: second } : { off: second, on: first });
  }
  report(windows);
} finally {
  for (const { server, wrk } of servers.values()) {
    wrk.close();
    await server.stop();
  }
  rmSync(folder, { recursive: true, force: true });
}

async function measure(mode: Mode, length: number): Promise<Window> {
  const { server, wrk } = servers.get(mode)!;
  const before = await server.cpuMs();
  const load = await wrk.run(server.url, length);
  const used = (await server.cpuMs()) - before;
  return { rate: load.requests / load.seconds, cpu: (used * 1_000) / load.requests };
}

function report(windows: readonly Record<Mode, Window>[]): void {
  const column = (of: (pair: Record<Mode, Window>) => number, digits: number) =>
    writeSpread(spread(windows.map(of)), digits).padStart(26);
  const row = (name: string, ...columns: string[]) => console.log(`  ${name.padEnd(14)}${columns.join("")}`);
  row("median (min–max)", "requests per second".padStart(24), "CPU per request, µs".padStart(26));
  for (const mode of ["off", "on"] as const) {
    row(
      `metrics ${mode}`,
      column((pair) => pair[mode].rate, 0),
      column((pair) => pair[mode].cpu, 2),
    );
  }
  row(
    "on / off",
    column((pair) => pair.on.rate / pair.off.rate, 4),
    column((pair) => pair.on.cpu / pair.off.cpu, 4),
  );
  const loss = 1 - spread(windows.map((pair) => pair.on.rate / pair.off.rate)).median;
  console.log(
    `\n${(loss * 100).toFixed(1)} % fewer requests with metrics (median of the pairs); target: below ${TARGET * 100} %.`,
  );
}
