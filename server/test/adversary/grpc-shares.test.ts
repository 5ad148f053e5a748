/** Peers of gRPC that take what all peers share: calls, memory, connections and turns. They keep nobody else from calling. */
import assert from "node:assert/strict";
import type { Socket } from "node:net";
import { after, before, describe, it } from "node:test";
import { setImmediate } from "node:timers/promises";
import { SimulatedClock } from "../../../engine/src/clock/simulated.ts";
import type { GrpcCall } from "../../src/platform/grpc/call.ts";
import { type ConnectionLimits, GrpcConnections } from "../../src/platform/grpc/connections.ts";
import { PING, PREFACE } from "../../src/platform/grpc/http2/frames.ts";
import { HpackDecoder } from "../../src/platform/grpc/http2/hpack.ts";
import { MessageBudget } from "../../src/platform/grpc/message-bytes.ts";
import { MemorySocket } from "../fast-lane/memory-socket.ts";
import { framed } from "../grpc/client.ts";
import { CHECK, checkRequest } from "../grpc/envoy-check.ts";
import { InnocentCaller, openCallsOf } from "../grpc/innocent-caller.ts";
import {
  callHeaders,
  DATA,
  END_HEADERS,
  END_STREAM,
  field,
  frame,
  HEADERS,
  type RawPeer,
  rawPeer,
  SETTINGS,
} from "../grpc/raw-peer.ts";
import { TestServer } from "../harness.ts";
import { eventually } from "../process.ts";

const RESOURCE_EXHAUSTED = 8;
const STREAMS = 256;
const CALLS_MAX = 20_000;
const CONNECTIONS_MAX = 100;
const MIB = 1024 * 1024;
const BODIES_BYTES = 16 * MIB;
const ATTACKER = "127.0.0.2";

