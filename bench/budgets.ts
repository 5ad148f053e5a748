/**
 * Holds, and shared budgets on several nodes: `npm run bench:budgets -- [--only pairs|nodes] [--rounds 3] [--seconds 6]
 * [--own-cores] [--postgres postgres://…]`.
 *
 * Pairs of a hold and its settlement over HTTP, with one budget over 10,000 keys and with one for each key, on the embedded
 * database and on PostgreSQL, in turn with paying verifications of the same keys. It fails if there are less than 0.4 pairs for
 * each verification.
 *
 * Verifications over HTTP of keys that share 100 budgets, by one node, by three, and by three of which each has budgets of its
 * own, which shows what the sharing costs; in turn, and with as many open calls in all.
 * Every node is a process; all have core 0, so that three have no more CPU than one, and their load and PostgreSQL have core
 * 1. With `--own-cores`, which needs eight of them, each node and each load has a core, and PostgreSQL and Redis have the
 * others. It fails if three nodes together answer less than 0.8 of what one does, if a call has no successful answer, or if the
 * p99 of three exceeds 250 ms. Needs Linux, two cores and wrk, and a machine without other work: the load beside it is
 * printed.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { systemClock } from "../engine/src/clock/system.ts";
import { parseExposition } from "../server/test/prometheus.ts";
import { freshDatabase, startPostgres } from "../server/test/services/postgres.ts";
import { startRedis } from "../server/test/services/redis.ts";
import { type CreatedKey, openBenchStore } from "./lib/bench-store.ts";
import { compareHoldPairs } from "./lib/hold-pairs.ts";
import { JSON_TYPE, post, ROOT_KEY, VERIFY_PATH, verifyEach } from "./lib/keys.ts";
import { describeMachine, requirePinning } from "./lib/machine.ts";
import { wholeNumber } from "./lib/options.ts";
import { type ServerUnderTest, startLatchkey, stopServers } from "./lib/server-under-test.ts";
import { spread, writeSpread } from "./lib/statistics.ts";
import { type Load, Wrk } from "./lib/wrk.ts";

const ROOTS = 100;
const KEYS = 1_000;
const NODES = 3;
/** Open calls in all. */
const CONNECTIONS = 255;
/** More than a run spends. */
const CREDITS = 1e12;
const WARM_UP_SECONDS = 2;
const SERVERS_CORE = 1;
/** Where each node and each load has a core. */
const OWN_CORES = { nodes: [0, 2, 3], loads: [1, 4, 5], servers: 6, least: 8 };
const RATIO_MIN = 0.8;
/** Pairs of a hold and its settlement for each paying verification. */
const PAIRS_MIN = 0.4;
/** Budgets of the keys of these pairs, where they do not share one. */
const PAIR_BUDGETS = 10_000;
const P99_MAX_MS = 250;

/** What was measured at the same time. */
interface Window {
  loads: Load[];
  callsPerCommit: number;
}

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "3" },
    seconds: { type: "string", default: "6" },
    postgres: { type: "string" },
    only: { type: "string" },
    "own-cores": { type: "boolean", default: false },
  },
});
if (!["pairs", "nodes", undefined].includes(values.only)) {
  console.error(`--only is pairs or nodes, not ${values.only}.`);
  process.exit(1);
}
const rounds = wholeNumber({ rounds: values.rounds }, "rounds", 1, 100);
const seconds = wholeNumber({ seconds: values.seconds }, "seconds", 1, 60);
const cores = values["own-cores"] ? OWN_CORES : undefined;
if (cores !== undefined && availableParallelism() < cores.least) {
  console.error(`--own-cores needs ${cores.least} cores.`);
  process.exit(1);
}
Wrk.require();
requirePinning();

