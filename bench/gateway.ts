/**
 * What gateways ask, over gRPC and over HTTP: `npm run bench:gateway -- [--rounds 7] [--seconds 2] [--only limits|keys]`.
 *
 * The first part asks `ShouldRateLimit` with one descriptor of 1,000 values, beside `ratelimits.limit` with as many identifiers, and
 * beside envoyproxy/ratelimit with its Redis, which share the core of the servers; the second one `Check` beside `/auth/verify`. Each
 * stands beside bare `node:http2`, which reads the message and answers as many bytes. Servers run on one core and get their
 * requests from the other one, in turn, 32 at once: over gRPC 8 on each of 4 connections, over HTTP one on each of 32. Then
 * requests arrive at random at half of each server's own rate, and at rates of envoyproxy/ratelimit for both, and their latency
 * counts from when they were due. CPU is that of
 * the server's whole process, and of Redis.
 *
 * envoyproxy/ratelimit is installed from the proxy of Go modules, as for `bench:peers`; where it cannot be had, that is said.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { MessageWriter } from "../server/src/platform/grpc/protobuf.ts";
import { freePort } from "../server/test/services/free-port.ts";
import { Callers, successful } from "./lib/callers.ts";
import { compare } from "./lib/compare.ts";
import { type GrpcCalls, runGrpcLoad } from "./lib/grpc-load.ts";
import { createApi, JSON_TYPE, LIMIT_PATH, limitBodies, post, ROOT_KEY } from "./lib/keys.ts";
import { canPin, describeMachine } from "./lib/machine.ts";
import { wholeNumber } from "./lib/options.ts";
import { type EnvoyRatelimit, envoyRatelimit } from "./lib/peers.ts";
import { type ServerUnderTest, startLatchkey, startServerUnderTest, stopServers } from "./lib/server-under-test.ts";
import { spread, writeSpread } from "./lib/statistics.ts";
import { type Load, type Posts, Wrk } from "./lib/wrk.ts";

const IDENTIFIERS = 1_000;
const CONNECTIONS = 4;
const STREAMS = 8;
/** A limit that no load reaches, and the key that has it in the configuration of both services. */
const WIDE = 1_000_000_000;
const KEY = `user${WIDE}`;
/** The share of its own rate at which the latency of a server is measured. */
const SHARE = 0.5;
/** The share of the peer's rate at which both are measured besides. */
const NEAR_FULL = 0.8;
const [OWN, PEER] = ["latchkey, gRPC", "envoyproxy/ratelimit"];
/** `overall_code: OK` of a `RateLimitResponse`, and an empty `status` of a `CheckResponse`. */
const [RATE_LIMIT_OK, CHECK_OK] = ["0801", "0a00"];

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "7" },
    seconds: { type: "string", default: "2" },
    only: { type: "string" },
  },
});
const rounds = wholeNumber(values, "rounds", 1, 100);
const seconds = wholeNumber(values, "seconds", 1, 60);

Wrk.require();

const rootKey = { authorization: `Bearer ${ROOT_KEY}` };
const folder = mkdtempSync(join(tmpdir(), "latchkey-bench-"));
try {
  const port = await freePort();
  const latchkey = await startLatchkey({ folder, settings: { GRPC_PORT: String(port) } });
  const overGrpc = { ...latchkey, url: `http://127.0.0.1:${port}` };
  console.log(describeMachine());
  console.log(
    `${rounds} rounds of ${seconds} s, ${canPin ? "servers on core 0, load on core 1" : "not pinned: taskset or a second core is missing"}\n`,
  );
  if (values.only !== "keys") await limits(latchkey, overGrpc);
  if (values.only !== "limits") await keys(latchkey, overGrpc);
} finally {
  await stopServers();
  rmSync(folder, { recursive: true, force: true });
}

