/**
 * What good callers notice of a flood of invented keys: `npm run bench:abuse -- [--flood 3000] [--rate 500] [--keys 1000]
 * [--pairs 7] [--seconds 3]`.
 *
 * Good callers verify known keys at a steady rate, without waiting for one another, and measure from the moment at which
 * a call is sent. The flood verifies keys that nobody made, with valid checksums, each another one, so that each is
 * looked up in the database until the budget for that is used up; `--flood 8000` is more than it allows. A pair is one
 * window without and one with the flood; which comes first alternates. The service has one core, all callers share
 * another. The aim: with the flood the 99th percentile stays under 1.5 times what it is without.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { createKeys, ROOT_KEY, VERIFY_PATH } from "./lib/keys.ts";
import { canPin, describeMachine, pinned } from "./lib/machine.ts";
import { wholeNumber } from "./lib/options.ts";
import { Pipeline } from "./lib/pipeline.ts";
import { spread, writeSpread } from "./lib/statistics.ts";
import { startSubject } from "./lib/subject.ts";

const CONNECTIONS = 16;
const CALLERS_CORE = 1;
const AIM = 1.5;

/** One window, in milliseconds. */
interface Window {
  p50: number;
  p99: number;
}

const { values } = parseArgs({
  options: {
    flood: { type: "string", default: "3000" },
    rate: { type: "string", default: "500" },
    keys: { type: "string", default: "1000" },
    pairs: { type: "string", default: "7" },
    seconds: { type: "string", default: "3" },
  },
});
const flood = wholeNumber(values, "flood", 1, 20_000);
const rate = wholeNumber(values, "rate", 50, 5_000);
const keyCount = wholeNumber(values, "keys", 1, 100_000);
const pairs = wholeNumber(values, "pairs", 1, 50);
const seconds = wholeNumber(values, "seconds", 1, 30);

const folder = mkdtempSync(join(tmpdir(), "latchkey-bench-"));
const subject = await startSubject("lib/latchkey.ts", [folder, ROOT_KEY]);
const connections = await Promise.all(Array.from({ length: CONNECTIONS }, () => Pipeline.open(subject.url)));
const statuses: Record<string, number> = {};
try {
  const bodies = (await createKeys(subject.url, keyCount)).map((key) => JSON.stringify({ key }));
  for (const body of bodies) await connections[0]!.post(VERIFY_PATH, body);
  console.log(describeMachine());
  console.log(
    `${rate} good calls a second beside ${flood} invented keys a second, ${pairs} pairs of ${seconds} s, ` +
      `${canPin ? "service on core 0, the flood on core 1" : "nothing pinned: there is no taskset or no second core"}\n`,
  );
  // Warm, on both sides.
  await measureWith(bodies);
  const windows: { without: Window; beside: Window }[] = [];
  for (let pair = 0; pair < pairs; pair++) {
    if (pair % 2 === 0) {
      const without = await measure(bodies);
      windows.push({ without, beside: await measureWith(bodies) });
    } else {
      const beside = await measureWith(bodies);
      windows.push({ without: await measure(bodies), beside });
    }
  }
  report(windows);
} finally {
  for (const connection of connections) connection.close();
  await subject.stop();
  rmSync(folder, { recursive: true, force: true });
}

/** A window of good calls, every one of which has to succeed. */
async function measure(bodies: readonly string[]): Promise<Window> {
  const latencies: number[] = [];
  const calls: Promise<void>[] = [];
  const startedAt = performance.now();
  for (let sent = 0; sent < rate * seconds; ) {
    const dueAt = startedAt + (sent * 1_000) / rate;
    if (performance.now() < dueAt) {
      await setTimeout(1);
      continue;
    }
    const sentAt = performance.now();
    const connection = connections[sent % CONNECTIONS]!;
    calls.push(
      connection.post(VERIFY_PATH, bodies[sent % bodies.length]!).then((status) => {
        if (status !== 200) throw new Error(`A good call was answered with ${status}`);
        latencies.push(performance.now() - sentAt);
      }),
    );
    sent++;
  }
  await Promise.all(calls);
  latencies.sort((a, b) => a - b);
  const percentile = (share: number) => latencies[Math.ceil(latencies.length * share) - 1]!;
  return { p50: percentile(0.5), p99: percentile(0.99) };
}

/** The same with the flood beside it. */
async function measureWith(bodies: readonly string[]): Promise<Window> {
  const program = fileURLToPath(new URL("lib/flood.ts", import.meta.url));
  const [command, ...args] = pinned(CALLERS_CORE, [process.execPath, program, subject.url, String(flood)]);
  const child = spawn(command!, args, { stdio: ["pipe", "pipe", "inherit"] });
  const exited = once(child, "exit");
  try {
    const lines = createInterface(child.stdout!)[Symbol.asyncIterator]();
    await lines.next();
    const window = await measure(bodies);
    child.stdin!.end();
    const told = JSON.parse((await lines.next()).value!) as { statuses: Record<string, number> };
    for (const [status, count] of Object.entries(told.statuses)) statuses[status] = (statuses[status] ?? 0) + count;
    return window;
  } finally {
    child.kill();
    await exited;
  }
}

function report(windows: readonly { without: Window; beside: Window }[]): void {
  const row = (name: string, of: (window: (typeof windows)[number], figure: keyof Window) => number, digits: number) =>
    console.log(
      `  ${name.padEnd(20)}${(["p50", "p99"] as const)
        .map((figure) => writeSpread(spread(windows.map((window) => of(window, figure))), digits).padStart(26))
        .join("")}`,
    );
  console.log(`  ${"median (min–max)".padEnd(20)}${"p50, ms".padStart(26)}${"p99, ms".padStart(26)}`);
  row("without the flood", ({ without }, figure) => without[figure], 3);
  row("beside the flood", ({ beside }, figure) => beside[figure], 3);
  row("ratio", ({ without, beside }, figure) => beside[figure] / without[figure], 2);
  console.log(`\nThe flood was answered: ${JSON.stringify(statuses)} (by status, the warm-up included).`);
  const ratio = spread(windows.map(({ without, beside }) => beside.p99 / without.p99)).median;
  console.log(`p99 ratio ${ratio.toFixed(2)} (median of the pairs); the aim is under ${AIM}.`);
}
