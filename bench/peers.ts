/**
 * The same job done by what users would otherwise take: `npm run bench:peers -- [--part limits,verifications] [--only name,…]
 * [--sizes 1000,100000] [--rounds 5] [--seconds 2] [--publish]`.
 *
 * Rate limits: one call, one limit of an hour for each identifier. Verifications: a key for each call in turn. Each server runs
 * on core 0 and gets the same load from core 1, in turn: as fast as wrk can send it, then calls that arrive at random (Poisson)
 * at half of that server's own rate, whose latency counts from the moment at which a call was due.
 *
 * Correctness comes first: each limiter has to admit exactly 5 of 20 calls in turn at a limit of 5, and 5 of 64 calls at once;
 * each verifier has to accept its keys and to reject an unknown one. One that does not is named and not measured. Peers are
 * installed from package registries into `node_modules/.cache/latchkey-peers`, which takes minutes once; those that cannot be
 * had are named. `--get` only installs them. `--publish` writes the sections of `bench/RESULTS.md`, each from one run.
 *
 * Peers in other languages speak HTTP here, as Latchkey does; some are faster over gRPC or their own protocols.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { createApi, importKeys, JSON_TYPE, LIMIT_PATH, newKeys, ROOT_KEY, VERIFY_PATH } from "./lib/keys.ts";
import { latencyCells, measureInTurn } from "./lib/latency.ts";
import { describeMachine, requirePinning } from "./lib/machine.ts";
import { wholeNumber } from "./lib/options.ts";
import { betterAuth, type LimitPeer, limitPeers, type PeerServer } from "./lib/peers.ts";
import { peerSections, publishSection } from "./lib/results.ts";
import { startLatchkey, startServerUnderTest } from "./lib/server-under-test.ts";
import { spread, writeSpread } from "./lib/statistics.ts";
import { markdownTable } from "./lib/tables.ts";
import { Wrk } from "./lib/wrk.ts";

const WARM_UP_SECONDS = 2;
/** A limit that no load reaches. */
const WIDE = 1_000_000_000;
const NARROW = 5;
const NARROW_CALLS = 20;
const CALLS_AT_ONCE = 64;
const CHECK_MS = 60_000;
const HOUR_MS = 3_600_000;
const MIB = 2 ** 20;
/** The share of its own rate at which the latency of a server is measured. */
const SHARE = 0.5;

const { values } = parseArgs({
  options: {
    part: { type: "string", default: "limits,verifications" },
    sizes: { type: "string", default: "1000,100000" },
    rounds: { type: "string", default: "5" },
    seconds: { type: "string", default: "2" },
    only: { type: "string" },
    get: { type: "boolean", default: false },
    publish: { type: "boolean", default: false },
  },
});
const rounds = wholeNumber(values as { rounds: string }, "rounds", 1, 100);
const seconds = wholeNumber(values as { seconds: string }, "seconds", 1, 60);
const sizes = values.sizes.split(",").map((size) => wholeNumber({ sizes: size }, "sizes", 1, 1_000_000));
const only = values.only?.split(",");
const parts = { limits: compareLimiters, verifications: compareVerifiers };
type Part = keyof typeof parts;
const chosen = values.part.split(",") as Part[];
const unknown = chosen.find((part) => !(part in parts));
if (unknown !== undefined) {
  console.error(`--part takes ${Object.keys(parts).join(" and ")}, not ${unknown}.`);
  process.exit(1);
}

Wrk.require();
requirePinning();

/** A server that does the job, and the calls that it gets. */
interface Contender {
  name: string;
  server: PeerServer;
  path: string;
  bodies: readonly string[];
}

/** The figures of one window: requests per second, µs of CPU per request, ms. */
interface Window {
  rate: number;
  cpu: number;
  p99: number;
}

const packages = fileURLToPath(new URL("../node_modules/.cache/latchkey-peers", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "latchkey-bench-"));
/** For the service; the others ignore it. */
const headers = { ...JSON_TYPE, Authorization: `Bearer ${ROOT_KEY}` };
const running: PeerServer[] = [];
const absent: string[] = [];

/** The call that Latchkey and `rate-limiter-flexible` both answer here. */
const limitCall = {
  path: LIMIT_PATH,
  body: (identifier: string, limit: number) =>
    JSON.stringify({ namespace: "bench", identifier, limit, duration: HOUR_MS }),
  isAdmitted: (_: number, body: string): boolean => JSON.parse(body).data.success,
  get: async () => {},
};
const latchkeyLimits: LimitPeer = {
  ...limitCall,
  name: "latchkey",
  start: () => startLatchkey({ folder: join(folder, "limits") }),
};
const flexibleLimits: LimitPeer = {
  ...limitCall,
  name: "rate-limiter-flexible",
  start: () => startServerUnderTest("lib/flexible-server.ts"),
};

