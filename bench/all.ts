/**
 * Every figure that the README claims, on this machine: `npm run bench -- [--only capacity,latency,start,…] [--quick]`.
 *
 * Takes about 20 minutes, and writes `bench/RESULTS.md` and the charts in `bench/charts/`. Servers run on core 0 and the
 * load on core 1, in turn, in windows of a few seconds; figures are medians with minimum and maximum. Needs Linux, two
 * cores and wrk; nothing else should run. With `--quick`, each part runs once with few keys, to see that it works; nothing is written.
 *
 * - capacity: verifications and limits as fast as wrk can send them, beside bare `node:http` that answers as many bytes.
 * - latency: calls that arrive at random (Poisson) at 50 % and at 90 % of each server's own capacity. The latency of a call
 *   counts from the moment at which it was due, so waiting counts.
 * - start: from the start of the process until the first verified key, and memory at rest.
 * - million: the same service with 1,000,000 keys, all of them cached: latency beside a thousand keys, pauses for collections,
 *   memory.
 * - growth, counting, shared: the tables of `bench/growth.ts`, `bench/counting.ts` and `bench/shared.ts`.
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { systemClock } from "../engine/src/clock/system.ts";
import { seededRandom } from "../engine/src/random/seeded.ts";
import { openBenchStore } from "./lib/bench-store.ts";
import { type Bar, barChart } from "./lib/chart.ts";
import { pausesByKind } from "./lib/collections.ts";
import { type ComparedServer, compare } from "./lib/compare.ts";
import { createKeys, JSON_TYPE, LIMIT_PATH, limitBodies, post, ROOT_KEY, VERIFY_PATH } from "./lib/keys.ts";
import { latencyCells, measureInTurn, p99Of, p99RatioCell, whyNot } from "./lib/latency.ts";
import { describeMachine, requirePinning } from "./lib/machine.ts";
import { Pipeline } from "./lib/pipeline.ts";
import { publishResults } from "./lib/results.ts";
import {
  LATCHKEY,
  type ProcessUnderTest,
  type ServerUnderTest,
  startLatchkey,
  startServerUnderTest,
  stopServers,
} from "./lib/server-under-test.ts";
import { type MeasuredStart, measureStart } from "./lib/start.ts";
import { spread, writeSpread } from "./lib/statistics.ts";
import { markdownTable } from "./lib/tables.ts";
import { Wrk } from "./lib/wrk.ts";

const { values } = parseArgs({ options: { only: { type: "string" }, quick: { type: "boolean", default: false } } });

const KEYS = 1_000;
/** Memory for a million cached keys. */
const DIRECTORY_BYTES = "2g";
const KEYS_PER_TRANSACTION = 50_000;
const WARM_UP_CALLS_AT_ONCE = 64;
/** Shares of the capacity at which many keys are compared with a thousand. */
const SHARES_OF_MANY = [0.1, 0.5];
/** A server is at rest when it takes less than this in a second. */
const AT_REST_CPU_MS = 50;
const AT_REST_SECONDS_MAX = 120;
const REST_SECONDS = 5;
const full = {
  manyKeys: 1_000_000,
  /** Verifications of each of the few keys before they are measured. */
  warmUpRounds: 100,
  capacity: { rounds: 7, seconds: 2 },
  latency: { windows: 5, seconds: 4 },
  /** Enough windows for the ratio of two p99. */
  many: { windows: 10, seconds: 4 },
  starts: 5,
  programs: { growth: [] as string[], counting: ["--seconds", "60", "--rate", "10000"], shared: [] as string[] },
};
const quick: typeof full = {
  manyKeys: 20_000,
  warmUpRounds: 1,
  capacity: { rounds: 1, seconds: 1 },
  latency: { windows: 1, seconds: 1 },
  many: { windows: 1, seconds: 1 },
  starts: 1,
  programs: {
    growth: ["--keys", "20000", "--seconds", "2"],
    counting: ["--keys", "20000", "--rate", "5000", "--seconds", "5"],
    shared: ["--rounds", "1", "--seconds", "1", "--windows", "1"],
  },
};
const bounds = values.quick ? quick : full;
const MIB = 2 ** 20;

const HEADERS = { ...JSON_TYPE, Authorization: `Bearer ${ROOT_KEY}` };

const memoryNames = {
  records: "records, as `latchkey_directory_bytes` estimates them",
  inUse: "the event loop: its heap after a full collection, and what it has outside of it",
  resident: "the process: with other threads, and under load with what collectors keep for new objects",
};

