/**
 * Verifications where the call is: `npm run bench:local -- [--rounds 5] [--seconds 2] [--keys 1000]`.
 *
 * First `LocalLatchkey` in this process: CPU of a verification of known keys, one after the other, and of keys with a permission and a
 * limit that is leased, with the questions that this took. Then what `verify` adds to a request of Express, Fastify and Hono: the time
 * of requests over one connection, in turn without a verification, with one by the service, and with one in the process. The client is
 * a plain socket in the same process: one of `node:http` takes longer than the verification and pushes it out of the processor's
 * caches, and one on another core is mostly asleep, so that waking it is what the system call measures. At last `latchkey edge` beside a node, over TCP with the same keys and with limits: each on core 0, with the load on core 1. What edges cost the service is
 * measured by `bench/home.ts`.
 */
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type RequestListener, type Server } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { getRequestListener } from "@hono/node-server";
import express from "express";
import fastify from "fastify";
import { Hono } from "hono";
import * as forExpress from "../sdk/src/express.ts";
import * as forFastify from "../sdk/src/fastify.ts";
import * as forHono from "../sdk/src/hono.ts";
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
/** Turns of an app in a round. */
const TURNS = 10;
/** Turns of each app before the first round. An app that serves calls is past them: V8 compiles its code during some ten thousand requests. */
const TURNS_BEFORE = 400;
/** Keys with a limit that is busy. */
const LEASED_KEYS = 100;
/** Of these, those that requests use. */
const BUSY_KEYS = 5;
const LIMIT = { name: "requests", limit: 1e9, duration: 3_600_000 };
const PERMISSION = "documents.read";

/** Starts an app of a framework, with `verify` if there are options for it. */
const frameworks: Record<string, (options?: { latchkey: Latchkey; apiId: string }) => Promise<Server>> = {
  Express(options) {
    const app = express();
    if (options) app.use(forExpress.verify(options));
    app.get("/", (_request, response) => void response.send("ok"));
    return listening(createServer(app as unknown as RequestListener));
  },
  async Fastify(options) {
    const app = fastify();
    if (options) app.addHook("onRequest", forFastify.verify(options));
    app.get("/", (_request, reply) => reply.send("ok"));
    await app.ready();
    return listening(app.server);
  },
  Hono(options) {
    const app = new Hono();
    if (options) app.use(forHono.verify(options));
    app.get("/", (context) => context.text("ok"));
    return listening(createServer(getRequestListener(app.fetch)));
  },
};

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

/** What `verify` adds to a request. The apps of a framework are measured in turn, so that other load is the same for all. */
async function inRequests(
  latchkey: LocalLatchkey,
  node: ServerUnderTest,
  keys: readonly string[],
  leased: readonly string[],
): Promise<void> {
  const apiId = (await latchkey.keys.verifyKey({ key: keys[0]! })).data.apiId ?? (await createApi(node.url));
  const apiOfLeased = (await latchkey.keys.verifyKey({ key: leased[0]! })).data.apiId ?? apiId;
  const remote = new Latchkey({ url: node.url, rootKey: ROOT_KEY });
  // So few that each is busy.
  const busy = leased.slice(0, BUSY_KEYS);
  for (const [framework, listen] of Object.entries(frameworks)) {
    const apps = [
      { name: "without", of: keys, server: await listen() },
      { name: "by the service", of: keys, server: await listen({ latchkey: remote, apiId }) },
      { name: "in the process", of: keys, server: await listen({ latchkey, apiId }) },
      { name: "with a leased limit", of: busy, server: await listen({ latchkey, apiId: apiOfLeased }) },
    ].map((app) => ({ ...app, socket: connectTo(app.server), medians: [] as number[] }));
    for (let turn = -TURNS_BEFORE; turn < rounds * TURNS; turn++) {
      for (const { of, socket, medians } of apps) {
        const times: number[] = [];
        for (let i = 0; i < REQUESTS / TURNS; i++) times.push(await timeOf(socket, of[i % of.length]!));
        if (turn >= 0) medians.push(spread(times).median);
      }
    }
    console.log(`A request of ${framework} with \`verify\`, p50 in µs: median (min–max), and what it adds`);
    for (const { name, medians, socket, server } of apps) {
      const added = medians.map((median, round) => median - apps[0]!.medians[round]!);
      const figures = [medians, added].map((each) => writeSpread(spread(each)).padStart(24));
      console.log(`  ${name.padEnd(20)}${figures.join("")}`);
      socket.destroy();
      server.close();
    }
    console.log();
  }
}

async function listening(server: Server): Promise<Server> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return server;
}

function connectTo(server: Server): Socket {
  const { port } = server.address() as AddressInfo;
  return connect({ port, host: "127.0.0.1", noDelay: true });
}

/** Microseconds until the answer to a request begins: it comes as one piece. */
async function timeOf(socket: Socket, key: string): Promise<number> {
  const text = `GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${key}\r\n\r\n`;
  const startedAt = process.hrtime.bigint();
  socket.write(text);
  const [answer] = await once(socket, "data");
  const time = Number(process.hrtime.bigint() - startedAt) / 1_000;
  if (!String(answer).startsWith("HTTP/1.1 200")) throw new Error(`The request got ${answer}`);
  return time;
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
