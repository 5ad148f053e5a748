/**
 * The same calls to envoyproxy/ratelimit and to this service, with the same configuration: statuses, limits, names and what
 * remains. The original comes from the module proxy of Go; without Go, the proxy or Redis the test is skipped. What differs
 * on purpose is listed, and has to differ.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { parse } from "yaml";
import { GrpcClient } from "../grpc/client.ts";
import { type Descriptor, rateLimitRequest, readResponse, SHOULD_RATE_LIMIT } from "../grpc/rate-limit-messages.ts";
import { TestServer } from "../harness.ts";
import { makeFolder } from "../process.ts";
import { freePort } from "../services/free-port.ts";
import { startRedis } from "../services/redis.ts";
import { type Service, startService } from "../services/service.ts";

const MODULE = "github.com/envoyproxy/ratelimit/src/service_cmd@v1.4.1-0.20260122083618-3fb702589d36";
const DAY = 4;

/** The cases of the original's integration tests, and of its documentation. Days, so that no window ends meanwhile. */
const configuration = `domain: side
descriptors:
  - { key: key1, rate_limit: { unit: day, requests_per_unit: 2 } }
  - { key: key1, value: exact, rate_limit: { unit: day, requests_per_unit: 5, name: exact } }
  - { key: block, rate_limit: { unit: day, requests_per_unit: 0 } }
  - { key: files, value: files/*, share_threshold: true, rate_limit: { unit: day, requests_per_unit: 3 } }
  - { key: apart, value: files/*, rate_limit: { unit: day, requests_per_unit: 1 } }
  - { key: order, value: a*, rate_limit: { unit: day, requests_per_unit: 11 } }
  - { key: order, value: ab*, rate_limit: { unit: day, requests_per_unit: 12 } }
  - { key: free, rate_limit: { unlimited: true } }
  - { key: shadow, shadow_mode: true, rate_limit: { unit: day, requests_per_unit: 1 } }
  - { key: quota, quota_mode: true, rate_limit: { unit: day, requests_per_unit: 1 } }
  - { key: general, rate_limit: { unit: day, requests_per_unit: 1, name: general } }
  - { key: special, rate_limit: { unit: day, requests_per_unit: 9, name: special, replaces: [{ name: general }] } }
  - { key: week, rate_limit: { unit: week, requests_per_unit: 4 } }
  - { key: month, rate_limit: { unit: month, requests_per_unit: 4 } }
  - { key: year, rate_limit: { unit: year, requests_per_unit: 4294967295 } }
  - key: tenant
    descriptors:
      - key: path
        value: /a
        rate_limit: { unit: day, requests_per_unit: 6 }
        descriptors: [{ key: verb, rate_limit: { unit: day, requests_per_unit: 7 } }]
      - { key: path, value: /none }
`;

type Call = readonly [descriptors: readonly Descriptor[], hits?: number];
const of = (...pairs: [string, string][]): Descriptor => ({ entries: pairs });
const times = (count: number, ...call: Call): Call[] => Array.from({ length: count }, () => call);

const same: readonly Call[] = [
  ...times(4, [of(["key1", "a"])]),
  ...times(2, [of(["key1", "b"])]),
  ...times(7, [of(["key1", "exact"])]),
  ...times(2, [of(["block", "x"])]),
  ...["files/a", "files/b", "files/a", "files/c", "other"].map((value): Call => [[of(["files", value])]]),
  ...["files/a", "files/b", "files/a"].map((value): Call => [[of(["apart", value])]]),
  ...["abc", "a", "ab", "b"].map((value): Call => [[of(["order", value])]]),
  ...times(2, [of(["free", "x"])], 1_000),
  ...times(3, [of(["shadow", "x"])]),
  ...times(2, [of(["general", "x"]), of(["special", "x"])]),
  ...times(2, [of(["special", "x"]), of(["general", "x"]), of(["unknown", "x"])]),
  [[of(["general", "x"])]],
  [[of(["week", "x"]), of(["month", "x"]), of(["year", "x"])]],
  [[of(["tenant", "t"])]],
  [[of(["tenant", "t"], ["path", "/a"])]],
  [[of(["tenant", "t"], ["path", "/b"])]],
  [[of(["tenant", "t"], ["path", "/none"])]],
  [[of(["tenant", "t"], ["path", "/a"], ["verb", "GET"])]],
  [[of(["tenant", "t"], ["path", "/a"], ["verb", "GET"], ["more", "x"])]],
  [[of(["path", "/a"], ["tenant", "t"])]],
  // A limit of the call, and hits of a descriptor.
  ...times(3, [{ ...of(["key1", "own"]), limit: [2, DAY] }]),
  [[{ ...of(["tenant", "h"], ["path", "/a"]), hits: 2 }], 5],
  [[{ ...of(["tenant", "h"], ["path", "/a"]), hits: 0 }], 5],
  [[of(["tenant", "h"], ["path", "/a"])], 3],
  [[of(["tenant", "h"], ["path", "/a"])], 0],
  // All are counted, also when one is over.
  ...times(2, [of(["block", "x"]), of(["tenant", "all"], ["path", "/a"])]),
];

