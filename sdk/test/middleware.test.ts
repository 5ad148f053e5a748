/** The middleware in front of every framework, in the scenarios of `middleware-scenarios.json`, over real connections. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type RequestListener, request } from "node:http";
import type { AddressInfo } from "node:net";
import { after, afterEach, before, describe, it } from "node:test";
import { serve } from "@hono/node-server";
import express from "express";
// @ts-expect-error It has no types of its own; those of version 5 fit what is used here.
import express4 from "express-4";
import fastify from "fastify";
import { Hono } from "hono";
import { makeFolder, ROOT_KEY, type Server, start } from "../../server/test/process.ts";
import { TcpProxy } from "../../server/test/tcp-proxy.ts";
import * as forExpress from "../src/express.ts";
import * as forFastify from "../src/fastify.ts";
import * as forFetch from "../src/fetch.ts";
import * as forHono from "../src/hono.ts";
import { Latchkey } from "../src/index.ts";
import type { RatelimitOptions, VerifiedKey, VerifyOptions } from "../src/middleware.ts";
import * as forNext from "../src/next.ts";
import * as forNode from "../src/node.ts";
import {
  type CallStep,
  middlewareScenarios,
  type RatelimitStep,
  type RequestStep,
  type VerifyStep,
} from "./middleware-scenarios.ts";

/** What a step needs of its middleware, for any framework. */
// biome-ignore lint/suspicious/noExplicitAny: each framework has its own type of request.
type Options = { verify?: VerifyOptions<any, boolean>; ratelimit?: RatelimitOptions<any, boolean> };

/** Called with what the handler gets. */
type OnKey = (key: VerifiedKey | undefined) => void;

interface Framework {
  /** Starts a server with a route `/documents/:id` behind the middleware. Returns its port, and what stops it. */
  listen(options: Options, onKey: OnKey): Promise<{ port: number; close: () => Promise<unknown> }>;
  /** The value of a header. */
  // biome-ignore lint/suspicious/noExplicitAny: see above.
  header(request: any, name: string): string | undefined;
  /** Whether it knows the address of the connection. */
  knowsAddress?: boolean;
  /** The tag that it adds if the options have no path. */
  route?: string;
}

async function listen(listener: RequestListener): Promise<{ port: number; close: () => Promise<unknown> }> {
  const server = createServer(listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    close: () => new Promise((resolve) => server.close(resolve)),
  };
}

async function listenToFetch(handler: (request: Request) => Response | Promise<Response>) {
  const server = serve({ fetch: handler, port: 0, hostname: "127.0.0.1" });
  if (!server.listening) await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    close: () => new Promise((resolve) => server.close(resolve)),
  };
}

const webHeader = ({ headers }: Request, name: string) => headers.get(name) ?? undefined;
const messageHeader = ({ headers }: { headers: IncomingHttpHeaders }, name: string) =>
  headers[name.toLowerCase()] as string | undefined;

function onExpress(make: typeof express): Framework {
  return {
    listen({ verify, ratelimit }, onKey) {
      const app = make();
      const middleware = [verify && forExpress.verify(verify), ratelimit && forExpress.ratelimit(ratelimit)];
      app.all("/documents/:id", ...middleware.filter((each) => each !== undefined), (request, response) => {
        onKey(request.latchkey);
        response.json({ ok: true });
      });
      return listen(app);
    },
    header: messageHeader,
    knowsAddress: true,
    route: "path=/documents/:id",
  };
}

