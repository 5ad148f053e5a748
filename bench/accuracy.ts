/**
 * Checks that limits hold on several nodes, and that budgets add up: `npm run accuracy -- [--only limits|budgets|holds] [--steps
 * 200000] [--seed <number>] [--store sqlite|postgres]`. It fails if a bound is broken. Limits take about three minutes, budgets
 * at least ten for each database, and holds at least two on the embedded one and ten on PostgreSQL. `--store`: budgets and holds
 * on this database only.
 *
 * Limits: real services share one PostgreSQL and one Redis, both started for the run. For every case of a grid (number of
 * nodes, limit, window, load) clients call `ratelimits.limit` over HTTP in bursts, each call at a random node, for
 * several windows. Two bounds hold for each case:
 *
 * - Upper bound, 1.00: at no time has a window admitted more than the limit minus the weighted count of the previous
 *   window. An answer that has arrived was decided before, so this needs no estimate.
 * - Lower bound, 0.98: of what the algorithm admits for the same calls, each taken at the middle between request and
 *   answer, or one call less where that is more than 2 %.
 *
 * Amounts are compared, not calls: calls at large limits cost more than 1, so that two cores can run the grid.
 *
 * Then bursts with default settings on a machine that is saturated by other work: three services that have just started
 * get 1,000 calls at once at a new limit of 100, several times. None may admit more than 100; calls that get 503 are
 * printed.
 *
 * Budgets: random calls on the embedded database and on PostgreSQL, as many steps on each, compared with a model after each
 * step (`server/test/credits/budget-model.ts`).
 *
 * Holds: the same with a ledger that holds, settles and lets expire (`server/test/credits/hold-model.ts`).
 */
import { Agent, request } from "node:http";
import { setTimeout } from "node:timers/promises";
import { parseArgs } from "node:util";
import { systemClock } from "../engine/src/clock/system.ts";
import { seededRandom } from "../engine/src/random/seeded.ts";
import { decide, unused } from "../engine/src/rules/window.ts";
import { burst, saturate } from "../server/test/burst.ts";
import { compareBudgets } from "../server/test/credits/budget-model.ts";
import { compareHolds } from "../server/test/credits/hold-model.ts";
import { openTestServer, stores, type TestServer } from "../server/test/harness.ts";
import { makeFolder, ROOT_KEY, type Server, start } from "../server/test/process.ts";
import { parseExposition } from "../server/test/prometheus.ts";
import { startPostgres } from "../server/test/services/postgres.ts";
import { startRedis } from "../server/test/services/redis.ts";
import { describeMachine } from "./lib/machine.ts";
import { wholeNumber } from "./lib/options.ts";

const NODES = [1, 3, 5, 9];
const LOADS = [0.9, 1, 1.5, 3];
/** Limits with what a call costs. */
const LIMITS = [
  { limit: 10, cost: 1 },
  { limit: 100, cost: 1 },
  { limit: 1_000, cost: 2 },
  { limit: 10_000, cost: 20 },
];
/** Windows in ms, and the length of a case in windows: more for small limits, where a single call weighs more. */
const WINDOWS = [
  { duration: 1_000, count: 6, countSmall: 20 },
  { duration: 5_000, count: 4, countSmall: 10 },
  { duration: 30_000, count: 2.2, countSmall: 2.2 },
];
/** Calls per second of all cases that run at the same time. */
const RATE_MAX = 2_500;
/** Average time between bursts. */
const TICK_MS = 10;
/**
 * Open calls at which further ones are skipped: the time of a decision is known better the sooner its answer arrives.
 */
const UNANSWERED_MAX = 128;
const LOWER = 0.98;
/** Rounds of bursts: one on services that have just started, and another on the same services. */
const BURSTS = 5;
const BURST = { limit: 100, calls: 1_000 };

interface Case {
  id: string;
  nodes: number;
  limit: number;
  cost: number;
  duration: number;
  load: number;
  /** Calls per second. */
  rate: number;
  /** Milliseconds. */
  length: number;
}

interface Call {
  sentAt: number;
  answeredAt: number;
  isAdmitted: boolean;
  reset: number;
}

