/**
 * The fast lane answers what the ordinary server answers: the same byte streams go to both, with the same status, headers
 * and body, and the same fate of the connection. The operations answer with everything that the transport gave them.
 *
 * A run follows from its seed: `FUZZ_SEED=7 FUZZ_STREAMS=1000000 node server/bin/node.js server/test/fast-lane.test.ts`.
 */
import assert from "node:assert/strict";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { after, before, describe, it } from "node:test";
import { setImmediate } from "node:timers/promises";
import { SimulatedClock } from "../../engine/src/clock/simulated.ts";
import { seededRandom } from "../../engine/src/random/seeded.ts";
import { addressList } from "../../engine/src/rules/address.ts";
import { ConnectionCounts } from "../src/platform/http/connection-counts.ts";
import { type HttpServer, openHttp } from "../src/platform/http/server.ts";
import { LaneServer } from "../src/platform/http/threads/lane-server.ts";
import type { TunnelMessage } from "../src/platform/http/threads/tunnel.ts";
import { TunnelledConnection } from "../src/platform/http/threads/tunnelled-connection.ts";
import type { Operation } from "../src/platform/rpc/operation.ts";
import { type Problem, problems } from "../src/platform/rpc/problems.ts";
import type { Rpc, RpcRequest, RpcResponse } from "../src/platform/rpc/server.ts";
import { operations } from "../src/service/operations.ts";
import { MemorySocket, SharedMemorySocket } from "./fast-lane/memory-socket.ts";
import { drawStream, type PeerStream } from "./fast-lane/streams.ts";

const SEED = Number(process.env.FUZZ_SEED ?? 1);
const STREAMS = Number(process.env.FUZZ_STREAMS ?? 20_000);
/** Turns of the event loop without output after which nothing more is expected. The longest heads take five to be parsed. */
const QUIET_TURNS = 8;
/** Streams that are sent at the same time. */
const AT_ONCE = 16;
/** A stream is looked at for this many turns at most. Large answers from another thread take several for each 64 KiB. */
const TURNS_MAX = 600;

/** The calls that servers passed to the operations. */
let calls = 0;

/** Answers each call with what the transport gave it. */
const echo: Pick<Rpc, "call" | "reject" | "recognize" | "failed"> = {
  call(operation: Operation, request: RpcRequest) {
    calls++;
    const answer: RpcResponse = {
      status: 200,
      body: JSON.stringify({ operation: operation.name, ...request }),
      requestId: "req_echo",
      ...(request.body?.includes("\u00e9") && { headers: { "ratelimit-limit": "5" } }),
    };
    if (request.body?.includes("large")) return { ...answer, status: 429, body: JSON.stringify("x".repeat(70_000)) };
    return request.body?.includes("slow") ? setImmediate(answer) : answer;
  },
  reject(problem: Problem) {
    const { status } = problems[problem.code];
    return { status, body: JSON.stringify({ code: problem.code, detail: problem.message }), requestId: "req_echo" };
  },
  recognize: async () => "ws_1",
  failed: (error) => assert.fail(String(error)),
};

const trustedProxies = addressList(["192.0.2.0/24"]);
const limits = {
  headersTimeout: 60_000,
  requestTimeout: 60_000,
  connectionsMax: 100,
  bodyBytesMax: 1_000_000,
  bodiesBytesMax: 100_000_000,
};

function open(fastLane: boolean): Promise<HttpServer> {
  return openHttp({
    operations,
    fastLane,
    rpc: echo as Rpc,
    clock: new SimulatedClock(0),
    publicUrl: "",
    readiness: () => assert.fail(),
    trustedProxies,
    limits,
    metrics: null,
    pages: null,
    routes: [],
  });
}

interface Exchange {
  output: string;
  fate: "open" | "ended" | "destroyed";
}

/** Sends a stream on a connection of its own and returns what became of it. */
async function exchange(
  server: Pick<HttpServer, "accept">,
  { peer, chunks, pace, ends }: Omit<PeerStream, "peer"> & { peer?: string },
  socket = new MemorySocket(peer),
): Promise<Exchange> {
  server.accept(socket);
  for (const [i, chunk] of chunks.entries()) {
    if (socket.destroyed) break;
    socket.receive(chunk);
    const isLast = i === chunks.length - 1;
    if (ends === "with the last chunk" && isLast) socket.receive(null);
    if (pace === "after answers" || isLast) await quiet(socket);
  }
  if (ends === "later" && !socket.destroyed) {
    socket.receive(null);
    await quiet(socket);
  }
  const fate = socket.destroyed ? "destroyed" : socket.hasEnded ? "ended" : "open";
  const output = socket.output.replaceAll(/^Date: .*$/gm, "Date: …");
  socket.destroy();
  return { output, fate };
}

