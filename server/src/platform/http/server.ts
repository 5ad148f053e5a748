import "./keep-ticks-fast.ts";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { type FastifyError, type FastifyInstance, type FastifyReply, fastify } from "fastify";
import type { Clock } from "../../../../engine/src/clock/clock.ts";
import { every } from "../../../../engine/src/clock/every.ts";
import type { AddressList } from "../../../../engine/src/rules/address.ts";
import { namesOf, type Operation, pathOf } from "../rpc/operation.ts";
import { Problem } from "../rpc/problems.ts";
import type { RpcCalls } from "../rpc/server.ts";
import { BodyBudget } from "./body-budget.ts";
import { addressOf } from "./caller-address.ts";
import { Connections, type OtherThreads, SWEEP_INTERVAL, tooManyConnections } from "./connections.ts";
import type { FastLane } from "./fast-lane/fast-lane.ts";
import { meteredPaths, openLane } from "./fast-lane/open.ts";
import { addHealthRoutes, type Readiness } from "./health.ts";
import { type HttpLimits, headersTimeoutOf, KEEP_ALIVE_MS } from "./limits.ts";
import { Lingering } from "./linger.ts";
import { REJECTED_CALLER, type ReadBody, readLongBody } from "./long-body.ts";
import { bodyTooLarge, decodeText, METERED_BODY_BYTES_MAX, readShortBody } from "./metered.ts";
import { addMetrics, type Expose } from "./metrics.ts";
import { parseOneAtATime, stopParsing } from "./one-at-a-time.ts";
import { addPages, type HtmlPagesOptions } from "./pages/pages.ts";
import { ReadPace } from "./read-pace.ts";
import { rejectConnection, rejectSocket } from "./reject.ts";
import { hostCheck, isPlainTarget, useOriginForm } from "./request-target.ts";
import { AnswerBatch, respond, type Send } from "./respond.ts";
import { RouteGroups } from "./route-groups.ts";
import type { AddRoutes, AnswerUnrouted } from "./routes.ts";
import { suggestOperation } from "./suggest-operation.ts";
import { withoutSchemas } from "./without-schemas.ts";

export interface HttpOptions {
  operations: readonly Operation[];
  rpc: RpcCalls;
  clock: Clock;
  readiness(): Readiness;
  trustedProxies: AddressList | null;
  limits: HttpLimits;
  /** Null: `/metrics` is not on this listener. */
  metrics: Expose | null;
  /** What pages for readers need; null: there are none. */
  pages: Pick<HtmlPagesOptions, "document" | "securityContact"> | null;
  /** Prefix of the links in pages; empty: they stay relative. */
  publicUrl: string;
  /** Whether connections begin in the fast lane. */
  fastLane: boolean;
  /** Given if other threads have connections too. */
  otherThreads?: OtherThreads | undefined;
  /** Routes besides those of the operations, health, metrics and pages for readers. */
  routes: readonly AddRoutes[];
  answerUnrouted?: AnswerUnrouted | undefined;
}

export interface HttpServer {
  /** Answers one request. The listening server calls it, and so do tests without one. */
  dispatch(request: IncomingMessage, response: ServerResponse): void;
  /** Reads a connection. The listening server does it, and so do tests with a connection in memory. */
  accept(connection: Duplex): void;
  /** Ends an unused connection, if that makes room for one of this network. */
  makeRoom(network: string): boolean;
  /**
   * Listens on every address of the host.
   *
   * @param isShared whether other threads listen on the same port too.
   * @throws when the address is in use, or is not an address of this machine.
   */
  listen(host: string, port: number, isShared?: boolean): Promise<AddressInfo>;
  /** The addresses on which it listens. */
  readonly addresses: readonly AddressInfo[];
  /** Ends each connection after its next answer. New connections are still accepted. */
  drain(): void;
  /** Ends idle connections, finishes open requests, then resolves. */
  close(): Promise<void>;
  /** Ends every connection at once, also with incomplete requests. */
  destroy(): void;
}

