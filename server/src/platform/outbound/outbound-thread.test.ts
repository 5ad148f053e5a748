import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, it, type TestContext } from "node:test";
import { Worker } from "node:worker_threads";
import { SimulatedClock } from "../../../../engine/src/clock/simulated.ts";
import { OutboundClient } from "./client.ts";
import { OutboundFailure, type OutboundFailureReason } from "./exchange.ts";
import { OutboundThread } from "./outbound-thread.ts";

const TIMEOUT = 3_000;

describe("OutboundThread", () => {
  it("starts for the first request, sends from there, and ends after a minute without one", async (t) => {
    const { client, thread, clock } = open(t);
    const url = await serve(t);
    assert.equal(thread.isRunning, false);
    for (let i = 0; i < 2; i++) {
      const answer = await client.send({ url, method: "POST", headers: { "x-name": "value" }, body: "é" });
      assert.deepEqual(
        { ...answer, body: answer.body.toString() },
        { status: 202, body: "POST value é", isComplete: true },
      );
      clock.advance(59_999);
      assert.equal(thread.isRunning, true);
    }
    clock.advance(1);
    assert.equal(thread.isRunning, false);
    assert.equal((await get(client, url)).status, 202);
    assert.equal(client.open, 0);
  });

  it("returns why there is no answer, and the part that arrived in time", async (t) => {
    const { client, clock } = open(t);
    const url = await serve(t);
    assert.equal(
      (await assertFails(get(client, "http://x.invalid/"), "forbidden")).message,
      "The host of the URL has no address",
    );
    const silent = get(client, `${url}silent`);
    clock.advance(TIMEOUT);
    assert.equal((await assertFails(silent, "timeout")).message, "No answer arrived in time");
    // The thread needs some time to read the part that was written.
    let part: Awaited<ReturnType<typeof get>> | undefined;
    for (let turns = 1; !part && turns < 1_000_000; turns *= 4) {
      const isWritten = once(process, "part");
      const sent = get(client, `${url}part`).catch((failure) => {
        assert.equal(failure.reason, "timeout", failure.message);
        return undefined;
      });
      await isWritten;
      for (let i = 0; i < turns; i++) await new Promise(setImmediate);
      clock.advance(TIMEOUT);
      part = await sent;
    }
    assert.ok(part);
    assert.deepEqual([part.status, part.body.toString(), part.isComplete], [200, "part", false]);
  });

  it("ends a request in its time limit although the thread is stuck, and then the thread", async (t) => {
    const { client, thread, clock, losses } = open(t, () => new Worker("while (true);", { eval: true }));
    const url = await serve(t);
    const one = assertFails(get(client, url), "timeout");
    const other = assertFails(client.send({ url, method: "GET", headers: {}, timeout: 60_000 }), "failed");
    await pass(clock, TIMEOUT);
    await pass(clock, 500);
    await one;
    assert.equal(losses.length, 0);
    await pass(clock, 2_000);
    assert.match(String(losses), /did not end a request within 2000 ms/);
    await other;
    assert.equal(thread.isRunning, false);
    await assertFails(get(client, url), "busy");
    clock.advance(1_000);
    assert.equal((await get(client, url)).status, 202);
    assert.equal(losses.length, 1);
  });

  it("fails the requests of a thread that ends by itself, reports it, and starts another one", async (t) => {
    const { client, clock, losses } = open(t, () => new Worker("throw new Error('no memory')", { eval: true }));
    const url = await serve(t);
    const failure = await assertFails(get(client, url), "failed");
    assert.equal(failure.message, "The request failed: its thread has ended");
    assert.match(String(losses), /no memory/);
    clock.advance(1_000);
    assert.equal((await get(client, url)).status, 202);
  });

  it("ends open requests when it is closed", async (t) => {
    const { client, thread } = open(t);
    const failed = assertFails(get(client, `${await serve(t)}silent`), "failed");
    await thread.close();
    await failed;
    await assertFails(get(client, "http://127.0.0.1/"), "failed");
    assert.equal(thread.isRunning, false);
  });
});

/** `first` starts the first thread instead of the real one. */
function open(t: TestContext, first?: () => Worker) {
  const clock = new SimulatedClock(1_768_478_400_000);
  const losses: unknown[] = [];
  const starts = [first];
  const thread = new OutboundThread({
    clock,
    onLoss: (cause) => losses.push(cause),
    start: () => starts.pop()?.() ?? new Worker(new URL("./thread.ts", import.meta.url)),
  });
  t.after(() => thread.close());
  const client = new OutboundClient({
    clock,
    transport: thread,
    allowPrivate: true,
    timeout: TIMEOUT,
    answerBytesMax: 1_000,
    requestsPerHost: 10,
    requestsMax: 10,
  });
  return { client, thread, clock, losses };
}

function get(client: OutboundClient, url: string) {
  return client.send({ url, method: "GET", headers: {} });
}

/** Advances the clock in steps, so that what each one causes has happened before the next. */
async function pass(clock: SimulatedClock, length: number): Promise<void> {
  for (let i = 0; i < 20; i++) {
    clock.advance(length / 20);
    await new Promise(setImmediate);
  }
}

async function assertFails(sent: Promise<unknown>, reason: OutboundFailureReason): Promise<OutboundFailure> {
  const failure = await sent.then(
    () => assert.fail("The request succeeded"),
    (error: unknown) => error,
  );
  assert.ok(failure instanceof OutboundFailure, String(failure));
  assert.equal(failure.reason, reason, failure.message);
  return failure;
}

async function serve(t: TestContext): Promise<string> {
  const server = createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray()).toString();
    if (request.url === "/part") response.write("part", () => process.emit("part" as never));
    else if (request.url !== "/silent") {
      response.writeHead(202).end(`${request.method} ${request.headers["x-name"]} ${body}`);
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}
