/** The middleware on its own: its options, and requests that try to mislead it. */
import assert from "node:assert/strict";
import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { describe, it, type TestContext } from "node:test";
import { inspect } from "node:util";
import express from "express";
import fastify from "fastify";
import { type Handler, Hono } from "hono";
import { cors } from "hono/cors";
import { cpuTimeOf } from "../../server/test/cpu-time.ts";
import * as forExpress from "../src/express.ts";
import * as forFastify from "../src/fastify.ts";
import { ratelimit, verify } from "../src/fetch.ts";
import * as forHono from "../src/hono.ts";
import { Latchkey } from "../src/index.ts";
import type { RatelimitOptions, VerifyOptions } from "../src/middleware.ts";
import * as forNext from "../src/next.ts";
import * as forNode from "../src/node.ts";
import { inject } from "./inject.ts";

const KEY = "prod_3kAqEg4u4qMxCGFAVMuGsb3cijGp";
const VALID = { valid: true, code: "VALID", keyId: "key_1", apiId: "api_1" };

/** A client whose calls get these answers, in turn; the last one again and again. */
function clientOf(...answers: (object | Error)[]) {
  const sent: Record<string, unknown>[] = [];
  const send: typeof fetch = async (_, init) => {
    sent.push(JSON.parse(String(init!.body)));
    const answer = answers[Math.min(sent.length, answers.length) - 1]!;
    if (answer instanceof Error) throw answer;
    return Response.json({ meta: { requestId: "req_1" }, data: answer });
  };
  return { sent, latchkey: new Latchkey({ url: "http://service.test", fetch: send }) };
}

const requestOf = (headers: Record<string, string> = { Authorization: `Bearer ${KEY}` }) =>
  new Request("http://api.test/documents/7", { headers });

type Answering = (request: Request) => Response | Promise<Response>;

/** What `console.error` prints during the test. */
function printed(t: TestContext): string[] {
  const lines: string[] = [];
  t.mock.method(
    console,
    "error",
    (...values: unknown[]) => void lines.push(values.map((each) => inspect(each)).join()),
  );
  return lines;
}

describe("options that cannot be used", () => {
  const { latchkey } = clientOf(VALID);
  const handler = () => new Response();

  it("are an error that names them", (t) => {
    t.mock.property(process, "env", {});
    const rejected = (options: object, name: RegExp, start: (options: never, handler: () => Response) => unknown) =>
      assert.throws(
        () => start(options as never, handler),
        (error) => error instanceof TypeError && name.test(error.message),
      );
    for (const [options, name] of [
      [{ latchkey }, /`apiId`/],
      [{ latchkey, apiId: "" }, /`apiId`/],
      [{ latchkey, apiId: [] }, /`apiId`/],
      [{ latchkey, apiId: ["api_1", undefined] }, /`apiId`/],
      [{ latchkey, apiId: "api_1", header: "X-Key\r\nX: 1" }, /`header`/],
      [{ latchkey, apiId: "api_1", header: "X-Key", key: () => KEY }, /`header`.*`key`/],
      [{ apiId: "api_1" }, /`url`/],
      [
        { latchkey, apiId: "api_1", permission: "documents.write" },
        /no option `permission`\. The options are .*`permissions`/,
      ],
      [{ latchkey, apiId: "api_1", hold: { tll: 1_000 } }, /no option `hold\.tll`\. The options are .*`hold\.ttl`/],
    ] as const) {
      rejected(options, name, verify as never);
    }
    for (const start of [verify, ratelimit, forExpress.verify, forHono.verify])
      rejected(undefined as never, /The options are missing/, start as never);
    const limit = { latchkey, namespace: "n", limit: 1, duration: 1_000, identifier: "owner" };
    for (const [options, name] of [
      [{ ...limit, namespace: undefined }, /`namespace`/],
      [{ ...limit, limit: undefined }, /`limit`/],
      [{ ...limit, duration: undefined }, /`duration`/],
      [{ ...limit, identifier: undefined }, /`identifier`/],
      [{ ...limit, identifier: "addres" }, /`identifier`/],
      [{ ...limit, identifier: "address" }, /`address`/],
      [{ ...limit, latchkey: undefined }, /`url`/],
      [{ ...limit, costs: 2 }, /no option `costs`\. The options are .*`cost`/],
    ] as const) {
      rejected(options, name, ratelimit as never);
    }
  });

  it("fail the first request of Next.js, which imports route handlers to build them", async (t) => {
    const environment: Record<string, string> = {};
    t.mock.property(process, "env", environment);
    t.mock.method(globalThis, "fetch", async () =>
      Response.json({
        meta: { requestId: "req_1" },
        data: { ...VALID, success: true, limit: 1, remaining: 0, reset: 0 },
      }),
    );
    const GET = forNext.verify({ apiId: "api_1" }, handler);
    const POST = forNext.ratelimit(
      { namespace: "n", limit: 1, duration: 1_000, identifier: () => "a" },
      async () => new Response(),
    );
    const withoutApi = forNext.verify({ apiId: process.env.API_ID! }, handler);
    for (const route of [GET, POST]) await assert.rejects(async () => route(requestOf(), {}), /TypeError: .*`url`/);
    environment.LATCHKEY_URL = "http://service.test";
    for (const route of [GET, POST]) assert.equal((await route(requestOf(), {})).status, 200);
    await assert.rejects(async () => withoutApi(requestOf(), {}), /TypeError: .*`apiId`/);
  });
});