mkdirSync(packages, { recursive: true });
try {
  if (values.get) await installAll();
  else for (const part of chosen) await run(part);
} finally {
  await stopAll();
  rmSync(folder, { recursive: true, force: true });
}

async function installAll(): Promise<void> {
  for (const { name, get } of [...limitPeers, betterAuth]) {
    if (!isChosen(name)) continue;
    const outcome = await get(packages).then(
      () => "installed",
      (error: Error) => `cannot be had: ${error.message}`,
    );
    console.log(`${name}: ${outcome}`);
  }
}

async function run(part: Part): Promise<void> {
  absent.length = 0;
  const lines = await parts[part]();
  await stopAll();
  if (absent.length > 0) lines.push("Not measured:", "", ...absent.map((line) => `- ${line}`), "");
  const measured = `Measured on ${new Date().toISOString().slice(0, 10)} with ${commit()}: ${describeMachine()}.`;
  const method =
    "All servers ran at the same time on one core and got the load in turn, from the other core. Medians of " +
    `${rounds} windows of ${seconds} s, with minimum and maximum in parentheses. Before, each admitted or accepted exactly what ` +
    "it should. `npm run bench:peers`.";
  const text = [measured, method, "", ...lines];
  console.log(`## ${peerSections[part]}\n\n${text.join("\n")}`);
  if (values.publish) publishSection(peerSections[part], text);
}

function commit(): string {
  return `\`${execFileSync("git", ["rev-parse", "--short", "HEAD"], { encoding: "utf8" }).trim()}\``;
}

async function compareLimiters(): Promise<string[]> {
  const started: { peer: LimitPeer; server: PeerServer }[] = [];
  for (const peer of [latchkeyLimits, flexibleLimits, ...limitPeers]) {
    const server = await startIfPossible(peer, () => peer.start(packages, [NARROW, WIDE]));
    if (server === undefined) continue;
    const fault = await faultOf(peer, server.url);
    if (fault === undefined) started.push({ peer, server });
    else absent.push(`${peer.name}: ${fault}`);
  }
  const lines: string[] = [];
  for (const size of sizes) {
    const contenders = started.map(({ peer, server }) => ({
      name: peer.name,
      server,
      path: peer.path,
      bodies: Array.from({ length: size }, (_, i) => peer.body(`user ${i}`, WIDE)),
    }));
    lines.push(...(await compareAll(`${size.toLocaleString("en")} identifiers`, contenders)));
  }
  return lines;
}

async function compareVerifiers(): Promise<string[]> {
  const latchkey = await startLatchkey({ folder: join(folder, "verifications") });
  running.push(latchkey);
  const most = Math.max(...sizes);
  const ours = newKeys(most);
  await importKeys(latchkey.url, await createApi(latchkey.url), ours);
  const contender = (name: string, server: PeerServer, keys: readonly string[]): Contender => ({
    name,
    server,
    path: VERIFY_PATH,
    bodies: keys.map(verification),
  });
  const lines: string[] = [];
  for (const size of sizes) {
    const contenders = [contender("latchkey", latchkey, ours.slice(0, size))];
    // With as many keys as it verifies: each verification takes longer with more.
    await startIfPossible(betterAuth, async () => {
      const { server, keys } = await betterAuth.start(packages, size);
      contenders.push(contender(betterAuth.name, server, keys));
      return server;
    });
    for (const one of contenders) await checkVerifier(one);
    lines.push(...(await compareAll(`${size.toLocaleString("en")} keys`, contenders)));
  }
  return lines;
}

function verification(key: string): string {
  return JSON.stringify({ key });
}

function isChosen(name: string): boolean {
  return name === "latchkey" || only === undefined || only.includes(name);
}

/** Undefined for a peer that was not chosen or cannot be had. */
async function startIfPossible(
  { name, get }: Pick<LimitPeer, "name" | "get">,
  start: () => Promise<PeerServer>,
): Promise<PeerServer | undefined> {
  if (!isChosen(name)) return undefined;
  try {
    await get(packages);
    const server = await start();
    running.push(server);
    return server;
  } catch (error) {
    absent.push(`${name}: ${(error as Error).message}`);
    return undefined;
  }
}

