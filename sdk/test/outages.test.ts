/** A service that accepts connections and does not answer: what the client waits for, and that it recovers. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, it, type TestContext } from "node:test";
import { Breaker } from "../src/breaker.ts";
import { verify } from "../src/fetch.ts";
import { type AttemptEnd, Latchkey, LatchkeyError, type LatchkeyOptions } from "../src/index.ts";

const ANSWER = JSON.stringify({
  meta: { requestId: "req_1" },
  data: { valid: true, code: "VALID", keyId: "key_1", apiId: "api_1" },
});

/** A service that does not answer before `answer` was called. */
async function stall(t: TestContext) {
  const waiting: ServerResponse[] = [];
  let isStalled = true;
  const service = {
    url: "",
    requests: 0,
    answer: () => {
      isStalled = false;
      for (const response of waiting) response.end(ANSWER);
    },
  };
  const server = createServer((request, response) => {
    service.requests++;
    request.resume();
    if (isStalled) waiting.push(response);
    else response.end(ANSWER);
  }).listen(0, "127.0.0.1", 1_000);
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  service.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return service;
}

async function typeOf(call: Promise<unknown>): Promise<string> {
  return await call.then(
    () => "answered",
    (error) => (error instanceof LatchkeyError ? error.type : String(error)),
  );
}

it("a burst of calls that time out leaves the client usable", async (t) => {
  const service = await stall(t);
  const latchkey = new Latchkey({ url: service.url, timeout: 300, circuitBreaker: false });
  const types = await Promise.all(Array.from({ length: 400 }, () => typeOf(latchkey.keys.verifyKey({ key: "a" }))));
  assert.deepEqual(new Set(types), new Set(["timeout"]));
  service.answer();
  const { data } = await latchkey.keys.verifyKey({ key: "a" }, { timeout: 30_000 });
  assert.equal(data.valid, true);
});

describe("a circuit breaker", () => {
  function opened() {
    const clock = { now: 100 };
    const breaker = new Breaker(true, () => clock.now);
    for (let i = 0; i < 5; i++) breaker.end(breaker.admit()!, "timeout");
    assert.equal(breaker.admit(), undefined);
    return { clock, breaker };
  }

  it("opens after 5 time-outs in a row", () => {
    const breaker = new Breaker(true, () => 0);
    const end = (...outcomes: Parameters<Breaker["end"]>[1][]) => {
      for (const outcome of outcomes) breaker.end(0, outcome);
    };
    end("timeout", "timeout", "timeout", "timeout", "unknown", "answered", "timeout", "timeout", "timeout", "timeout");
    assert.equal(breaker.admit(), 0);
    end("timeout");
    assert.equal(breaker.admit(), undefined);
  });

  it("sends one probe at a time, each a second after the last one", () => {
    const { breaker, clock } = opened();
    for (const outcome of ["timeout", "unknown"] as const) {
      clock.now += 999;
      // What was sent earlier delays no probe.
      breaker.end(0, "timeout");
      assert.equal(breaker.admit(), undefined);
      clock.now++;
      const probe = breaker.admit()!;
      clock.now += 10_000;
      assert.equal(breaker.admit(), undefined);
      breaker.end(probe, outcome);
    }
    clock.now += 1_000;
    breaker.end(breaker.admit()!, "answered");
    assert.deepEqual([breaker.admit(), breaker.admit()], [0, 0]);
  });

  it("is closed by any late answer", () => {
    const { breaker } = opened();
    breaker.end(0, "answered");
    assert.equal(breaker.admit(), 0);
  });
});

