/** deploy/proxies/envoy/envoy-grpc.yaml, run by Envoy: its filter `ext_authz` asks the service, or an edge of it, over gRPC. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import {
  Agent,
  createServer,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  request,
  type Server,
} from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { parse, stringify } from "yaml";
import { findTool, repository, tools } from "../deploy/tools.ts";
import { eventually, type Server as Latchkey, start, startEdge } from "../process.ts";
import { freePort } from "../services/free-port.ts";
import { makeDirectory, type Service, startService } from "../services/service.ts";

const REQUESTS = 10_000;
const AT_ONCE = 16;

interface Got {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** What the application got, as its answer in JSON. */
interface Received {
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
}

async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

/** How long after its revocation a key is accepted at most, in ms. */
const REVOCATION_MAX = { service: 0, edge: 1_000 } as const;

for (const asked of ["service", "edge"] as const) {
  describe(`Envoy, which asks the ${asked} over gRPC`, () => {
    const folder = mkdtempSync(join(tmpdir(), "latchkey-test-envoy-grpc-"));
    const application = createServer(({ url, headers }, response) => response.end(JSON.stringify({ url, headers })));
    const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE });
    let service: Latchkey;
    /** What Envoy asks. */
    let decider: Latchkey;
    let grpcPort: number;
    let rootKey: string;
    let edgeKey: string;
    let apiId: string;
    let applicationPort: number;
    const proxies: Service[] = [];

    async function startDecider(): Promise<Latchkey> {
      const grpc = { GRPC_PORT: String(grpcPort) };
      if (asked === "service") {
        service = await start({ directory: folder, settings: grpc });
        return service;
      }
      return startEdge(service, edgeKey, { directory: folder, settings: grpc });
    }

    /** Envoy with the file in deploy/, at the addresses of the test. */
    async function startEnvoy(change: (text: string) => string = (text) => text): Promise<Service> {
      const file = readFileSync(join(repository, "deploy/proxies/envoy/envoy-grpc.yaml"), "utf8");
      const program = findTool(tools.envoy);
      const envoy = await startService(
        (port) => {
          const directory = makeDirectory("envoy", undefined);
          const path = join(directory, "envoy.yaml");
          const text = file
            .replaceAll("api_123", apiId)
            .replaceAll("lk_root_…", rootKey)
            .replaceAll("port_value: 50051", `port_value: ${grpcPort}`)
            .replaceAll("port_value: 9000", `port_value: ${applicationPort}`)
            .replaceAll("8080", String(port));
          writeFileSync(path, change(text));
          const args = ["--config-path", path, "--concurrency", "1", "--disable-hot-restart"];
          return { program, args, directory, account: undefined, stopSignal: "SIGTERM" };
        },
        /starting workers/,
        (port) => `http://127.0.0.1:${port}`,
      );
      proxies.push(envoy);
      return envoy;
    }

    function send(envoy: Service, path: string, headers: OutgoingHttpHeaders = {}): Promise<Got> {
      return new Promise((resolve, reject) => {
        request(`${envoy.url}${path}`, { agent, headers }, (response) => {
          let text = "";
          response.setEncoding("utf8").on("data", (part) => {
            text += part;
          });
          response.once("end", () => resolve({ status: response.statusCode!, headers: response.headers, text }));
        })
          .once("error", reject)
          .end();
      });
    }

    const received = ({ text }: Got) => JSON.parse(text) as Received;
    const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
    const createKey = (more: object = {}): Promise<{ key: string; keyId: string }> =>
      service.ok("keys.createKey", { apiId, ...more });

    let envoy: Service;
    before(async () => {
      grpcPort = await freePort();
      applicationPort = await listening(application);
      if (asked === "service") decider = await startDecider();
      else service = await start({ directory: folder });
      apiId = (await service.ok("apis.createApi", { name: "documents" })).apiId;
      const permissions = [`apis.${apiId}.verify_key`];
      rootKey = (await service.ok("rootKeys.createRootKey", { name: "envoy", permissions })).key;
      if (asked === "edge") {
        const ofEdge = { name: "edge", permissions: [`replicas.${apiId}.open`] };
        edgeKey = (await service.ok("rootKeys.createRootKey", ofEdge)).key;
        decider = await startDecider();
      }
      envoy = await startEnvoy();
    });
    after(async () => {
      agent.destroy();
      for (const proxy of proxies) await proxy.stop();
      if (asked === "edge") await decider?.kill("SIGTERM");
      await service?.kill("SIGTERM");
      application.close();
      rmSync(folder, { recursive: true, force: true });
    });

    it("passes a valid key on, without it and with its owner", async () => {
      const { key, keyId } = await createKey({
        externalId: "acme",
        meta: { plan: "pro" },
        ratelimits: [{ name: "requests", limit: 5, duration: 60_000, autoApply: true }],
      });
      const got = await send(envoy, "/documents?page=2", bearer(key));
      assert.equal(got.status, 200, got.text);
      const { url, headers } = received(got);
      assert.equal(url, "/documents?page=2");
      assert.equal(headers.authorization, undefined);
      assert.equal(headers["x-latchkey-key-id"], keyId);
      assert.equal(headers["x-latchkey-owner"], "acme");
      assert.deepEqual(JSON.parse(decodeURIComponent(String(headers["x-latchkey-meta"]))), { plan: "pro" });
      assert.equal(headers["x-latchkey-remaining"], undefined);
      assert.match(String(got.headers["ratelimit-policy"]), /^"requests";q=5;w=60;pk=:[^:]+:$/);
    });

    it("answers as the service says for every other key", async () => {
      const { key: limited } = await createKey({
        ratelimits: [{ name: "requests", limit: 1, duration: 60_000, autoApply: true }],
      });
      const { key: poor } = await createKey({ credits: { remaining: 1 } });
      const { key: disabled } = await createKey({ enabled: false });
      for (const key of [limited, poor]) assert.equal((await send(envoy, "/", bearer(key))).status, 200);
      for (const [headers, status, code] of [
        [{}, 401, "MISSING"],
        [bearer("3kAqEg4u4qMxCGFAVMuGsb3cijGp"), 401, "NOT_FOUND"],
        [bearer(disabled), 401, "DISABLED"],
        [bearer(limited), 429, "RATE_LIMITED"],
        [bearer(poor), 402, "USAGE_EXCEEDED"],
        [{ authorization: [`Bearer ${disabled}`, `Bearer ${disabled}`] }, 401, "MALFORMED"],
      ] as const) {
        const got = await send(envoy, "/", headers as OutgoingHttpHeaders);
        const body = JSON.parse(got.text);
        assert.deepEqual([got.status, got.headers["x-latchkey-code"], body.error.code], [status, code, code]);
        assert.equal(got.headers["retry-after"] !== undefined, status === 429, code);
        assert.match(String(got.headers["content-type"]), status === 429 ? /problem\+json/ : /application\/json/);
      }
    });

    it("merges what a route needs with what all of them need", async () => {
      const { key: reader } = await createKey({ permissions: ["documents.read"] });
      const { key } = await createKey({ permissions: ["documents.*"], credits: { remaining: 15 } });
      assert.equal((await send(envoy, "/exports/1", bearer(reader))).status, 403);
      const got = await send(envoy, "/exports/1", bearer(key));
      assert.deepEqual([got.status, received(got).headers["x-latchkey-remaining"]], [200, "5"]);
      assert.equal((await send(envoy, "/exports/1", bearer(key))).status, 402);
    });

    it("lets no header of the end user arrive as one of the service", async () => {
      const { key, keyId } = await createKey();
      const names = ["Code", "Key-Id", "Owner", "Meta", "Remaining"].flatMap((name) => [
        `X-Latchkey-${name}`,
        `x.latchkey.${name}`,
        `X-LATCHKEY-${name.toUpperCase()}-Extra`,
      ]);
      const got = await send(envoy, "/", {
        ...bearer(key),
        ...Object.fromEntries(names.map((name) => [name, "forged"])),
      });
      assert.equal(got.status, 200);
      const { headers } = received(got);
      assert(!JSON.stringify(headers).includes("forged"), got.text);
      assert.equal(headers["x-latchkey-key-id"], keyId);
      assert.equal((await send(envoy, "/", { ...bearer(key), x_latchkey_owner: "forged" })).status, 400);
    });

    it(`passes ${REQUESTS} requests until the key is revoked, and none afterwards`, async (t) => {
      const { key, keyId } = await createKey();
      const statuses = { before: new Map<number, number>(), after: new Map<number, number>() };
      const of = (counts: Map<number, number>) => [...counts.values()].reduce((sum, count) => sum + count, 0);
      let deadFrom = Number.POSITIVE_INFINITY;
      let sent = 0;
      const worker = async () => {
        while (sent < REQUESTS || of(statuses.after) <= 100) {
          const number = sent++;
          // Before it is sent.
          const isAfter = performance.now() >= deadFrom;
          const { status } = await send(envoy, "/", bearer(key));
          const counts = isAfter ? statuses.after : number < REQUESTS / 2 ? statuses.before : undefined;
          counts?.set(status, (counts.get(status) ?? 0) + 1);
        }
      };
      const revoke = async () => {
        await eventually("half of the requests", () => sent >= REQUESTS / 2);
        await service.ok("keys.updateKey", { keyId, enabled: false });
        deadFrom = performance.now() + REVOCATION_MAX[asked];
      };
      await Promise.all([revoke(), ...Array.from({ length: AT_ONCE }, worker)]);
      t.diagnostic(`before: ${JSON.stringify([...statuses.before])}; after: ${JSON.stringify([...statuses.after])}`);
      assert.deepEqual([...statuses.before], [[200, REQUESTS / 2]]);
      assert.deepEqual([...statuses.after.keys()], [401]);
    });

    it("lets nothing pass while it is away, unless failure_mode_allow says so", async () => {
      const open = await startEnvoy((text) => text.replace("failure_mode_allow: false", "failure_mode_allow: true"));
      const wrong = await startEnvoy((text) => text.replaceAll(rootKey, `${rootKey}x`));
      const { key } = await createKey();
      for (const proxy of [envoy, open]) assert.equal((await send(proxy, "/", bearer(key))).status, 200);
      // A wrong root key decides nothing either.
      assert.equal((await send(wrong, "/", bearer(key))).status, 503);
      await decider.kill("SIGKILL");
      assert.equal((await send(envoy, "/", bearer(key))).status, 503);
      const passed = await send(open, "/", { ...bearer("invented"), "x-latchkey-owner": "forged" });
      assert.equal(passed.status, 200);
      decider = await startDecider();
      await eventually(
        `the ${asked} to answer again`,
        async () => (await send(envoy, "/", bearer(key))).status === 200,
      );
      assert.equal((await send(open, "/", bearer("invented"))).status, 401);
    });

    it("gets metadata that its access log shows", async () => {
      const log = join(folder, "access.log");
      const logging = await startEnvoy((text) => {
        const config = parse(text);
        config.static_resources.listeners[0].filter_chains[0].filters[0].typed_config.access_log = [
          {
            name: "envoy.access_loggers.file",
            typed_config: {
              "@type": "type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog",
              path: log,
              log_format: {
                text_format_source: { inline_string: "%DYNAMIC_METADATA(envoy.filters.http.ext_authz)%\n" },
              },
            },
          },
        ];
        return stringify(config);
      });
      const { key, keyId } = await createKey({
        externalId: "acme",
        meta: { plan: "pro", seats: 0 },
        credits: { remaining: 3 },
        ratelimits: [{ name: "requests", limit: 5, duration: 60_000, autoApply: true }],
      });
      assert.equal((await send(logging, "/", bearer(key))).status, 200);
      const lines = () =>
        readFileSync(log, "utf8")
          .trim()
          .split("\n")
          .filter((line) => line.startsWith("{"));
      await eventually("the access log", () => lines().length > 0);
      // Envoy adds how long it waited.
      const { limits, ext_authz_duration: _, ...metadata } = JSON.parse(lines()[0]!);
      assert.deepEqual(metadata, {
        code: "VALID",
        key_id: keyId,
        api_id: apiId,
        owner: "acme",
        remaining: 2,
        meta: { plan: "pro", seats: 0 },
        limit: { requests_per_unit: 5, unit: "MINUTE" },
      });
      assert.equal(limits[0].remaining, 4);
    });
  });
}
