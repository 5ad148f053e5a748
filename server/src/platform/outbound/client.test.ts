import assert from "node:assert/strict";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { LookupAddress } from "node:dns";
import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener, type Server } from "node:http";
import { type AddressInfo, createServer as createTcpServer, Socket, type Server as TcpServer } from "node:net";
import { describe, it, type TestContext } from "node:test";
import { setDefaultCACertificates } from "node:tls";
import { SimulatedClock } from "../../../../engine/src/clock/simulated.ts";
import { floods, openHostileEndpoint, TEST_CERTIFICATE } from "../../../test/adversary/hostile-endpoint.ts";
import { collect } from "../../../test/garbage.ts";
import { eventually } from "../../../test/process.ts";
import { OutboundClient, type OutboundOptions } from "./client.ts";
import { OutboundFailure, type OutboundFailureReason } from "./exchange.ts";
import { HttpTransport } from "./http-transport.ts";
import { ReadAllowance } from "./read-allowance.ts";
import type { Resolve } from "./resolve.ts";

const TIMEOUT = 10_000;

describe("OutboundClient", () => {
  it("sends a request and returns the answer", async (t) => {
    const { url } = await serve(t, async (request, response) => {
      const body = Buffer.concat(await request.toArray()).toString();
      response.writeHead(202).end(`${request.method} ${request.headers["x-name"]} ${body}`);
    });
    const { client } = open(t);
    const answer = await client.send({ url, method: "POST", headers: { "x-name": "value" }, body: "é" });
    assert.deepEqual(text(answer), { status: 202, body: "POST value é", isComplete: true });
    assert.equal(client.open, 0);
  });

  it("does not follow redirects", async (t) => {
    let calls = 0;
    const inner = await serve(t, (_, response) => void response.end(String(++calls)));
    const { url } = await serve(t, (_, response) => void response.writeHead(307, { location: inner.url }).end());
    const answer = await get(open(t).client, url);
    assert.equal(answer.status, 307);
    assert.equal(calls, 0);
  });

  describe("without private addresses", () => {
    for (const url of [
      "https://127.0.0.1/",
      "https://localhost/",
      "https://2130706433/",
      "https://0x7f000001/",
      "https://0177.0.0.1/",
      "https://127.1/",
      "https://[::1]/",
      "https://[::ffff:127.0.0.1]/",
      "https://[::ffff:7f00:1]/",
      "https://0/",
      "https://169.254.169.254/latest/meta-data",
      "https://[fd00:ec2::254]/",
      "https://[64:ff9b::7f00:1]/",
      "http://example.com/",
      "ftp://example.com/",
      "file:///etc/passwd",
      "https://user:word@example.com/",
      "text",
      "https://１２７.0.0.1/",
      "https://127。0。0。1/",
    ]) {
      it(`rejects ${url}`, async (t) => {
        const listener = await listen(t, () => {});
        const resolve = async () => [{ address: "127.0.0.1", family: 4 }];
        const { client } = open(t, { allowPrivate: false, resolve });
        const at = url.replace(/^(https?:\/\/[^/]+)/, `$1:${listener.port}`);
        await assertFails(get(client, at), "forbidden");
        assert.equal(listener.connections, 0);
      });
    }

    it("checks the addresses to which it connects, at every connection", async (t) => {
      const listener = await listen(t, (socket) => socket.destroy());
      const answers: LookupAddress[][] = [
        [{ address: "::1", family: 6 }],
        // One public address does not help.
        [
          { address: "8.8.8.8", family: 4 },
          { address: "127.0.0.1", family: 4 },
        ],
        [{ address: "::ffff:127.0.0.1", family: 6 }],
        [],
      ];
      for (const addresses of answers) {
        const { client } = open(t, { allowPrivate: false, resolve: async () => addresses });
        const failure = await assertFails(get(client, `https://rebound.example:${listener.port}/`), "forbidden");
        assert.equal(failure.message, "The host of the URL has no public address");
      }
      assert.equal(listener.connections, 0);
    });

    it("resolves a name once for each connection", async (t) => {
      // The first look-up of a rebinding name returns a public address, and every further one a private address.
      let lookups = 0;
      const resolve = async () => [{ address: lookups++ === 0 ? "192.0.2.1" : "127.0.0.1", family: 4 }];
      const { client } = open(t, { allowPrivate: false, resolve });
      await assertFails(get(client, "https://rebound.example/"), "forbidden");
      assert.equal(lookups, 1);
    });
  });

  it("stops to read an endless answer", async (t) => {
    const ended = Promise.withResolvers<void>();
    const { url } = await serve(t, (_, response) => {
      response.on("close", ended.resolve);
      const write = () => {
        while (response.write("x".repeat(10_000)));
        response.once("drain", write);
      };
      write();
    });
    const answer = await get(open(t, { answerBytesMax: 100 }).client, url);
    assert.deepEqual(text(answer), { status: 200, body: "x".repeat(100), isComplete: false });
    await ended.promise;
  });

  it("reads an answer of exactly the allowed length as complete", async (t) => {
    const { url } = await serve(t, (_, response) => void response.end("x".repeat(100)));
    assert.equal((await get(open(t, { answerBytesMax: 100 }).client, url)).isComplete, true);
  });

  it("keeps an answer of tiny chunks in about its length of memory", async (t) => {
    const count = 50_000;
    const { url } = await listen(t, (socket) => {
      const head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
      socket.once("data", () => void socket.write(head + "1\r\nx\r\n".repeat(count)));
    });
    const { client, clock } = open(t, { answerBytesMax: 256 * 1024 });
    const before = heapUsed();
    const arrived = chunksArrive(t, count);
    const sent = get(client, url);
    await arrived;
    const used = heapUsed() - before;
    assert.ok(used < 3_000_000, `${used} bytes`);
    clock.advance(TIMEOUT);
    assert.equal((await sent).body.length, count);
  });

  it("ends a request whose headers arrive slowly", async (t) => {
    const { client, clock } = open(t);
    const listener = await listen(t, async (socket) => {
      const ended = once(socket, "close");
      await once(socket, "data");
      for (const character of "HTTP/1.1 200 OK\r\nx-name: ") {
        socket.write(character);
        clock.advance(TIMEOUT / 30);
      }
      clock.advance(TIMEOUT);
      await ended;
    });
    await assertFails(get(client, listener.url), "timeout");
    assert.equal(client.open, 0);
  });

  it("ends a request to a host that accepts connections and is silent", async (t) => {
    const { client, clock } = open(t);
    const listener = await listen(t, () => clock.advance(TIMEOUT));
    await assertFails(get(client, listener.url), "timeout");
  });

  it("ends a request whose name is not resolved in time", async (t) => {
    const { client, clock } = open(t, { resolve: () => new Promise(() => {}) });
    const pending = get(client, "http://slow.example/");
    clock.advance(TIMEOUT);
    await assertFails(pending, "timeout");
  });

  it("returns what it has of a body that arrives slowly", async (t) => {
    const { client, clock } = open(t);
    const written = Promise.withResolvers<void>();
    const { url } = await serve(t, (_, response) => void response.write("part", () => written.resolve()));
    let answer: Awaited<ReturnType<typeof get>> | undefined;
    const pending = get(client, url).then((got) => {
      answer = got;
    });
    await written.promise;
    while (!answer) {
      await new Promise(setImmediate);
      clock.advance(10);
    }
    await pending;
    assert.deepEqual(text(answer), { status: 200, body: "part", isComplete: false });
  });

  it("rejects huge headers", async (t) => {
    const listener = await listen(t, async (socket) => {
      await once(socket, "data");
      socket.write(`HTTP/1.1 200 OK\r\nx-name: ${"x".repeat(100_000)}\r\n\r\n`);
    });
    const failure = await assertFails(get(open(t).client, listener.url), "failed");
    assert.match(failure.message, /HPE_HEADER_OVERFLOW/);
  });

  it("rejects an answer that is not HTTP, and one that changes the protocol", async (t) => {
    for (const answer of [
      "220 mail.example ESMTP\r\n",
      "HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
    ]) {
      const listener = await listen(t, async (socket) => {
        await once(socket, "data");
        socket.write(answer);
      });
      await assertFails(get(open(t).client, listener.url), "failed");
    }
  });

  for (const [what, flood] of Object.entries(floods)) {
    if (flood.again === undefined) continue;
    it(`stops to read before the time limit: ${what}`, async (t) => {
      setDefaultCACertificates([TEST_CERTIFICATE]);
      const { url, sockets } = await openHostileEndpoint(t, flood);
      const { client } = open(t, { answerBytesMax: 64 * 1024 });
      // The clock stands still. A true answer counts, whatever follows it.
      await get(client, url).catch((error) => assert.equal(error.reason, "failed", error.message));
      await eventually("the end of the connection", () => sockets.size === 0);
    });
  }

  it("closes a connection with TLS sessions without end", () => {
    const socket = new Socket();
    ReadAllowance.of(socket).grant(1_000);
    for (let i = 0; i < 16; i++) socket.emit("session");
    assert.equal(socket.destroyed, false);
    socket.on("error", () => {});
    socket.emit("session");
    assert.equal(socket.destroyed, true);
  });

  it("says why a connection failed", async (t) => {
    const { url, server } = await serve(t, () => {});
    server.close();
    const failure = await assertFails(get(open(t).client, url), "failed");
    assert.equal(failure.message, "The request failed: ECONNREFUSED");
  });

  it("bounds the open requests per host and in total", async (t) => {
    const waiting = await serve(t, () => {});
    const other = waiting.url.replace("127.0.0.1", "localhost");
    const third = waiting.url.replace("127.0.0.1", "127.0.0.2");
    const { client, clock } = open(t, { requestsPerHost: 1, requestsMax: 2 });
    const first = get(client, waiting.url);
    await assertFails(get(client, waiting.url), "busy");
    const second = get(client, other);
    await assertFails(get(client, third), "busy");
    assert.equal(client.open, 2);
    clock.advance(TIMEOUT);
    await Promise.all([assertFails(first, "timeout"), assertFails(second, "timeout")]);
    assert.equal(client.open, 0);
  });

  it("leaves places for further owners, however many requests one of them has open", async (t) => {
    const waiting = await serve(t, () => {});
    const other = waiting.url.replace("127.0.0.1", "localhost");
    const { client, clock } = open(t, { requestsPerHost: 6, requestsMax: 100 });
    const send = (owner: string, url = waiting.url) => client.send({ url, method: "GET", headers: {}, owner });
    const sent = [send("a"), send("a"), send("a")];
    await assertFails(send("a"), "busy");
    sent.push(send("b"), send("a", other));
    await assertFails(send("a"), "busy");
    sent.push(send("c"));
    clock.advance(TIMEOUT);
    await Promise.all(sent.map((one) => assertFails(one, "timeout")));
    const again = [send("c"), send("c"), send("c")];
    await assertFails(send("c"), "busy");
    clock.advance(TIMEOUT);
    await Promise.all(again.map((one) => assertFails(one, "timeout")));
  });

  it("ends open requests when it is closed", async (t) => {
    const { client } = open(t);
    const listener = await listen(t, () => client.close());
    await assertFails(get(client, listener.url), "failed");
    await assertFails(get(client, listener.url), "failed");
  });

  it("uses a connection again, and repeats the request once when the host has closed it", async (t) => {
    let connections = 0;
    const listener = await listen(t, (socket) => {
      const isFirst = ++connections === 1;
      let requests = 0;
      socket.on("data", () => {
        if (isFirst && ++requests === 3) socket.destroy();
        else socket.write("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
      });
    });
    const { client } = open(t);
    for (let i = 0; i < 3; i++) {
      assert.equal((await get(client, listener.url)).status, 200);
      // The connection is unused in the next turn of the event loop.
      await new Promise(setImmediate);
    }
    assert.equal(connections, 2);
  });
});

/** A client in this thread. */
function open(t: TestContext, { resolve, ...options }: Partial<OutboundOptions> & { resolve?: Resolve } = {}) {
  const clock = new SimulatedClock(1_768_478_400_000);
  const transport = new HttpTransport(resolve);
  t.after(() => transport.close());
  const client = new OutboundClient({
    clock,
    transport,
    allowPrivate: true,
    timeout: TIMEOUT,
    answerBytesMax: 1_000,
    requestsPerHost: 10,
    requestsMax: 10,
    ...options,
  });
  t.after(() => client.close());
  return { client, clock };
}

function get(client: OutboundClient, url: string) {
  return client.send({ url, method: "GET", headers: {} });
}

/** The memory of objects that are in use, in bytes. */
function heapUsed(): number {
  collect();
  return process.memoryUsage().heapUsed;
}

/** Resolves when so many chunks of the next answer have been read. */
function chunksArrive(t: TestContext, count: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  let left = count;
  const channel = "http.client.response.finish";
  const onAnswer = (message: unknown) => {
    (message as { response: IncomingMessage }).response.on("data", () => --left === 0 && setImmediate(resolve));
  };
  subscribe(channel, onAnswer);
  t.after(() => unsubscribe(channel, onAnswer));
  return promise;
}

function text({ body, ...answer }: Awaited<ReturnType<typeof get>>) {
  return { ...answer, body: body.toString() };
}

async function assertFails(sent: Promise<unknown>, reason: OutboundFailureReason): Promise<OutboundFailure> {
  const failure = await sent.then(
    () => assert.fail("The request succeeded"),
    (error: unknown) => error,
  );
  assert.ok(failure instanceof OutboundFailure);
  assert.equal(failure.reason, reason, failure.message);
  return failure;
}

async function serve(t: TestContext, listener: RequestListener) {
  const server = createServer(listener);
  return { server, ...(await start(t, server)) };
}

async function listen(t: TestContext, onConnection: (socket: Socket) => unknown) {
  const listener = { connections: 0, url: "", port: 0 };
  const server = createTcpServer((socket) => {
    listener.connections++;
    socket.on("error", () => {});
    void onConnection(socket);
  });
  return Object.assign(listener, await start(t, server));
}

async function start(t: TestContext, server: Server | TcpServer) {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  server.listen(0);
  await once(server, "listening");
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { port, url: `http://127.0.0.1:${port}/` };
}
