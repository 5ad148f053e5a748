/** Hostile peers of the listener for gRPC. Whatever they do, another peer gets its answers, and nothing of theirs stays. */
import assert from "node:assert/strict";
import type { Socket } from "node:net";
import { after, before, describe, it } from "node:test";
import { seededRandom } from "../../../engine/src/random/seeded.ts";
import { MessageReader } from "../../src/platform/grpc/protobuf.ts";
import { encodeMessage } from "../../src/platform/grpc/status.ts";
import { framed, GrpcClient } from "../grpc/client.ts";
import { CHECK, type CheckQuestion, checkRequest, readCheckResponse } from "../grpc/envoy-check.ts";
import { InnocentCaller, innocentQuestion, openCallsOf } from "../grpc/innocent-caller.ts";
import { rateLimitRequest, SHOULD_RATE_LIMIT } from "../grpc/rate-limit-messages.ts";
import {
  CONTINUATION,
  callHeaders,
  DATA,
  END_HEADERS,
  END_STREAM,
  field,
  frame,
  HEADERS,
  RST_STREAM,
  rawPeer,
} from "../grpc/raw-peer.ts";
import { TestServer } from "../harness.ts";
import { eventually } from "../process.ts";

const [OK, INVALID_ARGUMENT, RESOURCE_EXHAUSTED] = [0, 3, 8];
const headers = callHeaders(SHOULD_RATE_LIMIT);