async function quiet(socket: MemorySocket): Promise<void> {
  let written = -1;
  for (let turn = 0, still = 0; turn < TURNS_MAX && still < QUIET_TURNS; turn++) {
    await setImmediate();
    still = socket.output.length === written ? still + 1 : 0;
    written = socket.output.length;
  }
}

/** A lane as in a worker thread, whose connections go on to a server through messages that arrive later. */
function openLaneBefore(server: HttpServer): Pick<HttpServer, "accept"> {
  const clock = new SimulatedClock(0);
  const tunnelled = new Map<number, TunnelledConnection>();
  const lane = new LaneServer({
    operations,
    clock,
    limits,
    trustedProxies,
    rpc: echo as Rpc,
    otherThreads: {
      counts: new ConnectionCounts(new Int32Array(new SharedArrayBuffer(8)), 1),
      makeRoom: async () => false,
    },
    send: (message) =>
      void setImmediate(message).then(([kind, id, value]) => {
        if (kind === "open") {
          const send = (answer: TunnelMessage) => void setImmediate(answer).then((given) => lane.receive(given));
          const connection = new TunnelledConnection(id, value, clock, send);
          connection.on("error", () => {});
          tunnelled.set(id, connection);
          server.accept(connection);
        } else tunnelled.get(id)?.receive([kind, id, value] as TunnelMessage);
      }),
  });
  return { accept: (connection) => lane.accept(connection as Socket) };
}