/** What differs, and why. Each begins with values of its own. */
const different: readonly (readonly [why: string, calls: readonly Call[]])[] = [
  ["over only when all quotas of the call are; the original's never are", times(2, [of(["quota", "x"])])],
  [
    "keys and values are compared apart; the original joins them by '_'",
    [[[of(["tenant_x", "y"], ["path", "/a"])]], [[of(["key1_exact", ""])]]],
  ],
];

describe("envoyproxy/ratelimit beside this service", () => {
  const undo: (() => Promise<void>)[] = [];
  after(async () => {
    for (const step of undo.reverse()) await step();
  });

  it("answers the same calls alike, and otherwise only where that is said (rule 148)", async (t) => {
    const directory = makeFolder(t);
    let original: Service;
    try {
      const env = { ...process.env, GOFLAGS: "-mod=mod", GOBIN: directory };
      execFileSync("go", ["install", MODULE], { env, stdio: "pipe", timeout: 500_000 });
      const redis = await startRedis();
      undo.push(() => redis.stop());
      mkdirSync(join(directory, "runtime/ratelimit/config"), { recursive: true });
      writeFileSync(join(directory, "runtime/ratelimit/config/side.yaml"), configuration);
      const [http, debug] = [await freePort(), await freePort()];
      original = await startService(
        (port) => ({
          program: join(directory, "service_cmd"),
          args: [],
          directory,
          account: undefined,
          environment: {
            GRPC_HOST: "127.0.0.1",
            GRPC_PORT: String(port),
            HOST: "127.0.0.1",
            PORT: String(http),
            DEBUG_HOST: "127.0.0.1",
            DEBUG_PORT: String(debug),
            USE_STATSD: "false",
            REDIS_SOCKET_TYPE: "tcp",
            REDIS_URL: new URL(redis.url).host,
            RUNTIME_ROOT: join(directory, "runtime"),
            RUNTIME_SUBDIRECTORY: "ratelimit",
            RUNTIME_WATCH_ROOT: "false",
            LOG_LEVEL: "info",
          },
          stopSignal: "SIGTERM",
        }),
        /Listening for gRPC/i,
        (port) => `http://127.0.0.1:${port}`,
      );
      undo.push(() => original.stop());
    } catch (error) {
      return t.skip(`the original does not run: ${(error as Error).message.slice(0, 300)}`);
    }
    const server = await new TestServer({ settings: { PORT: "0", GRPC_PORT: "0" } }).open();
    undo.push(() => server.close());
    await server.service.listen();
    const namespace = "side";
    await server.ok("ratelimits.limit", { namespace, identifier: "first", limit: 1, duration: 1_000, cost: 0 });
    const { descriptors } = parse(configuration);
    await server.ok("ratelimits.setDescriptors", { namespace, descriptors });
    const theirs = new GrpcClient(original.url);
    const ours = new GrpcClient(`http://127.0.0.1:${server.service.grpcAddress!.port}`, server.rootKey);
    undo.push(
      () => theirs.close(),
      () => ours.close(),
    );

    const ask = async (client: GrpcClient, [asked, hits]: Call) => {
      const { status, message, body } = await client.call(SHOULD_RATE_LIMIT, rateLimitRequest(namespace, asked, hits));
      assert.equal(status, 0, message);
      const { code, statuses } = readResponse(body);
      // Windows slide here, so resets are compared only in being there.
      return { code, statuses: statuses.map(({ reset, ...rest }) => ({ ...rest, hasReset: reset !== undefined })) };
    };
    let compared = 0;
    for (const call of same) {
      assert.deepEqual(await ask(ours, call), await ask(theirs, call), JSON.stringify(call));
      compared++;
    }
    for (const [why, calls] of different) {
      const [here, there]: [unknown[], unknown[]] = [[], []];
      for (const call of calls) {
        here.push(await ask(ours, call));
        there.push(await ask(theirs, call));
      }
      assert.notDeepEqual(here, there, why);
    }
    t.diagnostic(`${compared} calls were answered alike`);
    assert(compared > 50);
  });
});