const parts = {
  capacity: measureCapacity,
  latency: measureLatency,
  start: measureStarts,
  million: measureMillion,
  growth: () =>
    runProgram(
      "growth",
      "Import, first use and restart",
      "100,000 keys that are imported and then used at random; µs of CPU per key or call. After a restart a tenth of the keys gets " +
        "90 % of the calls.",
    ),
  counting: () =>
    runProgram(
      "counting",
      "Distinct keys counted",
      "Keys of which each is used once in some seconds, so that no count has two uses: recorder, spool, stores and last uses, as in " +
        "the service, without HTTP.",
    ),
  shared: () =>
    runProgram(
      "shared",
      "PostgreSQL and Redis",
      "The service on one core, the load, PostgreSQL and Redis on the other, beside the same service embedded. 1,000 keys with one limit, " +
        "or 1,000 identifiers, with a root key.",
    ),
};
type Part = keyof typeof parts;

const chosen = (values.only?.split(",") ?? Object.keys(parts)) as Part[];
const unknown = chosen.find((part) => !(part in parts));
if (unknown !== undefined) {
  console.error(`--only takes ${Object.keys(parts).join(", ")}, separated by commas, not ${unknown}.`);
  process.exit(1);
}
Wrk.require();
requirePinning();

/** A part alone is printed only. */
const publishes = values.only === undefined && !values.quick;
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
  if (publishes) publishResults(report);
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
  const flexible = await startServerUnderTest("lib/flexible-server.ts");
  const others = { latchkey, "rate-limiter-flexible": flexible };
  await compareAtCapacity("Rate limits", LIMIT_PATH, limitBodies(KEYS), others);
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
      ...bounds.capacity,
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
    const verify = { path: VERIFY_PATH, headers: HEADERS, bodies };
    const servers = [
      { name: "bare node:http", url: other.url, calls: { ...verify, perSecond: share * bare } },
      { name: "latchkey", url: service.url, calls: { ...verify, perSecond: share * latchkey } },
    ];
    for (const load of await measureInTurn(servers, bounds.latency)) {
      const label = `${load.name}, ${share * 100} %`;
      rows.push([label, ...latencyCells(load)]);
      bars.push(bar(label, p99Of(load) ?? whyNot(load)));
    }
  }
  table(["", "calls per second", "p50", "p99", "p99.9"], rows);
  chart("latency", barChart("p99 of a verification at a share of the capacity", "ms", bars, 2));
  await stopServers();
}

async function measureStarts(): Promise<void> {
  const data = join(folder, "start");
  // Also builds the bundle, and fills the caches of the file system.
  const first = await startLatchkey({ folder: data });
  const [key] = await createKeys(first.url, 1);
  await first.stop();
  const settings = { LATCHKEY_DATA_DIR: data, LATCHKEY_PORT: "0", LATCHKEY_DRAIN: "0" };
  const starts: MeasuredStart[] = [];
  for (let i = 0; i < bounds.starts; i++) starts.push(await measureStart(LATCHKEY, settings, key!, REST_SECONDS));
  const of = (figure: keyof MeasuredStart) => spread(starts.map((one) => one[figure]));
  section("Start", "From the start of the process on existing data until the first verified key; then 5 s at rest.");
  table(
    ["time, s", "CPU, s", "memory at rest, MiB (RSS)", "of its own (PSS)"],
    [[writeSpread(of("answered"), 2), writeSpread(of("cpu"), 2), writeSpread(of("rss")), writeSpread(of("pss"))]],
  );
}

