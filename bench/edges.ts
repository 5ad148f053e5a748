/**
 * A node with edges: `npm run bench:edges -- [--edges 1000] [--rounds 3] [--seconds 4] [--publish]`.
 *
 * The edges are simulated on the protocol: each has a connection on which it polls, and asks for 100 keys again when everything
 * may have changed. The node runs on core 0 with its database, callers on core 1, and edges on core 2, or beside the callers
 * if the machine has two cores only. First the node's CPU for each poll: without changes, and while keys of the workspace
 * change. Then the latency of callers who verify keys at the node, at a rate that is far below what it can do: without an
 * event, and from the moment at which the node is back after it was frozen for two seconds, after every edge has lost its
 * position, after a restart, and after one when the edges are gone. Last the latency of callers of `latchkey edge` on core 0,
 * whose network to the node delays everything by 50 ms in each direction, beside that of callers of the node itself and of
 * bare `node:http` on the same core.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { parseArgs } from "node:util";
import { hashSecret } from "../engine/src/crypto/hash.ts";
import { freePort } from "../server/test/services/free-port.ts";
import { TcpProxy } from "../server/test/tcp-proxy.ts";
import { type CallerLoad, Callers } from "./lib/callers.ts";
import { EdgeCrowd } from "./lib/edge-crowd.ts";
import { createApi, createKeys, JSON_TYPE, post, ROOT_KEY, VERIFY_PATH, verifyEach } from "./lib/keys.ts";
import { canPin, describeMachine } from "./lib/machine.ts";
import { wholeNumber } from "./lib/options.ts";
import { edgeSection, publishSection } from "./lib/results.ts";
import {
  type ProcessUnderTest,
  startEdge,
  startLatchkey,
  startServerUnderTest,
  stopServers,
} from "./lib/server-under-test.ts";
import { type Spread, spread, writeSpread } from "./lib/statistics.ts";
import { markdownTable } from "./lib/tables.ts";

/** Callers are on core 1. */
const EDGES_CORE = availableParallelism() > 2 ? 2 : 1;
const KEYS = 1_000;
/** Keys that each edge asks for again when everything may have changed. */
const KEYS_OF_AN_EDGE = 100;
const ATTACH_MS = 2_000;
const FREEZE_MS = 2_000;
/** Calls of direct callers per second. */
const CALLS_PER_SECOND = 500;
/** The delay in each direction between an edge and its home far away. */
const FAR_MS = 50;
/** A limit that no load reaches. */
const WIDE = { name: "calls", limit: 1_000_000_000, duration: 3_600_000, autoApply: true } as const;
/** Keys whose limits are so busy that the edge gets a part of each. */
const BUSY_KEYS = 10;
/** Changes of keys per second, of the workspace of the edges. */
const CHANGES_PER_SECOND = 2;

const { values } = parseArgs({
  options: {
    edges: { type: "string", default: "1000" },
    rounds: { type: "string", default: "3" },
    seconds: { type: "string", default: "4" },
    publish: { type: "boolean", default: false },
  },
});
const edges = wholeNumber(values, "edges", 1, 10_000);
const rounds = wholeNumber(values, "rounds", 1, 100);
const seconds = wholeNumber(values, "seconds", 1, 60);

