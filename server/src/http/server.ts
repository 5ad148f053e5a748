import "./keep-ticks-fast.ts";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, BlockList, Socket } from "node:net";
import { type FastifyError, type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from "fastify";
import { namesOf, type Operation, pathOf } from "../rpc/operation.ts";
import { Problem, problems } from "../rpc/problems.ts";
import type { Rpc, RpcResponse } from "../rpc/server.ts";
import { callerAddress } from "../rules/address.ts";
import { bodyTooLarge, METERED_BODY_BYTES_MAX, readShortBody } from "./metered.ts";
import { addMetrics, type Expose } from "./metrics.ts";
import { addPages } from "./pages/pages.ts";
import { AnswerBatch, respond } from "./respond.ts";

/** A connection without requests is kept this long, a little longer than load balancers keep theirs. */
const KEEP_ALIVE_MS = 72_000;

/** So many refused connections may take their time to hang up; beyond that the oldest is cut off. */
const REFUSED_MAX = 256;

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

/** Whether the process can do its work, for load balancers. */
export type Readiness =
  | { ready: true; status: "ok" | "degraded"; checks: Record<string, string> }
  | { ready: false; status: "fail" | "shutting down"; checks: Record<string, string> };

export interface HttpOptions {
  operations: readonly Operation[];
  rpc: Rpc;
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
  /** Ends idle connections, finishes open requests, then resolves. */
  close(): Promise<void>;
}

/** Servers that close: what they answer is the last on its connection, which would otherwise be kept open for more. */
const closingServers = new WeakSet<object>();

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
  let closing = false;
  const sockets = new Set<Socket>();
  /** Connections that were told to come back, until their peers have hung up. */
  const refused = new Set<Socket>();
  let routed!: (request: IncomingMessage, response: ServerResponse) => void;

  const dispatch = (request: IncomingMessage, response: ServerResponse): void => {
    const operation = request.method === "POST" ? metered.get(request.url!) : undefined;
    if (operation === undefined) {
      routed(request, response);
      return;
    }
    const path = request.url!;
    readShortBody(request, (body) => {
      if (body instanceof Problem) {
        respond(response, rpc.refuse(body), path, true);
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
          headersTimeout,
          requestTimeout,
          // How often Node looks; seldom would stretch short times.
          connectionsCheckingInterval: Math.max(50, Math.min(30_000, headersTimeout / 4)),
        },
        dispatch,
      );
      // In front of Node's own listener, which would go on to read and run what a refused connection asks for.
      const [accept] = server.listeners("connection");
      server.removeAllListeners("connection");
      server.on("connection", (socket: Socket) => {
        if (sockets.size >= bounds.connectionsMax) {
          refuseSocket(socket, new Problem("service_unavailable", TOO_MANY_CONNECTIONS, RETRY_SOON), rpc);
          refused.add(socket);
          socket.once("close", () => refused.delete(socket));
          for (const oldest of refused) {
            if (refused.size <= REFUSED_MAX) break;
            refused.delete(oldest);
            oldest.destroy();
          }
          return;
        }
        sockets.add(socket);
        socket.once("close", () => sockets.delete(socket));
        accept!.call(server, socket);
      });
      return server;
    },
    // What is no HTTP at all never reaches a route.
    clientErrorHandler: (error, socket) => refuseConnection(error as NodeJS.ErrnoException, socket as Socket, rpc),
    frameworkErrors: (error, _request, reply) =>
      send(reply as never, rpc.refuse(asProblem(error, bounds.bodyBytesMax)), ""),
  });
  // Bodies are read as text: what they are is decided after it is known who sends them.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "string" }, (_request, body, done) => done(null, body));

  for (const [path, operation] of paths) {
    const answer = async (request: FastifyRequest, reply: FastifyReply, body: string) =>
      send(reply, await rpc.call(operation, rpcRequest(request.raw, path, body, trustedProxies)), path);
    app.post(path, {
      ...(operation.kind === "metered" && { bodyLimit: METERED_BODY_BYTES_MAX }),
      handler: (request, reply) => answer(request, reply, typeof request.body === "string" ? request.body : ""),
      errorHandler(error, request, reply) {
        // What is no media type is no JSON either: refused as such, after it is known who sends it.
        if (error.code === "FST_ERR_CTP_INVALID_MEDIA_TYPE") return answer(request, reply, "");
        throw error;
      },
    });
  }
  addHealth(app, rpc, readiness);
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
    async close() {
      closing = true;
      closingServers.add(app.server);
      const closed = app.close();
      // A connection on which nothing was ever asked is not idle to Node, and would be waited for.
      for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy();
      for (const socket of refused) socket.destroy();
      await closed;
    },
  };
}

function addHealth(app: FastifyInstance<Server>, rpc: Rpc, readiness: () => Readiness): void {
  app.get("/v2/liveness", (_request, reply) => send(reply, rpc.plain({ message: "we're cooking" }), ""));
  const health = (reply: FastifyReply, status: number, body: object) =>
    send(reply, { ...rpc.plain({}), status, body: JSON.stringify(body) }, "");
  app.get("/health/live", (_request, reply) => health(reply, 200, { status: "ok" }));
  app.get("/health/ready", (_request, reply) => {
    const { ready, status, checks } = readiness();
    const body = Object.keys(checks).length > 0 ? { status, checks } : { status };
    return health(reply, ready ? 200 : 503, body);
  });
}

function rpcRequest(request: IncomingMessage, path: string, body: string, trusted: BlockList | null) {
  const { headers, socket } = request;
  return {
    path,
    authorization: headers.authorization,
    contentType: headers["content-type"],
    idempotencyKey: headers["idempotency-key"] as string | undefined,
    body,
    address: callerAddress(socket.remoteAddress ?? "", headers["x-forwarded-for"] as string | undefined, trusted),
  };
}

/** Writes past the framework, which would add a charset to the content type; JSON has none. */
function send(reply: FastifyReply, answer: RpcResponse, path: string): FastifyReply {
  // The framework asks for that when it leaves a body unread, and when a request comes after it began to close.
  const close = reply.getHeader("connection") === "close" || closingServers.has(reply.server.server);
  respond(reply.hijack().raw, answer, path, close);
  return reply;
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

function refuseConnection(error: NodeJS.ErrnoException, socket: Socket, rpc: Rpc): void {
  if (!socket.writable || error.code === "ECONNRESET") {
    socket.destroy();
    return;
  }
  const problem =
    error.code === "ERR_HTTP_REQUEST_TIMEOUT"
      ? new Problem("request_timeout")
      : new Problem("invalid_input", "This is not a valid HTTP request, or its headers are too large.");
  refuseSocket(socket, problem, rpc);
}

const RETRY_SOON = { headers: { "retry-after": "1" } };
const TOO_MANY_CONNECTIONS = "The service has as many connections as it may have. Try again shortly.";

/** Answers a connection that is not going to be a request. */
function refuseSocket(socket: Socket, problem: Problem, rpc: Rpc): void {
  const { status, body, requestId, headers = {} } = rpc.refuse(problem);
  const fields = {
    "Content-Type": "application/json",
    "X-Request-Id": requestId,
    "Content-Length": Buffer.byteLength(body),
    Connection: "close",
    ...headers,
  };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  // Whatever arrives meanwhile is read and thrown away: unread it would reset the connection and with it the answer.
  socket.on("error", () => {});
  socket.resume();
  socket.end(`HTTP/1.1 ${status} ${problems[problem.code].title}\r\n${lines.join("")}\r\n${body}`);
}