describe("the fast lane", () => {
  let lane: HttpServer;
  let ordinary: HttpServer;
  before(async () => {
    [lane, ordinary] = await Promise.all([open(true), open(false)]);
  });
  after(() => Promise.all([lane.close(), ordinary.close()]));

  it(`treats ${STREAMS.toLocaleString("en")} streams as the ordinary server does`, async () => {
    const random = seededRandom(SEED);
    let parsed = 0;
    const count = () => parsed++;
    subscribe("http.server.request.start", count);
    try {
      for (let i = 0; i < STREAMS; i += AT_ONCE) {
        const streams = Array.from({ length: AT_ONCE }, () => drawStream(random));
        await Promise.all(streams.map((stream, j) => compare(stream, `stream ${i + j} of seed ${SEED}`)));
      }
    } finally {
      unsubscribe("http.server.request.start", count);
    }
    // Without the lane, Node would parse every call.
    assert.ok(calls - parsed > STREAMS / 8, `the lane answered ${calls - parsed} of ${calls} calls`);
  });

  it(`treats ${(STREAMS / 4).toLocaleString("en")} streams so in a thread of its own`, async () => {
    const random = seededRandom(SEED + 1);
    const separate = openLaneBefore(ordinary);
    for (let i = 0; i < STREAMS / 4; i += AT_ONCE) {
      const streams = Array.from({ length: AT_ONCE }, () => drawStream(random));
      await Promise.all(streams.map((stream, j) => compare(stream, `stream ${i + j} of seed ${SEED + 1}`, separate)));
    }
  });

  it(`treats ${(STREAMS / 4).toLocaleString("en")} streams so whose chunks are overwritten once they are read`, async () => {
    const random = seededRandom(SEED + 2);
    for (let i = 0; i < STREAMS / 4; i += AT_ONCE) {
      const streams = Array.from({ length: AT_ONCE }, () => drawStream(random));
      await Promise.all(
        streams.map(async (stream, j) => {
          const socket = new SharedMemorySocket(stream.peer);
          await compare(stream, `stream ${i + j} of seed ${SEED + 2}`, lane, socket);
          assert.ok(socket.isShared);
        }),
      );
    }
  });

  it("answers every request that arrived before what ends a connection", async () => {
    const call = "POST /v2/keys.verifyKey HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}";
    const slow = 'POST /v2/keys.verifyKey HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\n"slow"';
    const large = 'POST /v2/keys.verifyKey HTTP/1.1\r\nHost: x\r\nContent-Length: 7\r\n\r\n"large"';
    const get = "GET /v2/keys.verifyKey HTTP/1.1\r\nHost: x\r\n\r\n";
    const tooLong = "POST /v2/keys.verifyKey HTTP/1.1\r\nHost: x\r\nContent-Length: 70000\r\n\r\n";
    const announced = "POST /v2/apis.createApi HTTP/1.1\r\nHost: x\r\nContent-Length: 2000000\r\n\r\n";
    const garbage = "garbage\r\n\r\n";
    const connects = "CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n";
    const separate = openLaneBefore(ordinary);
    for (const [requests, statuses] of [
      [[call, connects], "200 405"],
      [[slow, large, slow, connects, call], "200 429 200 405"],
      [[get, slow, slow, garbage], "405 200 200 400"],
      [[get, call, call, garbage, call], "405 200 200 400"],
      [[slow, call, tooLong, "z".repeat(70_000), garbage], "200 200 413"],
      [[get, slow, slow, announced], "405 200 200 413"],
    ] as const) {
      for (const server of [lane, ordinary, separate]) {
        for (const chunks of [[requests.join("")], requests].map((texts) => texts.map((text) => Buffer.from(text)))) {
          const { output, fate } = await exchange(server, { chunks, pace: "at once", ends: "with the last chunk" });
          const answered = [...output.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => status).join(" ");
          assert.deepEqual([answered, fate], [statuses, "destroyed"], requests.join("").slice(0, 500));
        }
      }
    }
  });

  it("answers a call whose body comes after its head, but passes on a body in three chunks", async () => {
    const call = 'POST /v2/keys.verifyKey HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\n"body"';
    let parsed = 0;
    const count = () => parsed++;
    subscribe("http.server.request.start", count);
    try {
      for (const cuts of [[-6], [-2], [-6, -2]]) {
        const ends = [0, ...cuts.map((cut) => call.length + cut), call.length];
        const chunks = ends.slice(1).map((end, i) => Buffer.from(call.slice(ends[i], end)));
        const { output } = await exchange(lane, {
          chunks: [...chunks, ...chunks],
          pace: "after answers" as const,
          ends: "never" as const,
        });
        assert.equal(output.split("HTTP/1.1 200 OK").length - 1, 2, output);
        assert.equal(parsed, cuts.length === 1 ? 0 : 2);
      }
    } finally {
      unsubscribe("http.server.request.start", count);
    }
  });

  it("answers a call whose body comes after it began to close", async () => {
    const server = await open(true);
    const socket = new MemorySocket();
    server.accept(socket);
    socket.push("POST /v2/keys.verifyKey HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n");
    await quiet(socket);
    const closed = server.close();
    socket.push("{}");
    await quiet(socket);
    assert.match(socket.output, /^HTTP\/1\.1 200 OK\r\n.*Connection: close/s);
    await closed;
  });

  it("passes a TCP connection on in the middle of a request, and answers everything in order", async () => {
    const { address, port } = await lane.listen("127.0.0.1", 0);
    const socket = connect(port, address);
    const request = (headers: string, body: string, path = "/v2/keys.verifyKey") =>
      `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n${headers}\r\n\r\n${body}`;
    const plain = (name: string) => request(`Content-Length: ${name.length + 2}`, `"${name}"`);
    const split = plain("split");
    const long = "z".repeat(200_000);
    const sent = [
      plain("first") + plain("slow second") + plain("third"),
      plain("slow fourth") + split.slice(0, 30),
      split.slice(30) + request("Transfer-Encoding: chunked", '9\r\n"chunked"\r\n0\r\n\r\n'),
      request(`Content-Length: ${long.length}`, long, "/v2/apis.createApi") + plain("last"),
    ];
    const names = ["first", "slow second", "third", "slow fourth", "split", "chunked", long, "last"];
    const bodies = names.map((name) => (name === long ? long : `"${name}"`));
    let received = "";
    socket.on("data", (chunk) => {
      received += chunk.toString();
    });
    for (const [i, chunk] of sent.entries()) {
      socket.write(chunk);
      const answers = [3, 4, 6, 8][i]!;
      while (received.split("HTTP/1.1 200 OK").length - 1 < answers) await once(socket, "data");
    }
    const closed = once(socket, "close");
    socket.end();
    await closed;
    const echoed = received.split(/HTTP\/1\.1 200 OK\r\n/).slice(1);
    assert.deepEqual(
      echoed.map((answer) => JSON.parse(answer.slice(answer.indexOf("\r\n\r\n") + 4)).body),
      bodies,
    );
  });

  async function compare(
    stream: PeerStream,
    name: string,
    tested: Pick<HttpServer, "accept"> = lane,
    socket = new MemorySocket(stream.peer),
  ): Promise<void> {
    const [fast, slow] = await Promise.all([exchange(tested, stream, socket), exchange(ordinary, stream)]);
    if (fast.output === slow.output && fast.fate === slow.fate) return;
    const sent = stream.chunks.map((chunk) => chunk.toString("latin1"));
    assert.deepEqual(fast, slow, `${name}: ${JSON.stringify({ ...stream, chunks: sent })}`);
  }
});
