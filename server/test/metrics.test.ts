/** The output of `/metrics`, and whether it is correct. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, it } from "node:test";
import inject from "light-my-request";
import { readConfig } from "../src/platform/config/config.ts";
import { ConfigurationError } from "../src/platform/config/env.ts";
import { openTestServer, TestServer } from "./harness.ts";
import { makeFolder, start } from "./process.ts";
import { type Exposed, parseExposition } from "./prometheus.ts";
import { freePort } from "./services/free-port.ts";

async function scrape(server: TestServer): Promise<Exposed> {
  const { statusCode, headers, payload } = await inject(server.service.dispatch, { method: "GET", url: "/metrics" });
  assert.equal(statusCode, 200);
  assert.match(String(headers["content-type"]), /^text\/plain; version=0\.0\.4; charset=utf-8$/);
  return parseExposition(payload);
}

describe("/metrics", () => {
  const server = new TestServer();
  before(() => server.open());
  after(() => server.close());

  /** By labels: how much each counter of this name increased during `action`; unchanged ones are omitted. */
  async function moved(name: string, act: () => Promise<unknown>): Promise<Record<string, number>> {
    const before = (await scrape(server)).values(name);
    await act();
    const differences = [...(await scrape(server)).values(name)].map(
      ([labels, value]) => [labels, value - (before.get(labels) ?? 0)] as const,
    );
    return Object.fromEntries(differences.filter(([, difference]) => difference !== 0));
  }

  it("is in Prometheus' text format, with a help text and a type for every metric", async () => {
    await server.verify("unknown");
    const exposed = await scrape(server);
    for (const [name, { type, help }] of exposed.families) {
      assert.notEqual(help, "", name);
      if (name.startsWith("latchkey_")) {
        assert.equal(name.endsWith("_total"), type === "counter", name);
        assert.match(help, /^[A-Z1].*\.$/, name);
      }
    }
    for (const name of ["process_cpu_seconds_total", "process_resident_memory_bytes", "nodejs_eventloop_lag_seconds"]) {
      assert(exposed.families.has(name), name);
    }
  });

  it("is described in docs/observability.md, name by name", async () => {
    const described = readFileSync(new URL("../../docs/observability.md", import.meta.url), "utf8").split("\n");
    for (const name of (await scrape(server)).families.keys()) {
      if (!name.startsWith("latchkey_")) continue;
      // In full, or abbreviated after a related name.
      const isNamed = described.some((line) => {
        const names = [...line.matchAll(/`([a-z_]+)`/g)].map(([, text]) => text!);
        const stem = /^latchkey_[a-z]+/.exec(name)![0];
        return names.includes(name) || (line.includes(`\`${stem}`) && names.includes(name.slice(stem.length)));
      });
      assert(isNamed, `${name} is missing in the table of docs/observability.md.`);
    }
  });

  it("answers GET and HEAD, and no other method", async () => {
    const head = await inject(server.service.dispatch, { method: "HEAD", url: "/metrics" });
    assert.equal(head.statusCode, 200);
    assert.equal((await server.request("POST", "/metrics")).problem, "method_not_allowed");
  });

  it("counts calls by operation and status, as many as were made", async () => {
    const apiId = await server.createApi();
    const made = await moved("latchkey_calls_total", async () => {
      const { key } = await server.createKey(apiId);
      for (let i = 0; i < 7; i++) await server.verify(key);
      for (let i = 0; i < 2; i++) await server.rejected("keys.verifyKey", {}, "invalid_input");
      await server.rejected("keys.verifyKey", { key }, "authentication_failed", { as: "unknown" });
      await server.rejected("apis.getApi", { apiId: "api_unknown" }, "api_not_found");
      await server.rejected("apis.getApi", { apiId }, "authentication_missing", { as: null });
      // Requests that never became a call are not counted.
      await server.request("POST", "/v2/keys.unheardOf");
      await server.request("GET", "/health/live");
    });
    assert.deepEqual(made, {
      'operation="keys.createKey",status="200"': 1,
      'operation="keys.verifyKey",status="200"': 7,
      'operation="keys.verifyKey",status="400"': 2,
      'operation="keys.verifyKey",status="401"': 1,
      'operation="apis.getApi",status="401"': 1,
      'operation="apis.getApi",status="404"': 1,
    });
  });

  it("counts failures of the service too", async () => {
    const made = await moved("latchkey_calls_total", async () => {
      server.store.interception = () => Promise.reject(new Error("broken"));
      await server.rejected("apis.createApi", { name: "never" }, "unexpected_error");
      server.store.interception = undefined;
    });
    assert.deepEqual(made, { 'operation="apis.createApi",status="500"': 1 });
  });

  it("counts verifications by their codes", async () => {
    const apiId = await server.createApi();
    const limit = { name: "calls", limit: 1, duration: 60_000, autoApply: true };
    const keys = {
      VALID: await server.createKey(apiId),
      DISABLED: await server.createKey(apiId, { enabled: false }),
      EXPIRED: await server.createKey(apiId, { expires: server.clock.now() + 1_000 }),
      USAGE_EXCEEDED: await server.createKey(apiId, { credits: { remaining: 0 } }),
      RATE_LIMITED: await server.createKey(apiId, { ratelimits: [limit] }),
    };
    await server.advance(1_000);
    const made = await moved("latchkey_verifications_total", async () => {
      for (const { key } of Object.values(keys)) await server.verify(key);
      await server.verify(keys.RATE_LIMITED.key);
      for (let i = 0; i < 3; i++) await server.verify("unknown");
      await server.verify(keys.VALID.key, { permissions: "documents.read" });
    });
    assert.deepEqual(made, {
      'code="VALID"': 2,
      'code="DISABLED"': 1,
      'code="EXPIRED"': 1,
      'code="USAGE_EXCEEDED"': 1,
      'code="RATE_LIMITED"': 1,
      'code="NOT_FOUND"': 3,
      'code="INSUFFICIENT_PERMISSIONS"': 1,
    });
  });

  it("distinguishes look-ups that memory answered from the others", async () => {
    const { key } = await server.createKey(await server.createApi());
    const counted = async (act: () => Promise<unknown>) => {
      const names = ["hits", "misses", "loads"].map((name) => `latchkey_directory_${name}_total`);
      const before = await scrape(server);
      await act();
      const after = await scrape(server);
      return names.map((name) => after.value(name, 'kind="keys"') - before.value(name, 'kind="keys"'));
    };
    const [hits, misses, loads] = await counted(() => server.verify(key));
    assert.deepEqual({ hits, loads }, { hits: 0, loads: 1 });
    assert(misses! >= 1);
    const warm = async () => {
      for (let i = 0; i < 10; i++) await server.verify(key);
    };
    assert.deepEqual(await counted(warm), [10, 0, 0]);
    const exposed = await scrape(server);
    assert(exposed.value("latchkey_directory_entries", 'kind="keys"') >= 1);
    assert(exposed.value("latchkey_directory_bytes", 'kind="keys"') > 0);
    for (const kind of ["keys", "rootKeys", "sessions", "signInLinks", "leakReports"]) {
      assert.equal(exposed.value("latchkey_lookups_refused_total", `kind="${kind}"`), 0);
    }
    assert.equal(exposed.value("latchkey_database_reachable"), 1);
  });

  it("has histograms that contain as many calls as were counted", async () => {
    await server.createApi();
    const exposed = await scrape(server);
    // The parser has checked their buckets.
    const calls = new Map<string, number>();
    for (const [labels, count] of exposed.values("latchkey_calls_total")) {
      const operation = labels.split(",")[0]!;
      calls.set(operation, (calls.get(operation) ?? 0) + count);
    }
    assert.deepEqual(exposed.values("latchkey_call_duration_seconds_count"), calls);
  });
});

