/**
 * What gateways ask, over gRPC and over HTTP: `npm run bench:gateway -- [--rounds 7] [--seconds 2] [--only limits|keys]`.
 *
 * The first part asks `ShouldRateLimit` with one descriptor of 1,000 values, beside `ratelimits.limit` with as many identifiers;
 * the second one `Check` beside `/auth/verify`. Each stands beside bare `node:http2`, which reads the message and answers as many
 * bytes. Servers run on one core and get their requests from the other one, in turn, 32 at once: over gRPC 8 on each of 4
 * connections, over HTTP one on each of 32. CPU is that of the server's whole process.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { MessageWriter } from "../server/src/platform/grpc/protobuf.ts";
import { freePort } from "../server/test/services/free-port.ts";
import { compare } from "./lib/compare.ts";
import { type GrpcCalls, runGrpcLoad } from "./lib/grpc-load.ts";
import { createApi, JSON_TYPE, LIMIT_PATH, limitBodies, post, ROOT_KEY } from "./lib/keys.ts";
import { canPin, describeMachine } from "./lib/machine.ts";
import { wholeNumber } from "./lib/options.ts";
import { type ServerUnderTest, startLatchkey, startServerUnderTest, stopServers } from "./lib/server-under-test.ts";
import { type Load, type Posts, Wrk } from "./lib/wrk.ts";

const IDENTIFIERS = 1_000;
const CONNECTIONS = 4;
const STREAMS = 8;
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
  // Its first call makes the namespace.
  await post(latchkey.url + LIMIT_PATH, { ...JSON_TYPE, ...rootKey }, bodies[0]!);
  await measure("limits: one descriptor, 1,000 values", latchkey, overGrpc, {
    calls: {
      method: "envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit",
      messages: Array.from({ length: IDENTIFIERS }, (_, i) => hexOf(rateLimitRequest(`user ${i}`))),
      expected: RATE_LIMIT_OK,
    },
    // As long as an answer of the service with a limit.
    bareAnswer: RATE_LIMIT_OK + "00".repeat(28),
    posts: { path: LIMIT_PATH, headers: { ...JSON_TYPE, ...rootKey }, bodies },
  });
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
}

async function measure(
  title: string,
  latchkey: ServerUnderTest,
  overGrpc: ServerUnderTest,
  { calls, bareAnswer, posts }: Asked,
): Promise<void> {
  const bare = await startServerUnderTest("lib/bare-http2-server.ts", [bareAnswer]);
  const wrk = new Wrk(posts, CONNECTIONS * STREAMS);
  const all: GrpcCalls = { ...calls, metadata: rootKey, connections: CONNECTIONS, streams: STREAMS };
  const p99s = new Map<string, number[]>();
  const run = async (url: string, length: number): Promise<Load> => {
    const load = await (url === latchkey.url ? wrk.run(url, length) : runGrpcLoad(url, length, all));
    p99s.set(url, [...(p99s.get(url) ?? []), load.p99Ms]);
    return load;
  };
  const servers = { "bare node:http2": bare, "latchkey, gRPC": overGrpc, "latchkey, HTTP": latchkey };
  try {
    await compare({ title, servers, wrk: { run }, rounds, seconds });
    for (const [name, { url }] of Object.entries(servers)) {
      // The first window warms up.
      const sorted = p99s
        .get(url)!
        .slice(1)
        .sort((a, b) => a - b);
      console.log(`  p99 at full load, ${name}: ${sorted[sorted.length >> 1]!.toFixed(2)} ms in the median`);
    }
    console.log();
  } finally {
    wrk.close();
    await bare.stop();
  }
}

function hexOf(message: Uint8Array): string {
  return Buffer.from(message).toString("hex");
}

function rateLimitRequest(value: string): Uint8Array {
  const writer = new MessageWriter();
  writer.string(1, "bench");
  writer.message(2, () => {
    writer.message(1, () => {
      writer.string(1, "user");
      writer.string(2, value);
    });
    writer.message(2, () => {
      writer.uint32(1, 1e9);
      // An hour.
      writer.uint32(2, 3);
    });
  });
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
