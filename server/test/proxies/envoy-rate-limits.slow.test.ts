/** deploy/proxies/envoy/rate-limits.yaml, run by Envoy: limits over gRPC, and what happens without the service. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { parse } from "yaml";
import { codeBlocks } from "../code-blocks.ts";
import { findTool, repository, tools } from "../deploy/tools.ts";
import { GrpcClient } from "../grpc/client.ts";
import { rateLimitRequest, readResponse, SHOULD_RATE_LIMIT } from "../grpc/rate-limit-messages.ts";
import { TestServer } from "../harness.ts";
import { eventually } from "../process.ts";
import { makeDirectory, type Service, startService } from "../services/service.ts";

const YAML = readFileSync(join(repository, "deploy/proxies/envoy/rate-limits.yaml"), "utf8");

describe("Envoy with limits over gRPC", () => {
  const server = new TestServer({ settings: { PORT: "0", GRPC_PORT: "0" } });
  let application: Server;
  let arrived = 0;
  let deny: Service;
  let pass: Service;

  before(async () => {
    await server.open();
    await server.service.listen();
    application = createServer((_request, response) => {
      arrived++;
      response.end("application");
    });
    await new Promise<void>((resolve) => application.listen(0, "127.0.0.1", resolve));
    await server.ok("ratelimits.limit", { namespace: "edge", identifier: "first", limit: 1, duration: 1_000, cost: 0 });
    deny = await startEnvoy(YAML);
    pass = await startEnvoy(YAML.replace("failure_mode_deny: true", "failure_mode_deny: false"));
  });
  after(async () => {
    await deny?.stop();
    await pass?.stop();
    await new Promise((resolve) => application.close(resolve));
    await server.close();
  });

  function startEnvoy(text: string): Promise<Service> {
    return startService(
      (port) => {
        const directory = makeDirectory("envoy", undefined);
        const file = join(directory, "envoy.yaml");
        const written = text
          .replace("lk_root_…", server.rootKey)
          .replace("port_value: 50051", `port_value: ${server.service.grpcAddress!.port}`)
          .replace("port_value: 9000", `port_value: ${(application.address() as AddressInfo).port}`)
          .replace("port_value: 8080", `port_value: ${port}`)
          .replaceAll("timeout: 0.25s", "timeout: 5s");
        writeFileSync(file, written);
        const args = ["--config-path", file, "--concurrency", "1", "--use-dynamic-base-id", "--log-level", "info"];
        return { program: findTool(tools.envoy), args, directory, account: undefined, stopSignal: "SIGTERM" };
      },
      /starting main dispatch loop/,
      (port) => `http://127.0.0.1:${port}`,
    );
  }

  const get = (proxy: Service, path: string) => fetch(`${proxy.url}${path}`);
  const set = (identifier: string, limit: number) =>
    server.ok("ratelimits.setOverride", { namespace: "edge", identifier, limit, duration: 60_000 });

  it("limits a path by an override, and lets others pass", async () => {
    await set("path=/login", 2);
    await eventually("Envoy to ask", async () => (await get(deny, "/other")).status === 200);
    for (const left of [1, 0]) {
      const reply = await get(deny, "/login");
      assert.equal(reply.status, 200);
      assert.equal(reply.headers.get("x-ratelimit-remaining"), String(left));
      assert.match(reply.headers.get("x-ratelimit-limit")!, /^2, 2;w=60/);
    }
    const before = arrived;
    assert.equal((await get(deny, "/login")).status, 429);
    assert.equal(arrived, before);
    assert.equal((await get(deny, "/other")).status, 200);
  });

  it("limits each address by the tree of docs/gateways.md, whatever query the path has", async () => {
    const page = readFileSync(join(repository, "docs/gateways.md"), "utf8");
    const { code } = codeBlocks(page).find(({ name }) => name === "latchkey.yaml")!;
    const [{ name: namespace, descriptors }] = parse(code).namespaces;
    await server.ok("ratelimits.setDescriptors", { namespace, descriptors });
    for (let i = 0; i < 5; i++) assert.equal((await get(deny, `/login/form?a=${i}`)).status, 200);
    assert.equal((await get(deny, "/login/form?a=more")).status, 429);
    assert.equal((await get(deny, "/login/form")).status, 429);
    assert.equal((await get(deny, "/other")).status, 200);

    const client = new GrpcClient(`http://127.0.0.1:${server.service.grpcAddress!.port}`, server.rootKey);
    const entries: [string, string][] = [
      ["remote_address", "203.0.113.9"],
      ["path", "/login"],
    ];
    const { body } = await client.call(SHOULD_RATE_LIMIT, rateLimitRequest(namespace, [{ entries, hits: 1 }]));
    assert.equal(readResponse(body).statuses[0]!.remaining, 4);
    await client.close();
    await server.ok("ratelimits.setDescriptors", { namespace, descriptors: [] });
  });

  it("asks for a descriptor that another client sees too", async () => {
    const client = new GrpcClient(`http://127.0.0.1:${server.service.grpcAddress!.port}`, server.rootKey);
    const { body } = await client.call(
      SHOULD_RATE_LIMIT,
      rateLimitRequest("edge", [{ entries: [["path", "/login"]], hits: 0 }]),
    );
    assert.equal(readResponse(body).statuses[0]!.remaining, 0);
    await client.close();
  });

  it("answers thousands of requests over connections that end by their age, all of them", async () => {
    const statuses = new Map<number, number>();
    for (let round = 0; round < 100; round++) {
      const replies = await Promise.all(Array.from({ length: 20 }, () => get(deny, "/other")));
      for (const reply of replies) {
        await reply.text();
        statuses.set(reply.status, (statuses.get(reply.status) ?? 0) + 1);
      }
      // Ten ages of a connection pass.
      await server.advance(30_000);
    }
    assert.deepEqual([...statuses], [[200, 2_000]]);
  });

  it("rejects or passes requests while the service is away, as failure_mode_deny says", async () => {
    const address = server.service.grpcAddress!;
    assert(address.port > 0);
    const stopped = server.service.stop();
    await stopped;
    assert.equal((await get(deny, "/other")).status, 503);
    assert.equal((await get(pass, "/other")).status, 200);
  });
});
