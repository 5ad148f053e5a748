/** Input is bounded: time, connections, sizes, and look-ups of unknown keys. Each bound has an error that names it. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { after, before, describe, it } from "node:test";
import { promisify } from "node:util";
import inject from "light-my-request";
import { seededRandom } from "../../engine/src/random/seeded.ts";
import { formatKey } from "../../engine/src/rules/key-string.ts";
import { readConfig } from "../src/platform/config/config.ts";
import { describeOnStores, examine, openTestServer, type Reply, TestServer } from "./harness.ts";

const run = promisify(execFile);

/** A connection and the bytes received over it. */
class Caller {
  readonly socket: Socket;
  text = "";
  readonly closed: Promise<unknown>;

  constructor(port: number) {
    this.socket = connect(port, "127.0.0.1");
    this.socket.setEncoding("utf8").on("data", (chunk) => {
      this.text += chunk;
    });
    this.closed = once(this.socket, "close");
  }

  /** Sends a text, without closing the connection. */
  send(text: string): this {
    this.socket.write(text);
    return this;
  }

  /** Sends a request and waits for the head of its answer. */
  async ask(text: string): Promise<void> {
    this.send(text);
    while (!this.text.includes("\r\n\r\n")) await once(this.socket, "data");
  }

  /** The only answer before the connection is closed. */
  async onlyAnswer(): Promise<Reply> {
    // A rejected body is read for a while, because its sender has to see the answer first.
    this.socket.on("data", () => {
      if (this.text.startsWith("HTTP/1.1 413 ") && this.text.endsWith("}")) this.socket.end();
    });
    await this.closed;
    const [head, body] = this.text.split("\r\n\r\n") as [string, string];
    const [status, ...fields] = head.split("\r\n");
    const headers = Object.fromEntries(
      fields.map((field) => [field.split(": ")[0]!.toLowerCase(), field.split(": ")[1]!]),
    );
    assert.equal(headers.connection, "close");
    assert.equal(Number(headers["content-length"]), Buffer.byteLength(body));
    return examine(undefined, "", Number(status!.split(" ")[1]), headers, body);
  }
}

function post(path: string, rootKey: string, body: string, length: number | string = Buffer.byteLength(body)): string {
  const headers = ["Host: x", "Content-Type: application/json", `Authorization: Bearer ${rootKey}`];
  headers.push(typeof length === "number" ? `Content-Length: ${length}` : length);
  return `POST ${path} HTTP/1.1\r\n${headers.join("\r\n")}\r\n\r\n${body}`;
}

const LIVENESS_REQUEST = "GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n";

describe("a request that takes too long", () => {
  // Long enough for a request that a busy machine delays.
  const server = new TestServer({ settings: { PORT: "0", HEADERS_TIMEOUT: "500ms", REQUEST_TIMEOUT: "1s" } });
  let port: number;
  before(async () => {
    await server.open();
    ({ port } = await server.service.listen());
  });
  after(() => server.close());

  it("in its headers gets 408", async () => {
    const reply = await new Caller(port).send("POST /v2/keys.verifyKey HTTP/1.1\r\nHost: x\r\nX-Slow: ").onlyAnswer();
    assert.equal(reply.problem, "request_timeout");
  });

  it("before its first byte gets 408", async () => {
    assert.equal((await new Caller(port).onlyAnswer()).problem, "request_timeout");
  });

  for (const path of ["/v2/keys.verifyKey", "/v2/apis.createApi"]) {
    it(`in the body of ${path} gets 408, and changes nothing`, async () => {
      const before = await server.rows();
      const caller = new Caller(port).send(post(path, server.rootKey, '{"name":"slow"', 100));
      assert.equal((await caller.onlyAnswer()).problem, "request_timeout");
      await server.store.settled();
      assert.deepEqual(await server.rows(), before);
    });
  }

  it("does not block others", async () => {
    const slow = Array.from({ length: 20 }, () => new Caller(port).send("GET /health/live HTTP/1.1\r\nX-Slow: "));
    const other = new Caller(port);
    await other.ask(LIVENESS_REQUEST);
    assert.match(other.text, /^HTTP\/1\.1 200 /);
    other.socket.destroy();
    for (const caller of slow) assert.equal((await caller.onlyAnswer()).problem, "request_timeout");
  });
});