it("without a hold, the signal of a request is not read: servers make it then, and Deno prints a notice", async () => {
  const { latchkey } = clientOf(VALID);
  const handler = () => new Response();
  const request = requestOf();
  Object.defineProperty(request, "signal", { get: () => assert.fail("the signal was read") });
  assert.equal((await verify({ latchkey, apiId: "api_1" }, handler)(request)).status, 200);
  const forRoute = forNext.verify({ latchkey, apiId: "api_1" }, handler);
  assert.equal((await forRoute(request, {})).status, 200);
});

describe("a key", () => {
  const shown = { meta: {}, error: { type: "about:blank", title: "Unauthorized", status: 401 } };

  it("can be found by a function", async () => {
    const { latchkey, sent } = clientOf(VALID, { valid: false, code: "NOT_FOUND" });
    let found: string | undefined;
    const handler = verify({ latchkey, apiId: "api_1", key: () => found }, (_, { keyId }) => Response.json(keyId));
    for (const [key, code, challenge] of [
      [undefined, "MISSING", 'ApiKey realm="api"'],
      ["", "MISSING", 'ApiKey realm="api"'],
      ["a b", "MALFORMED", 'ApiKey realm="api", error="invalid_request"'],
      ["k".repeat(513), "MALFORMED", 'ApiKey realm="api", error="invalid_request"'],
      [`${KEY}\n`, "MALFORMED", 'ApiKey realm="api", error="invalid_request"'],
    ]) {
      found = key;
      const response = await handler(requestOf({}));
      assert.deepEqual([response.status, response.headers.get("www-authenticate")], [401, challenge]);
      const body = await response.json();
      assert.partialDeepStrictEqual(body, { ...shown, error: { ...shown.error, code } });
      assert(!JSON.stringify(body).includes("kkk"));
    }
    assert.equal(sent.length, 0);
    found = KEY;
    assert.equal(await (await handler(requestOf({}))).json(), "key_1");
    const unknown = await handler(requestOf({}));
    assert.equal(unknown.headers.get("www-authenticate"), 'ApiKey realm="api", error="invalid_token"');
  });

  it("is found in messages that were not read from a connection", async () => {
    const { latchkey, sent } = clientOf(VALID);
    const got: string[] = [];
    const listener = forNode.verify({ latchkey, apiId: "api_1" }, (_request, _response, { keyId }) => got.push(keyId));
    const message = new IncomingMessage(new Socket());
    message.headers = { authorization: `Bearer ${KEY}` };
    await listener(message, new ServerResponse(message));
    assert.deepEqual([...got, sent[0]!.key], ["key_1", KEY]);
  });

  it("that is hostile takes no time to reject", async () => {
    const { latchkey, sent } = clientOf(VALID);
    const handler = verify({ latchkey, apiId: "api_1" }, () => new Response());
    for (const value of [
      `Bearer ${" ".repeat(1_000_000)}x y`,
      "Bearer".repeat(200_000),
      `Bearer ${"k".repeat(1_000_000)}`,
    ]) {
      const took = await cpuTimeOf(async () => {
        assert.equal((await handler(requestOf({ Authorization: value }))).status, 401);
      });
      assert(took < 1_000, `${value.slice(0, 10)}: ${took} ms`);
    }
    assert.equal(sent.length, 0);
  });
});