describe("calls while the service hangs", () => {
  /** A client whose time stands still, and whose attempts time out after a millisecond unless there is an answer. */
  function clientOf(t: TestContext, options: LatchkeyOptions = {}) {
    const state = { now: 0, sent: 0, answer: undefined as (() => Response | Promise<Response>) | undefined };
    t.mock.method(performance, "now", () => state.now);
    const send: typeof fetch = (_, init) => {
      state.sent++;
      if (state.answer) return Promise.resolve(state.answer());
      return new Promise((_, reject) => {
        init!.signal!.addEventListener("abort", () => reject(init!.signal!.reason));
      });
    };
    const latchkey = new Latchkey({ url: "http://service.test", fetch: send, timeout: 1, retryWaitMax: 0, ...options });
    return { latchkey, state };
  }
  const types = async (count: number, call: () => Promise<unknown>) => {
    const found: string[] = [];
    for (let i = 0; i < count; i++) found.push(await typeOf(call()));
    return found;
  };
  const open = (count: number) => Array<string>(count).fill("circuit_open");
  const timeouts = (count: number) => Array<string>(count).fill("timeout");

  it("fail at once until a probe is answered", async (t) => {
    const { latchkey, state } = clientOf(t);
    const call = () => latchkey.keys.verifyKey({ key: "a" });
    assert.deepEqual(await types(8, call), [...timeouts(5), ...open(3)]);
    assert.equal(state.sent, 5);
    state.now += 1_000;
    assert.deepEqual(await types(2, call), [...timeouts(1), ...open(1)]);
    state.now += 1_000;
    // Any answer shows that the service is there.
    state.answer = () => new Response("", { status: 500 });
    assert.deepEqual(await types(2, call), ["invalid_answer", "invalid_answer"]);
    assert.equal(state.sent, 8);
  });

  it("that were sent fail with the error of what was sent", async (t) => {
    const ends: AttemptEnd[] = [];
    const { latchkey, state } = clientOf(t, { onResponse: (end) => ends.push(end) });
    // Three attempts, then two: the second one opens the circuit.
    const call = () => latchkey.keys.createKey({ apiId: "a" });
    assert.deepEqual(await types(3, call), [...timeouts(2), ...open(1)]);
    assert.deepEqual([state.sent, ends.length, ends.at(-1)!.retryIn], [5, 5, undefined]);
  });

  it("are sent if the service is away, or the breaker is off", async (t) => {
    const { latchkey, state } = clientOf(t);
    state.answer = () => Promise.reject(new TypeError("fetch failed"));
    const call = () => latchkey.keys.verifyKey({ key: "a" });
    assert.deepEqual(new Set(await types(8, call)), new Set(["network_error"]));
    t.mock.restoreAll();
    const other = clientOf(t, { circuitBreaker: false });
    assert.deepEqual(await types(8, () => other.latchkey.keys.verifyKey({ key: "a" })), timeouts(8));
  });

  it("are probed again if the probe failed in a hook, or was aborted", async (t) => {
    let fails = false;
    const onRequest = () => {
      if (fails) throw new RangeError("a hook");
    };
    const { latchkey, state } = clientOf(t, { onRequest });
    const call = () => latchkey.keys.verifyKey({ key: "a" });
    assert.deepEqual(await types(5, call), timeouts(5));
    state.now += 1_000;
    fails = true;
    assert.deepEqual(await types(1, call), ["RangeError: a hook"]);
    fails = false;
    state.now += 1_000;
    assert.equal(await typeOf(latchkey.keys.verifyKey({ key: "a" }, { signal: AbortSignal.abort() })), "aborted");
    state.now += 1_000;
    state.answer = () => new Response(ANSWER);
    assert.deepEqual(await types(1, call), ["answered"]);
  });
});

for (const failOpen of [false, true]) {
  it(`300 requests while the service hangs wait for few time-outs, and ${failOpen ? "pass" : "are rejected"}`, async (t) => {
    const service = await stall(t);
    t.mock.method(performance, "now", () => 0);
    const handle = verify(
      { apiId: "api_1", failOpen, latchkey: { url: service.url, timeout: 300 }, onError: () => {} },
      () => new Response(),
    );
    const headers = { Authorization: "Bearer a" };
    const statuses: number[] = [];
    const work = async () => {
      while (statuses.length < 300) statuses.push((await handle(new Request("http://api.test", { headers }))).status);
    };
    await Promise.all(Array.from({ length: 8 }, work));
    assert.deepEqual(new Set(statuses), new Set([failOpen ? 200 : 503]));
    // Those that were under way when the fifth timed out.
    assert(service.requests >= 5 && service.requests < 5 + 8, `${service.requests} requests`);
  });
}
