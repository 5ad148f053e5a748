/**
 * Verifications where the call is: `npm run bench:local -- [--rounds 5] [--seconds 2] [--keys 1000]`.
 *
 * First `LocalLatchkey` in this process: CPU of a verification of known keys, one after the other, and of keys with a permission and a
 * limit that is leased, with the questions that this took. Then what `verify` adds to a request of Express: the time of requests over
 * one connection, in turn without a verification, with one by the service, and with one in the process. Then `latchkey edge` beside a
 * node, over TCP with the same keys and with limits: each on core 0, with the load on core 1. At last what leases cost the service:
 * questions as 100 edges ask them, each with leases of 100 limits and the return of the ones before; nothing else of an edge runs.
 */
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { Agent, createServer, type RequestListener, request } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import express from "express";
import { hashSecret } from "../engine/src/crypto/hash.ts";
import { verify } from "../sdk/src/express.ts";
import { Latchkey } from "../sdk/src/index.ts";
import { LocalLatchkey } from "../sdk/src/local.ts";
import { compare } from "./lib/compare.ts";
import { createApi, createKeys, JSON_TYPE, post, ROOT_KEY, VERIFY_PATH } from "./lib/keys.ts";
import { canPin, describeMachine } from "./lib/machine.ts";
import { wholeNumber } from "./lib/options.ts";
import { type ServerUnderTest, startEdge, startLatchkey, stopServers } from "./lib/server-under-test.ts";
import { spread, writeSpread } from "./lib/statistics.ts";
import { Wrk } from "./lib/wrk.ts";

const CONNECTIONS = 32;
const CALLS = 100_000;
const REQUESTS = 1_000;
/** Keys with a limit that is busy. */
const LEASED_KEYS = 100;
/** Of these, those that the requests of Express use. */
const BUSY_KEYS = 5;
const LIMIT = { name: "requests", limit: 1e9, duration: 3_600_000 };
const PERMISSION = "documents.read";
/** What each of so many edges verifies of each limit, in a second, and the questions that are measured. */
const [EDGES, PER_SECOND, QUESTIONS] = [100, 100, 300];
/** What an edge asks for: the use of this many seconds. */
const LEASE_SECONDS = 5;

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "5" },
    seconds: { type: "string", default: "2" },
    keys: { type: "string", default: "1000" },
  },
});
const rounds = wholeNumber(values, "rounds", 1, 100);
const seconds = wholeNumber(values, "seconds", 1, 60);
const keyCount = wholeNumber(values, "keys", 1, 100_000);

Wrk.require();

const folder = mkdtempSync(join(tmpdir(), "latchkey-bench-"));
try {
  const node = await startLatchkey({ folder: join(folder, "node") });
  console.log(describeMachine());
  console.log(
    `${rounds} rounds, ${keyCount} keys; ${canPin ? "servers on core 0, load on core 1" : "not pinned: taskset or a second core is missing"}\n`,
  );
  const keys = await createKeys(node.url, keyCount);
  const headers = { ...JSON_TYPE, authorization: `Bearer ${ROOT_KEY}` };
  await post(
    `${node.url}/v2/permissions.createPermission`,
    headers,
    JSON.stringify({ name: PERMISSION, slug: PERMISSION }),
  );
  const leased = await createKeys(node.url, LEASED_KEYS, {
    permissions: [PERMISSION],
    ratelimits: [{ ...LIMIT, autoApply: true }],
  });
  let questions = 0;
  const latchkey = new LocalLatchkey({
    url: node.url,
    rootKey: ROOT_KEY,
    fetch: (address, init) => {
      questions++;
      return fetch(address, init);
    },
  });
  await latchkey.ready();
  await inProcess("known keys", latchkey, keys, {});
  await inProcess("keys with a permission and a leased limit", latchkey, leased, { permissions: PERMISSION });
  await inRequests(latchkey, node, keys, leased);
  await latchkey.close();
  await besideNode(node, keys, leased);
  await leasesOfEdges(node, leased);

  async function inProcess(
    title: string,
    client: LocalLatchkey,
    of: readonly string[],
    more: { permissions?: string },
  ): Promise<void> {
    const run = async (calls: number) => {
      const before = process.cpuUsage();
      const startedAt = process.hrtime.bigint();
      for (let i = 0; i < calls; i++) {
        const { data } = await client.keys.verifyKey({ key: of[i % of.length]!, ...more });
        if (!data.valid) throw new Error(`A key is not valid: ${data.code}`);
      }
      const { user, system } = process.cpuUsage(before);
      return { cpu: (user + system) / calls, rate: calls / (Number(process.hrtime.bigint() - startedAt) / 1e9) };
    };
    await run(CALLS);
    const windows = [];
    questions = 0;
    for (let round = 0; round < rounds; round++) windows.push(await run(CALLS));
    console.log(`LocalLatchkey, ${title}, ${CALLS} calls one after the other: median (min–max)`);
    console.log(`  calls per second    ${writeSpread(spread(windows.map(({ rate }) => rate)))}`);
    console.log(`  CPU per call, µs    ${writeSpread(spread(windows.map(({ cpu }) => cpu)), 1)}`);
    console.log(`  questions per call  ${(questions / (rounds * CALLS)).toFixed(5)} (polls and reports too)\n`);
  }
} finally {
  await stopServers();
  rmSync(folder, { recursive: true, force: true });
}