console.log(`${describeMachine()}, load ${loadavg()[0]!.toFixed(1)} before\n`);
// PostgreSQL inherits the cores.
const serversCores = cores === undefined ? String(SERVERS_CORE) : `${cores.servers}-${availableParallelism() - 1}`;
execFileSync("taskset", ["--all-tasks", "--cpu-list", "--pid", serversCores, String(process.pid)], {
  stdio: "ignore",
});
const folder = mkdtempSync(join(tmpdir(), "latchkey-bench-"));
const ownPostgres = values.postgres === undefined ? await startPostgres() : undefined;
process.env.LATCHKEY_TEST_POSTGRES_URL = values.postgres ?? ownPostgres!.url;
if (values.only !== "nodes" && !(await comparePairs())) process.exitCode = 1;
const database = await freshDatabase();
// Nodes need it to count limits together. These calls have none.
const redis = await startRedis();
const generators: Wrk[] = [];
try {
  if (values.only !== "pairs" && !(await compareNodes())) process.exitCode = 1;
} finally {
  for (const generator of generators) generator.close();
  await stopServers();
  await database.drop();
  await Promise.all([redis.stop(), ownPostgres?.stop()]);
  rmSync(folder, { recursive: true, force: true });
}

/** Measures pairs of a hold and its settlement. Returns whether every target is reached. */
async function comparePairs(): Promise<boolean> {
  let isReached = true;
  for (const isEmbedded of [true, false]) {
    for (const budgets of [1, PAIR_BUDGETS]) {
      const own = isEmbedded ? undefined : await freshDatabase();
      const dataFolder = join(folder, `${isEmbedded ? "sqlite" : "postgres"}-${budgets}`);
      const ratio = await compareHoldPairs({ folder: dataFolder, url: own?.url, budgets, rounds, seconds });
      await own?.drop();
      if (ratio < PAIRS_MIN) isReached = false;
    }
  }
  console.log(`${isReached ? "reached" : "NOT reached"}: at least ${PAIRS_MIN} pairs for each verification\n`);
  return isReached;
}

/** Starts the nodes and compares them. Returns whether every target is reached. */
async function compareNodes(): Promise<boolean> {
  const keys = await prepare();
  const nodes: ServerUnderTest[] = [];
  const settings = { DATABASE_URL: database.url, REDIS_URL: redis.url };
  for (let i = 0; i < NODES; i++) {
    nodes.push(await startLatchkey({ folder: join(folder, String(i)), settings, core: cores?.nodes[i] }));
    await verifyEach(nodes[i]!.url, keys);
  }
  return compare(nodes, keys);
}

/** Creates the budgets, and keys without credits of their own that share them. */
async function prepare(): Promise<CreatedKey[]> {
  const store = await openBenchStore(join(folder, "store"), database.url);
  const now = systemClock.now();
  const { workspaceId } = await store.transact("prepare", { now, rootKey: ROOT_KEY });
  const budgetIds = await store.transact("createBudgets", { workspaceId, count: ROOTS, remaining: CREDITS, now });
  const keys = await store.transact("createKeys", { workspaceId, count: KEYS, remaining: null, budgetIds, now });
  await store.close();
  return keys;
}