const frameworks: Record<string, Framework> = {
  Hono: {
    listen({ verify, ratelimit }, onKey) {
      const app = new Hono<{ Variables: { latchkey?: VerifiedKey | undefined } }>();
      if (verify) app.use("*", forHono.verify(verify));
      if (ratelimit) app.use("*", forHono.ratelimit(ratelimit));
      app.all("/documents/:id", (c) => {
        onKey(c.var.latchkey);
        return c.json({ ok: true });
      });
      return listenToFetch((request) => app.fetch(request));
    },
    header: ({ req }, name) => req.header(name),
    route: "path=/documents/:id",
  },
  "Express 5": onExpress(express),
  "Express 4": onExpress(express4),
  Fastify: {
    async listen({ verify, ratelimit }, onKey) {
      const app = fastify();
      if (verify) app.addHook("onRequest", forFastify.verify(verify));
      if (ratelimit) app.addHook("onRequest", forFastify.ratelimit(ratelimit));
      app.all("/documents/:id", ({ latchkey }) => {
        onKey(latchkey);
        return { ok: true };
      });
      await app.listen({ port: 0, host: "127.0.0.1" });
      return { port: (app.server.address() as AddressInfo).port, close: () => app.close() };
    },
    header: messageHeader,
    knowsAddress: true,
    route: "path=/documents/:id",
  },
  "Next.js": {
    listen({ verify, ratelimit }, onKey) {
      let handler = async (_request: Request, context: { params: Promise<{ id: string }> }, key?: VerifiedKey) => {
        assert.deepEqual(await context.params, { id: "7" });
        onKey(key);
        return Response.json({ ok: true });
      };
      if (ratelimit) handler = forNext.ratelimit(ratelimit, handler);
      const GET = verify ? forNext.verify(verify, handler) : handler;
      return listenToFetch((request) => GET(request, { params: Promise.resolve({ id: "7" }) }));
    },
    header: webHeader,
  },
  "node:http": {
    listen({ verify, ratelimit }, onKey) {
      let handler = (_request: object, response: { end(text: string): unknown }, key?: VerifiedKey): unknown => {
        onKey(key);
        return response.end("{}");
      };
      if (ratelimit) handler = forNode.ratelimit(ratelimit, handler) as typeof handler;
      return listen(verify ? forNode.verify(verify, handler) : (handler as RequestListener));
    },
    header: messageHeader,
    knowsAddress: true,
  },
  fetch: {
    listen({ verify, ratelimit }, onKey) {
      let handler = (_request: Request, key?: VerifiedKey): Response | Promise<Response> => {
        onKey(key);
        // Its headers cannot be changed.
        return Response.redirect("http://127.0.0.1/", 302);
      };
      if (ratelimit) handler = forFetch.ratelimit(ratelimit, handler);
      const all = verify ? forFetch.verify(verify, handler) : handler;
      return listenToFetch(async (request) => {
        const response = await all(request);
        return response.status === 302 ? new Response("{}", { headers: response.headers }) : response;
      });
    },
    header: webHeader,
  },
};

interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
}

function send(port: number, { method, path, headers }: RequestStep["request"]): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request({ port, host: "127.0.0.1", method, path, headers, agent: false });
    sent.once("error", reject).once("response", async (response) => {
      let text = "";
      for await (const chunk of response.setEncoding("utf8")) text += chunk;
      resolve({ status: response.statusCode!, headers: response.headers, text });
    });
    sent.end();
  });
}

describe("the middleware", () => {
  const directory = makeFolder({ after });
  let server: Server;
  let proxy: TcpProxy;
  let apiId: string;

  before(async () => {
    server = await start({ directory });
    proxy = await TcpProxy.open(server.address);
  });
  after(async () => {
    await proxy?.close();
    await server?.kill("SIGTERM");
  });

  for (const [name, framework] of Object.entries(frameworks)) {
    describe(`of ${name}`, () => {
      before(async () => {
        ({ apiId } = await server.ok("apis.createApi", { name }));
      });
      afterEach(() => {
        proxy.filter = () => "pass";
        proxy.isClosed = false;
      });

      for (const { name: title, steps } of middlewareScenarios) {
        it(title, async () => {
          const saved: Record<string, string> = { apiId };
          for (const step of steps) await ("call" in step ? call(step, saved) : ask(framework, step, saved));
        });
      }
    });
  }

  async function call(step: CallStep, saved: Record<string, string>): Promise<void> {
    const { call: operation, input, rootKey, save = {} } = substitute(step, saved);
    const data = await server.ok(operation, input, rootKey);
    for (const [member, name] of Object.entries(save)) saved[name] = data[member];
  }

  async function ask(framework: Framework, original: RequestStep, saved: Record<string, string>): Promise<void> {
    const step = substitute(original, saved);
    const sent: Record<string, unknown>[] = [];
    const errors: Error[] = [];
    const latchkey = new Latchkey({
      url: proxy.url,
      rootKey: step.rootKey ?? ROOT_KEY,
      timeout: step.timeout ?? 10_000,
      fetch: (url, init) => {
        sent.push(JSON.parse(String(init?.body)));
        return fetch(url, init);
      },
    });
    const common = { latchkey, onError: (error: Error) => void errors.push(error) };
    const options: Options = {};
    if (step.verify) options.verify = { ...common, ...optionsOf(step.verify, framework) };
    if (step.ratelimit) options.ratelimit = { ...common, ...limitOptionsOf(step.ratelimit, framework) };

    const given: (VerifiedKey | undefined)[] = [];
    const { port, close } = await framework.listen(options, (key) => given.push(key));
    const ask = async () => {
      if (step.network === "silent") proxy.filter = () => "drop";
      if (step.network === "away") {
        proxy.isClosed = true;
        proxy.cut();
      }
      return await send(port, step.request);
    };
    // Also if it failed: a server that still listens would keep the process of the test alive.
    const answer = await ask().finally(() => {
      proxy.filter = () => "pass";
      proxy.isClosed = false;
      return close();
    });

    check(step, answer, given);
    assert.equal(errors.length > 0, step.error?.code === "UNDECIDED" || step.verified === null, errors.join());
    if (step.calls !== undefined) assert.equal(sent.length, step.calls);
    if (step.sent) assert.partialDeepStrictEqual(sent.at(-1), step.sent);
    if (step.verify && !step.verify.path && sent[0]) {
      const tags = framework.route === undefined ? [] : [framework.route];
      assert.deepEqual(sent[0].tags, [...tags, `method=${step.request.method}`]);
    }
    const key = saved.key ?? "without a key";
    assert(!(JSON.stringify(answer) + errors.map((error) => `${error.stack}`).join()).includes(key));
  }
});