describe("an answer of the service that is not known", () => {
  it("rejects the request, and is printed without the key", async (t) => {
    const lines = printed(t);
    const answers = [
      {},
      { valid: true, code: "NOT_FOUND" },
      { valid: "true", code: "VALID" },
      { valid: false, code: "VALID" },
      { valid: false, code: "constructor" },
      { valid: false, code: "NEW_REASON\r\nSet-Cookie: a=b" },
      { ...VALID, ratelimits: [{}] },
    ];
    const { latchkey } = clientOf(...answers);
    const handler = verify({ latchkey, apiId: "api_1", failOpen: true }, () => assert.fail("it passed"));
    for (const answer of answers) {
      const response = await handler(requestOf());
      assert.equal(response.status, answer.code === "NOT_FOUND" ? 401 : 503, JSON.stringify(answer));
      assert.equal(response.headers.get("set-cookie"), null);
    }
    assert.equal(lines.length, answers.length - 1);
    assert(!lines.join().includes(KEY));
  });

  it("of any shape is an error that says so, and no limit that was reached", async () => {
    const limit = { namespace: "n", limit: 1, duration: 1_000, identifier: () => "a" };
    for (const answer of [null, "text", 7, true, [], {}, [null], { success: "true" }, { success: false }]) {
      const errors: Error[] = [];
      const options = {
        latchkey: clientOf(answer as object).latchkey,
        failOpen: true,
        onError: (error: Error) => void errors.push(error),
      };
      const unreached = () => assert.fail("it passed");
      assert.equal((await verify({ ...options, apiId: "api_1" }, unreached)(requestOf())).status, 503);
      assert.equal((await ratelimit({ ...options, ...limit }, unreached)(requestOf())).status, 503);
      for (const { message } of errors) {
        assert.match(message, /unknown code|answered without a decision|is not one of this operation/, String(answer));
      }
      assert.equal(errors.length, 2);
    }
  });
});

describe("the service away", () => {
  it("is printed once per request by default, and given to `onError` otherwise", async (t) => {
    const lines = printed(t);
    const { latchkey } = clientOf(new TypeError("fetch failed"));
    const options: VerifyOptions<Request> = { latchkey, apiId: "api_1" };
    await verify(options, () => new Response())(requestOf());
    const says =
      "The service at http://service.test cannot be reached: fetch failed. Is it running, and is that its address?";
    assert.deepEqual(lines, [`'keys.verifyKey: ${says} (network_error)'`]);
    const seen: unknown[] = [];
    const request = requestOf();
    await verify({ ...options, onError: (...given) => seen.push(...given) }, () => new Response())(request);
    assert.match(String(seen[0]), /network_error/);
    assert.equal(seen[1], request);
    assert.equal(lines.length, 1);
  });

  it("is not waited for", async () => {
    const sent: unknown[] = [];
    const send: typeof fetch = async (...call) => {
      sent.push(call);
      const error = { type: "/errors/user/too_many_requests", detail: "Too many.", status: 429 };
      return Response.json({ meta: { requestId: "req_1" }, error }, { status: 429, headers: { "Retry-After": "2" } });
    };
    const options = { apiId: "api_1", latchkey: { url: "http://service.test", fetch: send }, onError: () => {} };
    const response = await verify(options, () => assert.fail("it passed"))(requestOf());
    assert.deepEqual([response.status, response.headers.get("retry-after"), sent.length], [503, "2", 1]);
    assert.partialDeepStrictEqual(await response.json(), { meta: { requestId: "req_1" } });
  });

  it("lets a request pass both verification and limit, if both say so", async () => {
    const { latchkey, sent } = clientOf(new TypeError("fetch failed"));
    const options = { latchkey, failOpen: true, onError: () => {} } as const;
    const limit = { namespace: "n", limit: 1, duration: 1_000, identifier: "owner" } as const;
    const passes = verify(
      { ...options, apiId: "api_1" },
      ratelimit({ ...options, ...limit }, (_: Request, key: unknown) => Response.json({ key: key ?? null })),
    );
    assert.deepEqual(await (await passes(requestOf())).json(), { key: null });
    assert.equal(sent.length, 1);
    const closed = ratelimit({ ...options, ...limit, failOpen: false }, () => assert.fail("it passed"));
    assert.equal((await verify({ ...options, apiId: "api_1" }, closed)(requestOf())).status, 503);
    // Without `verify`, every request would pass.
    assert.equal((await ratelimit({ ...options, ...limit }, () => assert.fail("it passed"))(requestOf())).status, 503);
  });
});

