/**
 * Every figure that the README claims, on this machine: `npm run bench -- [--only capacity,latency,start,million]`.
 *
 * Takes under 15 minutes, and writes `bench/RESULTS.md` and the charts in `bench/charts/`. Servers run on core 0 and the
 * load on core 1, in turn, in windows of a few seconds; figures are medians with minimum and maximum. Needs Linux, two
 * cores and wrk; nothing else should run.
 *
 * - capacity: verifications and limits as fast as wrk can send them, beside bare `node:http` that answers as many bytes.
 * - latency: calls that arrive at random (Poisson) at 50 % and at 90 % of each server's own capacity. The latency of a call
 *   counts from the moment at which it was due, so waiting counts.
 * - start: from the start of the process until the first verified key, and memory at rest.
 * - million: the same service with 1,000,000 keys, all of them cached.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { systemClock } from "../engine/src/clock/system.ts";
import { seededRandom } from "../engine/src/random/seeded.ts";
import { openBenchStore } from "./lib/bench-store.ts";
import { type CallerLoad, Callers, type Calls, successful } from "./lib/callers.ts";
import { type Bar, barChart } from "./lib/chart.ts";
import { type ComparedServer, compare } from "./lib/compare.ts";
import { createKeys, JSON_TYPE, post, ROOT_KEY, VERIFY_PATH } from "./lib/keys.ts";
import { describeMachine, requirePinning } from "./lib/machine.ts";
import { Pipeline } from "./lib/pipeline.ts";
import {
  LATCHKEY,
  type ServerUnderTest,
  startLatchkey,
  startServerUnderTest,
  stopServers,
} from "./lib/server-under-test.ts";
import { type MeasuredStart, measureStart } from "./lib/start.ts";
import { type Spread, spread, writeSpread } from "./lib/statistics.ts";
import { Wrk } from "./lib/wrk.ts";

const KEYS = 1_000;
const MANY_KEYS = 1_000_000;
const KEYS_PER_TRANSACTION = 50_000;
/** Memory for a million cached keys. */
const DIRECTORY_BYTES = "2g";
const WARM_UP_CALLS_AT_ONCE = 64;
/** Shares of the capacity at which a million keys are compared with a thousand. */
const MILLION_SHARES = [0.1, 0.5];
/** Verifications of each of the few keys before they are measured. */
const WARM_UP_ROUNDS = 100;
const CAPACITY_PAIRS = 7;
const CAPACITY_SECONDS = 2;
const LATENCY_WINDOWS = 5;
const LATENCY_SECONDS = 4;
const STARTS = 5;
const REST_SECONDS = 5;
/** A server is at rest when it takes less than this in a second. */
const AT_REST_CPU_MS = 50;
const AT_REST_SECONDS_MAX = 120;
const MIB = 2 ** 20;

const LIMIT_PATH = "/v2/ratelimits.limit";
const HEADERS = { ...JSON_TYPE, Authorization: `Bearer ${ROOT_KEY}` };

const parts = { capacity: measureCapacity, latency: measureLatency, start: measureStarts, million: measureMillion };
type Part = keyof typeof parts;

const { values } = parseArgs({ options: { only: { type: "string" } } });
const chosen = (values.only?.split(",") ?? Object.keys(parts)) as Part[];
const unknown = chosen.find((part) => !(part in parts));
if (unknown !== undefined) {
  console.error(`--only takes ${Object.keys(parts).join(", ")}, separated by commas, not ${unknown}.`);
  process.exit(1);
}
Wrk.require();
requirePinning();

const report: string[] = [];
const charts = fileURLToPath(new URL("charts/", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "latchkey-bench-"));
const bodyOf = (key: string) => JSON.stringify({ key });