/**
 * Opens the HTTP server of the service.
 *
 * Metered operations are answered before the framework: its routing and hooks cost more than a verification. All other
 * requests go through the framework, which has routes for the metered operations too.
 */
export async function openHttp(options: HttpOptions): Promise<HttpServer> {
  const { operations, rpc, clock, limits } = options;
  const paths = operations.flatMap((operation) => namesOf(operation).map((name) => [pathOf(name), operation] as const));
  const pace = new ReadPace(8);
  const budget = new BodyBudget(limits.bodiesBytesMax, limits.bodyBytesMax);
  const lingering = new Lingering(clock);
  const state: State = { closing: false, routed: undefined, lane: undefined };
  const reject = (socket: Socket) => rejectSocket(socket, tooManyConnections(), rpc);
  const connections = new Connections(limits.connectionsMax, reject, options.otherThreads);
  /** Answers without reading the rest of the body. */
  const sendUnread: Send = (reply, answer, path) => {
    lingering.respond(reply.request.raw, reply.hijack().raw, answer, path);
    return reply;
  };
  /** Writes without the framework, which would add a charset to the content type; JSON has none. */
  const send: Send = (reply, answer, path) => {
    if (answer.status === 413) return sendUnread(reply, answer, path);
    // The framework sets this header when it leaves a body unread, and for requests that arrive while it closes.
    const isLast = state.closing || reply.getHeader("connection") === "close";
    respond(reply.hijack().raw, answer, path, isLast);
    return reply;
  };
  const batch = new AnswerBatch();
  const parts: Parts = { options, paths, connections, pace, budget, lingering, batch, state, send, sendUnread };
  const dispatch = createDispatch(parts);

  const app = fastify({
    schemaController: withoutSchemas,
    bodyLimit: limits.bodyBytesMax,
    forceCloseConnections: "idle",
    return503OnClosing: false,
    exposeHeadRoutes: true,
    serverFactory: (handler) => {
      state.routed = handler as RequestHandler;
      const server = createNodeServer(dispatch, parts);
      connections.watch(server, options.fastLane ? (handOver) => openLaneOf(parts, handOver) : undefined);
      return server;
    },
    // Input that is not HTTP never reaches a route.
    clientErrorHandler(error, socket) {
      stopParsing(socket as Socket);
      batch.write();
      // The rest of a rejected body is discarded, so it need not be HTTP.
      const hasEnded = () => lingering.end(socket as Socket);
      const reject = () => hasEnded() || rejectConnection(error as NodeJS.ErrnoException, socket as Socket, rpc);
      if (!hasEnded()) connections.afterAnswers(socket as Socket, reject);
    },
    frameworkErrors: (error, _request, reply) =>
      send(reply as never, rpc.reject(asProblem(error, limits.bodyBytesMax)), ""),
  });
  // The handlers read the bodies: long ones only for authenticated callers.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", (_request, _body, done) => done(null));
  const groups = new RouteGroups(app);
  addOperations(groups, parts);
  const read: ReadBody = (request, reply, bytesMax, recognize) =>
    readLongBody(request, reply.raw, { budget, pace, bytesMax, recognize });
  const { trustedProxies, publicUrl } = options;
  const bodyBytesMax = (operation: Operation) => bodyBytesMaxOf(operation, limits);
  const routeParts = {
    rpc,
    clock,
    operations,
    trustedProxies,
    publicUrl,
    groups,
    read,
    bodyBytesMax,
    send,
    sendUnread,
  };
  for (const addRoutes of options.routes) addRoutes(app, routeParts);
  addHealthRoutes(app, rpc, options.readiness, send);
  if (options.pages) addPages(app, groups, { rpc, clock, publicUrl, ...options.pages });
  if (options.metrics) addMetrics(app, options.metrics);
  addErrorHandlers(app, groups, parts);
  await app.ready();

  const outputLimits = { timeout: limits.requestTimeout, bytesMax: limits.bodiesBytesMax };
  const sweep = every(clock, SWEEP_INTERVAL, async () => connections.dropSlow(clock.monotonic(), outputLimits));
  return {
    dispatch,
    accept: (connection) => void app.server.emit("connection", connection),
    makeRoom: (network) => connections.makeRoom(network),
    get addresses() {
      return app.addresses() as AddressInfo[];
    },
    async listen(host, port, isShared = false) {
      await app.listen({ host, port, ...(isShared && { reusePort: true }) });
      return app.server.address() as AddressInfo;
    },
    drain() {
      state.closing = true;
    },
    async close() {
      state.closing = true;
      const closed = app.close();
      state.lane?.close();
      connections.dropSilent();
      sweep.cancel();
      lingering.close();
      await closed;
    },
    destroy: () => connections.destroy(),
  };
}

