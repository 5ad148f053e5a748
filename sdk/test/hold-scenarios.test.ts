/** The option `hold` in front of every framework, in the scenarios of `hold-scenarios.json`, against the real service. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type RequestListener, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { after, before, describe, it } from "node:test";
import { serve } from "@hono/node-server";
import express from "express";
// @ts-expect-error It has no types of its own; those of version 5 fit what is used here.
import express4 from "express-4";
import fastify from "fastify";
import { Hono } from "hono";
import { eventually, makeFolder, ROOT_KEY, type Server, start } from "../../server/test/process.ts";
import * as forExpress from "../src/express.ts";
import * as forFastify from "../src/fastify.ts";
import * as forFetch from "../src/fetch.ts";
import type { EndedAnswer } from "../src/held-answer.ts";
import * as forHono from "../src/hono.ts";
import { Latchkey, UnsettledHold } from "../src/index.ts";
import type { VerifiedKey, VerifyOptions } from "../src/middleware.ts";
import * as forNext from "../src/next.ts";
import * as forNode from "../src/node.ts";
import { type HoldScenario, holdScenarios } from "./hold-scenarios.ts";

// biome-ignore lint/suspicious/noExplicitAny: each framework has its own type of request.
type Options = VerifyOptions<any, boolean>;

/** What a handler does, for any framework. */
interface Work {
  readonly status: number;
  /** Reports; then it fails if it is to fail before its answer. */
  begin(key: VerifiedKey | undefined): Promise<void>;
  chunks(): AsyncGenerator<Buffer, void, undefined>;
}

type Listening = Promise<{ port: number; close: () => unknown }>;
type Listen = (options: Options, work: Work) => Listening;