interface Outcome {
  calls: number;
  /** Amount admitted, and the amount that the algorithm admits for the same calls. */
  admitted: number;
  expected: number;
  /** The highest ratio, at any time, of the amount admitted in a window to the upper bound. */
  peak: number;
  isHeld: boolean;
}

const { values } = parseArgs({
  options: {
    only: { type: "string" },
    store: { type: "string" },
    steps: { type: "string", default: "200000" },
    seed: { type: "string", default: String(Math.floor(Math.random() * 1_000_000)) },
  },
});
const parts = ["limits", "budgets", "holds"];
if (values.only !== undefined && !parts.includes(values.only)) throw new Error(`--only is one of ${parts.join(", ")}`);
const compared = stores.filter((store) => (values.store ?? store) === store);
if (compared.length === 0) throw new Error(`--store is one of ${stores.join(", ")}`);
const isRun = (part: string) => (values.only ?? part) === part;
const steps = wholeNumber(values, "steps", 1, 100_000_000);
const seed = wholeNumber(values, "seed", 0, Number.MAX_SAFE_INTEGER / 2);
const random = seededRandom(1);
/** Open calls, and calls that were skipped because too many were open. */
let unanswered = 0;
let skipped = 0;
const cleanups: (() => unknown)[] = [];
try {
  const areLimitsHeld = !isRun("limits") || (await run());
  if (isRun("budgets")) {
    await compareOnStores("budgets", async (server, options) => {
      const { passed, refused } = await compareBudgets(server, options);
      return `${passed.toLocaleString("en")} verifications passed, ${refused.toLocaleString("en")} were refused`;
    });
  }
  if (isRun("holds")) {
    await compareOnStores("holds", async (server, options) => {
      const { holds } = await compareHolds(server, options);
      return `${holds.toLocaleString("en")} holds were made`;
    });
  }
  process.exitCode = areLimitsHeld ? 0 : 1;
} finally {
  for (const step of cleanups.reverse()) await step();
}

async function run(): Promise<boolean> {
  const begin = systemClock.monotonic();
  const [postgres, redis] = await Promise.all([startPostgres(), startRedis()]);
  cleanups.push(() => Promise.all([postgres.stop(), redis.stop()]));
  const nodes: Server[] = [];
  for (let i = 0; i < Math.max(...NODES); i++) {
    const directory = makeFolder({ after: (step) => cleanups.push(step) });
    // The bounds hold while Redis answers; this machine may be slow to read the answers.
    const settings = { DATABASE_URL: postgres.url, REDIS_URL: redis.url, REDIS_TIMEOUT: "10s" };
    nodes.push(await start({ directory, settings }));
  }
  // The first use creates the namespace.
  for (const node of nodes) {
    await node.ok("ratelimits.limit", {
      namespace: "accuracy",
      identifier: "warm",
      limit: 1,
      duration: 1_000,
      cost: 0,
    });
  }
  const cases = makeCases();
  console.log(`${describeMachine()}; ${cases.length} cases, at most ${RATE_MAX.toLocaleString("en")} calls a second\n`);
  const outcomes = await runAll(cases, nodes);
  for (const node of nodes) {
    const exposed = parseExposition(await (await fetch(`${node.address}/metrics`)).text());
    if (exposed.value("latchkey_redis_outages_total") > 0)
      throw new Error("Redis had an outage during the run: the result is invalid");
  }
  print(cases, outcomes);
  const all = [...outcomes.values()];
  const broken = all.filter(({ isHeld }) => !isHeld).length;
  const calls = all.reduce((sum, outcome) => sum + outcome.calls, 0);
  const seconds = Math.round((systemClock.monotonic() - begin) / 1_000);
  const left = skipped === 0 ? "" : `, ${skipped.toLocaleString("en")} skipped because this machine was busy`;
  console.log(`${calls.toLocaleString("en")} calls in ${seconds} s${left}`);
  console.log(broken === 0 ? "every bound held" : `${broken} of ${cases.length} cases broke a bound (marked !)`);
  for (const node of nodes) await node.kill("SIGTERM");
  const areBurstsHeld = await runBursts(postgres.url, redis.url);
  return broken === 0 && areBurstsHeld;
}

interface Comparison {
  steps: number;
  seed: number;
  onRound(made: number): void;
}

