import "./keep-ticks-fast.ts";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, BlockList, Socket } from "node:net";
import { type FastifyError, type FastifyReply, type FastifyRequest, fastify } from "fastify";
import type { Clock } from "../clock/clock.ts";
import { every } from "../clock/every.ts";
import { namesOf, type Operation, pathOf } from "../rpc/operation.ts";
import { Problem } from "../rpc/problems.ts";
import type { Rpc } from "../rpc/server.ts";
import { callerAddress } from "../rules/address.ts";
import { BodyBudget } from "./body-budget.ts";
import { Connections } from "./connections.ts";
import { addHealth, type Readiness } from "./health.ts";
import { Lingering } from "./linger.ts";
import { readLongBody, UNKNOWN_CALLER } from "./long-body.ts";
import { bodyTooLarge, decodeText, METERED_BODY_BYTES_MAX, readShortBody } from "./metered.ts";
import { addMetrics, type Expose } from "./metrics.ts";
import { addPages } from "./pages/pages.ts";
import { ReadPace } from "./read-pace.ts";
import { rejectConnection, rejectSocket } from "./reject.ts";
import { AnswerBatch, respond, type Send } from "./respond.ts";

/** A connection without requests is kept this long, a little longer than load balancers keep theirs. */
const KEEP_ALIVE_MS = 72_000;

/** How often it is looked which peers take what they are sent. */
const SWEEP_INTERVAL = 1_000;

const TOO_MANY_CONNECTIONS = "The service has as many connections as it may have. Try again shortly.";
const RETRY_SOON = { headers: { "retry-after": "1" } };

/** What may come in. */
export interface HttpLimits {
  /** Milliseconds in which a request's headers have to be there. */
  headersTimeout: number;
  /** Milliseconds in which a request has to be there, headers and body. */
  requestTimeout: number;
  /** Connections at the same time. */
  connectionsMax: number;
  /** Bytes of a body; metered operations have a bound of their own. */
  bodyBytesMax: number;
  /** Bytes of all bodies that are on their way in; as many may be on their way out. */
  bodiesBytesMax: number;
}

export interface HttpOptions {
  operations: readonly Operation[];
  rpc: Rpc;
  clock: Clock;
  readiness(): Readiness;
  trustedProxies: BlockList | null;
  limits: HttpLimits;
  /** Null: not on this listener. */
  metrics: Expose | null;
  /** The OpenAPI document as JSON text; asked for once, when somebody wants it. */
  document(): string;
  /** Put before the addresses in pages; empty: they stay relative. */
  publicUrl: string;
}

export interface HttpServer {
  /** Answers one request; what the listening server calls, and tests without one. */
  dispatch(request: IncomingMessage, response: ServerResponse): void;
  /** @throws when the address is taken or not ours. */
  listen(host: string, port: number): Promise<AddressInfo>;
  /** From here on every answer ends its connection. New connections are still taken. */
  drain(): void;
  /** Ends idle connections, finishes open requests, then resolves. */
  close(): Promise<void>;
  /** Ends every connection as it is: for requests that will never be complete. */
  destroy(): void;
}

/**
 * Everything that HTTP is to the service.
 *
 * Metered operations are answered before the framework sees them; its routing and its hooks cost more than a
 * verification does. Whatever is not exactly such a request goes the ordinary way and finds the same operation there.
 */
