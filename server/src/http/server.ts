import "./keep-ticks-fast.ts";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, BlockList, Socket } from "node:net";
import { type FastifyError, type FastifyReply, type FastifyRequest, fastify } from "fastify";
import type { Clock } from "../clock/clock.ts";
import { namesOf, type Operation, pathOf } from "../rpc/operation.ts";
import { Problem } from "../rpc/problems.ts";
import type { Rpc } from "../rpc/server.ts";
import { callerAddress } from "../rules/address.ts";
import { Connections } from "./connections.ts";
import { addHealth, type Readiness } from "./health.ts";
import { Lingering } from "./linger.ts";
import { bodyTooLarge, decodeText, METERED_BODY_BYTES_MAX, readShortBody } from "./metered.ts";
import { addMetrics, type Expose } from "./metrics.ts";
import { addPages } from "./pages/pages.ts";
import { refuseConnection, refuseSocket } from "./refuse.ts";
import { AnswerBatch, respond, type Send } from "./respond.ts";

/** A connection without requests is kept this long, a little longer than load balancers keep theirs. */
const KEEP_ALIVE_MS = 72_000;

const TOO_MANY_CONNECTIONS = "The service has as many connections as it may have. Try again shortly.";
const RETRY_SOON = { headers: { "retry-after": "1" } };

/** What may come in. */
export interface HttpBounds {
  /** Milliseconds in which a request's headers have to be there. */
  headersTimeout: number;
  /** Milliseconds in which a request has to be there, headers and body. */
  requestTimeout: number;
  /** Connections at the same time. */
  connectionsMax: number;
  /** Bytes of a body; metered operations have a bound of their own. */
  bodyBytesMax: number;
}

export interface HttpOptions {
  operations: readonly Operation[];
  rpc: Rpc;
  clock: Clock;
  readiness(): Readiness;
  trustedProxies: BlockList | null;
  bounds: HttpBounds;
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
  const { operations, rpc, readiness, trustedProxies, bounds } = options;
  const paths = operations.flatMap((operation) => namesOf(operation).map((name) => [pathOf(name), operation] as const));
  const metered = new Map(paths.filter(([, { kind }]) => kind === "metered"));
  const batch = new AnswerBatch();
  const lingering = new Lingering(options.clock);
  let closing = false;
  const connections = new Connections(bounds.connectionsMax, (socket) =>
    refuseSocket(socket, new Problem("service_unavailable", TOO_MANY_CONNECTIONS, RETRY_SOON), rpc),
  );
  /** Writes past the framework, which would add a charset to the content type; JSON has none. */
  const send: Send = (reply, answer, path) => {
    if (answer.status === 413) {
      lingering.respond(reply.request.raw, reply.hijack().raw, answer, path);
      return reply;
    }
    // The framework asks for that when it leaves a body unread, and when a request comes after it began to close.
    const isLast = closing || reply.getHeader("connection") === "close";
    respond(reply.hijack().raw, answer, path, isLast);
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
    readShortBody(request, (body) => {
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
    bodyLimit: bounds.bodyBytesMax,
    forceCloseConnections: "idle",
    return503OnClosing: false,
    exposeHeadRoutes: true,
    serverFactory: (handler) => {
      routed = handler as typeof routed;
      const { requestTimeout } = bounds;
      const headersTimeout = Math.min(bounds.headersTimeout, requestTimeout);
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
      else refuseConnection(error as NodeJS.ErrnoException, socket as Socket, rpc);
    },
    frameworkErrors: (error, _request, reply) =>
      send(reply as never, rpc.refuse(asProblem(error, bounds.bodyBytesMax)), ""),
  });
  // Bodies are read as text: what they are is decided after it is known who sends them.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, done) =>
    done(null, decodeText(body as Buffer)),
  );

  for (const [path, operation] of paths) {
    const answer = async (request: FastifyRequest, reply: FastifyReply, body: string | null) =>
      send(reply, await rpc.call(operation, rpcRequest(request.raw, path, body, trustedProxies)), path);
    app.post(path, {
      ...(operation.kind === "metered" && { bodyLimit: METERED_BODY_BYTES_MAX }),
      // Undefined where no body was sent at all.
      handler: (request, reply) => {
        const body = request.body as string | null | undefined;
        return answer(request, reply, body === undefined ? "" : body);
      },
      errorHandler(error, request, reply) {
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
