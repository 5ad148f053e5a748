/** What a service keeps when one of its threads ends at the worst moment, and what it keeps from peers that do not read. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { request } from "node:http";
import { connect, type Socket } from "node:net";
import { after, before, describe, it } from "node:test";
import { eventually, makeFolder, ROOT_KEY, type Server, start } from "../process.ts";
import { CONNECTIONS, Connections, sumOf, ThreadedService } from "./service.ts";
import { ENDING_COUNT, FILLING_COUNT, threadFaults } from "./thread-faults.ts";

const LONG = 24 * 3_600_000;

/**
 * A multiple of `FILLING_COUNT`, and one more than a multiple of `ENDING_COUNT`: no thread ends during the charges of one
 * that follow those of this cost.
 */
const FILLING_COST = 269 * FILLING_COUNT;

/** Answers on one connection. */
const COPIES = 8;

const ENDED = "a worker thread has ended and will be replaced";

describe("a process with a worker thread", () => {
  const directory = makeFolder({ after });
  const service = new Connections();
  let server: Server;
  before(async () => {
    const settings = { WORKERS: "2", DIRECTORY_BYTES: "1m", ANALYTICS: "off", DRAIN: "1m" };
    server = await start({ directory, settings, environment: threadFaults });
    service.port = Number(new URL(server.address).port);
  });
  after(() => service.disconnect());

  for (const [i, { how, cost, cause }] of [
    { how: "exits", cost: ENDING_COUNT, cause: /with the code 7/ },
    { how: "fills its heap", cost: FILLING_COST, cause: /ERR_WORKER_OUT_OF_MEMORY/ },
  ].entries()) {
    it(`keeps no lock and loses no count when it ${how} inside a charge`, async () => {
      const charge = { namespace: "n", identifier: how, limit: 1e9, duration: LONG };
      await service.ok("ratelimits.limit", { ...charge, cost: 0 });
      const answered = await service.sendUntilOneBreaks("ratelimits.limit", { ...charge, cost });
      const metric = async (name: string) => sumOf(await service.metrics(), name);
      await eventually("a replacement", async () => (await metric("latchkey_threads_ended_total")) === i + 1);
      await eventually("a replacement", async () => (await metric("latchkey_threads")) === 2);
      const { thread, error, restartInMs } = server.log.findLast(({ msg }) => msg === ENDED)!;
      assert.deepEqual([thread, restartInMs], [1, 100 * 2 ** i]);
      assert.match(JSON.stringify(error), cause);
      for (const { status } of await service.sendOnAll("ratelimits.limit", charge)) assert.equal(status, 200);
      const { remaining } = await service.ok("ratelimits.limit", { ...charge, cost: 0 });
      assert.equal(charge.limit - remaining, answered * cost + CONNECTIONS);
    });
  }

  it("ends each connection after its next answer while it drains", async () => {
    await service.sendOnAll("keys.verifyKey", { key: "x" });
    server.signal("SIGTERM");
    await eventually("all threads to drain", async () => {
      const answers = await service.sendOnAll("keys.verifyKey", { key: "x" });
      return answers.every(({ status, headers }) => status === 200 && headers.connection === "close");
    });
  });
});