type RequestHandler = (request: IncomingMessage, response: ServerResponse) => void;

interface State {
  /** Whether each connection ends after its next answer. */
  closing: boolean;
  /** The framework's handler. */
  routed: RequestHandler | undefined;
  lane: FastLane | undefined;
}

/** What the handlers of requests share. */
interface Parts {
  options: HttpOptions;
  /** Every path of an operation. */
  paths: readonly (readonly [path: string, operation: Operation])[];
  connections: Connections;
  pace: ReadPace;
  budget: BodyBudget;
  lingering: Lingering;
  batch: AnswerBatch;
  state: State;
  send: Send;
  sendUnread: Send;
}

/** Answers the calls of metered operations, and passes all other requests to the framework. */
function createDispatch({ options, connections, budget, lingering, batch, state }: Parts): RequestHandler {
  const { rpc, trustedProxies, publicUrl } = options;
  const metered = meteredPaths(options.operations);
  const ofEitherLength = meteredPaths(options.operations, true);
  const hasOwnHost = hostCheck(publicUrl);
  return (request, response) => {
    connections.record(response);
    if (request.headers.host === undefined && request.httpVersion === "1.1") {
      respond(response, rpc.reject(missingHost()), "", true);
      return;
    }
    if (!request.url!.startsWith("/")) useOriginForm(request);
    let operation = request.method === "POST" ? metered.get(request.url!) : undefined;
    if (operation === undefined && request.method === "POST" && hasShortBody(request)) {
      operation = ofEitherLength.get(request.url ?? "");
    }
    if (operation === undefined) {
      if (!isPlainTarget(request.url!)) respond(response, rpc.reject(routeNotFound()), "", state.closing);
      else if (hasOwnHost(request)) state.routed!(request, response);
      else respond(response, rpc.reject(misdirected(publicUrl)), "", state.closing);
      return;
    }
    const path = request.url!;
    readShortBody(request, budget, (body) => {
      if (body instanceof Problem) {
        lingering.respond(request, response, rpc.reject(body, path), path);
        return;
      }
      const answer = rpc.call(operation, rpcRequest(request, path, body, trustedProxies));
      if (answer instanceof Promise) void answer.then((settled) => respond(response, settled, path, state.closing));
      else batch.add(response, answer, path, state.closing);
    });
  };
}

/** Whether a request announces a body that is read at once. */
function hasShortBody({ headers }: IncomingMessage): boolean {
  return Number(headers["content-length"]) <= METERED_BODY_BYTES_MAX;
}

/** Opens the lane for connections that begin with plain calls; `handOver` takes the others. */
function openLaneOf({ options, state }: Parts, handOver: (socket: Socket) => void): FastLane {
  const isClosing = () => state.closing;
  const { operations } = options;
  // Those with bodies that may be long are answered there if the body is short.
  const metered = new Map([...meteredPaths(operations), ...meteredPaths(operations, true)]);
  state.lane = openLane({ ...options, metered, isClosing, handOver });
  return state.lane;
}