describe("a function in an option", () => {
  it("gets the request, and its value is sent", async () => {
    const { latchkey, sent } = clientOf(VALID);
    const text = ({ url }: Request) => new URL(url).pathname.slice(1);
    const handler = verify(
      {
        latchkey,
        apiId: "api_1",
        permissions: async (request) => `${text(request).replace("/", ".")}`,
        cost: () => 0,
        limits: () => [{ name: "a", cost: 2 }],
        tags: (request) => [text(request)],
        address: () => "192.0.2.1",
      },
      () => new Response(),
    );
    assert.equal((await handler(requestOf())).status, 200);
    assert.deepEqual(sent, [
      {
        key: KEY,
        keyspaces: ["api_1"],
        permissions: "documents.7",
        credits: { cost: 0 },
        ratelimits: [{ name: "a", cost: 2 }],
        tags: ["documents/7", "method=GET"],
        clientIp: "192.0.2.1",
      },
    ]);
  });

  it("that returns nothing or throws rejects the request", async () => {
    const { latchkey, sent } = clientOf(VALID);
    const errors: Error[] = [];
    const nothing = (() => undefined) as () => never;
    const throwing = () => {
      throw new Error("no such tenant");
    };
    for (const name of ["permissions", "cost", "limits", "tags", "address"] as const) {
      for (const option of [nothing, throwing]) {
        const options: VerifyOptions<Request, true> = {
          latchkey,
          apiId: "api_1",
          failOpen: true,
          onError: (error) => void errors.push(error),
          [name]: option,
        };
        assert.equal((await verify(options, () => assert.fail("it passed"))(requestOf())).status, 503);
      }
      assert.match(errors.at(-2)!.message, new RegExp(`\`${name}\` returned nothing`));
      assert.equal(errors.at(-1)!.message, "no such tenant");
    }
    assert.equal(sent.length, 0);
  });
});

describe("a request that comes by the same middleware again", () => {
  const limited = {
    ...VALID,
    ratelimits: [{ name: "a", limit: 2, duration: 1_000, exceeded: false, remaining: 1, reset: 0 }],
  };
  const state = '"a";r=1;t=0;pk=:DAjb1K22Rywb:';

  it("is verified once in Hono", async () => {
    const { latchkey, sent } = clientOf(limited);
    const app = new Hono();
    const authentication = forHono.verify({ latchkey, apiId: "api_1" });
    app.use("*", authentication);
    app.get("/documents/:id", authentication, (c) => c.text(c.var.latchkey.keyId));
    const response = await app.request(requestOf());
    assert.deepEqual([response.status, await response.text()], [200, "key_1"]);
    assert.equal(response.headers.get("ratelimit"), state);
    assert.deepEqual(
      sent.map(({ tags }) => tags),
      [["path=/documents/:id", "method=GET"]],
    );
  });

  it("is verified once in Express and Fastify", async () => {
    const headers = { authorization: `Bearer ${KEY}` };
    const byExpress = clientOf(limited);
    const authentication = forExpress.verify({ latchkey: byExpress.latchkey, apiId: "api_1" });
    const listener = express().use(authentication, authentication, (_, response) => void response.end("ok"));
    const byFastify = clientOf(limited);
    const hook = forFastify.verify({ latchkey: byFastify.latchkey, apiId: "api_1" });
    const app = fastify();
    app.addHook("onRequest", hook);
    app.get("/", { preHandler: hook }, () => "ok");
    for (const [{ sent }, response] of [
      [byExpress, await inject(listener, { url: "/", headers })],
      [byFastify, await app.inject({ url: "/", headers })],
    ] as const) {
      assert.deepEqual([response.statusCode, response.payload, response.headers.ratelimit], [200, "ok", state]);
      assert.equal(sent.length, 1);
    }
    await app.close();
  });

  it("of another `verify` is verified again", async () => {
    const { latchkey, sent } = clientOf(VALID, { valid: false, code: "INSUFFICIENT_PERMISSIONS" });
    const app = new Hono();
    app.use("*", forHono.verify({ latchkey, apiId: "api_1" }));
    app.get("*", forHono.verify({ latchkey, apiId: "api_1", permissions: "admin" }), () => assert.fail("it passed"));
    assert.equal((await app.request(requestOf())).status, 403);
    assert.equal(sent.length, 2);
  });
});