async function limits(latchkey: ServerUnderTest, overGrpc: ServerUnderTest): Promise<void> {
  const bodies = limitBodies(IDENTIFIERS);
  const headers = { ...JSON_TYPE, ...rootKey };
  // Its first call makes the namespace.
  await post(latchkey.url + LIMIT_PATH, headers, bodies[0]!);
  const descriptors = [{ key: KEY, rate_limit: { unit: "hour", requests_per_unit: WIDE } }];
  const tree = JSON.stringify({ namespace: "bench", descriptors });
  await post(`${latchkey.url}/v2/ratelimits.setDescriptors`, headers, tree);
  const original = await startOriginal();
  try {
    await measure("limits: one descriptor, 1,000 values", latchkey, overGrpc, {
      calls: {
        method: "envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit",
        messages: Array.from({ length: IDENTIFIERS }, (_, i) => hexOf(rateLimitRequest(`user ${i}`))),
        expected: RATE_LIMIT_OK,
      },
      // As long as an answer of the service with a limit.
      bareAnswer: RATE_LIMIT_OK + "00".repeat(28),
      posts: { path: LIMIT_PATH, headers, bodies },
      original,
    });
  } finally {
    await original?.stop();
  }
}

/** envoyproxy/ratelimit; undefined where it cannot be had. */
async function startOriginal(): Promise<EnvoyRatelimit | undefined> {
  const packages = fileURLToPath(new URL("../node_modules/.cache/latchkey-peers", import.meta.url));
  mkdirSync(packages, { recursive: true });
  try {
    await envoyRatelimit.get(packages);
    return await envoyRatelimit.start(packages, [WIDE], { withRedis: true });
  } catch (error) {
    console.log(`envoyproxy/ratelimit is missing: ${(error as Error).message}\n`);
    return undefined;
  }
}

async function keys(latchkey: ServerUnderTest, overGrpc: ServerUnderTest): Promise<void> {
  const apiId = await createApi(latchkey.url);
  const headers = { ...JSON_TYPE, ...rootKey };
  const created = await post(
    `${latchkey.url}/v2/keys.createKey`,
    headers,
    JSON.stringify({ apiId, externalId: "acme" }),
  );
  const { key } = JSON.parse(created).data as { key: string };
  await measure("keys: one key of an identity", latchkey, overGrpc, {
    calls: {
      method: "envoy.service.auth.v3.Authorization/Check",
      messages: [hexOf(checkRequest(apiId, key))],
      expected: CHECK_OK,
    },
    bareAnswer: CHECK_OK + "00".repeat(400),
    posts: {
      path: `/auth/verify?api=${apiId}`,
      headers: { authorization: `Bearer ${key}`, "x-latchkey-root-key": ROOT_KEY },
      bodies: [""],
    },
  });
}

interface Asked {
  calls: Pick<GrpcCalls, "method" | "messages" | "expected">;
  bareAnswer: string;
  posts: Posts;
  original?: EnvoyRatelimit | undefined;
}

/** A server, and how it is loaded for a window: as fast as it answers, or with calls that arrive at random. */
interface Contender extends Pick<ServerUnderTest, "url"> {
  cpuMs(): number | Promise<number>;
  load(seconds: number, perSecond?: number): Promise<Load>;
}

async function measure(
  title: string,
  latchkey: ServerUnderTest,
  overGrpc: ServerUnderTest,
  { calls, bareAnswer, posts, original }: Asked,
): Promise<void> {
  const bare = await startServerUnderTest("lib/bare-http2-server.ts", [bareAnswer]);
  const wrk = new Wrk(posts, CONNECTIONS * STREAMS);
  const callers = new Callers(latchkey.url);
  const all: GrpcCalls = { ...calls, metadata: rootKey, connections: CONNECTIONS, streams: STREAMS };
  const asked = (server: Pick<Contender, "url" | "cpuMs">): Contender => ({
    url: server.url,
    cpuMs: () => server.cpuMs(),
    load: (length, perSecond) => runGrpcLoad(server.url, length, { ...all, ...(perSecond && { perSecond }) }),
  });
  const contenders: Record<string, Contender> = {
    "bare node:http2": asked(bare),
    [OWN]: asked(overGrpc),
    "latchkey, HTTP": {
      url: latchkey.url,
      cpuMs: () => latchkey.cpuMs(),
      load: (length, perSecond) =>
        perSecond ? callers.run(length, { ...posts, perSecond }).then(successful) : wrk.run(latchkey.url, length),
    },
    ...(original && { [PEER]: asked({ ...original, url: original.grpcUrl }) }),
  };
  try {
    const rates = await measureFull(title, contenders);
    await measureAtRandom(contenders, rates);
  } finally {
    await callers.close();
    wrk.close();
    await bare.stop();
  }
}