/** Throws at the first step after which a balance differs from the model. `compare` says how much it did. */
async function compareOnStores(
  what: string,
  compare: (server: TestServer, options: Comparison) => Promise<string>,
): Promise<void> {
  console.log(`\n${describeMachine()}; ${steps.toLocaleString("en")} steps with ${what}, seed ${seed}`);
  const postgres = await startPostgres();
  process.env.LATCHKEY_TEST_POSTGRES_URL = postgres.url;
  // The threads of the embedded database keep no process alive, also while it is being closed.
  const alive = setInterval(() => {}, 60_000);
  try {
    for (const store of compared) {
      const begin = systemClock.monotonic();
      const server = await openTestServer({ store });
      try {
        const onRound = (made: number) => {
          if (process.stderr.isTTY) process.stderr.write(`\r${store}: ${made.toLocaleString("en")} steps`);
        };
        const counts = await compare(server, { steps, seed, onRound });
        const seconds = Math.round((systemClock.monotonic() - begin) / 1_000);
        console.log(`${store}: every balance was as expected after each step in ${seconds} s; ${counts}`);
      } finally {
        await server.close();
      }
    }
  } finally {
    clearInterval(alive);
    await postgres.stop();
  }
}

async function runBursts(databaseUrl: string, redisUrl: string): Promise<boolean> {
  console.log(`\n${BURST.calls} calls at once at three nodes and a fresh limit of ${BURST.limit}, machine saturated`);
  let isHeld = true;
  for (let i = 0; i < BURSTS; i++) {
    const nodes: Server[] = [];
    for (let node = 0; node < 3; node++) {
      const directory = makeFolder({ after: (step) => cleanups.push(step) });
      nodes.push(await start({ directory, settings: { DATABASE_URL: databaseUrl, REDIS_URL: redisUrl } }));
    }
    for (const kind of ["cold", "warm"]) {
      const load = saturate();
      const begin = systemClock.monotonic();
      const tally = await burst(nodes, { identifier: `${kind} ${i}`, ...BURST }).finally(() => load.end());
      const admitted = tally.get("admitted") ?? 0;
      if (admitted > BURST.limit) isHeld = false;
      const outcomes = [...tally].map(([outcome, count]) => `${outcome} ${count}`).join(", ");
      const ms = Math.round(systemClock.monotonic() - begin);
      console.log(`${kind}: ${(admitted / BURST.limit).toFixed(2)} of the limit in ${ms} ms (${outcomes})`);
    }
    for (const node of nodes) await node.kill("SIGTERM");
  }
  return isHeld;
}

function makeCases(): Case[] {
  const cases: Case[] = [];
  for (const { duration, count, countSmall } of WINDOWS) {
    for (const nodes of NODES) {
      for (const { limit, cost } of LIMITS) {
        for (const load of LOADS) {
          const length = duration * (limit <= 100 ? countSmall : count);
          const rate = (load * limit * 1_000) / (cost * duration);
          cases.push({ id: `case ${cases.length}`, nodes, limit, cost, duration, load, rate, length });
        }
      }
    }
  }
  return cases;
}

/** Runs as many cases at the same time as the rate allows, the longest first. */
async function runAll(cases: readonly Case[], nodes: readonly Server[]): Promise<Map<Case, Outcome>> {
  const outcomes = new Map<Case, Outcome>();
  const waiting = cases.toSorted((a, b) => b.length - a.length || b.rate - a.rate);
  const agents = nodes.map(() => new Agent({ keepAlive: true }));
  const running = new Set<Promise<void>>();
  let rate = 0;
  while (waiting.length > 0 || running.size > 0) {
    const at = waiting.findIndex((next) => running.size === 0 || rate + next.rate <= RATE_MAX);
    if (at === -1) {
      await Promise.race(running);
      continue;
    }
    const [next] = waiting.splice(at, 1) as [Case];
    rate += next.rate;
    const task = runOne(next, nodes, agents).then((calls) => {
      outcomes.set(next, evaluate(next, calls));
      running.delete(task);
      rate -= next.rate;
    });
    running.add(task);
  }
  for (const agent of agents) agent.destroy();
  return outcomes;
}