describe("the answer to a rejected request", () => {
  it("can be changed", async () => {
    const { latchkey } = clientOf({ valid: false, code: "USAGE_EXCEEDED" });
    const options: VerifyOptions<Request> = {
      latchkey,
      apiId: "api_1",
      onReject: ({ status, headers, code }, { url }) => ({
        status: status === 402 ? 429 : status,
        headers: { "Content-Type": "text/plain", "X-Code": headers["X-Latchkey-Code"]! },
        body: `${code} ${url}`,
      }),
    };
    const response = await verify(options, () => assert.fail("it passed"))(requestOf());
    assert.deepEqual([response.status, response.headers.get("x-code")], [429, "USAGE_EXCEEDED"]);
    assert.equal(response.headers.get("cache-control"), null);
    assert.equal(await response.text(), "USAGE_EXCEEDED http://api.test/documents/7");
  });
});

it("a flood of invented keys does not open an application that fails open", async () => {
  const problem = { type: "/errors/application/lookups_exhausted", detail: "Too many unknown keys", status: 503 };
  const send: typeof fetch = async () =>
    Response.json({ meta: { requestId: "req_1" }, error: problem }, { status: 503, headers: { "Retry-After": "1" } });
  const latchkey = new Latchkey({ url: "http://service.test", fetch: send, retries: 0 });
  const options = { latchkey, apiId: "api_1", failOpen: true, onError: () => {} };
  assert.equal((await verify(options, () => assert.fail("it passed"))(requestOf())).status, 503);
});

describe("a hook that returns nothing", () => {
  const rejecting = () => ({
    latchkey: clientOf({ valid: false, code: "NOT_FOUND" }).latchkey,
    apiId: "api_1",
    onReject: (() => undefined) as never,
  });

  it("lets no request pass: the answer stays as it is", async () => {
    const unreached = () => assert.fail("it passed");
    const guarded = verify(rejecting(), unreached);
    const request = requestOf();
    for (let call = 1; call <= 2; call++) assert.equal((await guarded(request)).status, 401);
    const headers = { Authorization: `Bearer ${KEY}` };

    const hono = new Hono().use(forHono.verify(rejecting())).get("/", unreached);
    assert.equal((await hono.request("/", { headers })).status, 401);
    const expressApp = express().use(forExpress.verify(rejecting())).use(unreached);
    assert.equal((await inject(expressApp, { url: "/", headers })).statusCode, 401);
    const fastifyApp = fastify();
    fastifyApp.addHook("onRequest", forFastify.verify(rejecting()));
    fastifyApp.get("/", unreached);
    assert.equal((await fastifyApp.inject({ url: "/", headers })).statusCode, 401);
    const node = forNode.verify(rejecting(), unreached);
    assert.equal((await inject((req, res) => void node(req as never, res), { url: "/", headers })).statusCode, 401);
  });

  it("of a part of the answer keeps the rest", async () => {
    const options = { ...rejecting(), onReject: () => ({ status: 403 }) };
    const headers = { Authorization: `Bearer ${KEY}` };
    const unreached = () => assert.fail("it passed");
    const fastifyApp = fastify();
    fastifyApp.addHook("onRequest", forFastify.verify(options));
    fastifyApp.get("/", unreached);
    const node = forNode.verify(options, unreached);
    for (const { statusCode, headers: sent, payload } of [
      await inject(express().use(forExpress.verify(options)).use(unreached), { url: "/", headers }),
      await fastifyApp.inject({ url: "/", headers }),
      await inject((req, res) => void node(req, res), { url: "/", headers }),
    ]) {
      assert.deepEqual(
        [statusCode, sent["x-latchkey-code"], JSON.parse(payload).error.code],
        [403, "NOT_FOUND", "NOT_FOUND"],
      );
    }
    const hono = new Hono().use(forHono.verify(options)).get("/", unreached);
    for (const response of [await hono.request("/", { headers }), await verify(options, unreached)(requestOf())]) {
      assert.deepEqual([response.status, response.headers.get("x-latchkey-code")], [403, "NOT_FOUND"]);
      assert.partialDeepStrictEqual(await response.json(), { error: { code: "NOT_FOUND" } });
    }
  });
});

