/** Paths in other spellings, and requests that name another host. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { after, before, describe, it } from "node:test";
import { MemorySocket } from "../fast-lane/memory-socket.ts";
import { examine, openTestServer, type TestServer } from "../harness.ts";
import { spellingsOf } from "../proxies/spellings.ts";

/** Each with the method that it answers to. */
const PATHS = [
  ["GET", "/metrics"],
  ["GET", "/health/live"],
  ["GET", "/health/ready"],
  ["GET", "/v2/liveness"],
  ["GET", "/auth/verify"],
  ["GET", "/openapi.json"],
  ["GET", "/errors/style.css"],
  ["GET", "/portal/page.js"],
  ["GET", "/dashboard/session"],
  ["POST", "/v2/keys.verifyKey"],
  ["POST", "/v2/rootKeys.createRootKey"],
  ["POST", "/leaks/verify"],
] as const;

interface Answer {
  status: number;
  text: string;
}

/** Sends a request target as it is; clients would change it. */
async function send(
  server: TestServer,
  {
    method,
    target,
    host = "keys.example",
    headers = "",
  }: Record<"method" | "target", string> & {
    host?: string;
    headers?: string;
  },
): Promise<Answer> {
  const socket = new MemorySocket("127.0.0.1");
  server.service.accept(socket);
  const body = method === "POST" ? "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}" : "\r\n";
  socket.push(`${method} ${target} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n${headers}${body}`, "latin1");
  if (!socket.writableFinished) await once(socket, "finish");
  socket.destroy();
  return { status: Number(socket.output.split(" ")[1]), text: socket.output };
}

for (const FAST_LANE of ["on", "off"]) {
  describe(`paths, with the fast lane ${FAST_LANE}`, () => {
    let server: TestServer;
    before(async () => {
      server = await openTestServer({ settings: { FAST_LANE } });
    });
    after(() => server.close());

    for (const [method, path] of PATHS) {
      it(`answers ${path} in this spelling only`, async () => {
        assert.notEqual((await send(server, { method, target: path })).status, 404);
        for (const target of spellingsOf(path)) {
          const { status, text } = await send(server, { method, target });
          // 400: the parser of HTTP rejects it.
          assert([404, 400].includes(status), `${target}: ${text.slice(0, 500)}`);
        }
      });
    }

    it("leaves the part of an address that belongs to the end user as it is", async () => {
      for (const target of ["/auth/verify/a%20b/%2e%2e//c?d=%6d", "/auth/verify/metrics#x"]) {
        const { status, text } = await send(server, {
          method: "GET",
          target,
          headers: "X-Latchkey-Auth: api=api_1\r\n",
        });
        assert.equal(status, 401, text);
        assert.match(text, /MISSING/);
      }
    });

    it("answers a target in absolute form, whose host counts instead of the Host header", async () => {
      const target = "http://keys.example:8080/v2/keys.verifyKey";
      assert.equal((await send(server, { method: "POST", target })).status, 400);
      for (const odd of ["http:///metrics", "http://a?b/metrics", "http://a#b/metrics", "http://a@b/metrics"]) {
        const { status, text } = await send(server, { method: "GET", target: odd });
        assert([404, 400].includes(status), `${odd}: ${text}`);
      }
    });
  });
}

describe("the host of the dashboard and of the portal", () => {
  const own = ["keys.example", "KEYS.example", "keys.example:443", "localhost:3000", "127.0.0.1:3000", "[::1]:3000"];
  const others = [
    "evil.example",
    "keys.example.evil.example",
    "127.0.0.1.evil.example",
    "keys.example@evil",
    "[::1].evil",
    "",
  ];
  const pages = [
    ["GET", "/"],
    ["GET", "/apis"],
    ["GET", "/dashboard/session"],
    ["POST", "/dashboard/session"],
    ["POST", "/dashboard/api/v2/keys.createKey"],
    ["GET", "/portal"],
    ["GET", "/portal/page.js"],
    ["POST", "/portal/api/listKeys"],
  ] as const;
  const open = [
    ["POST", "/v2/keys.verifyKey"],
    ["POST", "/v2/apis.createApi"],
    ["GET", "/v2/liveness"],
    ["GET", "/health/live"],
    ["GET", "/health/ready"],
    ["GET", "/metrics"],
    ["GET", "/auth/verify"],
    ["GET", "/errors"],
    ["GET", "/openapi.json"],
  ] as const;

  it("is the public one, this machine, or an address", async (t) => {
    const server = await openTestServer({ settings: { PUBLIC_URL: "https://keys.example/latchkey" } });
    t.after(() => server.close());
    for (const [method, target] of pages) {
      for (const host of own) {
        const { status, text } = await send(server, { method, target, host });
        assert.notEqual(status, 421, `${target} at ${host}: ${text}`);
      }
      for (const host of others) {
        const { status, text } = await send(server, { method, target, host });
        assert.equal(status, 421, `${target} at ${host}: ${text}`);
        assert.match(text, /https:\/\/keys\.example\/latchkey/);
      }
      const absolute = await send(server, { method, target: `http://evil.example${target}` });
      assert.equal(absolute.status, 421, absolute.text);
    }
    for (const [method, target] of open) {
      const { status, text } = await send(server, { method, target, host: "evil.example" });
      assert.notEqual(status, 421, `${target}: ${text}`);
    }
    const { text } = await send(server, { method: "GET", target: "/portal", host: "evil.example" });
    const requestId = /X-Request-Id: (\S+)/i.exec(text)![1]!;
    const headers = { "x-request-id": requestId, "content-type": "application/json" };
    const reply = examine(undefined, "/portal", 421, headers, text.slice(text.indexOf("\r\n\r\n") + 4));
    assert.equal(reply.problem, "misdirected_request");
  });

  it("is any, without a public address", async (t) => {
    const server = await openTestServer();
    t.after(() => server.close());
    for (const [method, target] of pages) {
      assert.notEqual((await send(server, { method, target, host: "evil.example" })).status, 421, target);
    }
  });
});