describe("a peer of gRPC that takes what all share (rule 219)", () => {
  const server = new TestServer({
    settings: {
      PORT: "0",
      GRPC_PORT: "0",
      BODIES_BYTES: String(BODIES_BYTES),
      CONNECTIONS_MAX: String(CONNECTIONS_MAX),
    },
  });
  let innocent: InnocentCaller;
  let port: number;
  const peers: RawPeer[] = [];
  before(async () => {
    await server.open();
    await server.service.listen();
    port = server.service.grpcAddress!.port;
    innocent = new InnocentCaller(`http://127.0.0.1:${port}`, server.rootKey);
    await server.ok("ratelimits.limit", { namespace: "edge", identifier: "first", limit: 1, duration: 1_000, cost: 0 });
  });
  after(async () => {
    for (const { socket } of peers) socket.destroy();
    await innocent.close();
    await server.close();
  });

  async function connectPeers(count: number): Promise<RawPeer[]> {
    for (let i = 0; i < count; i++) peers.push(await rawPeer(port, ATTACKER));
    return peers;
  }

  async function leave(): Promise<void> {
    for (const { socket } of peers) socket.destroy();
    await Promise.all(peers.splice(0).map(({ closed }) => closed));
    await eventually("its calls to end", async () => (await openCallsOf(server)) === 0);
  }

  it("has all calls open and ends no message: the oldest ones make room", async () => {
    for (const { socket } of await connectPeers(Math.ceil(CALLS_MAX / STREAMS))) {
      const begun = Array.from({ length: STREAMS }, (_, i) =>
        frame(HEADERS, END_HEADERS, 2 * i + 1, callHeaders(CHECK)),
      );
      socket.write(Buffer.concat(begun));
    }
    await eventually("all calls to be open", async () => (await openCallsOf(server)) === CALLS_MAX);
    await innocent.isAnswered(5);
    await leave();
  });

  it("fills the memory for messages and ends none: the oldest ones make room", async () => {
    const [peer] = (await connectPeers(1)) as [RawPeer];
    const prefix = Buffer.alloc(5);
    prefix.writeUInt32BE(128 * 1024, 1);
    for (let stream = 1; stream < 2 * STREAMS; stream += 2) {
      const parts = [frame(HEADERS, END_HEADERS, stream, callHeaders(CHECK)), frame(DATA, 0, stream, prefix)];
      // All but a byte.
      for (let left = 128 * 1024 - 1; left > 0; left -= 16_384)
        parts.push(frame(DATA, 0, stream, Buffer.alloc(Math.min(left, 16_384))));
      peer.socket.write(Buffer.concat(parts));
    }
    const statuses = () => peer.frames.filter(({ type, flags }) => type === HEADERS && (flags & END_STREAM) > 0);
    await eventually("calls to make room", async () => statuses().length > STREAMS / 2);
    assert(statuses().every(({ payload }) => payload.includes(field("grpc-status", String(RESOURCE_EXHAUSTED)))));
    // The oldest ones.
    const ended = statuses().map(({ stream }) => stream);
    assert.deepEqual(
      ended,
      ended.toSorted((a, b) => a - b),
    );
    // What is left of the memory, in small pieces.
    const small = (await connectPeers(60)).slice(1);
    for (const { socket } of small) {
      const begun = Array.from({ length: STREAMS }, (_, i) => [
        frame(HEADERS, END_HEADERS, 2 * i + 1, callHeaders(CHECK)),
        frame(DATA, 0, 2 * i + 1, Buffer.from([0])),
      ]);
      socket.write(Buffer.concat(begun.flat()));
    }
    await eventually("more calls to be open", async () => (await openCallsOf(server)) > 60 * (STREAMS - 1));
    await innocent.isAnswered(5);
    await leave();
  });

  it("has all connections, each with a call that never ends: only its own make room", async () => {
    await innocent.isAnswered(5);
    const begun = frame(HEADERS, END_HEADERS, 1, callHeaders(CHECK));
    for (const { socket } of await connectPeers(CONNECTIONS_MAX + 20)) socket.write(begun);
    await eventually("all to be in use", async () => (await openCallsOf(server)) === CONNECTIONS_MAX - 1);
    const another = new InnocentCaller(`http://127.0.0.1:${port}`, server.rootKey);
    await another.isAnswered(5);
    await innocent.isAnswered(5);
    await another.close();
    await leave();
  });

  it("takes no answers, on many connections: they share a bound, and messages are forgotten with the answers", async () => {
    const apiId = await server.createApi();
    const { key } = await server.createKey(apiId);
    const names = Array.from({ length: 1_500 }, (_, i) => [`x-latchkey-${"y".repeat(40)}${i}`, ""]);
    // The answer has some 80 KB: every header is to be removed.
    const question = framed(
      checkRequest({
        extensions: { api: apiId },
        headers: { authorization: `Bearer ${key}`, ...Object.fromEntries(names) },
      }),
    );
    const authorized = Buffer.concat([callHeaders(CHECK), field("authorization", `Bearer ${server.rootKey}`)]);
    const noWindow = frame(SETTINGS, 0, 0, Buffer.from([0, 4, 0, 0, 0, 0]));
    const CALLS = 48;
    let answers = 0;
    for (const { socket, frames } of await connectPeers(10)) {
      const parts: Buffer[] = [noWindow];
      for (let stream = 1; stream < 2 * CALLS; stream += 2) {
        parts.push(frame(HEADERS, END_HEADERS, stream, authorized));
        for (let at = 0; at < question.length; at += 16_384)
          parts.push(frame(DATA, 0, stream, question.subarray(at, at + 16_384)));
        parts.push(frame(DATA, END_STREAM, stream));
      }
      socket.write(Buffer.concat(parts));
      // Each call has the head of its answer, or was refused.
      const settled = () => new Set(frames.filter(({ stream }) => stream > 0).map(({ stream }) => stream)).size;
      await eventually("the calls to be settled", async () => settled() === CALLS);
      answers += frames.filter(({ type }) => type === HEADERS).length;
    }
    assert(answers * 75_000 < BODIES_BYTES + 10 * 100_000, `${answers} answers wait`);
    await innocent.isAnswered(5);
    await leave();
  });
});