/** Measures one node and all of them in turn. Returns whether every target is reached. */
async function compare(nodes: readonly ServerUnderTest[], keys: readonly CreatedKey[]): Promise<boolean> {
  const loadOf = (connections: number, some: readonly CreatedKey[], node = 0) => {
    const bodies = some.map(({ key }) => JSON.stringify({ key }));
    const generator = new Wrk({ path: VERIFY_PATH, headers: JSON_TYPE, bodies }, connections, cores?.loads[node]);
    generators.push(generator);
    return generator;
  };
  const whole = loadOf(CONNECTIONS, keys);
  const shared = nodes.map((_, node) => loadOf(CONNECTIONS / NODES, keys, node));
  const apart = nodes.map((_, node) =>
    loadOf(
      CONNECTIONS / NODES,
      keys.filter((_, i) => (i % ROOTS) % NODES === node),
      node,
    ),
  );
  const kinds = {
    one: async (length: number) => [await whole.measure(nodes[0]!.url, length)],
    all: (length: number) => Promise.all(nodes.map(({ url }, i) => shared[i]!.measure(url, length))),
    apart: (length: number) => Promise.all(nodes.map(({ url }, i) => apart[i]!.measure(url, length))),
  };
  for (const measure of Object.values(kinds)) await measure(WARM_UP_SECONDS);
  const measured: Record<keyof typeof kinds, Window[]> = { one: [], all: [], apart: [] };
  const beside: number[] = [];
  for (let i = 0; i < rounds; i++) {
    for (const kind of ["one", "all", "apart"] as const) {
      const before = await ledgersOf(nodes);
      const loads = await kinds[kind](seconds);
      const after = await ledgersOf(nodes);
      measured[kind].push({ loads, callsPerCommit: (after.calls - before.calls) / (after.batches - before.batches) });
    }
    beside.push(loadavg()[0]!);
  }
  report("one node", measured.one);
  report(`${NODES} nodes`, measured.all);
  report(`${NODES} nodes, budgets apart`, measured.apart);
  const ratioTo = (kind: keyof typeof kinds) =>
    spread(measured.all.map((window, i) => rateOf(window) / rateOf(measured[kind][i]!)));
  const ratio = ratioTo("one");
  const loads = Object.values(measured).flatMap((windows) => windows.flatMap((window) => window.loads));
  const rejected = loads.reduce((sum, load) => sum + load.rejected, 0);
  const p99 = spread(measured.all.map(p99Of)).median;
  console.log(
    `\n${NODES} nodes ÷ one: ${writeSpread(ratio, 2)}; ÷ budgets apart: ${writeSpread(ratioTo("apart"), 2)}; ` +
      `at a load of ${writeSpread(spread(beside), 1)}`,
  );
  const answered = loads.reduce((sum, load) => sum + load.requests - load.rejected, 0);
  const spent = await spentIn(nodes[0]!);
  if (spent < answered) throw new Error(`${spent} credits were spent by more than ${answered} verifications`);
  const targets = {
    [`together at least ${RATIO_MIN} of one node`]: ratio.median >= RATIO_MIN,
    [`every call has a successful answer (${rejected} have none)`]: rejected === 0,
    [`p99 at most ${P99_MAX_MS} ms`]: p99 <= P99_MAX_MS,
  };
  for (const [target, isReached] of Object.entries(targets)) {
    console.log(`${isReached ? "reached" : "NOT reached"}: ${target}`);
  }
  return Object.values(targets).every(Boolean);
}

/** What was spent of all budgets. */
async function spentIn({ url }: ServerUnderTest): Promise<number> {
  const headers = { ...JSON_TYPE, Authorization: `Bearer ${ROOT_KEY}` };
  const { data } = JSON.parse(await post(`${url}/v2/budgets.listBudgets`, headers, JSON.stringify({ limit: ROOTS })));
  return data.reduce((sum: number, { totals }: { totals: { spent: number } }) => sum + totals.spent, 0);
}

/** Committed batches of the ledgers of all nodes, and their calls. */
async function ledgersOf(nodes: readonly ServerUnderTest[]): Promise<{ batches: number; calls: number }> {
  const sums = { batches: 0, calls: 0 };
  for (const { url } of nodes) {
    const exposed = parseExposition(await (await fetch(`${url}/metrics`)).text());
    sums.batches += exposed.value("latchkey_ledger_batches_total");
    sums.calls += exposed.value("latchkey_ledger_calls_total");
  }
  return sums;
}

function report(label: string, windows: readonly Window[]): void {
  const rate = writeSpread(spread(windows.map(rateOf)));
  const p99 = writeSpread(spread(windows.map(p99Of)));
  const together = writeSpread(spread(windows.map(({ callsPerCommit }) => callsPerCommit)));
  console.log(`${label.padEnd(24)}${rate} verifications/s, p99 ${p99} ms, ${together} to a commit`);
}

function rateOf({ loads }: Window): number {
  return loads.reduce((sum, { requests, rejected, seconds }) => sum + (requests - rejected) / seconds, 0);
}

/** That of the slowest node. */
function p99Of({ loads }: Window): number {
  return Math.max(...loads.map(({ p99Ms }) => p99Ms));
}