/** Sends calls on time, without waiting for earlier answers. */
async function runOne(one: Case, nodes: readonly Server[], agents: readonly Agent[]): Promise<Call[]> {
  const { id: identifier, limit, cost, duration } = one;
  const body = JSON.stringify({ namespace: "accuracy", identifier, limit, duration, cost });
  const calls: Promise<Call>[] = [];
  const begin = systemClock.monotonic();
  let due = 1;
  let last = 0;
  for (;;) {
    const passed = systemClock.monotonic() - begin;
    if (passed >= one.length) break;
    due += ((passed - last) * one.rate) / 1_000;
    last = passed;
    for (; due >= 1; due--) {
      if (unanswered >= UNANSWERED_MAX) {
        skipped += Math.floor(due);
        due %= 1;
        break;
      }
      const node = random.below(one.nodes);
      calls.push(limitOnce(nodes[node]!.address, agents[node]!, body));
    }
    await setTimeout(1 + random.below(2 * TICK_MS - 1));
  }
  return Promise.all(calls);
}

function limitOnce(address: string, agent: Agent, body: string): Promise<Call> {
  const headers = {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(body),
    authorization: `Bearer ${ROOT_KEY}`,
  };
  const sentAt = systemClock.now();
  unanswered++;
  return new Promise((resolve, reject) => {
    const call = request(`${address}/v2/ratelimits.limit`, { method: "POST", agent, headers }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => {
        text += chunk;
      });
      response.on("end", () => {
        if (response.statusCode !== 200) return reject(new Error(`${response.statusCode} ${text}`));
        unanswered--;
        const { success, reset } = JSON.parse(text).data;
        resolve({ sentAt, answeredAt: systemClock.now(), isAdmitted: success, reset });
      });
    });
    call.on("error", reject);
    call.end(body);
  });
}

function evaluate({ limit, cost, duration }: Case, calls: readonly Call[]): Outcome {
  const middle = ({ sentAt, answeredAt }: Call) => Math.floor((sentAt + answeredAt) / 2);
  let state = unused;
  let expected = 0;
  for (const call of calls.toSorted((a, b) => middle(a) - middle(b))) {
    const { allowed, next } = decide(state, { limit, duration, cost }, middle(call));
    state = next;
    if (allowed) expected += cost;
  }

  const admissions = calls.filter(({ isAdmitted }) => isAdmitted);
  const byWindow = Map.groupBy(admissions, ({ reset }) => reset);
  let peak = 0;
  for (const [end, inWindow] of byWindow) {
    const previous = (byWindow.get(end - duration)?.length ?? 0) * cost;
    let admitted = 0;
    for (const { answeredAt } of inWindow.toSorted((a, b) => a.answeredAt - b.answeredAt)) {
      admitted += cost;
      const rest = Math.max(0, end - answeredAt);
      peak = Math.max(peak, admitted / (limit - Math.floor((previous * rest) / duration)));
    }
  }
  const admitted = admissions.length * cost;
  const isHeld = peak <= 1 && admitted >= Math.min(LOWER * expected, expected - cost);
  return { calls: calls.length, admitted, expected, peak, isHeld };
}

function print(cases: readonly Case[], outcomes: ReadonlyMap<Case, Outcome>): void {
  console.log("admitted ÷ expected, and the highest ratio to the upper bound\n");
  const head = ["window", "nodes", "limit", "cost"].map((name) => name.padStart(7)).join("");
  console.log(head + LOADS.map((load) => `load ${load}`.padStart(17)).join(""));
  const rows = Map.groupBy(cases, ({ duration, nodes, limit }) => `${duration} ${nodes} ${limit}`);
  for (const row of rows.values()) {
    const { duration, nodes, limit, cost } = row[0]!;
    const cells = row.map((one) => {
      const { admitted, expected, peak, isHeld } = outcomes.get(one)!;
      return `${isHeld ? "" : "! "}${(admitted / expected).toFixed(3)}  ${peak.toFixed(3)}`.padStart(17);
    });
    const begin = [`${duration / 1_000} s`, nodes, limit, cost].map((value) => String(value).padStart(7));
    console.log(begin.join("") + cells.join(""));
  }
  console.log();
}