describe("connections of worker threads", () => {
  it("end with their thread, also those that the main thread reads, and count no longer", async (t) => {
    const settings = { WORKERS: "2", CONNECTIONS_MAX: String(CONNECTIONS), ANALYTICS: "off" };
    const service = await ThreadedService.start(settings);
    t.after(() => service.remove());
    const call = (i: number) => service.send(i, "keys.verifyKey", { key: "x" });
    for (const isInLane of [false, true]) {
      await Promise.all(
        service.agents.map(async (_, i) => {
          if (!isInLane) await service.fetch(i, "GET", "/health/live");
          assert.equal((await call(i))?.status, 200);
        }),
      );
      const [victim] = service.workers;
      await victim!.terminate();
      await eventually("a replacement", () => service.service.threads === 2);
      const answers = await Promise.all(service.agents.map((_, i) => call(i)));
      assert.deepEqual(new Set(answers.map((answer) => answer?.status)), new Set([200]));
    }
  });

  for (const isInLane of [true, false]) {
    const where = isInLane ? "in the fast lane" : "beyond it";
    it(`give way to those of other networks in any thread when one network has all of them, ${where}`, async (t) => {
      const settings = { WORKERS: "2", CONNECTIONS_MAX: "60", ANALYTICS: "off" };
      const service = await ThreadedService.start(settings);
      t.after(() => service.remove());
      const sockets = await openSockets(t, service.port, 60);
      const body = '{"key":"x"}';
      const plain = `POST /v2/keys.verifyKey HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
      for (const socket of sockets) {
        socket.write(isInLane ? plain : "GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n");
        await once(socket, "data");
      }
      // Each of these ends one of the 60.
      const CALLS = 40;
      for (let i = 0; i < CALLS; i++) {
        assert.equal(await callFrom("127.0.0.2", service.port, body), 200, `${i}`);
      }
    });
  }

  it("get the rest of a long answer when their peers read again", async (t) => {
    const service = await ThreadedService.start({ WORKERS: "2", ANALYTICS: "off" });
    t.after(() => service.remove());
    const sockets = await openSockets(t, service.port, 12);
    const request = "GET /openapi.json HTTP/1.1\r\nHost: x\r\n";
    for (const socket of sockets) {
      socket.pause();
      // The buffers of the system have no room for all answers.
      socket.write(`${`${request}\r\n`.repeat(COPIES - 1)}${request}Connection: close\r\n\r\n`);
    }
    await service.sendOnAll("keys.verifyKey", { key: "x" });
    const texts = await Promise.all(sockets.map((socket) => socket.setEncoding("utf8").toArray()));
    for (const chunks of texts) {
      const answers = chunks.join("").split("HTTP/1.1 200 OK");
      assert.equal(answers.length, 1 + COPIES);
      assert.equal(new Set(answers.slice(1).map((answer) => answer.slice(answer.indexOf("\r\n\r\n")))).size, 1);
    }
  });

  it("are ended when their peers do not read, in the fast lane and beyond", async (t) => {
    const service = await ThreadedService.start({ WORKERS: "2", REQUEST_TIMEOUT: "1s", ANALYTICS: "off" });
    t.after(() => service.remove());
    const { apiId } = await service.ok("apis.createApi", { name: "a" });
    const { key } = await service.ok("keys.createKey", { apiId, meta: { text: "x".repeat(60_000) } });
    const body = JSON.stringify({ key });
    const plain = `POST /v2/keys.verifyKey HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer ${ROOT_KEY}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    const other = "GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n";
    const sockets = await openSockets(t, service.port, 32);
    let ended = 0;
    for (const [i, socket] of sockets.entries()) {
      socket.pause().once("close", () => ended++);
      socket.write((i % 2 === 0 ? plain : other).repeat(128));
    }
    await eventually("the service to end the connections", () => {
      // A paused socket notices an end only when it writes.
      for (const socket of sockets) if (!socket.destroyed) socket.write("\r\n");
      return ended === sockets.length;
    });
  });
});

async function openSockets(t: { after(undo: () => void): void }, port: number, count: number): Promise<Socket[]> {
  const sockets = Array.from({ length: count }, () => connect(port, "127.0.0.1").on("error", () => {}));
  t.after(() => {
    for (const socket of sockets) socket.destroy();
  });
  await Promise.all(sockets.map((socket) => once(socket, "connect")));
  return sockets;
}

/** The status of a verification on a new connection from this address. */
function callFrom(localAddress: string, port: number, body: string): Promise<number> {
  const headers = { "content-type": "application/json" };
  const options = { host: "127.0.0.1", port, path: "/v2/keys.verifyKey", method: "POST", headers, localAddress };
  return new Promise((resolve, reject) => {
    request({ ...options, agent: false }, (response) =>
      response.resume().once("end", () => resolve(response.statusCode!)),
    )
      .once("error", reject)
      .end(body);
  });
}