function createNodeServer(dispatch: RequestHandler, { options: { rpc, limits }, connections, batch }: Parts): Server {
  const { requestTimeout } = limits;
  const headersTimeout = headersTimeoutOf(limits);
  const server = createServer(
    {
      keepAliveTimeout: KEEP_ALIVE_MS,
      noDelay: true,
      // Node would answer without the envelope of the API; `dispatch` checks the header.
      requireHostHeader: false,
      headersTimeout,
      requestTimeout,
      // How often Node checks the timeouts. A long interval would extend short timeouts.
      connectionsCheckingInterval: Math.max(50, Math.min(30_000, headersTimeout / 4)),
    },
    dispatch,
  );
  // A peer that ends its side after its request still gets the answer. Node would end the connection first.
  (server as Server & { httpAllowHalfOpen: boolean }).httpAllowHalfOpen = true;
  server.on("connection", parseOneAtATime);
  server.on("checkExpectation", (_request, response: ServerResponse) => {
    connections.record(response);
    respond(response, rpc.reject(new Problem("expectation_failed")), "", true);
  });
  server.on("checkContinue", (request: IncomingMessage, response: ServerResponse) => {
    continueSoon(request, response);
    dispatch(request, response);
  });
  // Without a listener, Node would destroy the connection, and with it the answers to the requests before this one.
  server.on("connect", (_request, connection) => {
    const socket = connection as Socket;
    detached(socket);
    batch.write();
    connections.afterAnswers(socket, () => rejectSocket(socket, notAProxy(), rpc));
  });
  return server;
}

/**
 * Asks for the body of a request with `Expect: 100-continue`, unless it has arrived by the end of this turn. Node would write
 * that into the answer, if the request waits behind others on its connection.
 */
function continueSoon(request: IncomingMessage, response: ServerResponse): void {
  const ask = () => {
    if (!request.complete && !response.headersSent) response.writeContinue();
  };
  setImmediate(() => {
    if (response.socket === null) response.once("socket", ask);
    else ask();
  });
}

/** Does for a connection that Node's parser has left what the listeners did that Node removed from it. */
function detached(socket: Socket & { _httpMessage?: ServerResponse | null }): void {
  stopParsing(socket);
  // The event "close" follows an error.
  socket.on("error", () => {});
  socket.on("drain", () => socket._httpMessage?.emit("drain"));
  socket.setTimeout(KEEP_ALIVE_MS, () => socket.destroy());
}

function notAProxy(): Problem {
  return new Problem("method_not_allowed", "The service is no proxy: it does not answer to CONNECT.", {
    headers: { allow: "GET, POST" },
  });
}

function bodyBytesMaxOf({ kind, declaration }: Operation, { bodyBytesMax }: HttpLimits): number {
  if (declaration.bodyBytesMax !== undefined) return declaration.bodyBytesMax;
  return kind === "metered" ? METERED_BODY_BYTES_MAX : bodyBytesMax;
}

/** Adds the paths of the operations. */
function addOperations(groups: RouteGroups, { options, paths, pace, budget, send, sendUnread }: Parts): void {
  const { rpc, trustedProxies, limits } = options;
  const prefix = pathOf("");
  const members = new Map(paths.map((one) => [one[0].slice(prefix.length), one]));
  type Member = Parts["paths"][number];
  const call = async ([path, operation]: Member, raw: IncomingMessage, reply: FastifyReply, body: string | null) =>
    send(reply, await rpc.call(operation, rpcRequest(raw, path, body, trustedProxies)), path);
  groups.add("POST", prefix, members, {
    async answer(member, { raw }, reply) {
      const [path, operation] = member;
      const bytesMax = bodyBytesMaxOf(operation, limits);
      const { credentials, address } = rpcRequest(raw, path, "", trustedProxies);
      const recognize = () => rpc.recognize({ credentials, address });
      const body = await readLongBody(raw, reply.raw, { budget, pace, bytesMax, recognize });
      if (body !== REJECTED_CALLER) return call(member, raw, reply, decodeText(body));
      // The call is rejected before its body is parsed.
      const rejected = await rpc.call(operation, rpcRequest(raw, path, "", trustedProxies));
      return sendUnread(reply, rejected, path);
    },
    fail(error, member, { raw }, reply) {
      if (error instanceof Problem) return sendUnread(reply, rpc.reject(error, member[0]), member[0]);
      // An invalid media type is not JSON. The call rejects it, after authentication.
      if (error.code === "FST_ERR_CTP_INVALID_MEDIA_TYPE") return call(member, raw, reply, "");
      throw error;
    },
  });
}