/** A peer that reads nothing. */
class UnreadSocket extends MemorySocket {
  override _write(): void {}
}

describe("the connections of gRPC (rule 219)", () => {
  const clock = new SimulatedClock(0);
  const limits: ConnectionLimits = {
    connectionsMax: 100,
    connectionAge: 3_600_000,
    headersTimeout: 3_600_000,
    requestTimeout: 3_600_000,
    bodiesBytesMax: 200_000,
  };
  const open = () =>
    new GrpcConnections(
      limits,
      { clock, methods: new Map(), budget: new MessageBudget(MIB), incomplete: new Set<GrpcCall>() },
      () => 0.5,
    );
  const added = <S extends MemorySocket>(connections: GrpcConnections, socket: S): S => {
    connections.add(socket as unknown as Socket);
    socket.receive(Buffer.concat([PREFACE, frame(SETTINGS, 0, 0)]));
    return socket;
  };

  it("end while their output takes too much memory: those that have not been read for the longest", async () => {
    const connections = open();
    const sockets: UnreadSocket[] = [];
    const pings = Buffer.concat(Array.from({ length: 3_000 }, () => frame(PING, 0, 0, Buffer.alloc(8))));
    for (let i = 0; i < 10; i++) {
      const socket = added(connections, new UnreadSocket());
      socket.receive(pings);
      await setImmediate();
      sockets.push(socket);
      connections.sweep();
      clock.advance(100);
    }
    assert(sockets.every(({ writableLength }) => writableLength > 50_000));
    clock.advance(500);
    connections.sweep();
    const ended = sockets.map(({ destroyed }) => destroyed);
    assert.equal(ended.indexOf(false), ended.lastIndexOf(true) + 1, "the oldest ones");
    // Those that have not had a second to read stay.
    assert.equal(ended.filter(Boolean).length, 6);
    clock.advance(1_000);
    connections.sweep();
    const left = sockets.filter(({ destroyed }) => !destroyed);
    assert(left.length > 0 && left.reduce((sum, { writableLength }) => sum + writableLength, 0) <= 200_000);
    connections.destroy();
  });

  it("are read one piece at a time, so that others have their turns, whatever the frames are", async () => {
    const connections = open();
    const socket = added(connections, new MemorySocket());
    const begun = frame(HEADERS, END_HEADERS, 1, callHeaders("none"));
    const piece = Buffer.concat(Array.from({ length: 7_000 }, () => frame(DATA, 0, 1)));
    socket.receive(begun);
    await setImmediate();
    for (let i = 0; i < 10; i++) socket.receive(piece);
    for (let left = 9; left > 0; left--) {
      assert.equal(socket.readableLength, left * piece.length);
      await setImmediate();
      await new Promise(process.nextTick);
    }
    assert.equal(socket.destroyed, false);
    connections.destroy();
  });
});

describe("a header block that refers to a long name thousands of times", () => {
  it("costs what its bytes cost", (t) => {
    const decoder = new HpackDecoder();
    const limits = { bytesMax: 16_384, fieldsMax: 64 };
    // A name of 3,900 bytes goes into the table.
    decoder.decode(
      Buffer.concat([Buffer.from([0x40, 0x7f, 0xbd, 0x1d]), Buffer.alloc(3_900, 110), Buffer.from([0])]),
      limits,
    );
    let judged = 0;
    const test = RegExp.prototype.test;
    t.mock.method(RegExp.prototype, "test", function (this: RegExp, text: string) {
      judged += text.length;
      return test.call(this, text);
    });
    // Each field has that name, and no value.
    const block = Buffer.concat(Array.from({ length: 5_000 }, () => Buffer.from([0x0f, 62 - 15, 0])));
    assert.equal(decoder.decode(block, limits), undefined);
    t.mock.restoreAll();
    assert(judged <= block.length, `${judged} characters for ${block.length} bytes`);
  });
});
