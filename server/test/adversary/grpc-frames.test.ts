/** Peers of gRPC that flood with frames of HTTP/2. What they can make a node keep has a bound, and others are answered. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { framed } from "../grpc/client.ts";
import { CHECK, checkRequest } from "../grpc/envoy-check.ts";
import { InnocentCaller, innocentQuestion } from "../grpc/innocent-caller.ts";
import { rateLimitRequest, SHOULD_RATE_LIMIT } from "../grpc/rate-limit-messages.ts";
import {
  callHeaders,
  DATA,
  END_HEADERS,
  END_STREAM,
  field,
  frame,
  GOAWAY,
  HEADERS,
  type RawPeer,
  RST_STREAM,
  rawPeer,
  SETTINGS,
} from "../grpc/raw-peer.ts";
import { TestServer } from "../harness.ts";
import { eventually } from "../process.ts";

const [PRIORITY, PING, WINDOW_UPDATE] = [2, 6, 8];
const [REFUSED_STREAM, ENHANCE_YOUR_CALM] = [7, 11];
const INITIAL_WINDOW_SIZE = 4;
const MEGABYTE = 1_000_000;

describe("a flood of frames (rule 153)", () => {
  const server = new TestServer({
    settings: { PORT: "0", GRPC_PORT: "0", WORKSPACE_REQUESTS_PER_MINUTE: "1000000" },
  });
  let innocent: InnocentCaller;
  let port: number;
  let apiId: string;
  before(async () => {
    await server.open();
    await server.service.listen();
    port = server.service.grpcAddress!.port;
    const { key } = await server.workspace("innocent");
    const first = { namespace: "edge", identifier: "first", limit: 1, duration: 1_000, cost: 0 };
    await server.ok("ratelimits.limit", first, { as: key });
    innocent = new InnocentCaller(`http://127.0.0.1:${port}`, key);
    apiId = await server.createApi();
  });
  after(async () => {
    await innocent.close();
    await server.close();
  });

  const number = (value: number): Buffer => {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32BE(value);
    return bytes;
  };
  const window = (bytes: number): Buffer =>
    frame(SETTINGS, 0, 0, Buffer.concat([Buffer.from([0, INITIAL_WINDOW_SIZE]), number(bytes)]));
  const authorized = (method: string): Buffer =>
    Buffer.concat([callHeaders(method), field("authorization", `Bearer ${server.rootKey}`)]);
  const call = (stream: number, method: string, content: Uint8Array): Buffer => {
    const parts: Buffer[] = [frame(HEADERS, END_HEADERS, stream, authorized(method))];
    const bytes = framed(content);
    for (let at = 0; at < bytes.length; at += 16_384)
      parts.push(frame(DATA, 0, stream, bytes.subarray(at, at + 16_384)));
    return Buffer.concat([...parts, frame(DATA, END_STREAM, stream)]);
  };
  const goawayOf = ({ frames }: RawPeer) => frames.find(({ type }) => type === GOAWAY)?.payload.readUInt32BE(4);

  it("that ask for answers nobody reads is not read either, and the connection ends", async () => {
    const { socket, closed } = await rawPeer(port);
    await innocent.isAnswered();
    socket.pause();
    const pings = Buffer.concat(Array.from({ length: 10_000 }, () => frame(PING, 0, 0, Buffer.alloc(8))));
    // Far more than the buffers of both kernels.
    for (let i = 0; i < 400; i++) socket.write(pings);
    await innocent.isAnswered(20);
    assert(socket.writableLength > 20 * MEGABYTE, `${socket.writableLength} bytes were not read`);
    await server.pass(62_000);
    socket.resume();
    await closed;
    await innocent.isAnswered();
  });

  it("SETTINGS ends the connection", async () => {
    const peer = await rawPeer(port);
    peer.socket.write(Buffer.concat(Array.from({ length: 5_000 }, (_, i) => window(i))));
    await peer.closed;
    assert.equal(goawayOf(peer), ENHANCE_YOUR_CALM);
    await innocent.isAnswered();
  });

  it("of frames without effect costs others nothing", async () => {
    const peer = await rawPeer(port);
    peer.socket.write(frame(HEADERS, END_HEADERS, 1, authorized(SHOULD_RATE_LIMIT)));
    const useless = [
      frame(DATA, 0, 1),
      frame(PRIORITY, 0, 1, Buffer.from([0, 0, 0, 0, 1])),
      frame(WINDOW_UPDATE, 0, 1, number(1)),
      frame(200, 0, 1, Buffer.alloc(20)),
    ];
    peer.socket.write(Buffer.concat(Array.from({ length: 40_000 }, (_, i) => useless[i % useless.length]!)));
    await innocent.isAnswered(20);
    peer.socket.write(Buffer.concat([frame(DATA, END_STREAM, 1, framed(innocentQuestion))]));
    await eventually("its own call to be answered", async () =>
      peer.frames.some(({ type, flags, stream }) => type === HEADERS && stream === 1 && (flags & END_STREAM) > 0),
    );
    peer.socket.destroy();
    await peer.closed;
  });

  it("that makes the node reset streams ends the connection, as one of resets does", async () => {
    const peer = await rawPeer(port);
    const frames: Buffer[] = [];
    for (let stream = 1; stream < 30_000; stream += 2) {
      frames.push(
        frame(HEADERS, END_HEADERS, stream, callHeaders(SHOULD_RATE_LIMIT)),
        // An increment of 0 is an error of the stream.
        frame(WINDOW_UPDATE, 0, stream, number(0)),
      );
    }
    peer.socket.write(Buffer.concat(frames));
    await peer.closed;
    assert.equal(goawayOf(peer), ENHANCE_YOUR_CALM);
    await innocent.isAnswered();
  });

  it("of calls whose answers are large and not taken is refused when they fill their room", async () => {
    const { key } = await server.createKey(apiId);
    const peer = await rawPeer(port);
    // The answer has some 80 KB: every header is to be removed.
    const question = checkRequest({
      extensions: { api: apiId },
      headers: {
        authorization: `Bearer ${key}`,
        ...Object.fromEntries(Array.from({ length: 1_500 }, (_, i) => [`x-latchkey-${"y".repeat(40)}${i}`, ""])),
      },
    });
    peer.socket.write(window(0));
    for (let stream = 1; stream < 400; stream += 2) peer.socket.write(call(stream, CHECK, question));
    const resets = () => peer.frames.filter(({ type }) => type === RST_STREAM);
    await eventually("calls to be refused", async () => resets().length > 0);
    assert(resets().every(({ payload }) => payload.readUInt32BE(0) === REFUSED_STREAM));
    await innocent.isAnswered(20);
    peer.socket.destroy();
    await peer.closed;
  });

  it("of windows of one byte gets an answer byte by byte", async () => {
    const peer = await rawPeer(port);
    peer.socket.write(Buffer.concat([window(0), call(1, SHOULD_RATE_LIMIT, innocentQuestion)]));
    const content = () => peer.frames.filter(({ type, stream }) => type === DATA && stream === 1);
    const isAnswered = async () =>
      peer.frames.some(({ type, flags, stream }) => type === HEADERS && stream === 1 && (flags & END_STREAM) > 0);
    await eventually("the head of the answer", async () => peer.frames.some(({ stream }) => stream === 1));
    assert.equal(content().length, 0);
    peer.socket.write(Buffer.concat(Array.from({ length: 300 }, () => frame(WINDOW_UPDATE, 0, 1, number(1)))));
    await eventually("the answer", isAnswered);
    assert(content().every(({ payload }) => payload.length === 1));
    const bytes = Buffer.concat(content().map(({ payload }) => payload));
    assert.equal(bytes.readUInt32BE(1), bytes.length - 5);
    peer.socket.destroy();
    await peer.closed;
  });

  it("of header blocks that are costly to decode, and of calls as fast as they can be sent, leaves others their turns", async () => {
    const entry = Buffer.concat([
      Buffer.from([0x40, 100]),
      Buffer.alloc(100, 110),
      Buffer.from([100]),
      Buffer.alloc(100, 97),
    ]);
    const bomb = Buffer.concat([callHeaders(SHOULD_RATE_LIMIT), entry, Buffer.alloc(15_000, 0x80 | 62)]);
    const peers = await Promise.all(Array.from({ length: 4 }, () => rawPeer(port)));
    for (const [i, { socket }] of peers.entries()) {
      for (let stream = 1; stream < 6_000; stream += 2) {
        socket.write(
          i % 2 === 0
            ? frame(HEADERS, END_HEADERS | END_STREAM, stream, bomb)
            : call(stream, SHOULD_RATE_LIMIT, rateLimitRequest("edge", [{ entries: [["user", `${stream}`]] }])),
        );
      }
    }
    await innocent.isAnswered(50);
    for (const { socket, closed } of peers) {
      socket.destroy();
      await closed;
    }
  });
});