write("# Results of `npm run bench`", "");
write(
  `Measured on ${new Date().toISOString().slice(0, 10)} with ${commit()}: ${describeMachine()}.`,
  "Medians of several windows, with minimum and maximum in parentheses; `bench/all.ts` describes the method. The machine",
  "decides the absolute figures, so compare the rows of one table. Measure your own with `npm run bench`.",
);
const startedAt = performance.now();
try {
  // The latencies are relative to the capacities.
  const needsCapacity = chosen.some((part) => part === "capacity" || part === "latency" || part === "million");
  const capacities = needsCapacity ? await parts.capacity() : { latchkey: 0, bare: 0 };
  for (const part of chosen) if (part !== "capacity") await parts[part](capacities);
  if (values.only === undefined) writeFileSync(new URL("RESULTS.md", import.meta.url), `${report.join("\n")}\n`);
  console.error(`\nDone in ${Math.round((performance.now() - startedAt) / 1_000)} s.`);
} finally {
  await stopServers();
  rmSync(folder, { recursive: true, force: true });
}

/** Calls per second that each server answers at most. */
interface Capacities {
  latchkey: number;
  bare: number;
}

async function measureCapacity(): Promise<Capacities> {
  const latchkey = await startLatchkey({ folder: join(folder, "capacity") });
  const keys = await createKeys(latchkey.url, KEYS);
  const verified = await compareAtCapacity("Verifications", VERIFY_PATH, keys.map(bodyOf), { latchkey });
  const identifiers = Array.from({ length: KEYS }, (_, i) =>
    JSON.stringify({ namespace: "bench", identifier: `user ${i}`, limit: 1e9, duration: 3_600_000 }),
  );
  const flexible = await startServerUnderTest("lib/flexible-server.ts");
  const others = { latchkey, "rate-limiter-flexible": flexible };
  await compareAtCapacity("Rate limits", LIMIT_PATH, identifiers, others);
  await stopServers();
  const rateOf = (name: string) => verified.find((server) => server.name === name)!.rate.median;
  return { latchkey: rateOf("latchkey"), bare: rateOf("bare node:http") };
}

async function compareAtCapacity(
  title: string,
  path: string,
  bodies: readonly string[],
  servers: Readonly<Record<string, ServerUnderTest>>,
): Promise<ComparedServer[]> {
  let length = 0;
  for (const { url } of Object.values(servers)) {
    for (const body of bodies) length = Buffer.byteLength(await post(url + path, HEADERS, body));
  }
  const bare = await startServerUnderTest("lib/bare-server.ts", [String(length)]);
  const wrk = new Wrk({ path, headers: HEADERS, bodies });
  try {
    const compared = await compare({
      title,
      servers: { "bare node:http": bare, ...servers },
      wrk,
      rounds: CAPACITY_PAIRS,
      seconds: CAPACITY_SECONDS,
    });
    section(`${title} on one core`, `POST ${path} with a root key, ${KEYS.toLocaleString("en")} different bodies.`);
    table(
      ["", "requests per second", "÷ bare", "CPU per request, µs", "÷ bare"],
      compared.map(({ name, rate, rateRatio, cpu, cpuRatio }) => [
        name,
        writeSpread(rate),
        writeSpread(rateRatio, 2),
        writeSpread(cpu, 1),
        writeSpread(cpuRatio, 2),
      ]),
    );
    const barsOf = (figure: "rate" | "cpu") => compared.map((server) => bar(server.name, server[figure]));
    chart(`${slug(title)}-throughput`, barChart(`${title} on one core`, "requests per second", barsOf("rate")));
    chart(`${slug(title)}-cpu`, barChart(`${title}: CPU per request`, "µs, whole process", barsOf("cpu"), 1));
    return compared;
  } finally {
    wrk.close();
    await bare.stop();
  }
}