const machine = describeMachine();
if (canPin) execFileSync("taskset", ["--all-tasks", "--cpu-list", "--pid", String(EDGES_CORE), String(process.pid)]);
const folder = mkdtempSync(join(tmpdir(), "latchkey-bench-"));
const headers = { ...JSON_TYPE, Authorization: `Bearer ${ROOT_KEY}` };
const settings = { PORT: String(await freePort()) };
let node = await startLatchkey({ folder, settings });
const { url } = node;
const keys = await createKeys(url, KEYS);
const hashes = keys.slice(0, KEYS_OF_AN_EDGE).map(hashSecret);
await verifyEach(
  url,
  keys.map((key) => ({ key })),
);
const crowd = new EdgeCrowd({ url, edges, hashes });
const callers = new Callers(url);
try {
  console.log(machine);
  const place = canPin ? `the node on core 0, callers on core 1, edges on core ${EDGES_CORE}` : "not pinned";
  console.log(`${edges} edges, ${rounds} rounds of ${seconds} s, ${place}\n`);
  const rows = [await polls()];
  const latencies = await recoveries();
  const lines = [
    `Measured on ${new Date().toISOString().slice(0, 10)}: ${machine}. ${rounds} windows of ${seconds} s for each row.`,
    "",
    `${edges.toLocaleString("en")} edges simulated on the protocol, attached to one node with its embedded database; the node on one core, ${CALLS_PER_SECOND} calls per second on another, the edges on ${EDGES_CORE === 1 ? "that of the calls" : "a third"}. \`npm run bench:edges\`.`,
    "",
    ...markdownTable(
      ["the node with edges attached", "polls per second", "CPU of the node per poll, µs", "share of a core, %"],
      rows.flat(),
    ),
    "",
    ...markdownTable(
      [
        `direct callers in the ${seconds} s after it, ms`,
        "p50",
        "p99",
        "p99 ÷ without an event",
        "questions about records",
        "failed polls",
      ],
      latencies,
    ),
  ];
  lines.push(
    "",
    `\`latchkey edge\` on the core of the node, whose network delays everything by ${FAR_MS} ms in each direction. ${CALLS_PER_SECOND} calls per second of each; the last three in the same seconds:`,
    "",
    ...markdownTable(["calls with keys that the edge knows, ms", "p50", "p99", "p99 ÷ bare"], await farAway()),
  );
  console.log(`## ${edgeSection}\n\n${lines.join("\n")}`);
  if (values.publish) publishSection(edgeSection, lines);
} finally {
  crowd.close();
  await callers.close();
  await stopServers();
  rmSync(folder, { recursive: true, force: true });
}

/** The CPU of the node that edges take, without and with changes. */
async function polls(): Promise<string[][]> {
  await setTimeout(2_000);
  const idle = await cpuShare(node);
  await crowd.attach(ATTACH_MS);
  await setTimeout(1_000);
  const measure = async (name: string) => {
    const windows: { rate: number; perPoll: number; share: number }[] = [];
    for (let round = 0; round < rounds; round++) {
      crowd.take();
      const share = await cpuShare(node);
      const rate = crowd.take().polls / seconds;
      windows.push({ rate, perPoll: ((share - idle) * 1e6) / rate, share });
    }
    const cell = (of: keyof (typeof windows)[number], factor = 1, digits = 0) =>
      writeSpread(spread(windows.map((window) => window[of] * factor)), digits);
    return [name, cell("rate"), cell("perPoll", 1, 1), cell("share", 100)];
  };
  const quiet = await measure("without changes");
  const changing = changeKeys();
  const busy = await measure(`${CHANGES_PER_SECOND} changes of keys per second`);
  await changing();
  return [quiet, busy];
}

/** Which part of a core the node uses. */
async function cpuShare(of: ProcessUnderTest): Promise<number> {
  const [before, startedAt] = [await of.cpuMs(), performance.now()];
  await setTimeout(seconds * 1_000);
  return ((await of.cpuMs()) - before) / (performance.now() - startedAt);
}

/** Changes keys until it is told to stop. */
function changeKeys(): () => Promise<void> {
  let isOver = false;
  const changing = (async () => {
    const apiId = await createApi(url);
    const { data } = JSON.parse(await post(`${url}/v2/keys.createKey`, headers, JSON.stringify({ apiId })));
    for (let i = 0; !isOver; i++) {
      const body = JSON.stringify({ keyId: data.keyId, name: `name ${i}` });
      await post(`${url}/v2/keys.updateKey`, headers, body);
      await setTimeout(1_000 / CHANGES_PER_SECOND);
    }
  })();
  return () => {
    isOver = true;
    return changing;
  };
}

async function restart(): Promise<void> {
  await node.stop();
  node = await startLatchkey({ folder, settings });
}