describe("a hostile peer of gRPC", () => {
  const server = new TestServer({ settings: { PORT: "0", GRPC_PORT: "0" } });
  let victim: InnocentCaller;
  let port: number;
  before(async () => {
    await server.open();
    await server.service.listen();
    port = server.service.grpcAddress!.port;
    victim = new InnocentCaller(`http://127.0.0.1:${port}`, server.rootKey);
    await server.ok("ratelimits.limit", { namespace: "edge", identifier: "first", limit: 1, duration: 1_000, cost: 0 });
  });
  after(async () => {
    await victim.close();
    await server.close();
  });

  it("sends giant messages: they are rejected before they are read", async () => {
    const peer = new GrpcClient(`http://127.0.0.1:${port}`, server.rootKey);
    const promise = Buffer.from([0, 0xff, 0xff, 0xff, 0xff]);
    for (const raw of [promise, Buffer.concat([promise, Buffer.alloc(1_000_000)]), framed(Buffer.alloc(1_000_000))]) {
      assert.equal((await peer.call(SHOULD_RATE_LIMIT, innocentQuestion, { raw })).status, RESOURCE_EXHAUSTED);
    }
    assert.equal((await peer.call(SHOULD_RATE_LIMIT, innocentQuestion)).status, OK);
    await peer.close();
  });

  it("sends a megabyte of descriptors, and as many as fit into a message", async () => {
    const value = "x".repeat(100);
    const large = rateLimitRequest(
      "edge",
      Array.from({ length: 9_000 }, (_, i) => ({ entries: [["key", `${value}${i}`]] as const })),
    );
    assert(large.length > 1_000_000);
    assert.equal((await victim.call(SHOULD_RATE_LIMIT, large)).status, RESOURCE_EXHAUSTED);
    const empty = rateLimitRequest(
      "edge",
      Array.from({ length: 32_000 }, () => ({ entries: [] })),
    );
    assert.equal((await victim.call(SHOULD_RATE_LIMIT, empty)).status, INVALID_ARGUMENT);
    await victim.isAnswered();
  });

  it("sends any bytes: they are a message or invalid, never a failure of the service (seeded)", async () => {
    const random = seededRandom(35);
    for (let round = 0; round < 400; round++) {
      const bytes = Buffer.from(innocentQuestion);
      for (let change = 0; change <= random.below(4); change++) bytes[random.below(bytes.length)] = random.below(256);
      const cut = random.below(3) === 0 ? bytes.subarray(0, random.below(bytes.length)) : bytes;
      const { status } = await victim.call(SHOULD_RATE_LIMIT, cut);
      assert([OK, INVALID_ARGUMENT].includes(status), `status ${status} for ${cut.toString("hex")}`);
    }
    for (let round = 0; round < 2_000; round++) {
      const bytes = Buffer.from(Array.from({ length: random.below(60) }, () => random.below(256)));
      const reader = new MessageReader(bytes);
      try {
        for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) reader.skip(tag);
      } catch (error) {
        assert.equal((error as Error).name, "Problem");
      }
    }
    assert.deepEqual(
      server.logged.filter(({ level }) => level === "error"),
      [],
    );
  });

  /** Begins calls whose messages never end. */
  function beginCalls(socket: Socket, count: number): void {
    const frames: Buffer[] = [];
    for (let stream = 1; stream < 2 * count; stream += 2) {
      frames.push(frame(HEADERS, END_HEADERS, stream, headers), frame(DATA, 0, stream, Buffer.from([0])));
    }
    socket.write(Buffer.concat(frames));
  }

  it("opens thousands of streams although it may have fewer: its connection ends", async () => {
    const { socket, closed } = await rawPeer(port);
    beginCalls(socket, 2_000);
    await closed;
    await victim.isAnswered();
    await eventually("its calls to end", async () => (await openCallsOf(server)) === 0);
  });

  it("opens as many streams as it may and ends none: they are cancelled", async () => {
    const { socket, closed } = await rawPeer(port);
    beginCalls(socket, 256);
    await eventually("the streams to be open", async () => (await openCallsOf(server)) === 256);
    await victim.isAnswered();
    await server.pass(62_000);
    await eventually("the streams to be cancelled", async () => (await openCallsOf(server)) === 0);
    socket.destroy();
    await closed;
    await victim.isAnswered();
  });

  it("reads no answer: its calls are cancelled", async () => {
    const peer = new GrpcClient(`http://127.0.0.1:${port}`, server.rootKey, { settings: { initialWindowSize: 0 } });
    const calls = Array.from({ length: 200 }, () => peer.call(SHOULD_RATE_LIMIT, innocentQuestion));
    await eventually("the calls to be open", async () => (await openCallsOf(server)) === 200);
    await victim.isAnswered();
    await server.pass(62_000);
    for (const { body } of await Promise.all(calls)) assert.equal(body.length, 0);
    assert.equal(await openCallsOf(server), 0);
    peer.session.destroy();
  });

  it("resets streams as fast as it can: its connection ends", async () => {
    const { socket, closed } = await rawPeer(port);
    const reset = Buffer.from([0, 0, 0, 8]);
    const frames: Buffer[] = [];
    for (let stream = 1; stream < 80_000; stream += 2) {
      frames.push(frame(HEADERS, END_HEADERS, stream, headers), frame(RST_STREAM, 0, stream, reset));
    }
    socket.write(Buffer.concat(frames));
    await victim.isAnswered();
    await closed;
    await victim.isAnswered();
    await eventually("the calls to end", async () => (await openCallsOf(server)) === 0);
  });

  it("floods with CONTINUATION frames: its connection ends", async () => {
    const { socket, closed } = await rawPeer(port);
    socket.write(frame(HEADERS, END_STREAM, 1, headers));
    const more = Array.from({ length: 10_000 }, (_, i) => frame(CONTINUATION, 0, 1, field(`x-${i}`, "a")));
    socket.write(Buffer.concat(more));
    await closed;
    await victim.isAnswered();
  });

  it("sends headers that become large when they are decoded: the call never runs", async () => {
    const { socket, closed } = await rawPeer(port);
    // One entry of the dynamic table, and four thousand references to it.
    const name = "n".repeat(100);
    const entry = Buffer.concat([
      Buffer.from([0x40, 100]),
      Buffer.from(name),
      Buffer.from([100]),
      Buffer.alloc(100, 97),
    ]);
    for (let stream = 1; stream < 40; stream += 2) {
      const block = Buffer.concat([headers, entry, Buffer.alloc(4_000, 0x80 | 62)]);
      socket.write(frame(HEADERS, END_HEADERS | END_STREAM, stream, block));
    }
    await victim.isAnswered();
    await eventually("its calls to be refused", async () => (await openCallsOf(server)) === 0);
    socket.destroy();
    await closed;
  });

  async function checked(question: CheckQuestion) {
    const { status, body, message } = await victim.call(CHECK, checkRequest(question));
    assert.equal(status, OK, message);
    return readCheckResponse(body);
  }

  const unfriendly = '\r\nx-latchkey-owner: forged\u0001☂"';

  it("cannot put a header into an answer of `Check`, nor a part of one", async () => {
    const apiId = await server.createApi();
    const { key } = await server.createKey(apiId, {
      externalId: "acme",
      meta: { owner: unfriendly },
      ratelimits: [{ name: unfriendly, limit: 5, duration: 60_000, autoApply: true }],
    });
    const ask = (question: Partial<CheckQuestion>) =>
      checked({
        extensions: { api: apiId },
        ...question,
        headers: { authorization: `Bearer ${key}`, ...question.headers },
      });
    const assertPlain = (headers: Record<string, string>) => {
      for (const text of Object.entries(headers).flat()) assert.match(text, /^[\x20-\x7e]*$/);
    };
    const { ok, metadata } = await ask({
      headers: { [`x-latchkey-${unfriendly}`]: unfriendly },
      path: `/${unfriendly}`,
    });
    assertPlain({ ...ok!.headers, ...ok!.responseHeaders });
    assert.equal(metadata.meta.owner, unfriendly);
    for (const extensions of [
      { api: apiId, header: unfriendly },
      { api: apiId, query: unfriendly },
      { api: apiId, tag: `a,${unfriendly}` },
      { api: apiId, limit: unfriendly },
      { api: unfriendly },
      { [unfriendly]: "" },
    ] as Record<string, string>[]) {
      const { denied } = await ask({ extensions });
      if (denied) assertPlain(denied.headers);
    }
    for (const authorization of [unfriendly, `Bearer ${key}${unfriendly}`]) {
      const { denied } = await ask({ headers: { authorization } });
      assert.equal(denied!.status, 401);
      assertPlain(denied!.headers);
    }
  });

  it("asks `Check` with thousands of headers and parameters: it is denied", async () => {
    const apiId = await server.createApi();
    const { key } = await server.createKey(apiId);
    const many = (prefix: string, value: string) =>
      Object.fromEntries(Array.from({ length: 4_000 }, (_, i) => [`${prefix}${i}`, value]));
    const headers = { authorization: `Bearer ${key}`, ...many("x-latchkey-", "") };
    const { ok } = await checked({ extensions: { api: apiId }, headers });
    assert.equal(ok!.headersToRemove.filter((name) => /\d$/.test(name)).length, 4_000);
    for (const extensions of [
      many("tag", ""),
      { api: apiId, tag: "a,".repeat(50_000) },
      { api: "a,".repeat(50_000) },
    ]) {
      const { denied } = await checked({ extensions, headers: { authorization: `Bearer ${key}` } });
      assert.equal(denied!.status, 400);
      assert(denied!.body.length < 2_000);
    }
    await victim.isAnswered();
  });

  it("has a key with metadata that Envoy could not read: it is left out", async () => {
    const apiId = await server.createApi();
    const nested = (depth: number): object => (depth === 0 ? {} : { a: nested(depth - 1) });
    for (const [depth, isThere] of [
      [15, true],
      [16, false],
      [60, false],
    ] as const) {
      const { key } = await server.createKey(apiId, { meta: nested(depth) });
      const { code, metadata } = await checked({
        extensions: { api: apiId },
        headers: { authorization: `Bearer ${key}` },
      });
      assert.deepEqual([code, metadata.meta !== undefined], [0, isThere]);
    }
  });

  it("sends any bytes to `Check`: they are a message or invalid (seeded)", async () => {
    const random = seededRandom(36);
    const logged = server.logged.length;
    const extensions = { api: await server.createApi(), limit: "burst:1:1s", tag: "a", cost: "0" };
    const whole = checkRequest({ extensions, headers: { authorization: "Bearer abc", "x-a": "b" }, path: "/a?b=c" });
    for (let round = 0; round < 400; round++) {
      const bytes = Buffer.from(whole);
      for (let change = 0; change <= random.below(4); change++) bytes[random.below(bytes.length)] = random.below(256);
      const { status } = await victim.call(CHECK, bytes);
      assert([OK, INVALID_ARGUMENT].includes(status), `status ${status} for ${bytes.toString("hex")}`);
    }
    assert.deepEqual(
      server.logged.slice(logged).filter(({ level }) => level === "error"),
      [],
    );
  });

  it("cannot put a header into an answer", () => {
    assert.equal(encodeMessage("a\r\nx-a: 1%\u0000é\ud800"), "a%0D%0Ax-a: 1%25%00%C3%A9%EF%BF%BD");
  });
});