describe("a hook that throws", () => {
  const hook = () => {
    throw new Error("of the hook");
  };
  const headers = { Authorization: `Bearer ${KEY}` };
  const unreached = () => assert.fail("it passed");

  it("rejects the request, which node:http answers with 500", async () => {
    const options = { latchkey: clientOf({ valid: false, code: "NOT_FOUND" }).latchkey, apiId: "api_1" };
    for (const onReject of [hook, async () => hook(), () => ({ status: 401, headers: { "no name": "" }, body: "" })]) {
      const errors: Error[] = [];
      const onError = (error: Error) => errors.push(error);
      const listener = forNode.verify({ ...options, onReject, onError }, unreached);
      const response = await inject((req, res) => void listener(req as never, res), { url: "/", headers });
      assert.deepEqual([response.statusCode, response.payload], [500, ""]);
      assert.equal(errors.length, 1);
    }
  });

  it("is the error of a request to other frameworks", async () => {
    const { latchkey } = clientOf({ valid: false, code: "NOT_FOUND" });
    const options = { latchkey, apiId: "api_1", onReject: hook };
    await assert.rejects(verify(options, unreached)(requestOf()), /of the hook/);
    const app = express().use(forExpress.verify(options)).use(unreached);
    app.use(((error: Error, _request: unknown, response: { end(text: string): void }, _next: unknown) =>
      response.end(error.message)) as never);
    assert.equal((await inject(app, { url: "/", headers })).payload, "of the hook");
  });

  it("does not leave a request to node:http without an answer, even the hook for errors", async (t) => {
    const lines = printed(t);
    const { latchkey } = clientOf(new Error("away"));
    const listener = forNode.verify({ latchkey, apiId: "api_1", onError: hook }, unreached);
    const response = await inject((req, res) => void listener(req as never, res), { url: "/", headers });
    assert.equal(response.statusCode, 500);
    assert.deepEqual(lines, ["'of the hook'"]);
  });
});

