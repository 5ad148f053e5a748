/**
 * The same job done by what users would otherwise take: `npm run bench:peers -- [--rounds 5] [--seconds 2] [--only name,…]`.
 *
 * Rate limits: one call, one limit of an hour for each of 1,000 identifiers. Verifications: 1,000 keys. Each server runs on
 * core 0 and gets the same load from wrk on core 1, in turn. Before its speed is measured, each limiter has to admit
 * exactly 5 of 20 calls at a limit of 5, and each verifier to reject an unknown key. Peers are installed from package
 * registries into `node_modules/.cache/latchkey-peers`, which takes minutes once; those that cannot be had are named.
 *
 * Peers in other languages speak HTTP here, as Latchkey does; some are faster over gRPC or their own protocols.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { createKeys, JSON_TYPE, ROOT_KEY, VERIFY_PATH } from "./lib/keys.ts";
import { describeMachine, requirePinning } from "./lib/machine.ts";
import { wholeNumber } from "./lib/options.ts";
import { betterAuth, type LimitPeer, limitPeers, missingPeers, type PeerServer } from "./lib/peers.ts";
import { startLatchkey, startServerUnderTest } from "./lib/server-under-test.ts";
import { spread, writeSpread } from "./lib/statistics.ts";
import { Wrk } from "./lib/wrk.ts";

const IDENTIFIERS = 1_000;
const KEYS = 1_000;
const WARM_UP_SECONDS = 2;
/** A limit that no load reaches. */
const WIDE = 1_000_000_000;
const NARROW = 5;
const NARROW_CALLS = 20;
const HOUR_MS = 3_600_000;
const MIB = 2 ** 20;

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "5" },
    seconds: { type: "string", default: "2" },
    only: { type: "string" },
  },
});
const rounds = wholeNumber(values, "rounds", 1, 100);
const seconds = wholeNumber(values, "seconds", 1, 60);
const only = values.only?.split(",");

Wrk.require();
requirePinning();

/** A server that does the job, and the load that it gets. */
interface Contender {
  name: string;
  server: PeerServer;
  path: string;
  bodies: readonly string[];
}

/** The figures of one window: requests per second, µs of CPU per request, ms, MiB. */
interface Window {
  rate: number;
  cpu: number;
  p99: number;
  memory: number;
}

const packages = fileURLToPath(new URL("../node_modules/.cache/latchkey-peers", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "latchkey-bench-"));
/** For the service; the others ignore it. */
const headers = { ...JSON_TYPE, Authorization: `Bearer ${ROOT_KEY}` };
const running: PeerServer[] = [];
const absent = [...missingPeers];

/** The call that Latchkey and `rate-limiter-flexible` both answer here. */
const limitCall = {
  path: "/v2/ratelimits.limit",
  body: (identifier: string, limit: number) =>
    JSON.stringify({ namespace: "bench", identifier, limit, duration: HOUR_MS }),
  isAdmitted: (_: number, body: string): boolean => JSON.parse(body).data.success,
  get: async () => {},
};
const latchkeyLimits: LimitPeer = { ...limitCall, name: "latchkey", start: () => startLatchkey({ folder }) };
const flexibleLimits: LimitPeer = {
  ...limitCall,
  name: "rate-limiter-flexible",
  start: () => startServerUnderTest("lib/flexible-server.ts"),
};

mkdirSync(packages, { recursive: true });
console.log(`${describeMachine()}\n`);
try {
  await compareLimiters();
  await stopAll();
  await compareVerifiers();
  if (absent.length > 0) console.log(`Not measured:\n${absent.map((line) => `- ${line}`).join("\n")}`);
} finally {
  await stopAll();
  rmSync(folder, { recursive: true, force: true });
}

