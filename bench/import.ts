/**
 * What callers notice of an import: `npm run bench:import -- [--import 200000] [--batch 1000] [--rate 500] [--keys 1000]
 * [--pairs 5]`.
 *
 * Callers verify known keys at a steady rate, without waiting for one another, and measure from the moment at which a
 * call is sent; meanwhile somebody imports, one batch after the other. A pair is one window without and one with a part
 * of the import, both as long as that part takes. The service has one core, where its database threads are too; all
 * callers share another. The aim: during the import the 99th percentile stays under twice what it is without.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { createKeys, JSON_TYPE, post, ROOT_KEY, VERIFY_PATH } from "./lib/keys.ts";
import { canPin, describeMachine, pinned } from "./lib/machine.ts";
import { wholeNumber } from "./lib/options.ts";
import { Pipeline } from "./lib/pipeline.ts";
import { spread, writeSpread } from "./lib/statistics.ts";
import { startSubject } from "./lib/subject.ts";

const CONNECTIONS = 16;
const CALLERS_CORE = 1;
const AIM = 2;
const WARM_UP_SECONDS = 3;

/** One window, in milliseconds. */
interface Window {
  p50: number;
  p99: number;
}

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
const subject = await startSubject("lib/latchkey.ts", [folder, ROOT_KEY]);
const connections = await Promise.all(Array.from({ length: CONNECTIONS }, () => Pipeline.open(subject.url)));
try {
  const bodies = (await createKeys(subject.url, keyCount)).map((key) => JSON.stringify({ key }));
  const { apiId } = JSON.parse(await post(`${subject.url}/v2/apis.createApi`, headers, '{"name":"imported"}')).data;
  for (const body of bodies) await connections[0]!.post(VERIFY_PATH, body);
  console.log(describeMachine());
  console.log(
    `${rate} calls a second, ${imported.toLocaleString("en")} keys imported in batches of ${batch}, ${pairs} pairs, ` +
      `${canPin ? "service on core 0" : "nothing pinned: there is no taskset or no second core"}\n`,
  );
  // Warm, on both sides; the first import of a workspace also outdates what is known of its keys, once.
  await (await prepareImport(apiId, batch))();
  await measure(bodies, setTimeout(WARM_UP_SECONDS * 1_000));

  const windows: { without: Window; beside: Window }[] = [];
  let importedIn = 0;
  for (let pair = 0; pair < pairs; pair++) {
    const begin = await prepareImport(apiId, Math.ceil(imported / pairs));
    const startedAt = performance.now();
    const beside = await measure(bodies, begin());
    const tookMs = performance.now() - startedAt;
    importedIn += tookMs;
    windows.push({ beside, without: await measure(bodies, setTimeout(tookMs)) });
  }
  report(windows, importedIn);
} finally {
  for (const connection of connections) connection.close();
  await subject.stop();
  rmSync(folder, { recursive: true, force: true });
}

/** An import of so many keys that begins when it is told; every one of them has to be taken. */
async function prepareImport(apiId: string, count: number): Promise<() => Promise<void>> {
  const program = fileURLToPath(new URL("lib/importer.ts", import.meta.url));
  const importer = [process.execPath, program, subject.url, apiId, String(count), String(batch)];
  const [command, ...args] = pinned(CALLERS_CORE, importer);
  const child = spawn(command!, args, { stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface(child.stdout!)[Symbol.asyncIterator]();
  await lines.next();
  return async () => {
    child.stdin!.write("begin\n");
    if ((await lines.next()).value !== "done") throw new Error("The import has failed");
  };
}

/** A window of verifications that ends with something else. Every one has to succeed. */
async function measure(bodies: readonly string[], end: Promise<unknown>): Promise<Window> {
  let ended = false;
  const over = end.finally(() => {
    ended = true;
  });
  const latencies: number[] = [];
  const calls: Promise<void>[] = [];
  const startedAt = performance.now();
  for (let sent = 0; !ended; ) {
    const dueAt = startedAt + (sent * 1_000) / rate;
    if (performance.now() < dueAt) {
      await setTimeout(1);
      continue;
    }
    const sentAt = performance.now();
    const connection = connections[sent % CONNECTIONS]!;
    calls.push(
      connection.post(VERIFY_PATH, bodies[sent % bodies.length]!).then((status) => {
        if (status !== 200) throw new Error(`A call was answered with ${status}`);
        latencies.push(performance.now() - sentAt);
      }),
    );
    sent++;
  }
  await Promise.all([over, ...calls]);
  latencies.sort((a, b) => a - b);
  const percentile = (share: number) => latencies[Math.ceil(latencies.length * share) - 1]!;
  return { p50: percentile(0.5), p99: percentile(0.99) };
}

function report(windows: readonly { without: Window; beside: Window }[], importedInMs: number): void {
  const row = (name: string, of: (window: (typeof windows)[number], figure: keyof Window) => number, digits: number) =>
    console.log(
      `  ${name.padEnd(20)}${(["p50", "p99"] as const)
        .map((figure) => writeSpread(spread(windows.map((window) => of(window, figure))), digits).padStart(26))
        .join("")}`,
    );
  console.log(`  ${"median (min–max)".padEnd(20)}${"p50, ms".padStart(26)}${"p99, ms".padStart(26)}`);
  row("without the import", ({ without }, figure) => without[figure], 3);
  row("beside the import", ({ beside }, figure) => beside[figure], 3);
  row("ratio", ({ without, beside }, figure) => beside[figure] / without[figure], 2);
  const perSecond = Math.round((imported / importedInMs) * 1_000).toLocaleString("en");
  console.log(`\n${perSecond} keys imported a second.`);
  const ratio = spread(windows.map(({ without, beside }) => beside.p99 / without.p99)).median;
  console.log(`p99 ratio ${ratio.toFixed(2)} (median of the pairs); the aim is under ${AIM}.`);
}