export async function openHttp(options: HttpOptions): Promise<HttpServer> {
  const { operations, rpc, readiness, trustedProxies, limits } = options;
  const paths = operations.flatMap((operation) => namesOf(operation).map((name) => [pathOf(name), operation] as const));
  const metered = new Map(paths.filter(([, { kind }]) => kind === "metered"));
  const batch = new AnswerBatch();
  const pace = new ReadPace();
  const budget = new BodyBudget(limits.bodiesBytesMax, limits.bodyBytesMax);
  const lingering = new Lingering(options.clock, pace);
  let closing = false;
  const connections = new Connections(limits.connectionsMax, (socket) =>
    rejectSocket(socket, new Problem("service_unavailable", TOO_MANY_CONNECTIONS, RETRY_SOON), rpc),
  );
  /** Writes past the framework, which would add a charset to the content type; JSON has none. */
  const send: Send = (reply, answer, path) => {
    if (answer.status === 413) return sendUnread(reply, answer, path);
    // The framework asks for that when it leaves a body unread, and when a request comes after it began to close.
    const isLast = closing || reply.getHeader("connection") === "close";
    respond(reply.hijack().raw, answer, path, isLast);
    return reply;
  };
  /** Where the rest of the body is not wanted. */
  const sendUnread: Send = (reply, answer, path) => {
    lingering.respond(reply.request.raw, reply.hijack().raw, answer, path);
    return reply;
  };
  let routed!: (request: IncomingMessage, response: ServerResponse) => void;

  const dispatch = (request: IncomingMessage, response: ServerResponse): void => {
    if (request.headers.host === undefined && request.httpVersion === "1.1") {
      respond(response, rpc.refuse(missingHost()), "", true);
      return;
    }
    const operation = request.method === "POST" ? metered.get(request.url!) : undefined;
    if (operation === undefined) {
      routed(request, response);
      return;
    }
    const path = request.url!;
    readShortBody(request, budget, (body) => {
      if (body instanceof Problem) {
        lingering.respond(request, response, rpc.refuse(body), path);
        return;
      }
      const answer = rpc.call(operation, rpcRequest(request, path, body, trustedProxies));
      if (answer instanceof Promise) void answer.then((settled) => respond(response, settled, path, closing));
      else batch.add(response, answer, path, closing);
    });
  };

  const app = fastify({
    bodyLimit: limits.bodyBytesMax,
    forceCloseConnections: "idle",
    return503OnClosing: false,
    exposeHeadRoutes: true,
    serverFactory: (handler) => {
      routed = handler as typeof routed;
      const { requestTimeout } = limits;
      const headersTimeout = Math.min(limits.headersTimeout, requestTimeout);
      const server = createServer(
        {
          keepAliveTimeout: KEEP_ALIVE_MS,
          noDelay: true,
          // Node would answer without the envelope; `dispatch` looks.
          requireHostHeader: false,
          headersTimeout,
          requestTimeout,
          // How often Node looks; seldom would stretch short times.
          connectionsCheckingInterval: Math.max(50, Math.min(30_000, headersTimeout / 4)),
        },
        dispatch,
      );
      server.on("checkExpectation", (_request, response: ServerResponse) =>
        respond(response, rpc.refuse(new Problem("expectation_failed")), "", true),
      );
      connections.watch(server);
      return server;
    },
    // What is no HTTP at all never reaches a route.
    clientErrorHandler(error, socket) {
      if (lingering.has(socket as Socket)) socket.destroy();
      else rejectConnection(error as NodeJS.ErrnoException, socket as Socket, rpc);
    },
    frameworkErrors: (error, _request, reply) =>
      send(reply as never, rpc.refuse(asProblem(error, limits.bodyBytesMax)), ""),
  });
  // The handlers read bodies: what is long is read only of callers that are known.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", (_request, _body, done) => done(null));

  for (const [path, operation] of paths) {
    const bytesMax = operation.kind === "metered" ? METERED_BODY_BYTES_MAX : limits.bodyBytesMax;
    const answer = async ({ raw }: FastifyRequest, reply: FastifyReply, body: string | null) =>
      send(reply, await rpc.call(operation, rpcRequest(raw, path, body, trustedProxies)), path);
    app.post(path, {
      async handler(request, reply) {
        const { raw } = request;
        const { authorization, address } = rpcRequest(raw, path, "", trustedProxies);
        const recognize = () => rpc.recognize(authorization, address);
        const body = await readLongBody(raw, reply.raw, { budget, pace, bytesMax, recognize });
        if (body !== UNKNOWN_CALLER) return answer(request, reply, decodeText(body));
        // The call is refused before its body is looked at.
        const refused = await rpc.call(operation, rpcRequest(raw, path, "", trustedProxies));
        return sendUnread(reply, refused, path);
      },
      errorHandler(error, request, reply) {
        if (error instanceof Problem) return sendUnread(reply, rpc.refuse(error), path);
        // What is no media type is no JSON either: refused as such, after it is known who sends it.
        if (error.code === "FST_ERR_CTP_INVALID_MEDIA_TYPE") return answer(request, reply, "");
        throw error;
      },
    });
  }
  addHealth(app, rpc, readiness, send);
  addPages(app, options);
  if (options.metrics) addMetrics(app, options.metrics);

  app.setNotFoundHandler((request, reply) => {
    const path = request.url.split("?")[0]!;
    const allowed = (["GET", "POST"] as const).filter((method) => app.hasRoute({ method, url: path }));
    const problem =
      allowed.length > 0
        ? new Problem("method_not_allowed", `${path} answers to ${allowed.join(" and ")}, not to ${request.method}.`, {
            headers: { allow: allowed.join(", ") },
          })
        : // Without the address: people put secrets into addresses.
          new Problem("route_not_found", "There is nothing at this address. Operations are at POST /v2/<name>.");
    return send(reply, rpc.refuse(problem), path);
  });
  app.setErrorHandler((error: FastifyError, request, reply) => {
    const known = error.statusCode !== undefined && error.statusCode < 500;
    return send(
      reply,
      known
        ? rpc.refuse(asProblem(error, request.routeOptions.bodyLimit))
        : rpc.broken(error, request.routeOptions.url ?? ""),
      request.url,
    );
  });
  await app.ready();
  const output = { timeout: limits.requestTimeout, bytesMax: limits.bodiesBytesMax };
  const sweep = every(options.clock, SWEEP_INTERVAL, async () =>
    connections.dropSlow(options.clock.monotonic(), output),
  );

  return {
    dispatch,
    async listen(host, port) {
      await app.listen({ host, port });
      return app.server.address() as AddressInfo;
    },
    drain() {
      closing = true;
    },
    async close() {
      closing = true;
      const closed = app.close();
      connections.dropSilent();
      sweep.cancel();
      lingering.close();
      await closed;
    },
    destroy: () => connections.destroy(),
  };
}