async function measureMillion({ latchkey }: Capacities): Promise<void> {
  const data = join(folder, "million");
  const keys = await fillDatabase(data, bounds.manyKeys);
  const settings = { DIRECTORY_BYTES };
  const many = await startLatchkey({ folder: data, settings });
  const atRest = await memoryOf(many);
  await verifyAll(many.url, keys);
  const few = await startLatchkey({ folder: join(folder, "few"), settings });
  const fewKeys = await createKeys(few.url, KEYS);
  // As warm as the other one.
  for (let round = 0; round < bounds.warmUpRounds; round++) await verifyAll(few.url, fewKeys);
  // It writes uses and counts of a million keys in the background, on the core of both servers.
  await untilAtRest(many);
  const random = seededRandom(1);
  const sample = (of: readonly string[]) => Array.from({ length: 100_000 }, () => bodyOf(of[random.below(of.length)]!));
  const bodies = { few: sample(fewKeys), many: sample(keys) };
  section(
    "A million keys",
    `Keys at random, all cached (\`LATCHKEY_DIRECTORY_BYTES=${DIRECTORY_BYTES}\`), at a share of what the service answers at ` +
      "most with a thousand keys; ms. Counts and last uses of each key are written on the same core. Then the pauses of the event " +
      "loop for collections of garbage in these windows, by the clock; and the memory.",
  );
  const latency: string[][] = [];
  const pauses: string[][] = [];
  for (const share of SHARES_OF_MANY) {
    for (const server of [few, many]) await server.collections();
    const load = (url: string, of: readonly string[]) => ({
      url,
      calls: { path: VERIFY_PATH, headers: HEADERS, bodies: of, perSecond: latchkey * share },
    });
    const servers = [
      { name: `${written(KEYS)} keys, ${share * 100} %`, ...load(few.url, bodies.few) },
      { name: `${written(bounds.manyKeys)} keys, ${share * 100} %`, ...load(many.url, bodies.many) },
    ];
    const measured = await measureInTurn(servers, bounds.many);
    for (const of of measured) latency.push([of.name, ...latencyCells(of), p99RatioCell(of, measured[0]!)]);
    for (const [i, server] of [few, many].entries()) {
      for (const { name, count, ms, longest } of pausesByKind(await server.collections())) {
        pauses.push([`${measured[i]!.name}: ${name}`, String(count), ms.toFixed(0), longest.toFixed(1)]);
      }
    }
  }
  table(["", "calls per second", "p50", "p99", "p99.9", "p99 ÷ 1,000 keys"], latency);
  write("");
  table(["pauses of the event loop", "number", "ms in all", "the longest"], pauses);
  write("");
  const used = await many.residentBytes();
  await untilAtRest(many);
  const cached = await memoryOf(many);
  const memory = (["records", "inUse", "resident"] as const).map((figure) => [
    memoryNames[figure],
    written(atRest[figure] / MIB),
    figure === "resident" ? written(used / MIB) : "",
    written(cached[figure] / MIB),
    written((cached[figure] - atRest[figure]) / bounds.manyKeys),
  ]);
  table(["MiB with a million keys", "after the start", "under load", "without garbage", "bytes per key"], memory);
  await stopServers();
}

/** Bytes of a service. */
async function memoryOf(service: ProcessUnderTest): Promise<Record<keyof typeof memoryNames, number>> {
  const metrics = await (await fetch(`${service.url}/metrics`)).text();
  const estimates = metrics.matchAll(/^latchkey_directory_bytes\{.*\} (\S+)$/gm);
  // Which collects garbage, and gives its memory back.
  const inUse = await service.inUseBytes();
  return {
    records: [...estimates].reduce((sum, [, bytes]) => sum + Number(bytes), 0),
    resident: await service.residentBytes(),
    inUse,
  };
}

/** Runs another program of `bench/`; its tables become a section. */
async function runProgram(name: keyof typeof bounds.programs, title: string, text: string): Promise<void> {
  const child = spawn(process.execPath, [join(import.meta.dirname, `${name}.ts`), ...bounds.programs[name]], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exited = once(child, "exit");
  const lines: string[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    // An empty line separates two tables.
    if (line.startsWith("|") || (line === "" && lines.at(-1)?.startsWith("|"))) lines.push(line);
  }
  const [code] = await exited;
  if (code !== 0) throw new Error(`bench/${name}.ts ended with ${code}`);
  if (lines.at(-1) === "") lines.pop();
  section(title, `${text} \`npm run bench:${name}\`.`);
  write(...lines);
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
        count: Math.min(KEYS_PER_TRANSACTION, count - keys.length),
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

function bar(label: string, figure: Bar["figure"]): Bar {
  return { label, figure, isOurs: label.startsWith("latchkey") };
}

function written(figure: number): string {
  return Math.round(figure).toLocaleString("en");
}

function slug(title: string): string {
  return title.toLowerCase().replaceAll(" ", "-");
}

function section(title: string, text: string): void {
  write("", `## ${title}`, "", text, "");
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): void {
  write(...markdownTable(head, rows));
}

function chart(name: string, svg: string): void {
  if (publishes) {
    mkdirSync(charts, { recursive: true });
    writeFileSync(join(charts, `${name}.svg`), svg);
  }
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