/** What direct callers notice. The edges are gone at the end. */
async function recoveries(): Promise<string[][]> {
  const events: Record<string, () => unknown> = {
    "without an event": () => undefined,
    "the node was frozen for 2 s": async () => {
      process.kill(node.pid, "SIGSTOP");
      await setTimeout(FREEZE_MS);
      process.kill(node.pid, "SIGCONT");
    },
    "every edge lost its position": () => crowd.loseChanges(),
    "the node restarted": restart,
    "the node restarted, without edges": () => {
      crowd.close();
      return restart();
    },
  };
  const bodies = keys.map((key) => JSON.stringify({ key }));
  const calls = { path: VERIFY_PATH, headers, bodies, perSecond: CALLS_PER_SECOND };
  await callers.run(2, calls);
  const rows: string[][] = [];
  let quiet: number[] = [];
  for (const [name, cause] of Object.entries(events)) {
    const windows: { p50: number; p99: number; questions: number; failures: number }[] = [];
    for (let round = 0; round < rounds; round++) {
      crowd.take();
      await cause();
      const { medianMs: p50, p99Ms: p99 } = await callers.run(seconds, calls);
      const { questions, failures } = crowd.take();
      windows.push({ p50, p99, questions, failures });
      await setTimeout(1_000);
    }
    const of = (figure: keyof (typeof windows)[number]): Spread => spread(windows.map((window) => window[figure]));
    const p99s = windows.map(({ p99 }) => p99);
    if (quiet.length === 0) quiet = p99s;
    const ratio = of("p99").median / spread(quiet).median;
    const counts = [of("questions"), of("failures")].map(({ median }) => Math.round(median).toLocaleString("en"));
    rows.push([name, writeSpread(of("p50"), 2), writeSpread(of("p99"), 2), ratio.toFixed(2), ...counts]);
  }
  return rows;
}

/** What callers of an edge notice whose home is far away, beside those of the node and of bare `node:http` in the same seconds. */
async function farAway(): Promise<string[][]> {
  const proxy = await TcpProxy.open(url);
  proxy.delayMs = FAR_MS;
  const edge = await startEdge({ folder: join(folder, "edge"), upstream: proxy.url });
  const limited = await createKeys(url, KEYS, { ratelimits: [WIDE] });
  const answer = await post(`${url}${VERIFY_PATH}`, headers, JSON.stringify({ key: limited[0] }));
  const bare = await startServerUnderTest("lib/bare-server.ts", [String(answer.length)]);
  const [ofEdge, ofNode, ofBare] = [new Callers(edge.url), new Callers(url), new Callers(bare.url)];
  const rows: string[][] = [];
  try {
    const busy = limited.slice(0, BUSY_KEYS);
    const many = KEYS.toLocaleString("en");
    await measure([[`the edge: ${many} keys without limits`, ofEdge, keys]]);
    await measure([[`the edge: ${many} keys with one limit each`, ofEdge, limited]]);
    await measure([
      [`the edge: ${BUSY_KEYS} keys with one limit each, which is leased`, ofEdge, busy],
      ["the node, without the delay: the same keys", ofNode, busy],
      ["bare `node:http`, without the delay", ofBare, busy],
    ]);
  } finally {
    await Promise.all([ofEdge, ofNode, ofBare].map((callers) => callers.close()));
    await Promise.all([edge.stop(), bare.stop()]);
    await proxy.close();
  }
  return rows;

  /** The last one of several is what the others are compared with. */
  async function measure(together: readonly (readonly [name: string, of: Callers, keys: readonly string[]])[]) {
    const run = (length: number) =>
      Promise.all(
        together.map(([, of, keys]) => {
          const bodies = keys.map((key) => JSON.stringify({ key }));
          return of.run(length, { path: VERIFY_PATH, headers, bodies, perSecond: CALLS_PER_SECOND });
        }),
      );
    // The first call of each key asks home.
    await run((3 * KEYS) / CALLS_PER_SECOND);
    const windows: CallerLoad[][] = [];
    for (let round = 0; round < rounds; round++) windows.push(await run(seconds));
    for (const [i, [name]] of together.entries()) {
      const cell = (figure: (window: CallerLoad[]) => number) => writeSpread(spread(windows.map(figure)), 2);
      const ratio = together.length === 1 ? "" : cell((window) => window[i]!.p99Ms / window.at(-1)!.p99Ms);
      rows.push([name, cell((window) => window[i]!.medianMs), cell((window) => window[i]!.p99Ms), ratio]);
    }
  }
}