/** RFC 9112, section 3.2: a request of HTTP/1.1 without a Host header is refused. */
function missingHost(): Problem {
  return new Problem("invalid_input", "The request has no Host header.", {
    errors: [
      {
        location: "header",
        message: "the Host header is missing",
        fix: "Send the header `Host` with the name of the service.",
      },
    ],
  });
}

function rpcRequest(request: IncomingMessage, path: string, body: string | null, trusted: BlockList | null) {
  const { headers, socket } = request;
  return {
    path,
    authorization: headers.authorization,
    contentType: headers["content-type"],
    contentEncoding: headers["content-encoding"],
    idempotencyKey: headers["idempotency-key"] as string | undefined,
    body,
    address: callerAddress(socket.remoteAddress ?? "", headers["x-forwarded-for"] as string | undefined, trusted),
  };
}

/** What the framework refuses, in our words. */
function asProblem(error: FastifyError, bodyBytesMax: number): Problem {
  switch (error.code) {
    case "FST_ERR_CTP_BODY_TOO_LARGE":
      return bodyTooLarge(bodyBytesMax);
    case "FST_ERR_CTP_INVALID_CONTENT_LENGTH":
    case "ECONNRESET":
      return new Problem("request_body_unreadable");
    default:
      // Without the framework's message, which quotes the address.
      return new Problem("invalid_input", "The request cannot be read: its address or its headers are malformed.");
  }
}