describe("a connection beyond the maximum", () => {
  const server = new TestServer({ settings: { PORT: "0", CONNECTIONS_MAX: "2" } });
  let port: number;
  before(async () => {
    await server.open();
    ({ port } = await server.service.listen());
  });
  after(() => server.close());

  it("gets 503 with Retry-After, and its request is not executed", async () => {
    const callers = [new Caller(port), new Caller(port)];
    for (const caller of callers) await caller.ask(LIVENESS_REQUEST);
    for (const request of [
      "",
      LIVENESS_REQUEST,
      "no HTTP at all\r\n\r\n",
      post("/v2/apis.createApi", server.rootKey, '{"name":"too many"}'),
    ]) {
      const rejected = new Caller(port).send(request);
      const reply = await rejected.onlyAnswer();
      assert.equal(reply.problem, "service_unavailable");
      assert.equal(reply.headers["retry-after"], "1");
      assert.match(reply.body.error.detail, /maximum number of connections/);
    }
    // Changes are made one after the other, so every earlier call has ended before this one.
    await server.createApi("in turn");
    const apis = JSON.stringify((await server.rows()).apis);
    assert(apis.includes("in turn") && !apis.includes("too many"));

    // The existing connections work all the time, and free their places when they close.
    for (const caller of callers) {
      caller.text = "";
      await caller.ask(LIVENESS_REQUEST);
      assert.match(caller.text, /^HTTP\/1\.1 200 /);
    }
    callers[0]!.socket.destroy();
    await callers[0]!.closed;
    for (let served = false; !served; ) {
      const next = new Caller(port);
      await next.ask(LIVENESS_REQUEST);
      served = next.text.startsWith("HTTP/1.1 200 ");
      next.socket.destroy();
      await next.closed;
    }
    callers[1]!.socket.destroy();
  });

  it("does not delay the stop of the service when it stays open", async () => {
    const other = await openTestServer({ settings: { PORT: "0", CONNECTIONS_MAX: "1" } });
    const { port } = await other.service.listen();
    const first = new Caller(port);
    await first.ask(LIVENESS_REQUEST);
    const openConnections = Array.from({ length: 300 }, () => {
      const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
      return { socket, closed: new Promise((resolve) => socket.on("error", () => {}).once("close", resolve)) };
    });
    await Promise.all(openConnections.map(({ socket }) => once(socket, "connect")));
    await Promise.all(openConnections.slice(-1).map(({ socket }) => once(socket, "readable")));
    await other.close();
    for (const { socket } of openConnections) socket.destroy();
    await Promise.all(openConnections.map(({ closed }) => closed));
  });
});

describe("a body that is too large", () => {
  const KIBIBYTE = 1_024;
  const server = new TestServer({ settings: { PORT: "0", BODY_BYTES: "128k" } });
  let port: number;
  before(async () => {
    await server.open();
    ({ port } = await server.service.listen());
  });
  after(() => server.close());

  /** JSON of this many bytes that is invalid for every operation. */
  const bodyOf = (bytes: number) => JSON.stringify({ x: "x".repeat(bytes - '{"x":""}'.length) });

  for (const [path, kibibytes] of [
    ["/v2/apis.createApi", 128],
    ["/v2/keys.verifyKey", 64],
    // This path bypasses the short path for metered operations.
    ["/v2/keys.verifyKey?long=1", 64],
  ] as const) {
    it(`of ${path} gets 413 from the first byte over ${kibibytes} KiB`, async () => {
      const bytes = kibibytes * KIBIBYTE;
      const headers = { "content-type": "application/json", authorization: `Bearer ${server.rootKey}` };
      const ask = (raw: string) => server.request("POST", path, { raw, headers });
      assert.equal((await ask(bodyOf(bytes))).problem, "invalid_input");
      const reply = await ask(bodyOf(bytes + 1));
      assert.equal(reply.problem, "request_body_too_large");
      assert.match(reply.body.error.detail, new RegExp(`larger than the ${bytes} bytes`));
    });

    it(`of ${path} gets 413 over a connection, with a Content-Length or in chunks`, async () => {
      const body = bodyOf(kibibytes * KIBIBYTE + 1);
      const chunked = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
      for (const request of [
        post(path, server.rootKey, body),
        post(path, server.rootKey, chunked, "Transfer-Encoding: chunked"),
      ]) {
        const reply = await new Caller(port).send(request).onlyAnswer();
        assert.equal(reply.problem, "request_body_too_large");
      }
    });
  }

  it("is rejected by its Content-Length before it is sent", async () => {
    const reply = await new Caller(port).send(post("/v2/apis.createApi", server.rootKey, "", 2 ** 31)).onlyAnswer();
    assert.equal(reply.problem, "request_body_too_large");
  });

  it("is discarded on 256 connections at most, and ends the oldest", async (t) => {
    const callers: Caller[] = [];
    t.after(() => {
      for (const { socket } of callers) socket.destroy();
    });
    for (let i = 0; i < 258; i++) {
      const caller = new Caller(port);
      callers.push(caller);
      await caller.ask(post("/v2/apis.createApi", server.rootKey, "", 2 ** 31));
    }
    await Promise.all(callers.slice(0, 2).map(({ closed }) => closed));
    assert(callers.slice(2).every(({ socket }) => !socket.readableEnded));
  });

  it("in the headers is rejected too", async () => {
    const caller = new Caller(port).send(
      `GET /health/live HTTP/1.1\r\nHost: x\r\nX-Long: ${"x".repeat(20_000)}\r\n\r\n`,
    );
    assert.equal((await caller.onlyAnswer()).problem, "request_headers_too_large");
  });

  it("is answered to a client that continues to send", async () => {
    // In a separate process: in this one, the client would read the answer before it could send more.
    const script = `
      const [url, rootKey] = process.argv.slice(1);
      const body = new Uint8Array(11 * 1024 * 1024);
      const headers = { "content-type": "application/json", authorization: "Bearer " + rootKey };
      const outcomes = {};
      for (let call = 0; call < 20; call++) {
        const outcome = await fetch(url, { method: "POST", headers, body }).then(
          async (response) => response.status + " " + (await response.json()).error.title,
          (error) => error.cause?.code ?? error.message,
        );
        outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
      }
      console.log(JSON.stringify(outcomes));`;
    for (const path of ["/v2/apis.createApi", "/v2/keys.verifyKey", "/v2/keys.verifyKey?long=1"]) {
      const url = `http://127.0.0.1:${port}${path}`;
      const { stdout } = await run(process.execPath, ["--input-type=module", "-e", script, url, server.rootKey]);
      assert.deepEqual(JSON.parse(stdout), { "413 Request Entity Too Large": 20 }, path);
    }
  });

  it("keeps the connection for a bounded time only", async () => {
    for (const path of ["/v2/apis.createApi", "/v2/keys.verifyKey"]) {
      const caller = new Caller(port).send(post(path, server.rootKey, "x".repeat(200 * KIBIBYTE), 2 ** 31));
      while (!caller.text.includes("request_body_too_large")) await once(caller.socket, "data");
      await server.pass(5_000);
      await caller.closed;
    }
  });
});

