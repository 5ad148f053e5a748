/**
 * Verifications where the call is: `npm run bench:local -- [--rounds 5] [--seconds 2] [--keys 1000]`.
 *
 * First `LocalLatchkey` in this process: CPU of a verification of known keys, one after the other. Then what `verify` adds to a
 * request of Express: the time of requests over one connection, in turn without a verification, with one by the service, and with
 * one in the process. Then `latchkey edge` beside a node, over TCP with the same keys: each on core 0, with the load on core 1.
 */
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { Agent, createServer, type RequestListener, request } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import express from "express";
import { verify } from "../sdk/src/express.ts";
import { Latchkey } from "../sdk/src/index.ts";
import { LocalLatchkey } from "../sdk/src/local.ts";
import { compare } from "./lib/compare.ts";
import { createApi, createKeys, JSON_TYPE, ROOT_KEY, VERIFY_PATH } from "./lib/keys.ts";
import { canPin, describeMachine } from "./lib/machine.ts";
import { wholeNumber } from "./lib/options.ts";
import { type ServerUnderTest, startEdge, startLatchkey, stopServers } from "./lib/server-under-test.ts";
import { spread, writeSpread } from "./lib/statistics.ts";
import { Wrk } from "./lib/wrk.ts";

const CONNECTIONS = 32;
const CALLS = 100_000;
const REQUESTS = 1_000;

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
  const latchkey = new LocalLatchkey({ url: node.url, rootKey: ROOT_KEY });
  await latchkey.ready();
  await inProcess(latchkey, keys);
  await inRequests(latchkey, node, keys);
  await latchkey.close();
  await besideNode(node, keys);
} finally {
  await stopServers();
  rmSync(folder, { recursive: true, force: true });
}

async function inProcess(latchkey: LocalLatchkey, keys: readonly string[]): Promise<void> {
  const run = async (calls: number) => {
    const before = process.cpuUsage();
    const startedAt = process.hrtime.bigint();
    for (let i = 0; i < calls; i++) {
      const { data } = await latchkey.keys.verifyKey({ key: keys[i % keys.length]! });
      if (!data.valid) throw new Error(`A key is not valid: ${data.code}`);
    }
    const { user, system } = process.cpuUsage(before);
    return { cpu: (user + system) / calls, rate: calls / (Number(process.hrtime.bigint() - startedAt) / 1e9) };
  };
  await run(CALLS);
  const windows = [];
  for (let round = 0; round < rounds; round++) windows.push(await run(CALLS));
  console.log(`LocalLatchkey, ${CALLS} calls one after the other: median (min–max)`);
  console.log(`  calls per second    ${writeSpread(spread(windows.map(({ rate }) => rate)))}`);
  console.log(`  CPU per call, µs    ${writeSpread(spread(windows.map(({ cpu }) => cpu)), 1)}\n`);
}

async function inRequests(latchkey: LocalLatchkey, node: ServerUnderTest, keys: readonly string[]): Promise<void> {
  const apiId = (await latchkey.keys.verifyKey({ key: keys[0]! })).data.apiId ?? (await createApi(node.url));
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
  };
  const medians = new Map<string, number[]>(Object.keys(apps).map((name) => [name, []]));
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  for (const [name, listener] of Object.entries(apps)) {
    const server = createServer(listener);
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    for (let round = 0; round <= rounds; round++) {
      const times: number[] = [];
      for (let i = 0; i < REQUESTS; i++) times.push(await timeOf(port, agent, keys[i % keys.length]!));
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

async function besideNode(node: ServerUnderTest, keys: readonly string[]): Promise<void> {
  const edge = await startEdge({ folder: join(folder, "edge"), upstream: node.url });
  const headers = { ...JSON_TYPE, authorization: `Bearer ${ROOT_KEY}` };
  const wrk = new Wrk({ path: VERIFY_PATH, headers, bodies: keys.map((key) => JSON.stringify({ key })) }, CONNECTIONS);
  try {
    const servers = { "a node": node, "an edge": edge };
    await compare({ title: "keys.verifyKey over TCP", servers, wrk, rounds, seconds });
  } finally {
    wrk.close();
  }
}
