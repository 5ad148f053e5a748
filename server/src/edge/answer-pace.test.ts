import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from "node:net";
import { describe, it, type TestContext } from "node:test";
import { SimulatedClock } from "../../../engine/src/clock/simulated.ts";
import { seededRandom } from "../../../engine/src/random/seeded.ts";
import { PLACES_MAX } from "./caller-places.ts";
import { HttpHome } from "./http-home.ts";
import { passOnRequest } from "./pass-on.ts";

const MINUTE = 60_000;
const ENOUGH = Buffer.alloc(64 * 1024, 32);

/** Turns of the event loop in which everything that was sent has arrived. */
const TURNS_MAX = 1_000_000;

async function until(isSo: () => boolean): Promise<void> {
  for (let turn = 0; !isSo(); turn++) {
    assert(turn < TURNS_MAX, isSo.toString());
    await new Promise(setImmediate);
  }
}

async function listening(server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

/** Callers, an edge with a simulated clock, and a home that answers as a test wants. */
async function open(t: TestContext, answer: (socket: Socket, head: string) => void) {
  const clock = new SimulatedClock(0);
  const sockets = new Set<Socket>();
  const service = createTcpServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("data", (data) => answer(socket, data.toString()));
  });
  const address = new URL(`http://127.0.0.1:${await listening(service)}`);
  const home = new HttpHome(address, "root", clock, () => {});
  const edge = createServer((asked: IncomingMessage, response: ServerResponse) =>
    passOnRequest(home, asked, response, {
      clock,
      address: "192.0.2.1",
      random: seededRandom(1),
      complete: undefined,
      answerUnread: () => response.writeHead(500).end(),
      onFailure: ({ message }) => response.writeHead(503).end(message),
    }),
  );
  const port = await listening(edge);
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    edge.closeAllConnections();
    edge.close();
    service.close();
    home.close();
  });
  /** A call that reads its answer, unless it is told to wait. */
  const call = (path: string, isReading = true) => {
    const state = { bytes: 0, text: "", status: 0, end: "" };
    const asked = request({ port, path, agent: false }, (response) => {
      state.status = response.statusCode ?? 0;
      response.on("end", () => {
        state.end ||= "complete";
      });
      response.on("error", () => {
        state.end ||= "cut";
      });
      const read = () =>
        response.on("data", (piece: Buffer) => {
          state.bytes += piece.length;
          state.text = piece.toString();
        });
      if (isReading) read();
      Object.assign(state, { read });
    });
    asked.on("error", () => {
      state.end ||= "cut";
    });
    asked.end();
    return state as typeof state & { read?: () => void };
  };
  return { clock, call, sockets };
}

const HEAD = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
const DRIP = "1\r\n.\r\n";

describe("an answer that an edge passes on (rule 231)", () => {
  it("ends if home drips it, and its place is free", async (t) => {
    const { clock, call, sockets } = await open(t, (socket, head) => {
      const isQuick = head.startsWith("GET /quick");
      socket.write(isQuick ? "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" : HEAD + DRIP);
    });
    const slow = Array.from({ length: PLACES_MAX }, () => call("/slow"));
    await until(() => slow.every(({ bytes }) => bytes === 1));
    const late = call("/quick");
    await until(() => sockets.size === PLACES_MAX);
    for (let drips = 1; drips < 6; drips++) {
      clock.advance(10_000);
      for (const socket of sockets) socket.write(DRIP);
      await until(() => slow.every(({ bytes }) => bytes === 1 + drips));
    }
    await until(() => late.status !== 0);
    assert.equal(late.status, 503);
    assert.deepEqual([...new Set(slow.map(({ end }) => end))], [""]);
    clock.advance(10_000);
    await until(() => slow.every(({ end }) => end !== ""));
    assert.deepEqual([...new Set(slow.map(({ end }) => end))], ["cut"]);
    const next = call("/quick");
    await until(() => next.end !== "");
    assert.deepEqual([next.status, next.text], [200, "ok"]);
  });

  it("is 503 if home drips its head, or hints before it", async (t) => {
    const hints = "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(5_000);
    for (const head of ["HTTP/1.1 200 OK\r\nX-A: a", hints]) {
      let isAsked = false;
      const { clock, call } = await open(t, (socket) => {
        socket.write(head, () => {
          isAsked = true;
        });
      });
      const slow = call("/slow");
      await until(() => isAsked);
      for (let turn = 0; turn < 1_000; turn++) await new Promise(setImmediate);
      clock.advance(MINUTE - 1);
      assert.equal(slow.end, "");
      clock.advance(1);
      await until(() => slow.end !== "");
      assert.deepEqual([slow.status, slow.text], [503, "it is too slow"]);
    }
  });

  it("goes on for an hour at a KiB per second", async (t) => {
    const { clock, call, sockets } = await open(t, (socket) => socket.write(HEAD + DRIP));
    const long = call("/long");
    await until(() => long.status === 200);
    for (let second = 1; second <= 60 * 60; second++) {
      for (const socket of sockets) socket.write(`400\r\n${" ".repeat(1024)}\r\n`);
      await until(() => long.bytes === 1 + second * 1024);
      clock.advance(1_000);
    }
    for (const socket of sockets) socket.write("0\r\n\r\n");
    await until(() => long.end !== "");
    assert.equal(long.end, "complete");
  });

  it("waits for a caller that does not read it", async (t) => {
    const pieces = 1_000;
    const { clock, call } = await open(t, (socket) => {
      socket.write(HEAD);
      for (let i = 0; i < pieces; i++) socket.write(`10000\r\n${ENOUGH}\r\n`);
      socket.write("0\r\n\r\n");
    });
    const idle = call("/long", false);
    await until(() => idle.read !== undefined);
    for (let minute = 0; minute < 10; minute++) {
      for (let turn = 0; turn < 200; turn++) await new Promise(setImmediate);
      clock.advance(MINUTE);
    }
    assert.equal(idle.end, "");
    idle.read?.();
    await until(() => idle.end !== "");
    assert.deepEqual([idle.end, idle.bytes], ["complete", pieces * ENOUGH.length]);
  });
});