async function inRequests(
  latchkey: LocalLatchkey,
  node: ServerUnderTest,
  keys: readonly string[],
  leased: readonly string[],
): Promise<void> {
  const apiId = (await latchkey.keys.verifyKey({ key: keys[0]! })).data.apiId ?? (await createApi(node.url));
  const apiOfLeased = (await latchkey.keys.verifyKey({ key: leased[0]! })).data.apiId ?? apiId;
  const remote = new Latchkey({ url: node.url, rootKey: ROOT_KEY });
  const app = (...middleware: ReturnType<typeof verify>[]) => {
    const made = express();
    for (const one of middleware) made.use(one);
    made.get("/", (_request, response) => void response.send("ok"));
    return made as unknown as RequestListener;
  };
  const apps = {
    without: app(),
    "by the service": app(verify({ latchkey: remote, apiId })),
    "in the process": app(verify({ latchkey, apiId })),
    "with a leased limit": app(verify({ latchkey, apiId: apiOfLeased })),
  };
  const medians = new Map<string, number[]>(Object.keys(apps).map((name) => [name, []]));
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  for (const [name, listener] of Object.entries(apps)) {
    const server = createServer(listener);
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    // So few that each is busy.
    const of = name === "with a leased limit" ? leased.slice(0, BUSY_KEYS) : keys;
    for (let round = 0; round <= rounds; round++) {
      const times: number[] = [];
      for (let i = 0; i < REQUESTS; i++) times.push(await timeOf(port, agent, of[i % of.length]!));
      times.sort((a, b) => a - b);
      if (round > 0) medians.get(name)!.push(times[times.length >> 1]!);
    }
    server.close();
  }
  agent.destroy();
  const without = spread(medians.get("without")!).median;
  console.log("A request of Express with `verify`, p50 in µs: median (min–max), and what it adds");
  for (const [name, of] of medians) {
    const figures = spread(of);
    console.log(
      `  ${name.padEnd(20)}${writeSpread(figures).padStart(24)}${(figures.median - without).toFixed(0).padStart(8)}`,
    );
  }
  console.log();
}

async function timeOf(port: number, agent: Agent, key: string): Promise<number> {
  const startedAt = process.hrtime.bigint();
  await new Promise<void>((resolve, reject) => {
    const asked = request({ port, agent, path: "/", headers: { authorization: `Bearer ${key}` } }, (response) => {
      if (response.statusCode !== 200) reject(new Error(`The request got ${response.statusCode}`));
      response.resume().on("end", resolve);
    });
    asked.on("error", reject);
    asked.end();
  });
  return Number(process.hrtime.bigint() - startedAt) / 1_000;
}

async function besideNode(node: ServerUnderTest, keys: readonly string[], leased: readonly string[]): Promise<void> {
  const edge = await startEdge({ folder: join(folder, "edge"), upstream: node.url });
  const headers = { ...JSON_TYPE, authorization: `Bearer ${ROOT_KEY}` };
  for (const [title, of] of [
    ["keys.verifyKey over TCP", keys],
    ["keys.verifyKey over TCP, keys with a busy limit", leased],
  ] as const) {
    const wrk = new Wrk({ path: VERIFY_PATH, headers, bodies: of.map((key) => JSON.stringify({ key })) }, CONNECTIONS);
    try {
      await compare({ title, servers: { "a node": node, "an edge": edge }, wrk, rounds, seconds });
    } finally {
      wrk.close();
    }
  }
}

/** The CPU of the service for the leases of many edges. */
async function leasesOfEdges(node: ServerUnderTest, leased: readonly string[]): Promise<void> {
  const headers = { ...JSON_TYPE, authorization: `Bearer ${ROOT_KEY}` };
  const want = PER_SECOND * LEASE_SECONDS;
  let grants = 0;
  const ask = async (held: (string | null)[]): Promise<(string | null)[]> => {
    const leases = leased.map((key, i) => {
      const id = held[i];
      const { name, limit, duration } = LIMIT;
      const returns = id ? { returns: [{ id, amount: want, spent: want }] } : {};
      return { key: { hash: hashSecret(key), name, owner: "key" }, limit, duration, want, ...returns };
    });
    // As short as an edge asks.
    const answers: (string | null)[] = [];
    for (const some of [leases.slice(0, leases.length / 2), leases.slice(leases.length / 2)]) {
      const text = await post(`${node.url}/v2/replica.lease`, headers, JSON.stringify({ leases: some }));
      for (const lease of JSON.parse(text).data.leases as ({ id: string; amount: number } | null)[]) {
        if (lease !== null && lease.amount !== want) throw new Error(`A lease of ${lease.amount}`);
        answers.push(lease?.id ?? null);
      }
    }
    grants += answers.filter((id) => id !== null).length;
    return answers;
  };
  let held = await ask([]);
  const per: number[] = [];
  for (let round = 0; round <= rounds; round++) {
    grants = 0;
    const before = await node.cpuMs();
    for (let i = 0; i < QUESTIONS / rounds; i++) held = await ask(held);
    if (round > 0) per.push(((await node.cpuMs()) - before) / grants);
  }
  const { median, min, max } = spread(per.map((ms) => ms * 1_000));
  const needed = (EDGES * leased.length * PER_SECOND) / want;
  console.log(`The service leases ${want} of a limit, and takes the lease before back: CPU in µs, median (min–max)`);
  console.log(`  per lease           ${writeSpread({ median, min, max }, 1)}`);
  console.log(
    `  ${EDGES} edges × ${leased.length} limits × ${PER_SECOND} a second = ${(EDGES * leased.length * PER_SECOND).toLocaleString("en")} verifications a second ` +
      `need ${needed} leases a second: ${((needed * median) / 1e6).toFixed(3)} cores`,
  );
  console.log(`  operations of the counters per verification: ${(2 / want).toFixed(4)}`);
}
