/** Holds on their own: when they are extended, how often a settlement is tried, and work that is no request. */
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { setImmediate } from "node:timers/promises";
import express from "express";
import fastify from "fastify";
import { Hono } from "hono";
import * as forExpress from "../src/express.ts";
import * as forFastify from "../src/fastify.ts";
import { verify } from "../src/fetch.ts";
import type { HoldOptions } from "../src/held-answer.ts";
import * as forHono from "../src/hono.ts";
import { Latchkey, type OpenHold, UnsettledHold } from "../src/index.ts";
import * as forNode from "../src/node.ts";
import { inject } from "./inject.ts";

const KEY = "prod_3kAqEg4u4qMxCGFAVMuGsb3cijGp";
const HELD = { valid: true, code: "VALID", keyId: "key_1", apiId: "api_1", hold: { holdId: "hold_1", expiresAt: 1 } };
const CLOSED = { holdId: "hold_1", state: "settled", charged: 7, uncovered: 0, budgets: [] };

type Call = { operation: string; body: Record<string, unknown> };
/** What an operation answers: its data, a status, or nothing because the connection fails. */
type Reply = object | number | "away";

/** A service that answers calls by operation, and a client of it. */
function serviceOf(replies: Record<string, Reply | ((call: Call) => Reply | Promise<Reply>)> = {}) {
  const calls: Call[] = [];
  const answers: Record<string, Reply | ((call: Call) => Reply | Promise<Reply>)> = {
    "keys.verifyKey": structuredClone(HELD),
    "holds.extendHold": { holdId: "hold_1", expiresAt: 2 },
    "holds.settleHold": CLOSED,
    "holds.releaseHold": { ...CLOSED, state: "released", charged: 0 },
    ...replies,
  };
  const send: typeof fetch = async (url, init) => {
    const call = { operation: String(url).replace(/^.*\//, ""), body: JSON.parse(String(init!.body)) };
    calls.push(call);
    const reply = answers[call.operation]!;
    const data = typeof reply === "function" ? await reply(call) : reply;
    if (data === "away") throw new Error("away");
    if (typeof data !== "number") return Response.json({ meta: { requestId: "req_1" }, data });
    const error = { type: "/errors/planted", detail: "planted", status: data };
    return Response.json({ meta: { requestId: "req_1" }, error }, { status: data });
  };
  const latchkey = new Latchkey({ url: "http://service.test", rootKey: "root", fetch: send, circuitBreaker: false });
  const operations = () => calls.map(({ operation }) => operation.replace("holds.", "")).slice(1);
  return { calls, operations, latchkey };
}

/** Time that only `advance` moves, and what happens in it. */
function timeOf(t: TestContext) {
  let now = 0;
  t.mock.method(performance, "now", () => now);
  t.mock.timers.enable({ apis: ["setTimeout"] });
  return async (length: number, step = 100) => {
    for (let passed = 0; passed < length; passed += step) {
      now += step;
      t.mock.timers.tick(step);
      for (let turn = 0; turn < 10; turn++) await setImmediate();
    }
  };
}

const input = { key: KEY, credits: { cost: 40 } };

describe("a hold", () => {
  it("is extended each third of its ttl, and for no longer than lifetimeMax", async (t) => {
    const advance = timeOf(t);
    const { latchkey, calls, operations } = serviceOf();
    const end = Promise.withResolvers<void>();
    const held = latchkey.withHold({ ...input, hold: { ttl: 9_000, lifetimeMax: 20_000 } }, async (hold) => {
      await end.promise;
      return hold.expiresAt;
    });
    await advance(30_000);
    assert.deepEqual(operations(), Array(6).fill("extendHold"));
    assert.deepEqual(
      calls.slice(1).map(({ body }) => body.ttl),
      [9_000, 9_000, 9_000, 8_000, 5_000, 2_000],
    );
    end.resolve();
    const { valid, result, settled } = await held;
    assert.deepEqual([valid, result, settled], [true, 2, CLOSED]);
    await advance(30_000);
    assert.deepEqual(operations().slice(6), ["settleHold"]);
  });

  it("is extended again after a failure, unless it has expired", async (t) => {
    const advance = timeOf(t);
    let reply: Reply = "away";
    const { latchkey, operations } = serviceOf({ "holds.extendHold": () => reply });
    const end = Promise.withResolvers<void>();
    const held = latchkey.withHold({ ...input, hold: { ttl: 9_000 } }, () => end.promise);
    await advance(9_500);
    assert.equal(operations().length, 3);
    reply = 409;
    await advance(30_000);
    assert.equal(operations().length, 4);
    end.resolve();
    assert.equal((await held).settled?.charged, 7);
  });

  it("is settled in at most 8 attempts of half a minute, with the same amounts, and then reported", async (t) => {
    const advance = timeOf(t);
    t.mock.method(Math, "random", () => 1);
    for (const reply of ["away", 500, 503, 429] as const) {
      const { latchkey, calls } = serviceOf({ "holds.settleHold": () => reply });
      const errors: Error[] = [];
      const work = (hold: OpenHold) => hold.report({ credits: 7, tags: ["a=b"] });
      const held = latchkey.withHold(input, work, { onError: (error) => errors.push(error) });
      await advance(23_500, 250);
      assert.deepEqual([errors.length, calls.length], [0, 8]);
      await advance(500, 250);
      const { result, settled } = await held;
      assert.deepEqual([result, settled], [true, undefined]);
      assert.deepEqual(
        calls.slice(1).map(({ body }) => body),
        Array(8).fill({ holdId: "hold_1", credits: 7, tags: ["a=b"] }),
      );
      const [error] = errors;
      assert(error instanceof UnsettledHold && errors.length === 1);
      assert.deepEqual([error.holdId, error.settlement], ["hold_1", { credits: 7, tags: ["a=b"] }]);
      assert.match(error.message, /hold_1 could not be settled with 7 credits: holds.settleHold: /);
    }
  });

  it("is not tried again after an answer that stays the same", async () => {
    for (const status of [401, 403, 404, 409]) {
      const { latchkey, operations } = serviceOf({ "holds.settleHold": status });
      const errors: Error[] = [];
      await latchkey.withHold(input, () => {}, { onError: (error) => errors.push(error) });
      assert.deepEqual([operations(), errors.length], [["settleHold"], 1]);
    }
  });

  it("whose release comes after its expiry is settled with 0, because the expiry may have charged it", async () => {
    const { latchkey, calls } = serviceOf({ "holds.releaseHold": 409 });
    const failing = () => Promise.reject(new Error("of the work"));
    await assert.rejects(latchkey.withHold(input, failing), /of the work/);
    assert.deepEqual(calls.at(-1), { operation: "holds.settleHold", body: { holdId: "hold_1", credits: 0 } });
  });

  it("is settled with what was held, if the function takes more than 30 seconds, and extended until then", async (t) => {
    const advance = timeOf(t);
    const { latchkey, calls, operations } = serviceOf();
    const errors: Error[] = [];
    const settle = () => new Promise<never>(() => {});
    const held = latchkey.withHold(input, () => {}, { settle, onError: (error) => errors.push(error) });
    await advance(30_500);
    assert.equal((await held).settled?.charged, 7);
    assert.deepEqual(operations(), ["extendHold", "settleHold"]);
    assert.deepEqual(calls.at(-1)!.body, { holdId: "hold_1", credits: 40 });
    assert.match(errors.join(), /`settle` took more than 30000 ms/);
  });

  it("is settled with the credits alone, if the service refuses the rest", async () => {
    for (const status of [400, 412]) {
      const { latchkey, calls } = serviceOf({
        "holds.settleHold": ({ body }) => (body.ratelimits || body.tags ? status : CLOSED),
      });
      const errors: Error[] = [];
      const settle = () => ({ credits: 7, ratelimits: [{ name: "tokens", cost: 1 }], tags: ["a=b"] });
      const { settled } = await latchkey.withHold(input, () => {}, { settle, onError: (error) => errors.push(error) });
      assert.equal(settled?.charged, 7);
      assert.deepEqual(calls.at(-1)!.body, { holdId: "hold_1", credits: 7 });
      assert.equal(errors.length, 1);
    }
  });

  it("is settled also if the hook for errors throws", async (t) => {
    t.mock.method(console, "error", () => {});
    const { latchkey, calls } = serviceOf();
    const fail = () => {
      throw new Error("planted");
    };
    const { settled } = await latchkey.withHold(input, () => {}, { settle: fail, onError: fail });
    assert.equal(settled?.charged, 7);
    assert.deepEqual(calls.at(-1)!.body, { holdId: "hold_1", credits: 40 });
  });
});

describe("withHold", () => {
  it("charges what the result did cost, what was reported, or what was held", async () => {
    for (const [work, settle, credits] of [
      [() => 5, (result: number) => ({ credits: result }), 5],
      [(hold: OpenHold) => hold.report({ credits: 6 }), undefined, 6],
      [() => 5, undefined, 40],
    ] as const) {
      const { latchkey, calls } = serviceOf();
      const held = await latchkey.withHold(input, work as () => number, settle && { settle });
      assert(held.valid);
      assert.equal(held.verified.keyId, "key_1");
      assert.deepEqual(calls[0]!.body, { ...input, hold: { ttl: 60_000 } });
      assert.deepEqual(calls.at(-1), { operation: "holds.settleHold", body: { holdId: "hold_1", credits } });
    }
  });

  it("does no work for a key that is refused", async () => {
    const { latchkey, calls } = serviceOf({ "keys.verifyKey": { valid: false, code: "USAGE_EXCEEDED" } });
    const held = await latchkey.withHold(input, () => assert.fail("it was called"));
    assert(!held.valid);
    assert.deepEqual([held.verified.code, held.result, calls.length], ["USAGE_EXCEEDED", undefined, 1]);
  });

  it("releases for work that throws, or charges what it reported", async () => {
    for (const [report, end, body] of [
      [false, "holds.releaseHold", { holdId: "hold_1" }],
      [true, "holds.settleHold", { holdId: "hold_1", credits: 3 }],
    ] as const) {
      const { latchkey, calls } = serviceOf();
      const work = (hold: OpenHold) => {
        if (report) hold.report({ credits: 3 });
        throw new Error("of the work");
      };
      await assert.rejects(latchkey.withHold(input, work), /of the work/);
      assert.deepEqual(calls.slice(1), [{ operation: end, body }]);
    }
  });

  it("does no work without a hold", async () => {
    const unreached = () => assert.fail("it was called");
    const { latchkey } = serviceOf({ "keys.verifyKey": { ...HELD, hold: undefined } });
    await assert.rejects(latchkey.withHold(input, unreached), /made no hold/);
    const away = serviceOf({ "keys.verifyKey": "away" });
    await assert.rejects(away.latchkey.withHold(input, unreached), { type: "network_error" });
    for (const [hold, name] of [
      [{ ttl: 999 }, "ttl"],
      [{ ttl: 1_500.5 }, "ttl"],
      [{ ttl: 86_400_001 }, "ttl"],
      [{ ttl: 5_000, lifetimeMax: 4_999 }, "lifetimeMax"],
      [{ lifetimeMax: 86_400_001 }, "lifetimeMax"],
      [{ tll: 5_000 } as object, "tll"],
    ] as const) {
      const { latchkey, calls } = serviceOf();
      await assert.rejects(latchkey.withHold({ ...input, hold }, unreached), new RegExp(`\`hold.${name}\``));
      assert.equal(calls.length, 0);
    }
  });

  it("does no work with an option that does not exist", async () => {
    const { latchkey, calls } = serviceOf();
    const options: object = { settel: () => ({ credits: 7 }) };
    await assert.rejects(
      latchkey.withHold(input, () => assert.fail("it was called"), options),
      { name: "TypeError", message: "There is no option `settel`. The options are `settle`, `onError`." },
    );
    assert.equal(calls.length, 0);
  });

  it("refuses to report what is no amount, and says when a report came too late", async () => {
    const { latchkey } = serviceOf();
    let kept: OpenHold | undefined;
    await latchkey.withHold(input, (hold) => {
      kept = hold;
      for (const credits of [-1, 0.5, Number.NaN, "7", undefined, 2 ** 53]) {
        assert.throws(() => hold.report({ credits } as never), TypeError);
      }
      assert.equal(hold.report({ credits: 0 }), true);
    });
    assert.equal(kept!.report({ credits: 1 }), false);
  });
});

describe("a request with a hold", () => {
  const requestOf = (options: RequestInit = {}) =>
    new Request("http://api.test/chat", { headers: { Authorization: `Bearer ${KEY}` }, ...options });
  const headers = { authorization: `Bearer ${KEY}` };
  // biome-ignore lint/suspicious/noExplicitAny: each framework has its own type of request.
  const optionsOf = (latchkey: Latchkey, hold: HoldOptions<any> = {}) => ({
    latchkey,
    apiId: "api_1",
    cost: 40,
    hold,
  });

  it("that comes by the same middleware again has one hold, settled once", async () => {
    const byHono = serviceOf();
    const guard = forHono.verify(optionsOf(byHono.latchkey));
    const hono = new Hono().use(guard, guard).get("*", (c) => c.text("ok"));
    assert.equal(await (await hono.request(requestOf())).text(), "ok");
    const byExpress = serviceOf();
    const middleware = forExpress.verify(optionsOf(byExpress.latchkey));
    const app = express().use(middleware, middleware, (_, response) => void response.send("ok"));
    assert.equal((await inject(app, { url: "/", headers })).payload, "ok");
    const byFastify = serviceOf();
    const hook = forFastify.verify(optionsOf(byFastify.latchkey));
    const server = fastify();
    server.addHook("onRequest", hook);
    server.get("/", { preHandler: hook }, () => "ok");
    assert.equal((await server.inject({ url: "/", headers })).payload, "ok");
    for (const { calls, operations } of [byHono, byExpress, byFastify]) {
      await setImmediate();
      assert.deepEqual(operations(), ["settleHold"]);
      assert.deepEqual(calls[0]!.body.hold, { ttl: 60_000 });
    }
  });

  it("whose end user has hung up during the verification does not reach the handler", async () => {
    const unreached = () => assert.fail("it was called");
    const controller = new AbortController();
    const byFetch = serviceOf({
      "keys.verifyKey": () => {
        controller.abort();
        return HELD;
      },
    });
    const { latchkey, operations } = byFetch;
    const response = await verify(optionsOf(latchkey), unreached)(requestOf({ signal: controller.signal }));
    assert.equal(response.status, 499);
    await setImmediate();
    assert.deepEqual(operations(), ["releaseHold"]);

    const ended = Promise.withResolvers<void>();
    const byNode = serviceOf();
    const hold = { waitUntil: (done: Promise<void>) => void done.then(ended.resolve) };
    const listener = forNode.verify(optionsOf(byNode.latchkey, hold), unreached);
    const { port, close } = await (async () => {
      const { createServer } = await import("node:http");
      const server = createServer((request, answer) => {
        answer.destroy();
        void listener(request, answer);
      });
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      return { port: (server.address() as { port: number }).port, close: () => server.close() };
    })();
    await assert.rejects(fetch(`http://127.0.0.1:${port}/`, { headers }));
    await ended.promise;
    close();
    assert.deepEqual(byNode.operations(), ["releaseHold"]);
  });

  it("is released or settled over HTTP/2, also when the end user hangs up", async () => {
    const { connect, createServer } = await import("node:http2");
    for (const [hangUp, expected] of [
      ["during the verification", { operation: "holds.releaseHold" }],
      ["before the answer", { operation: "holds.releaseHold" }],
      ["within the answer", { operation: "holds.settleHold", credits: 1 }],
      [undefined, { operation: "holds.settleHold", credits: 20 }],
    ] as const) {
      const reached = Promise.withResolvers<void>();
      const broken = Promise.withResolvers<void>();
      const done = Promise.withResolvers<void>();
      const mayHangUp = async (where: typeof hangUp) => {
        if (hangUp !== where) return;
        reached.resolve();
        await broken.promise;
      };
      const { latchkey, calls } = serviceOf({
        "keys.verifyKey": async () => {
          await mayHangUp("during the verification");
          return HELD;
        },
      });
      const options = optionsOf(latchkey, {
        settle: ({ bytes, complete }) => ({ credits: complete ? bytes * 10 : bytes }),
        waitUntil: (settled) => void settled.then(done.resolve),
      });
      const listener = forNode.verify(options, async (_request, response) => {
        assert.notEqual(hangUp, "during the verification");
        await mayHangUp("before the answer");
        response.write("a");
        await mayHangUp("within the answer");
        response.end("b");
      });
      const server = createServer((incoming, answer) => {
        answer.stream.once("close", broken.resolve);
        listener(incoming as never, answer as never).catch(done.reject);
      });
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      const client = connect(`http://127.0.0.1:${(server.address() as { port: number }).port}`);
      try {
        const sent = client.request({ ":path": "/", ...headers }).resume();
        if (hangUp) {
          await reached.promise;
          sent.destroy();
        }
        await done.promise;
      } finally {
        client.destroy();
        server.close();
      }
      const { operation, body } = calls.at(-1)!;
      assert.deepEqual({ operation, credits: body.credits }, { credits: undefined, ...expected }, hangUp);
    }
  });

  it("lets the platform wait until it is settled", async () => {
    const settled = Promise.withResolvers<object>();
    const { latchkey, operations } = serviceOf({ "holds.settleHold": () => settled.promise });
    const waiting: Promise<unknown>[] = [];
    const waitUntil = (done: Promise<unknown>) => void waiting.push(done);
    const handler = verify(
      optionsOf(latchkey, { waitUntil }),
      (_request, _key, ..._platform: object[]) => new Response("ok"),
    );
    assert.equal(await (await handler(requestOf(), {}, { waitUntil })).text(), "ok");
    const app = new Hono().use(forHono.verify(optionsOf(latchkey))).get("*", (c) => c.text("ok"));
    const context = { waitUntil, passThroughOnException() {}, props: {} };
    assert.equal(await (await app.request(requestOf(), {}, {}, context as never)).text(), "ok");
    assert.equal(waiting.length, 3);
    let isDone = false;
    const all = Promise.all(waiting).then(() => {
      isDone = true;
    });
    await setImmediate();
    assert.equal(isDone, false);
    settled.resolve(CLOSED);
    await all;
    assert.equal(operations().filter((name) => name === "settleHold").length, 2);
  });

  it("keeps status, headers and cookies of its answer", async () => {
    const { latchkey } = serviceOf();
    const own = new Headers({ "X-Own": "1", "Content-Type": "text/event-stream" });
    own.append("Set-Cookie", "a=1");
    own.append("Set-Cookie", "b=2");
    const answer = () => new Response("made", { status: 201, headers: own });
    const app = new Hono().use(forHono.verify(optionsOf(latchkey))).get("*", answer);
    for (const response of [await verify(optionsOf(latchkey), answer)(requestOf()), await app.request(requestOf())]) {
      assert.deepEqual([response.status, await response.text()], [201, "made"]);
      assert.deepEqual(
        [response.headers.get("x-own"), response.headers.get("content-type")],
        ["1", "text/event-stream"],
      );
      assert.deepEqual(response.headers.getSetCookie(), ["a=1", "b=2"]);
    }
  });

  it("is answered with 503 if the service made no hold", async () => {
    const { latchkey } = serviceOf({ "keys.verifyKey": { ...HELD, hold: undefined } });
    const errors: Error[] = [];
    const options = { ...optionsOf(latchkey), onError: (error: Error) => void errors.push(error), failOpen: true };
    assert.equal((await verify(options, () => assert.fail("it was called"))(requestOf())).status, 503);
    assert.match(errors.join(), /made no hold/);
  });

  it("counts what several forms of writing send", async () => {
    const { latchkey, calls } = serviceOf();
    const settle = ({ bytes, chunks }: { bytes: number; chunks: number }) => ({ credits: bytes * 10 + chunks });
    const listener = forNode.verify(optionsOf(latchkey, { settle }), (_request, response) => {
      response.flushHeaders();
      response.write("é");
      response.write("ff00", "hex");
      response.write(new Uint8Array(3));
      response.write("");
      response.end("end", () => {});
    });
    await inject((request, response) => void listener(request as never, response), { url: "/", headers });
    await setImmediate();
    assert.equal(calls.at(-1)!.body.credits, 104);
  });

  it("needs options that can be used", () => {
    const { latchkey } = serviceOf();
    for (const [hold, name] of [
      [{ ttl: 0 }, "ttl"],
      [{ ttl: 2_000, lifetimeMax: 1_000 }, "lifetimeMax"],
    ] as const) {
      const options = { ...optionsOf(latchkey), hold };
      assert.throws(() => verify(options, () => new Response()), new RegExp(`\`hold.${name}\``));
    }
  });
});