/** As many calls as a server answers. Returns its rates. */
async function measureFull(title: string, contenders: Record<string, Contender>): Promise<Map<string, number>> {
  const p99s = new Map<string, number[]>();
  const byUrl = new Map(Object.entries(contenders).map(([name, { url }]) => [url, name]));
  const run = async (url: string, length: number): Promise<Load> => {
    const name = byUrl.get(url)!;
    const load = await contenders[name]!.load(length);
    p99s.set(name, [...(p99s.get(name) ?? []), load.p99Ms]);
    return load;
  };
  const results = await compare({ title, servers: contenders, wrk: { run }, rounds, seconds });
  for (const [name, all] of p99s) {
    // The first window warms up.
    console.log(`  p99 at full load, ${name}: ${writeSpread(spread(all.slice(1)), 2)} ms`);
  }
  return new Map(results.map(({ name, rate }) => [name, rate.median]));
}

/** Calls that arrive at random at half of the rate of each server, and those of gRPC at a rate of the other one too. */
async function measureAtRandom(
  contenders: Record<string, Contender>,
  rates: ReadonlyMap<string, number>,
): Promise<void> {
  const points = [...rates].map(([name, rate]) => ({ name, perSecond: SHARE * rate, loads: [] as Load[] }));
  const ofPeer = rates.get(PEER);
  if (ofPeer !== undefined) {
    points.push({ name: OWN, perSecond: SHARE * ofPeer, loads: [] });
    for (const name of [OWN, PEER]) points.push({ name, perSecond: NEAR_FULL * ofPeer, loads: [] });
  }
  for (let round = 0; round < rounds; round++) {
    for (const { name, perSecond, loads } of points) loads.push(await contenders[name]!.load(seconds, perSecond));
  }
  console.log();
  for (const { name, perSecond, loads } of points) {
    const figure = (which: "medianMs" | "p99Ms") => writeSpread(spread(loads.map((load) => load[which])), 2);
    const rate = Math.round(perSecond).toLocaleString("en");
    console.log(`  at ${rate} calls per second, ${name}: median ${figure("medianMs")} ms, p99 ${figure("p99Ms")} ms`);
  }
  console.log();
}

function hexOf(message: Uint8Array): string {
  return Buffer.from(message).toString("hex");
}

function rateLimitRequest(value: string): Uint8Array {
  const writer = new MessageWriter();
  writer.string(1, "bench");
  writer.message(2, () =>
    writer.message(1, () => {
      writer.string(1, KEY);
      writer.string(2, value);
    }),
  );
  return writer.finish();
}

/** What Envoy sends of a small request. */
function checkRequest(apiId: string, key: string): Uint8Array {
  const writer = new MessageWriter();
  const entry = (field: number, name: string, value: string) =>
    writer.message(field, () => {
      writer.string(1, name);
      writer.string(2, value);
    });
  writer.message(1, () => {
    writer.message(4, () => {
      writer.message(2, () => {
        writer.string(2, "GET");
        entry(3, "authorization", `Bearer ${key}`);
        entry(3, "user-agent", "curl/8.5.0");
        entry(3, "accept", "*/*");
        entry(3, "x-request-id", "2f0e1b53-5d8f-4d6f-8c8a-4d6a7e9f1b22");
        writer.string(4, "/documents?page=2");
        writer.string(5, "api.example.com");
      });
    });
    entry(10, "api", apiId);
  });
  return writer.finish();
}