describe("/metrics of the real program", () => {
  it("measures the store for each of its procedures", async (t) => {
    const server = await start({ directory: makeFolder(t) });
    const scrape = async () => parseExposition(await (await fetch(`${server.address}/metrics`)).text());
    const before = await scrape();
    const { apiId } = await server.ok("apis.createApi", { name: "measured" });
    for (let i = 0; i < 4; i++) await server.ok("keys.createKey", { apiId });
    for (let i = 0; i < 3; i++) await server.ok("apis.getApi", { apiId });
    const after = await scrape();
    for (const [procedure, count] of [
      ["mutation", 5],
      ["query", 3],
    ] as const) {
      for (const name of ["latchkey_store_run_seconds_count", "latchkey_store_wait_seconds_count"]) {
        const labels = `procedure="${procedure}"`;
        assert.equal(after.value(name, labels) - (before.values(name).get(labels) ?? 0), count, `${name} ${labels}`);
      }
    }
    assert(after.value("latchkey_store_run_seconds_sum", 'procedure="mutation"') > 0);
    assert(after.value("process_resident_memory_bytes") > 10_000_000);
    await server.kill("SIGTERM");
  });
});

describe("LATCHKEY_METRICS", () => {
  it("off: the address does not exist, and nothing is counted", async () => {
    const server = await openTestServer({ settings: { METRICS: "off" } });
    try {
      assert.equal((await server.request("GET", "/metrics")).problem, "route_not_found");
      assert.equal((await server.verify("unknown")).code, "NOT_FOUND");
    } finally {
      await server.close();
    }
  });

  it("host:port: the metrics are there, and not at the service's address", async () => {
    const port = await freePort();
    const server = await openTestServer({ settings: { METRICS: `127.0.0.1:${port}`, PORT: "0" } });
    const address = `http://127.0.0.1:${port}`;
    try {
      const { port: main } = await server.service.listen();
      assert.equal((await server.request("GET", "/metrics")).problem, "route_not_found");
      const beside = await fetch(`http://127.0.0.1:${main}/metrics`);
      assert.equal(beside.status, 404);
      await beside.text();
      await server.verify("unknown");
      const response = await fetch(`${address}/metrics`);
      assert.equal(response.status, 200);
      const exposed = parseExposition(await response.text());
      assert.equal(exposed.value("latchkey_verifications_total", 'code="NOT_FOUND"'), 1);
      assert.equal(exposed.value("latchkey_calls_total", 'operation="keys.verifyKey",status="200"'), 1);
      for (const [method, path] of [
        ["GET", "/"],
        ["GET", "/health/live"],
        ["POST", "/metrics"],
        ["POST", "/v2/keys.verifyKey"],
      ] as const) {
        const other = await fetch(address + path, { method });
        assert.equal(other.status, 404, `${method} ${path}`);
        await other.text();
      }
      assert.equal((await fetch(`${address}/metrics`, { method: "HEAD" })).status, 200);
    } finally {
      await server.close();
    }
    await assert.rejects(fetch(`${address}/metrics`));
  });

  it("host:port that is in use stops the start", async (t) => {
    const taken = createServer().listen(0, "127.0.0.1");
    t.after(() => taken.close());
    await once(taken, "listening");
    const { port } = taken.address() as AddressInfo;
    const server = await openTestServer({ settings: { METRICS: `127.0.0.1:${port}`, PORT: "0" } });
    try {
      await assert.rejects(server.service.listen(), { code: "EADDRINUSE" });
    } finally {
      await server.close();
    }
  });

  it("is parsed as documented", () => {
    const read = (text: string | undefined) =>
      readConfig(new Map(text === undefined ? [] : [["METRICS", text]])).metrics;
    assert.equal(read(undefined), "on");
    assert.equal(read("on"), "on");
    assert.equal(read("off"), "off");
    assert.deepEqual(read("0.0.0.0:9464"), { host: "0.0.0.0", port: 9464 });
    assert.deepEqual(read("[::1]:9464"), { host: "::1", port: 9464 });
    assert.deepEqual(read("metrics.internal:1"), { host: "metrics.internal", port: 1 });
  });

  it("rejects everything else with the permitted values", () => {
    for (const text of [
      "",
      "yes",
      "ON",
      "true",
      "9464",
      ":9464",
      "127.0.0.1",
      "127.0.0.1:",
      "127.0.0.1:65536",
      "a:-1",
    ]) {
      assert.throws(
        () => readConfig(new Map([["METRICS", text]])),
        (error: unknown) =>
          error instanceof ConfigurationError &&
          error.message === `LATCHKEY_METRICS=${text}: give on, off, or an address such as 127.0.0.1:9464`,
        text,
      );
    }
  });
});