async function measureLatency({ latchkey, bare }: Capacities): Promise<void> {
  const service = await startLatchkey({ folder: join(folder, "latency") });
  const bodies = (await createKeys(service.url, KEYS)).map(bodyOf);
  let length = 0;
  for (const body of bodies) length = Buffer.byteLength(await post(service.url + VERIFY_PATH, HEADERS, body));
  const other = await startServerUnderTest("lib/bare-server.ts", [String(length)]);
  section(
    "Latency under load",
    "Calls arrive at random, at this share of what the server answers at most; time from due to answered, in ms.",
  );
  const rows: string[][] = [];
  const bars: Bar[] = [];
  for (const share of [0.5, 0.9]) {
    const servers = [
      { name: "bare node:http", url: other.url, bodies, perSecond: share * bare },
      { name: "latchkey", url: service.url, bodies, perSecond: share * latchkey },
    ];
    for (const { name, perSecond, loads } of await measureInTurn(servers)) {
      const label = `${name}, ${share * 100} %`;
      rows.push([label, Math.round(perSecond).toLocaleString("en"), ...latencies(loads)]);
      if (loads.length > 0) bars.push(bar(label, spread(loads.map(({ p99Ms }) => p99Ms))));
    }
  }
  table(["", "calls per second", "p50", "p99", "p99.9"], rows);
  chart("latency", barChart("p99 of a verification at a share of the capacity", "ms", bars, 2));
  await stopServers();
}

interface Loaded {
  name: string;
  url: string;
  bodies: readonly string[];
  perSecond: number;
}

/** Loads the servers in turn with calls that arrive at random. A window in which a server cannot keep up has no figures. */
async function measureInTurn(servers: readonly Loaded[]) {
  const callers = servers.map(({ url }) => new Callers(url));
  const measured = servers.map((server) => ({ ...server, loads: [] as CallerLoad[] }));
  try {
    for (let window = 0; window <= LATENCY_WINDOWS; window++) {
      for (const [i, { name, bodies, perSecond, loads }] of measured.entries()) {
        const calls: Calls = { path: VERIFY_PATH, headers: HEADERS, bodies, perSecond };
        const load = await callers[i]!.run(LATENCY_SECONDS, calls).then(successful, (error: Error) => {
          console.error(`  ${name} at ${Math.round(perSecond)} calls per second: ${error.message}`);
        });
        // The first window warms up.
        if (window > 0 && load !== undefined) loads.push(load);
      }
    }
  } finally {
    await Promise.all(callers.map((caller) => caller.close()));
  }
  return measured;
}

/** The medians of the windows in which a server kept up, if these are more than half. */
function latencies(loads: readonly CallerLoad[]): string[] {
  return (["medianMs", "p99Ms", "p999Ms"] as const).map((figure) =>
    loads.length <= LATENCY_WINDOWS / 2 ? "cannot keep up" : writeSpread(spread(loads.map((load) => load[figure])), 2),
  );
}

async function measureStarts(): Promise<void> {
  const data = join(folder, "start");
  // Also builds the bundle, and fills the caches of the file system.
  const first = await startLatchkey({ folder: data });
  const [key] = await createKeys(first.url, 1);
  await first.stop();
  const settings = { LATCHKEY_DATA_DIR: data, LATCHKEY_PORT: "0", LATCHKEY_DRAIN: "0" };
  const starts: MeasuredStart[] = [];
  for (let i = 0; i < STARTS; i++) starts.push(await measureStart(LATCHKEY, settings, key!, REST_SECONDS));
  const of = (figure: keyof MeasuredStart) => spread(starts.map((one) => one[figure]));
  section("Start", "From the start of the process on existing data until the first verified key; then 5 s at rest.");
  table(
    ["time, s", "CPU, s", "memory at rest, MiB (RSS)", "of its own (PSS)"],
    [[writeSpread(of("answered"), 2), writeSpread(of("cpu"), 2), writeSpread(of("rss")), writeSpread(of("pss"))]],
  );
}