async function stopAll(): Promise<void> {
  await Promise.all(running.splice(0).map((server) => server.stop()));
}

/** What a limiter does wrong: it admits more or fewer calls than the limit says, one after the other or at once. */
async function faultOf({ path, body, isAdmitted }: LimitPeer, url: string): Promise<string | undefined> {
  const isOneAdmitted = async (identifier: string) => {
    const response = await fetch(url + path, { method: "POST", headers, body: body(identifier, NARROW) });
    return isAdmitted(response.status, await response.text());
  };
  const inTurn: boolean[] = [];
  while (inTurn.length < NARROW_CALLS) inTurn.push(await isOneAdmitted("one user"));
  const atOnce = await Promise.all(Array.from({ length: CALLS_AT_ONCE }, () => isOneAdmitted("another user")));
  for (const [admitted, how] of [[inTurn, "calls in turn"] as const, [atOnce, "calls at once"] as const]) {
    const count = admitted.filter(Boolean).length;
    if (count !== NARROW) return `it admitted ${count} of ${admitted.length} ${how} at a limit of ${NARROW}`;
  }
  return undefined;
}

/** @throws unless the verifier accepts its keys, as many as it can verify in a minute, and rejects another. */
async function checkVerifier({ name, server, path, bodies }: Contender): Promise<void> {
  const rest = bodies.values();
  const check = async (body: string, expected: boolean) => {
    const response = await fetch(server.url + path, { method: "POST", headers, body });
    const { data } = (await response.json()) as { data: { valid: boolean } };
    if (data.valid !== expected) throw new Error(`${name} answered ${JSON.stringify(data)}, not valid: ${expected}`);
  };
  const until = performance.now() + CHECK_MS;
  const worker = async () => {
    for (const body of rest) {
      await check(body, true);
      if (performance.now() > until) return;
    }
  };
  await Promise.all(Array.from({ length: CALLS_AT_ONCE }, worker));
  await check(verification("no key"), false);
}

/** The lines of a table of the servers with these calls. */
async function compareAll(title: string, contenders: readonly Contender[]): Promise<string[]> {
  console.error(`${title}: ${contenders.map(({ name }) => name).join(", ")}`);
  const measured = contenders.map((contender) => ({
    ...contender,
    wrk: new Wrk({ path: contender.path, headers, bodies: contender.bodies }),
    windows: [] as Window[],
  }));
  try {
    for (const { server, wrk } of measured) await wrk.run(server.url, WARM_UP_SECONDS);
    for (let round = 0; round < rounds; round++) {
      for (const { server, wrk, windows } of measured) windows.push(await measure(server, wrk));
    }
  } finally {
    for (const { wrk } of measured) wrk.close();
  }
  const own = measured[0]!.windows;
  const rateOf = (windows: readonly Window[]) => spread(windows.map(({ rate }) => rate));
  const loaded = await measureInTurn(
    measured.map(({ name, server, path, bodies, windows }) => ({
      name,
      url: server.url,
      calls: { path, headers, bodies, perSecond: SHARE * rateOf(windows).median },
    })),
    { windows: rounds, seconds },
  );
  const rows: string[][] = [];
  for (const [i, { name, server, windows }] of measured.entries()) {
    const of = (figure: keyof Window) => spread(windows.map((window) => window[figure]));
    const ratio = spread(windows.map(({ rate }, round) => rate / own[round]!.rate));
    const [perSecond, p50, p99] = latencyCells(loaded[i]!);
    rows.push([
      name,
      writeSpread(rateOf(windows)),
      writeSpread(ratio, ratio.median < 0.1 ? 4 : 2),
      writeSpread(of("cpu"), 1),
      writeSpread(of("p99"), 1),
      `${p50}, ${p99} at ${perSecond}/s`,
      String(Math.round((await server.residentBytes()) / MIB)),
    ]);
  }
  const head = ["requests per second", "÷ latchkey", "CPU per request, µs", "p99, ms", "p50, p99 at half the rate, ms"];
  return [...markdownTable([title, ...head, "memory, MiB"], rows), ""];
}

async function measure(server: PeerServer, wrk: Wrk): Promise<Window> {
  const before = await server.cpuMs();
  const load = await wrk.run(server.url, seconds);
  const used = (await server.cpuMs()) - before;
  return {
    rate: load.requests / load.seconds,
    cpu: (used * 1_000) / load.requests,
    p99: load.p99Ms,
  };
}