/** Adds the answers to requests without a route, and to errors of the framework and of handlers. */
function addErrorHandlers(
  app: FastifyInstance,
  groups: RouteGroups,
  { options: { operations, rpc, answerUnrouted }, send, sendUnread }: Parts,
): void {
  const questionFor = suggestOperation(operations.map(({ name }) => name));
  app.setNotFoundHandler((request, reply) => {
    const answered = answerUnrouted?.(request, reply, { sendUnread });
    if (answered !== undefined) return answered;
    const path = request.url.split("?")[0]!;
    const allowed = (["GET", "POST"] as const).filter((method) => groups.has(method, path));
    const problem =
      allowed.length > 0
        ? new Problem("method_not_allowed", `${path} answers to ${allowed.join(" and ")}, not to ${request.method}.`, {
            headers: { allow: allowed.join(", ") },
          })
        : routeNotFound(questionFor(path) || hintFor(path));
    return send(reply, rpc.reject(problem), path);
  });
  app.setErrorHandler((error: FastifyError, request, reply) => {
    const isCallersError = error.statusCode !== undefined && error.statusCode < 500;
    return send(
      reply,
      isCallersError
        ? rpc.reject(asProblem(error, request.routeOptions.bodyLimit))
        : rpc.failed(error, groups.pathOf(request)),
      request.url,
    );
  });
}

/** Without the requested address, which can contain secrets. */
function routeNotFound(more = OF_REFERENCE): Problem {
  return new Problem("route_not_found", `There is nothing at this address. Operations are at POST /v2/<name>. ${more}`);
}

const OF_REFERENCE = "The reference is at /reference.";

/** Where to look, if no operation has a similar name. */
function hintFor(path: string): string {
  return path.startsWith("/health") ? "Health checks are at /health/live and /health/ready." : OF_REFERENCE;
}

function misdirected(publicUrl: string): Problem {
  return new Problem(
    "misdirected_request",
    `The dashboard and the portal are at ${publicUrl}, not at another host name.`,
  );
}

/** RFC 9112, section 3.2: a request of HTTP/1.1 without a Host header is rejected. */
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

function rpcRequest(request: IncomingMessage, path: string, body: string | null, trusted: AddressList | null) {
  const { headers } = request;
  return {
    path,
    credentials: { authorization: headers.authorization },
    contentType: headers["content-type"],
    contentEncoding: headers["content-encoding"],
    idempotencyKey: headers["idempotency-key"] as string | undefined,
    body,
    address: addressOf(request, trusted),
  };
}

/** The problem for an error of the framework. */
function asProblem(error: FastifyError, bodyBytesMax: number): Problem {
  switch (error.code) {
    case "FST_ERR_CTP_BODY_TOO_LARGE":
      return bodyTooLarge(bodyBytesMax);
    case "FST_ERR_CTP_INVALID_CONTENT_LENGTH":
    case "ECONNRESET":
      return new Problem("request_body_unreadable");
    default:
      // Without the message of the framework, which quotes the requested address.
      return new Problem("invalid_input", "The request cannot be read: its address or its headers are malformed.");
  }
}