async function compareLimiters(): Promise<void> {
  const contenders: Contender[] = [];
  for (const peer of [latchkeyLimits, flexibleLimits, ...limitPeers]) {
    const server = await startIfPossible(peer, () => peer.start(packages, [NARROW, WIDE]));
    if (server === undefined) continue;
    await checkLimit(peer, server.url);
    const bodies = Array.from({ length: IDENTIFIERS }, (_, i) => peer.body(`user ${i}`, WIDE));
    contenders.push({ name: peer.name, server, path: peer.path, bodies });
  }
  await compareAll(`Rate limits, ${IDENTIFIERS.toLocaleString("en")} identifiers`, contenders);
}

async function compareVerifiers(): Promise<void> {
  const contenders: Contender[] = [];
  const add = (name: string, server: PeerServer, keys: readonly string[]) =>
    contenders.push({ name, server, path: VERIFY_PATH, bodies: keys.map(verification) });
  const latchkey = await startLatchkey({ folder });
  running.push(latchkey);
  add("latchkey", latchkey, await createKeys(latchkey.url, KEYS));
  let keys: readonly string[] = [];
  const other = await startIfPossible(betterAuth, async () => {
    const started = await betterAuth.start(packages, KEYS);
    keys = started.keys;
    return started.server;
  });
  if (other !== undefined) add(betterAuth.name, other, keys);
  for (const contender of contenders) await checkVerifier(contender);
  await compareAll(`Verifications, ${KEYS.toLocaleString("en")} keys`, contenders);
}

function verification(key: string): string {
  return JSON.stringify({ key });
}

/** Undefined for a peer that was not chosen or cannot be had. */
async function startIfPossible(
  { name, get }: Pick<LimitPeer, "name" | "get">,
  start: () => Promise<PeerServer>,
): Promise<PeerServer | undefined> {
  if (name !== "latchkey" && only !== undefined && !only.includes(name)) return undefined;
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

/** @throws unless exactly as many calls are admitted as the limit says. */
async function checkLimit({ name, path, body, isAdmitted }: LimitPeer, url: string): Promise<void> {
  let admitted = 0;
  for (let call = 0; call < NARROW_CALLS; call++) {
    const response = await fetch(url + path, { method: "POST", headers, body: body("one user", NARROW) });
    if (isAdmitted(response.status, await response.text())) admitted++;
  }
  if (admitted !== NARROW) throw new Error(`${name} admitted ${admitted} of ${NARROW_CALLS} calls, not ${NARROW}`);
}

/** @throws unless the verifier accepts its keys and rejects another. */
async function checkVerifier({ name, server, path, bodies }: Contender): Promise<void> {
  for (const [body, expected] of [
    ...bodies.map((one) => [one, true] as const),
    [verification("no key"), false] as const,
  ]) {
    const response = await fetch(server.url + path, { method: "POST", headers, body });
    const { data } = (await response.json()) as { data: { valid: boolean } };
    if (data.valid !== expected) throw new Error(`${name} answered ${JSON.stringify(data)}, not valid: ${expected}`);
  }
}

async function compareAll(title: string, contenders: readonly Contender[]): Promise<void> {
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
  console.log(`${title}: median (min–max)\n`);
  console.log(
    "| | requests per second | ÷ latchkey | CPU per request, µs | p99, ms | memory, MiB |\n|---|---|---|---|---|---|",
  );
  const own = measured[0]!.windows;
  for (const { name, windows } of measured) {
    const of = (figure: keyof Window) => spread(windows.map((window) => window[figure]));
    const ratio = spread(windows.map(({ rate }, round) => rate / own[round]!.rate));
    const cells = [
      writeSpread(of("rate")),
      writeSpread(ratio, 2),
      writeSpread(of("cpu"), 1),
      writeSpread(of("p99"), 1),
    ];
    console.log(`| ${[name, ...cells, writeSpread(of("memory"))].join(" | ")} |`);
  }
  console.log();
}

async function measure(server: PeerServer, wrk: Wrk): Promise<Window> {
  const before = await server.cpuMs();
  const load = await wrk.run(server.url, seconds);
  const used = (await server.cpuMs()) - before;
  return {
    rate: load.requests / load.seconds,
    cpu: (used * 1_000) / load.requests,
    p99: load.p99Ms,
    memory: (await server.residentBytes()) / MIB,
  };
}