function check({ status, headers = {}, error, verified }: RequestStep, answer: Answer, given: unknown[]): void {
  assert.equal(answer.status, status, answer.text);
  for (const [name, expected] of Object.entries(headers)) {
    const actual = answer.headers[name.toLowerCase()];
    if (expected === null) assert.equal(actual, undefined, name);
    else if (typeof expected === "string") assert.equal(actual, expected, name);
    else assert.match(String(actual), new RegExp(expected.matches), name);
  }
  if (status !== 401) assert.equal(answer.headers["www-authenticate"], undefined);
  assert.equal(answer.headers["x-latchkey-code"], error?.code);
  if (!error) {
    assert.equal(given.length, 1);
    if (verified) assert.partialDeepStrictEqual(given[0], verified);
    else assert.equal(given[0], undefined);
    return;
  }
  assert.equal(given.length, 0);
  assert.equal(answer.headers["content-type"], "application/json");
  assert.equal(answer.headers["cache-control"], "no-store");
  const { meta, error: problem } = JSON.parse(answer.text);
  assert.deepEqual(Object.keys(problem).sort(), ["code", "detail", "status", "title", "type"]);
  assert.partialDeepStrictEqual(problem, { ...error, status, type: "about:blank" });
  if (meta.requestId !== undefined) assert.match(meta.requestId, /^req_/);
}

function functionOf({ header }: { header: string }, framework: Framework) {
  return (request: unknown) => framework.header(request, header);
}

// biome-ignore lint/suspicious/noExplicitAny: each framework has its own type of request.
function optionsOf({ address, ...rest }: VerifyStep, framework: Framework): VerifyOptions<any, boolean> {
  return { ...rest, ...(address && { address: functionOf(address, framework) }) };
}

// biome-ignore lint/suspicious/noExplicitAny: each framework has its own type of request.
function limitOptionsOf(step: RatelimitStep, framework: Framework): RatelimitOptions<any, boolean> {
  const { identifier, address, ...rest } = step;
  return {
    ...rest,
    identifier: typeof identifier === "string" ? identifier : (functionOf(identifier, framework) as () => string),
    ...(!framework.knowsAddress && { address: () => "192.0.2.9" }),
    ...(address && { address: functionOf(address, framework) }),
  };
}

/** The value with each `$name` in its texts replaced by what was saved under the name. */
function substitute<T>(value: T, saved: Record<string, string>): T {
  const replace = (text: string) =>
    text.replace(/\$(\w+)/g, (_, name) => {
      assert(name in saved, `no step saved ${name}`);
      return saved[name]!;
    });
  return JSON.parse(JSON.stringify(value), (_, each) => (typeof each === "string" ? replace(each) : each)) as T;
}