describe("the answer of a handler", () => {
  const limited = {
    ...VALID,
    ratelimits: [{ name: "a", limit: 2, duration: 1_000, exceeded: false, remaining: 1, reset: 0 }],
  };

  it("keeps its own headers, status and cookies", async () => {
    const { latchkey } = clientOf(limited);
    const headers = new Headers({ RateLimit: '"own";r=5;t=9' });
    headers.append("Set-Cookie", "a=1");
    headers.append("Set-Cookie", "b=2");
    const answer = () => new Response("made", { status: 201, headers });
    const app = new Hono();
    app.use(forHono.verify({ latchkey, apiId: "api_1" }));
    app.get("*", answer);
    const throughContext = new Hono().use(forHono.verify({ latchkey, apiId: "api_1" })).get("*", (c) => {
      for (const name of ["a=1", "b=2"]) c.header("Set-Cookie", name, { append: true });
      c.header("RateLimit", '"own";r=5;t=9');
      return c.text("made", 201);
    });
    for (const response of [
      await throughContext.request(requestOf()),
      await verify({ latchkey, apiId: "api_1" }, answer)(requestOf()),
      await forNext.verify({ latchkey, apiId: "api_1" }, answer)(requestOf(), {}),
      await app.request(requestOf()),
    ]) {
      assert.deepEqual([response.status, await response.text()], [201, "made"]);
      assert.equal(response.headers.get("ratelimit"), '"a";r=1;t=0;pk=:DAjb1K22Rywb:, "own";r=5;t=9');
      assert.deepEqual(response.headers.getSetCookie(), ["a=1", "b=2"]);
    }
  });

  it("keeps its own headers in Hono beside middlewares that read the answer before there is one", async () => {
    const limit = { success: true, limit: 9, remaining: 8, reset: 0 };
    const own = '"own";r=5;t=9';
    const raw = () => new Response("made", { headers: { RateLimit: own } });
    const handlers: Record<string, Handler> = {
      raw,
      held: raw,
      ofContext: (c) => c.text("made", 200, { RateLimit: own }),
      setInContext: (c) => {
        c.header("RateLimit", own);
        return c.text("made");
      },
      withoutOwn: (c) => c.text("made"),
      rawWithoutOwn: () => new Response("made"),
      throwing: () => {
        throw new Error("of the handler");
      },
    };
    for (const place of ["outside", "between", "inside"]) {
      for (const [name, handler] of Object.entries(handlers)) {
        const app = new Hono();
        const reading = (at: string) => place === at && app.use(cors());
        reading("outside");
        const hold = name === "held" ? { hold: {} } : {};
        const held = name === "held" ? { hold: { holdId: "hold_1", expiresAt: 9e12, credits: 1 } } : {};
        app.use(forHono.verify({ latchkey: clientOf({ ...limited, ...held }).latchkey, apiId: "api_1", ...hold }));
        reading("between");
        const { latchkey } = clientOf(limit);
        app.use(forHono.ratelimit({ latchkey, namespace: "n", limit: 9, duration: 1_000, identifier: () => "a" }));
        reading("inside");
        app.get("*", handler);
        app.onError(raw);
        const response = await app.request(requestOf());
        assert.equal(await response.text(), "made", `${name} ${place}`);
        assert.equal(response.headers.get("access-control-allow-origin"), "*");
        const both = '"a";r=1;t=0;pk=:DAjb1K22Rywb:, "n";r=8;t=0;pk=:ypeBEsobvcr6:';
        const expected = name.endsWith("ithoutOwn") ? both : `${both}, ${own}`;
        assert.equal(response.headers.get("ratelimit"), expected, `${name} ${place}`);
      }
    }
  });

  it("gets the limits of each request, also where it is one object for several requests or cannot be changed", async () => {
    const own = '"own";r=5;t=9';
    const stateOf = (remaining: number) => ({ ...limited, ratelimits: [{ ...limited.ratelimits[0], remaining }] });
    const upstream = await fetch(`data:text/plain,made`);
    const answers: Record<string, () => Response> = {
      shared: () => new Response(null, { status: 204 }),
      sharedWithOwn: () => new Response(null, { status: 204, headers: { RateLimit: own } }),
      unchangeable: () => upstream.clone(),
      redirect: () => Response.redirect("http://api.test/"),
    };
    for (const [name, make] of Object.entries(answers)) {
      const frameworks: ((options: { latchkey: Latchkey; apiId: string }, handle: () => Response) => Answering)[] = [
        (options, handle) => {
          const app = new Hono().use(forHono.verify(options)).get("*", handle);
          return (request) => app.request(request);
        },
        (options, handle) => verify(options, handle),
        (options, handle) => {
          const route = forNext.verify(options, handle);
          return (request) => route(request, {});
        },
      ];
      for (const framework of frameworks) {
        const { latchkey } = clientOf(stateOf(2), stateOf(1), stateOf(0));
        const answer = make();
        const call = framework({ latchkey, apiId: "api_1" }, () => (name === "unchangeable" ? make() : answer));
        const given: Response[] = [];
        for (let i = 0; i < 3; i++) given.push(await call(requestOf()));
        assert.deepEqual(
          given.map(({ headers }) => headers.get("ratelimit")),
          [2, 1, 0].map((left) => `"a";r=${left};t=0;pk=:DAjb1K22Rywb:${name === "sharedWithOwn" ? `, ${own}` : ""}`),
          name,
        );
      }
    }
  });

  it("keeps its own headers in Express, Fastify and node:http, however it sets them", async () => {
    const limit = { latchkey: clientOf({ success: true, limit: 9, remaining: 8, reset: 0 }).latchkey, namespace: "n" };
    const limits = { ...limit, limit: 9, duration: 1_000, identifier: () => "a" };
    const options = { latchkey: clientOf(limited).latchkey, apiId: "api_1" };
    const own = '"own";r=5;t=9';
    const both = '"a";r=1;t=0;pk=:DAjb1K22Rywb:, "n";r=8;t=0;pk=:ypeBEsobvcr6:';
    const call = { url: "/", headers: { authorization: `Bearer ${KEY}` } };
    const handlers: Record<string, (response: ServerResponse) => unknown> = {
      set: (response) => response.setHeader("ratelimit", own),
      setTwice: (response) => response.setHeader("RateLimit", [own, own]),
      appended: (response) => response.appendHeader("RateLimit", own),
      members: (response) => response.writeHead(200, { RATELIMIT: own, "X-Own": "1" }),
      inTurn: (response) => response.writeHead(200, "Fine", ["X-Own", "RateLimit", "RateLimit", own]),
      other: (response) => response.setHeader("X-Own", "1").writeHead(200, { "X-Other": 1 }),
      removed: (response) => response.removeHeader("RateLimit"),
    };
    for (const [name, handle] of Object.entries(handlers)) {
      const answer = (_: IncomingMessage, response: ServerResponse) => {
        handle(response);
        response.end("made");
      };
      const app = fastify();
      app.addHook("onRequest", forFastify.verify(options));
      app.addHook("onRequest", forFastify.ratelimit(limits));
      app.get("/", (_, reply) => {
        if (name === "other") return reply.header("X-Own", "1").send("made");
        const value =
          name === "setTwice" ? [own, own] : name === "appended" ? [`${reply.getHeader("RateLimit")}`, own] : own;
        return (name === "removed" ? reply.removeHeader("RateLimit") : reply.header("RateLimit", value)).send("made");
      });
      const byExpress = express().use(forExpress.verify(options), forExpress.ratelimit(limits), answer);
      const byNode = forNode.verify(options, forNode.ratelimit(limits, answer));
      const expected = { other: both, removed: undefined, setTwice: `${both}, ${own}, ${own}` };
      for (const response of [await inject(byExpress, call), await inject(byNode, call), await app.inject(call)]) {
        const { payload, headers } = response;
        const made = Object.hasOwn(expected, name) ? expected[name as keyof typeof expected] : `${both}, ${own}`;
        assert.deepEqual([payload, headers.ratelimit], ["made", made], name);
        assert.match(String(headers["ratelimit-policy"]), /^"a";q=2.*, "n";q=9/);
      }
      await app.close();
    }
  });

  it("is an error as it would be without the middleware", async () => {
    const { latchkey } = clientOf(limited);
    const failing = () => {
      throw new Error("of the handler");
    };
    await assert.rejects(verify({ latchkey, apiId: "api_1" }, failing)(requestOf()), /of the handler/);
    const app = new Hono();
    app.use(forHono.verify({ latchkey, apiId: "api_1" }));
    app.get("*", failing);
    app.onError(({ message }, c) => c.text(message, 500));
    const response = await app.request(requestOf());
    assert.deepEqual([response.status, await response.text()], [500, "of the handler"]);
  });
});