async function listen(listener: RequestListener): Listening {
  const server = createServer(listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { port: (server.address() as AddressInfo).port, close };
}

async function listenToFetch(handler: (request: Request) => Response | Promise<Response>): Listening {
  const answer = async (request: Request) => {
    try {
      return await handler(request);
    } catch {
      return new Response("failed", { status: 500 });
    }
  };
  const server = serve({ fetch: answer, port: 0, hostname: "127.0.0.1" });
  if (!server.listening) await once(server, "listening");
  const close = () => {
    if ("closeAllConnections" in server) server.closeAllConnections();
    server.close();
  };
  return { port: (server.address() as AddressInfo).port, close };
}

async function answerMessage(response: ServerResponse, work: Work, key: VerifiedKey | undefined): Promise<void> {
  await work.begin(key);
  response.statusCode = work.status;
  try {
    for await (const chunk of work.chunks()) response.write(chunk);
    response.end();
  } catch {
    response.destroy();
  }
}

async function answerOf(work: Work, key: VerifiedKey | undefined): Promise<Response> {
  await work.begin(key);
  if (work.status === 204 || work.status === 304) return new Response(null, { status: work.status });
  const chunks = work.chunks();
  const body = new ReadableStream({
    async pull(controller) {
      const { done, value } = await chunks.next();
      if (done) controller.close();
      else controller.enqueue(new Uint8Array(value));
    },
  });
  return new Response(body, { status: work.status });
}

function onExpress(make: typeof express): Listen {
  return (options, work) => {
    const app = make().set("env", "test");
    app.all("/work", forExpress.verify(options), (request, response, next) => {
      answerMessage(response, work, request.latchkey).catch(next);
    });
    return listen(app);
  };
}

const frameworks: Record<string, Listen> = {
  Hono: (options, work) => {
    const app = new Hono<{ Variables: { latchkey?: VerifiedKey | undefined } }>();
    app.use("*", forHono.verify(options));
    app.all("/work", (c) => answerOf(work, c.var.latchkey));
    app.onError((_, c) => c.text("failed", 500));
    return listenToFetch((request) => app.fetch(request));
  },
  "Express 5": onExpress(express),
  "Express 4": onExpress(express4),
  Fastify: async (options, work) => {
    const app = fastify({ forceCloseConnections: true });
    app.addHook("onRequest", forFastify.verify(options));
    app.all("/work", async ({ latchkey }, reply) => {
      await work.begin(latchkey);
      const isEmpty = work.status === 204 || work.status === 304;
      return reply.code(work.status).send(isEmpty ? undefined : Readable.from(work.chunks(), { objectMode: false }));
    });
    await app.listen({ port: 0, host: "127.0.0.1" });
    return { port: (app.server.address() as AddressInfo).port, close: () => app.close() };
  },
  "Next.js": (options, work) => {
    const GET = forNext.verify(options, (_request: Request, _context: object, key) => answerOf(work, key));
    return listenToFetch((incoming) => GET(incoming, {}));
  },
  "node:http": (options, work) => {
    const handle = forNode.verify(options, async (_request, response, key) => {
      // Nobody answers for a listener that fails.
      await answerMessage(response, work, key).catch(() => response.destroy());
    });
    return listen(handle);
  },
  fetch: (options, work) => listenToFetch(forFetch.verify(options, (_request, key) => answerOf(work, key))),
};

describe("the option `hold`", () => {
  const directory = makeFolder({ after });
  let server: Server;
  let apiId: string;

  before(async () => {
    server = await start({ directory });
    ({ apiId } = await server.ok("apis.createApi", { name: "holds" }));
  });
  after(async () => {
    await server?.kill("SIGTERM");
  });

  for (const [name, serveWith] of Object.entries(frameworks)) {
    describe(`of ${name}`, { concurrency: 8 }, () => {
      for (const scenario of holdScenarios) it(scenario.name, () => play(serveWith, scenario));
    });
  }

  async function play(serveWith: Listen, scenario: HoldScenario): Promise<void> {
    const { handler, cost = 40, ttl = 60_000, method = "GET", settle } = scenario;
    const created = await server.ok("keys.createKey", { apiId, credits: { remaining: 100 } });
    const errors: Error[] = [];
    const answers: EndedAnswer[] = [];
    const ends: { operation: string; body: Record<string, unknown> }[] = [];
    const faults = [...(scenario.faults ?? [])];

    const latchkey = new Latchkey({
      url: server.address,
      rootKey: ROOT_KEY,
      timeout: 10_000,
      fetch: async (url, init) => {
        if (scenario.network === "away") throw new Error("away");
        const operation = String(url).replace(/^.*\//, "");
        const isEnd = operation === "holds.settleHold" || operation === "holds.releaseHold";
        if (!isEnd) return await fetch(url, init);
        ends.push({ operation, body: JSON.parse(String(init?.body)) });
        const fault = faults.shift();
        if (fault === "away") throw new Error("away");
        if (typeof fault === "number") {
          const error = { type: "/errors/application/service_unavailable", detail: "planted", status: fault };
          return Response.json({ meta: { requestId: "req_1" }, error }, { status: fault });
        }
        const answer = await fetch(url, init);
        if (fault !== "lost") return answer;
        await answer.text();
        throw new Error("lost");
      },
    });

    let received = 0;
    const begun = Promise.withResolvers<void>();
    const finished = Promise.withResolvers<void>();
    let key: VerifiedKey | undefined;
    const work: Work = {
      status: handler.status ?? 200,
      async begin(given) {
        key = given;
        if (handler.report) assert.equal(given?.hold?.report(handler.report), true);
        begun.resolve();
        if (handler.chunks.length > 0 || handler.end === undefined) return;
        if (handler.end === "throw") throw new Error("of the handler");
        await finished.promise;
      },
      async *chunks() {
        let sent = 0;
        for (const chunk of handler.chunks) {
          yield Buffer.from(chunk);
          sent += chunk.length;
          const now = sent;
          if (method !== "HEAD") await eventually("the end user to receive it", () => received >= now);
        }
        if (handler.end === "throw") throw new Error("of the handler");
        if (handler.end === "wait") await finished.promise;
        if (handler.end !== "extended") return;
        const first = key!.hold!.expiresAt;
        await eventually("two extensions", () => key!.hold!.expiresAt > first + ttl / 2);
      },
    };

    const { port, close } = await serveWith(
      {
        latchkey,
        apiId,
        cost,
        failOpen: scenario.failOpen,
        onError: (error: Error) => void errors.push(error),
        limits: scenario.limits,
        hold: {
          ttl,
          settle:
            settle &&
            ((answer) => {
              answers.push(answer);
              if (settle === "throw") throw new Error("of the function");
              return { credits: "credits" in settle ? settle.credits : settle.perByte * answer.bytes };
            }),
        },
      },
      work,
    );
    try {
      const sent = request({
        port,
        host: "127.0.0.1",
        method,
        path: "/work",
        headers: { Authorization: `Bearer ${created.key}` },
        agent: false,
      });
      const ended = new Promise<number | undefined>((resolve) => {
        sent
          .once("error", () => resolve(undefined))
          .once("response", (response) => {
            response
              .on("data", ({ length }) => {
                received += length;
              })
              .once("error", () => {})
              .once("close", () => resolve(response.statusCode));
          });
      });
      sent.end();
      if (scenario.hangUp === "before") await begun.promise;
      if (scenario.hangUp === "within") {
        const bytes = handler.chunks.join("").length;
        await eventually("the chunks", () => received >= bytes);
      }
      if (scenario.hangUp) sent.destroy();
      else {
        const status = await ended;
        const hasFailed = handler.end === "throw" && handler.chunks.length === 0;
        // node:http closes the connection.
        if (hasFailed) assert(status === 500 || status === undefined);
        else assert.equal(status, scenario.status ?? handler.status ?? 200);
      }
      await eventually("the end of the hold", () => errors.length > 0 || ends.length >= (scenario.ends ?? 0));
      await check(scenario, created.keyId);
      assert.equal(errors.length, scenario.errors ?? 0, errors.join());
      if (scenario.unsettled) {
        const [error] = errors;
        assert(error instanceof UnsettledHold);
        assert.deepEqual(error.settlement, scenario.unsettled);
      }
      if (scenario.ends !== undefined) {
        assert.equal(ends.length, scenario.ends);
        // A repetition must not charge other amounts.
        for (const { body } of ends) assert.deepEqual(body, ends[0]!.body);
      }
      const { holdId, ...settlement } = ends[0]?.body ?? {};
      if (scenario.settlement) assert.deepEqual(settlement, scenario.settlement);
      for (const [member, expected] of Object.entries(scenario.answer ?? {})) {
        assert.equal(answers.length, 1);
        assert.equal(answers[0]![member as keyof EndedAnswer] ?? null, expected, member);
      }
      if (scenario.state === "settled" && handler.report) assert.equal(key?.hold?.report({ credits: 1 }), false);
    } finally {
      finished.resolve();
      await close();
    }
  }

  /** Checks what the service knows of the key, as soon as its hold has ended. */
  async function check({ credits, state }: HoldScenario, keyId: string): Promise<void> {
    // With one request for each answer: only what is known then counts.
    let holds: { state: string }[] = [];
    await eventually(`the state ${state}`, async () => {
      holds = await server.ok("holds.listHolds", { keyId });
      return state === undefined || state === "open" || holds.some((hold) => hold.state !== "open");
    });
    assert.deepEqual(
      holds.map((hold) => hold.state),
      state === undefined ? [] : [state],
    );
    const key = await server.ok("keys.getKey", { keyId });
    assert.equal(key.credits.remaining, credits);
  }
});