async function measureMillion({ latchkey }: Capacities): Promise<void> {
  const data = join(folder, "million");
  const keys = await fillDatabase(data, MANY_KEYS);
  const settings = { DIRECTORY_BYTES };
  const many = await startLatchkey({ folder: data, settings });
  const atRest = (await many.residentBytes()) / MIB;
  await verifyAll(many.url, keys);
  const cached = (await many.residentBytes()) / MIB;
  const few = await startLatchkey({ folder: join(folder, "few"), settings });
  const fewKeys = await createKeys(few.url, KEYS);
  // As warm as the other one.
  for (let round = 0; round < WARM_UP_ROUNDS; round++) await verifyAll(few.url, fewKeys);
  // It writes uses and counts of a million keys in the background, on the core of both servers.
  await untilAtRest(many);
  const random = seededRandom(1);
  const sample = (of: readonly string[]) => Array.from({ length: 100_000 }, () => bodyOf(of[random.below(of.length)]!));
  const bodies = { few: sample(fewKeys), many: sample(keys) };
  const measured = [];
  for (const share of MILLION_SHARES) {
    const [ofFew, ofMany] = await measureInTurn([
      { name: `1,000 keys, ${share * 100} %`, url: few.url, bodies: bodies.few, perSecond: latchkey * share },
      { name: `1,000,000 keys, ${share * 100} %`, url: many.url, bodies: bodies.many, perSecond: latchkey * share },
    ]);
    measured.push(ofFew!, ofMany!);
  }
  section(
    "A million keys",
    `Keys at random, all cached (\`LATCHKEY_DIRECTORY_BYTES=${DIRECTORY_BYTES}\`), at a share of what the service answers at ` +
      "most with a thousand keys; ms. Counts and last uses of each key are written on the same core. " +
      `Memory: ${Math.round(atRest)} MiB after the start with a million keys, ${Math.round(cached)} MiB when all are cached.`,
  );
  table(
    ["", "calls per second", "p50", "p99", "p99.9"],
    measured.map(({ name, perSecond, loads }) => [
      name,
      Math.round(perSecond).toLocaleString("en"),
      ...latencies(loads),
    ]),
  );
  await stopServers();
}

/** Makes a data folder with this many keys, without the service. */
async function fillDatabase(data: string, count: number): Promise<string[]> {
  const store = await openBenchStore(data);
  try {
    const { workspaceId } = await store.transact("prepare", { now: systemClock.now(), rootKey: ROOT_KEY });
    const keys: string[] = [];
    while (keys.length < count) {
      const now = systemClock.now();
      const made = await store.transact("createKeys", {
        workspaceId,
        remaining: null,
        areUsed: true,
        now,
        count: KEYS_PER_TRANSACTION,
      });
      keys.push(...made.map(({ key }) => key));
    }
    return keys;
  } finally {
    await store.close();
  }
}

/** Verifies each key once. */
async function verifyAll(url: string, keys: readonly string[]): Promise<void> {
  const connection = await Pipeline.open(url, HEADERS);
  const rest = keys.values();
  const worker = async () => {
    for (const key of rest) {
      const status = await connection.post(VERIFY_PATH, bodyOf(key));
      if (status !== 200) throw new Error(`A verification was answered with ${status}`);
    }
  };
  await Promise.all(Array.from({ length: WARM_UP_CALLS_AT_ONCE }, worker));
  connection.close();
}

/** Waits until a server does almost nothing for a second, at most for `AT_REST_SECONDS_MAX`. */
async function untilAtRest(server: ServerUnderTest): Promise<void> {
  for (let second = 0; second < AT_REST_SECONDS_MAX; second++) {
    const before = await server.cpuMs();
    await setTimeout(1_000);
    if ((await server.cpuMs()) - before < AT_REST_CPU_MS) return;
  }
  console.error("  the server with a million keys was not at rest before its calls");
}

function bar(label: string, figure: Spread): Bar {
  return { label, figure, isOurs: label.startsWith("latchkey") };
}

function slug(title: string): string {
  return title.toLowerCase().replaceAll(" ", "-");
}

function section(title: string, text: string): void {
  write("", `## ${title}`, "", text, "");
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): void {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  write(line(head), `|${"---|".repeat(head.length)}`, ...rows.map(line));
}

function chart(name: string, svg: string): void {
  mkdirSync(charts, { recursive: true });
  writeFileSync(join(charts, `${name}.svg`), svg);
  write("", `![${name.replaceAll("-", " ")}](charts/${name}.svg)`);
}

function write(...lines: readonly string[]): void {
  report.push(...lines);
  console.log(lines.join("\n"));
}

/** The commit of this clone. */
function commit(): string {
  try {
    const git = (...args: string[]) =>
      execFileSync("git", args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
    return `\`${git("rev-parse", "--short", "HEAD").trim()}\``;
  } catch {
    return "an unknown commit";
  }
}