describeOnStores(
  "keys that do not exist",
  (server) => {
    const random = seededRandom(4);
    /** Well-formed, with a valid checksum. */
    const invent = (prefix = "inv") =>
      formatKey(
        prefix,
        Uint8Array.from({ length: 16 }, () => random.below(256)),
      ).key;
    /** Makes these verifications; returns how many were answered. The others got 503. */
    const answered = async (keys: readonly string[]) => {
      const replies = await Promise.all(keys.map((key) => server.call("keys.verifyKey", { key })));
      for (const { problem, body, headers } of replies) {
        if (!problem) {
          assert.equal(body.data.code, "NOT_FOUND");
          continue;
        }
        assert.equal(problem, "lookups_exhausted");
        assert.equal(headers["retry-after"], "1");
        assert.match(body.error.detail, /Too many unknown keys .* nothing was charged\. Try again shortly\./);
      }
      return replies.filter(({ problem }) => !problem).length;
    };
    const asks = async (act: () => Promise<unknown>) => {
      const names: string[] = [];
      server.store.interception = (name, proceed) => {
        if (name !== "readChanges") names.push(name);
        return proceed();
      };
      await act();
      server.store.interception = undefined;
      return names;
    };
    /** Uses up the budget. */
    const wait = () => server.pass(1_000);

    it("are looked up at most ten times a second, and cached keys are unaffected", async () => {
      const { key } = await server.createKey(await server.createApi());
      assert.equal((await server.verify(key)).code, "VALID");
      await wait();
      const logged = server.logged.length;
      for (let second = 0; second < 3; second++) {
        const invented = Array.from({ length: 50 }, () => invent());
        assert.equal(await answered(invented), 10);
        assert.equal((await server.verify(key)).code, "VALID");
        assert.equal(await answered([invent()]), 0);
        await wait();
      }
      // A flood must not fill a disk with log lines.
      assert.equal(server.logged.length, logged);
    });

    it("are looked up once, and cached as missing", async () => {
      await wait();
      const invented = Array.from({ length: 10 }, () => invent());
      assert.equal(await answered(invented), 10);
      assert.equal(await answered([invent()]), 0);
      assert.deepEqual(await asks(async () => assert.equal(await answered(invented), 10)), []);
    });

    it("cost neither a look-up nor the budget when their checksum is wrong", async () => {
      const { key } = await server.createKey(await server.createApi());
      const mistyped = Array.from({ length: 100 }, () => `${invent().slice(0, -1)}0`);
      mistyped.push(key.slice(0, -1), `${key}1`, key.toLowerCase(), "", "x", "x".repeat(300));
      await server.verify("anything");
      await wait();
      const usable = mistyped.filter((text) => text !== "" && text.length <= 256);
      assert.deepEqual(await asks(async () => assert.equal(await answered(usable), usable.length)), []);
      assert.equal(await answered(Array.from({ length: 20 }, () => invent())), 10);
      assert.equal(await answered(usable), usable.length);
    });

    it("take nothing from the budget of real keys that are not cached yet", async () => {
      const apiId = await server.createApi();
      const keys: string[] = [];
      for (let i = 0; i < 40; i++) keys.push((await server.createKey(apiId)).key);
      await wait();
      for (const key of keys) assert.equal((await server.verify(key)).code, "VALID");
      assert.equal(await answered(Array.from({ length: 20 }, () => invent())), 10);
    });

    it("include root keys", async () => {
      await wait();
      for (let i = 0; i < 10; i++) {
        await server.rejected("apis.createApi", { name: "no" }, "authentication_failed", { as: invent("lk_root") });
      }
      await server.rejected("apis.createApi", { name: "no" }, "lookups_exhausted", { as: invent("lk_root") });
      // The real one is cached.
      await server.createApi();
    });

    it("use up the share of their own address, when they are root keys", async () => {
      await wait();
      const { key: known } = await server.grant("apis.*.read_api");
      const junk = () =>
        server.request("POST", "/v2/apis.listApis", {
          from: "198.51.100.1",
          raw: "{}",
          headers: { "content-type": "application/json", authorization: `Bearer ${invent("lk_root")}` },
        });
      const flood = await Promise.all(Array.from({ length: 50 }, junk));
      assert.equal(flood.filter(({ problem }) => problem === "authentication_failed").length, 10);
      assert.equal(flood.filter(({ problem }) => problem === "lookups_exhausted").length, 40);
      // Not cached on this node yet, and sent from another address.
      await server.ok("apis.listApis", {}, { as: known });
    });

    it("use up the share of their own workspace", async () => {
      await wait();
      const { key: theirs } = await server.workspace("flooded");
      await server.ok("apis.createApi", { name: "theirs" }, { as: theirs });
      await wait();
      const { key } = await server.createKey(await server.createApi());
      const replies = await Promise.all(
        Array.from({ length: 50 }, () => server.call("keys.verifyKey", { key: invent() }, { as: theirs })),
      );
      assert(replies.some(({ problem }) => problem === "lookups_exhausted"));
      assert.equal((await server.verify(key)).code, "VALID");
    });

    it("take nothing from cached keys that a change has outdated", async () => {
      const apiId = await server.createApi();
      const keys = [];
      for (let i = 0; i < 20; i++) keys.push((await server.createKey(apiId)).key);
      await wait();
      for (const key of keys) assert.equal((await server.verify(key)).code, "VALID");
      await wait();
      await Promise.all(Array.from({ length: 20 }, () => server.call("keys.verifyKey", { key: invent() })));
      await server.ok("apis.updateApi", { apiId, name: "changed" });
      for (const { code } of await Promise.all(keys.map((key) => server.verify(key)))) assert.equal(code, "VALID");
    });

    it("are counted when their look-up is rejected", async () => {
      const rejected = async () => {
        const { body } = await scrape(server);
        return Number(/^latchkey_lookups_refused_total\{kind="keys"\} (\d+)$/m.exec(body)![1]);
      };
      await wait();
      const before = await rejected();
      await answered(Array.from({ length: 17 }, () => invent()));
      assert.equal((await rejected()) - before, 7);
    });
  },
  { LOOKUPS_PER_SECOND: "10" },
);