describe("many limits", () => {
  it("fit into a header", async () => {
    const ratelimits = Array.from({ length: 200 }, (_, i) => ({
      name: `\u{1f511}${i}\ud800`,
      limit: 100,
      duration: 1_000,
      exceeded: false,
      remaining: i % 100,
      reset: 0,
    }));
    const { latchkey } = clientOf({ ...VALID, ratelimits });
    const response = await verify({ latchkey, apiId: "api_1" }, () => new Response())(requestOf());
    const policy = response.headers.get("ratelimit-policy")!;
    assert(
      policy.length < 1_100 && policy.startsWith('"%F0%9F%94%910%EF%BF%BD";q=100;w=1;pk=:DAjb1K22Rywb:, '),
      policy,
    );
  });

  it("with an override has no window, because the service does not return it", async () => {
    const { latchkey } = clientOf({ success: true, limit: 9, remaining: 8, reset: 0, overrideId: "ov_1" });
    const options: RatelimitOptions<Request> = {
      latchkey,
      namespace: "n",
      limit: 1,
      duration: 1_000,
      identifier: () => "a",
    };
    const response = await ratelimit(options, () => new Response())(requestOf());
    assert.equal(response.headers.get("ratelimit-policy"), '"n";q=9;pk=:ypeBEsobvcr6:');
  });
});

describe("the address of an end user", () => {
  it("is the one that Express and Fastify are configured to trust", async () => {
    const { latchkey, sent } = clientOf({ success: true, limit: 1, remaining: 0, reset: 0 });
    const options = { latchkey, namespace: "n", limit: 1, duration: 1_000, identifier: "address" } as const;
    const request = {
      url: "/",
      headers: { "x-forwarded-for": "203.0.113.1, 192.0.2.1" },
      remoteAddress: "198.51.100.1",
    };
    for (const trusted of [false, true]) {
      const listener = express().set("trust proxy", trusted && "198.51.100.1");
      listener.use(forExpress.ratelimit(options), (_, response) => void response.end("ok"));
      assert.equal((await inject(listener, request)).statusCode, 200);
      const app = fastify({ trustProxy: trusted && "198.51.100.1" });
      app.addHook("onRequest", forFastify.ratelimit(options));
      app.get("/", () => "ok");
      assert.equal((await app.inject(request)).statusCode, 200);
      await app.close();
    }
    assert.deepEqual(
      sent.map(({ identifier }) => identifier),
      ["198.51.100.1", "198.51.100.1", "192.0.2.1", "192.0.2.1"],
    );
  });
});
