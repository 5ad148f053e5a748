/** The transport: addresses, methods, bodies, and failures before or outside of an operation. */
import assert from "node:assert/strict";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { Server } from "node:http";
import { connect } from "node:net";
import { after, before, describe, it } from "node:test";
import { StoreUnavailable } from "../../engine/src/errors/store-unavailable.ts";
import { operations } from "../src/service/operations.ts";
import { examine, type Reply, TestServer } from "./harness.ts";

describe("transport", () => {
  const server = new TestServer();
  before(() => server.open());
  after(() => server.close());

  it("answers unknown addresses with the error envelope", async () => {
    for (const [method, path] of [
      ["GET", "/"],
      ["POST", "/v2/keys.unheardOf"],
      ["POST", "/v2/keys.verifyKey/"],
      ["POST", "/v2/KEYS.verifyKey"],
      ["POST", "/v1/keys.verifyKey"],
      ["GET", "/v2/"],
      ["DELETE", "/health"],
    ] as const) {
      const reply = await server.request(method, path);
      assert.equal(reply.problem, "route_not_found", `${method} ${path}`);
    }
    const odd = await server.request("GET", "/%zz");
    assert(odd.status < 500);
  });

  it("lists the methods of an address", async () => {
    for (const [method, path, allow] of [
      ["GET", "/v2/keys.verifyKey", "POST"],
      ["POST", "/v2/liveness", "GET"],
      ["PUT", "/v2/liveness", "GET"],
    ] as const) {
      const reply = await server.request(method, path);
      assert.equal(reply.problem, "method_not_allowed", `${method} ${path}`);
      assert.equal(reply.headers.allow, allow);
    }
  });

  it("reports its liveness", async () => {
    assert.deepEqual((await server.request("GET", "/v2/liveness")).body.data, { message: "we're cooking" });
    for (const path of ["/health/live", "/health/ready"]) {
      const { status, body } = await server.request("GET", path);
      assert.deepEqual([status, body], [200, { status: "ok" }]);
    }
  });

  it("ignores the query of an address", async () => {
    const { key } = await server.createKey(await server.createApi());
    for (const [path, body] of [
      ["/v2/keys.verifyKey?a=1", { key }],
      ["/v2/apis.createApi?a=1", { name: "queried" }],
    ] as const) {
      const headers = { "content-type": "application/json", authorization: `Bearer ${server.rootKey}` };
      const reply = await server.request("POST", path, { raw: JSON.stringify(body), headers });
      assert.equal(reply.status, 200);
    }
  });

  it("gives every request a unique id", async () => {
    const ids = new Set<string>();
    for (let i = 0; i < 50; i++) ids.add((await server.call("apis.getApi", {})).body.meta.requestId);
    assert.equal(ids.size, 50);
  });

  it("rejects a body that ends before its Content-Length", async () => {
    const headers = { "content-length": "1000" };
    const reply = await server.call("apis.createApi", undefined, { raw: '{"name":"short"}', headers });
    assert.equal(reply.problem, "request_body_unreadable");
  });

  it("hides the cause of an internal error, and logs it once (rule 11)", async () => {
    const { keyId, key } = await server.createKey(await server.createApi());
    for (const operation of operations) {
      const before = server.logged.length;
      // Each operation has an error of its own kind, because the log samples errors of one kind.
      const error = Object.assign(new Error("secret cause"), { name: `Failed ${operation.name}` });
      server.store.interception = () => Promise.reject(error);
      // With an uncached root key, every operation queries the database.
      const reply = await server.call(operation.name, { keyId, key }, { as: `unknown ${operation.name}` });
      server.store.interception = undefined;
      assert.equal(reply.problem, "unexpected_error");
      assert(!JSON.stringify(reply.body).includes("secret cause"));
      const lines = server.logged.slice(before);
      assert.equal(lines.length, 1);
      assert.match(JSON.stringify(lines), new RegExp(`${reply.body.meta.requestId}.*secret cause`));
    }
    assert.equal((await server.verify(key)).code, "VALID");
  });

  it("keeps all or nothing of a change whose commit was not confirmed", async () => {
    const apiId = await server.createApi();
    const before = await server.rows();
    server.store.interception = async (name, proceed) => {
      if (name !== "mutation") return proceed();
      throw new StoreUnavailable("lost before the commit");
    };
    await server.rejected("keys.createKey", { apiId }, "service_unavailable");
    server.store.interception = undefined;
    assert.deepEqual(await server.rows(), before);
  });
});