describe("a setting of a bound", () => {
  it("outside of its range is rejected, with the range", async () => {
    for (const [name, value, expected] of [
      ["HEADERS_TIMEOUT", "99ms", "from 100ms to 1h"],
      ["REQUEST_TIMEOUT", "2h", "from 100ms to 1h"],
      ["REQUEST_TIMEOUT", "60", "a duration such as"],
      ["CONNECTIONS_MAX", "0", "from 1 to 1000000"],
      ["CONNECTIONS_MAX", "many", "from 1 to 1000000"],
      ["BODY_BYTES", "63k", "from 64k to 64m"],
      ["BODY_BYTES", "65m", "from 64k to 64m"],
      ["BODIES_BYTES", "15m", "from 16m to 64g"],
      ["LOOKUPS_PER_SECOND", "0", "from 1 to 1000000"],
      ["LOOKUPS_PER_SECOND", "1.5", "from 1 to 1000000"],
    ] as const) {
      assert.throws(() => readConfig(new Map([[name, value]])), {
        name: "ConfigurationError",
        message: new RegExp(`^LATCHKEY_${name}=${value}: .*${expected}`),
      });
    }
  });
});

async function scrape(server: TestServer): Promise<{ body: string }> {
  const { payload } = await inject(server.service.dispatch, { method: "GET", url: "/metrics" });
  return { body: payload };
}