describe("an incomplete request", () => {
  it("is answered with 408 in the error envelope", async () => {
    const server = await new TestServer({ settings: { PORT: "0" } }).open();
    let http: Server | undefined;
    const record = (message: unknown) => {
      http = (message as { server: Server }).server;
    };
    try {
      const { port } = await server.service.listen();
      subscribe("http.server.request.start", record);
      await fetchText(port, "GET /health/live HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
      unsubscribe("http.server.request.start", record);
      // The timeout of the service, shortened. The service checks it periodically from the start of listening.
      Object.assign(http!, { requestTimeout: 20, headersTimeout: 20, connectionsCheckingInterval: 10 });
      http!.emit("listening");

      const text = await fetchText(port, "POST /v2/keys.verifyKey HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{");
      assert.equal(examineText(text).problem, "request_timeout");
      const garbage = await fetchText(port, "this is no HTTP\r\n\r\n");
      assert.equal(examineText(garbage).problem, "invalid_input");
    } finally {
      await server.close();
    }
  });
});

describe("a request without an operation", () => {
  const server = new TestServer({ settings: { PORT: "0" } });
  let port: number;
  before(async () => {
    await server.open();
    ({ port } = await server.service.listen());
  });
  after(() => server.close());

  const ask = async (...lines: string[]) => examineText(await fetchText(port, `${lines.join("\r\n")}\r\n\r\n`));

  for (const path of ["/v2/keys.verifyKey", "/v2/apis.createApi", "/health/live"]) {
    it(`is answered in the error envelope at ${path}`, async () => {
      const request = `POST ${path} HTTP/1.1`;
      const noHost = await ask(request, "Content-Length: 0");
      assert.equal(noHost.problem, "invalid_input");
      assert.match(noHost.body.error.errors[0].fix, /`Host`/);
      const expecting = await ask(
        request,
        "Host: x",
        "Expect: the-unexpected",
        "Content-Length: 2",
        "Connection: close",
      );
      assert.equal(expecting.problem, "expectation_failed");
      const long = await ask(request, "Host: x", `Cookie: ${"x".repeat(20_000)}`);
      assert.equal(long.problem, "request_headers_too_large");
      const framing = await ask(request, "Host: x", "Transfer-Encoding: gzip", "Content-Length: 3");
      assert.equal(framing.problem, "invalid_input");
      assert(framing.body.error.errors[0].fix);
    });
  }

  it("may be HTTP/1.0 without a host", async () => {
    const text = await fetchText(port, "GET /health/live HTTP/1.0\r\n\r\n");
    assert.match(text, /^HTTP\/1.1 200 /);
  });

  it("gets 100 Continue for Expect: 100-continue", async () => {
    const head = "POST /v2/keys.verifyKey HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n";
    const request = `${head}Expect: 100-continue\r\nContent-Length: 14\r\nConnection: close\r\n\r\n`;
    const text = await fetchText(port, request, '{"key":"none"}');
    assert.match(text, /^HTTP\/1.1 100 Continue\r\n\r\nHTTP\/1.1 200 /);
    // The body is there already.
    assert.match(await fetchText(port, `${request}{"key":"none"}`), /^HTTP\/1.1 200 /);
  });
});

/** Sends a text, then `later` when something arrives, and returns the whole answer until the connection is closed. */
function fetchText(port: number, request: string, later = ""): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    const socket = connect(port, "127.0.0.1", () => socket.write(request));
    socket
      .setEncoding("utf8")
      .once("data", () => later !== "" && socket.write(later))
      .on("data", (chunk) => {
        text += chunk;
      })
      .on("error", reject)
      .on("close", () => resolve(text));
  });
}

function examineText(text: string): Reply {
  const [head, body] = text.split("\r\n\r\n") as [string, string];
  const [status, ...fields] = head.split("\r\n");
  const headers = Object.fromEntries(
    fields.map((field) => [field.split(": ")[0]!.toLowerCase(), field.split(": ")[1]!]),
  );
  return examine(undefined, "", Number(status!.split(" ")[1]), headers, body);
}
