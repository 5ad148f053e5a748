import type { AddressInfo } from "node:net";
import type { Clock, Milliseconds } from "../../../engine/src/clock/clock.ts";
import { pause } from "../../../engine/src/clock/pause.ts";
import { decideByCall } from "../../../engine/src/errors/decided-elsewhere.ts";
import { newId, type Random } from "../../../engine/src/random/random.ts";
import { HomeUnavailable, OperationUnknown } from "../../../engine/src/replica/home.ts";
import { Replica } from "../../../engine/src/replica/replica.ts";
import type { ReplicaVerification } from "../../../engine/src/replica/replica-verification.ts";
import { addressList } from "../../../engine/src/rules/address.ts";
import { jsonAnswers } from "../../../engine/src/verification/answers.ts";
import { Namespaces } from "../../../engine/src/verification/namespaces.ts";
import { forwardAuthRoutes } from "../features/keys/forward-auth.ts";
import { verifyKey } from "../features/keys/verifyKey.ts";
import type { Services } from "../features/services.ts";
import type { Events } from "../log/events.ts";
import { CallMetrics } from "../metrics/calls.ts";
import { Metrics } from "../metrics/metrics.ts";
import type { Config } from "../platform/config/config.ts";
import { version } from "../platform/config/version.ts";
import type { GrpcListener } from "../platform/grpc/listener.ts";
import { grpcMetrics } from "../platform/grpc/metrics.ts";
import { addressOf } from "../platform/http/caller-address.ts";
import type { Readiness } from "../platform/http/health.ts";
import { openMetricsListener } from "../platform/http/metrics.ts";
import { type HttpServer, openHttp } from "../platform/http/server.ts";
import { Authenticator } from "../platform/rpc/authenticate.ts";
import { CallQueues } from "../platform/rpc/call-queues.ts";
import { FailedAuthentications } from "../platform/rpc/failed-authentications.ts";
import type { Principal } from "../platform/rpc/principal.ts";
import { answerStatuses } from "../platform/rpc/problems.ts";
import { quotaCounts, Rpc, type RpcOptions } from "../platform/rpc/server.ts";
import { rejectCharge } from "./charge-problems.ts";
import { EdgeCounts } from "./counts.ts";
import { EdgeCalls } from "./edge-calls.ts";
import { explaining } from "./explanations.ts";
import { HttpHome } from "./http-home.ts";
import { type EdgeLimitServices, edgeLimits } from "./limits.ts";
import { passOnRequest } from "./pass-on.ts";
import { RootKeyUses } from "./root-key-uses.ts";
import { listenAt, type UnixSocket } from "./unix-socket.ts";

/** What an edge is told on its command line, besides the settings of the service. */
export interface EdgeOptions {
  /** Where home is. */
  upstream: URL;
  /** The root key of the edge. */
  rootKey: string;
  /** A Unix socket on which the edge listens too. */
  socket: string | undefined;
  /** What home calls it. */
  name: string | undefined;
  /** How long records are used while home does not answer. */
  staleMax: Milliseconds;
  /** Whether busy limits are leased. */
  leases: boolean;
}

export interface EdgeDependencies {
  clock: Clock;
  random: Random;
  events: Events;
  /** Aborted when the start is to be given up. */
  waits?: AbortSignal;
}

export interface Edge {
  /** Where gRPC listens, once it does. */
  readonly grpcAddress: AddressInfo | undefined;
  listen(): Promise<AddressInfo>;
  stop(drain?: number): Promise<void>;
}

/** Time between two attempts to reach home at the start. */
const RETRY_INTERVAL: Milliseconds = 1_000;
/** How long open requests may take to finish after the drain. */
const REQUESTS_STOP_MAX: Milliseconds = 5_000;

/**
 * Opens an edge: the HTTP API of the service on this machine. Verifications are decided here as far as records say, and everything
 * else is passed on as it arrived.
 *
 * @throws {ReplicaRefused} if home does not accept its root key.
 */
export async function openEdge(config: Config, options: EdgeOptions, dependencies: EdgeDependencies): Promise<Edge> {
  const { clock, random, events, waits } = dependencies;
  const home = new HttpHome(options.upstream, options.rootKey, clock, events.homeUnusable);
  const id = newId(random, "edge");
  const counts = config.analytics.enabled
    ? new EdgeCounts({
        clock,
        random,
        home,
        events,
        folder: config.dataDirectory,
        diskBytesMax: config.analytics.spoolBytesMax,
      })
    : null;
  const replica = new Replica({
    form: jsonAnswers,
    clock,
    random,
    home,
    bytesMax: config.directoryBytesMax,
    staleMax: options.staleMax,
    lookupsPerSecond: config.lookupsPerSecond,
    leases: options.leases,
    recorder: counts?.analytics.recorder ?? null,
    status: () => ({
      id,
      kind: "process",
      version,
      reports: counts?.waiting ?? 0,
      ...(options.name !== undefined && { name: options.name }),
    }),
    onState: (state, cause) => {
      if (state === "current") events.homeBack();
      else if (cause instanceof OperationUnknown) events.homeWithoutEdges(cause);
      else events.homeLost(state, cause);
    },
  });
  const opened = new AsyncDisposableStack();
  opened.defer(() => home.close());
  opened.defer(() => replica.close());
  try {
    await reachHome(replica, clock, events, waits);
    if (counts) {
      await counts.analytics.start();
      opened.defer(() => counts.analytics.stop());
    }
  } catch (error) {
    await opened.disposeAsync();
    throw error;
  }

  let stopping = false;
  const readiness = (): Readiness => {
    if (stopping) return { ready: false, status: "shutting down", checks: {} };
    const { state } = replica.stream;
    if (state === "current") return { ready: true, status: "ok", checks: {} };
    const checks = { home: state === "refused" ? "refuses the root key" : "does not answer" };
    // While it verifies known keys without home (`--stale`), a load balancer must not take all edges away at once.
    const verifies = state === "unreachable" && replica.stream.mayServe(clock.now(), clock.monotonic()) === true;
    return verifies ? { ready: true, status: "degraded", checks } : { ready: false, status: "fail", checks };
  };
  // Who has no use for gRPC does not load it.
  const grpcModule = config.grpc.port === undefined ? undefined : await import("./grpc.ts");
  const calls =
    config.metrics === "off"
      ? null
      : new CallMetrics(
          [...operations, ...(grpcModule?.grpcMethods ?? [])].map(({ name }) => name),
          answerStatuses,
        );
  const services = edgeServices(config, replica);
  const rpc = openRpc(config, dependencies, { replica, services, calls });
  const rootKeyUses = new RootKeyUses({ clock, home, recorder: id, rpc });
  opened.defer(() => rootKeyUses.stop());
  const edgeCalls = new EdgeCalls(rpc, home, random);
  const grpc = grpcModule?.openGrpc(
    { config, ...dependencies },
    { rpc, services, edgeCalls, isReady: () => readiness().ready },
  );
  const expose = exposeMetrics({ replica, edgeCalls, calls, counts, grpc: grpc?.counts });
  const { trustedProxies } = services.gateways;
  const http = await openHttp({
    operations,
    rpc: edgeCalls,
    clock,
    readiness,
    trustedProxies,
    limits: config,
    fastLane: config.fastLane,
    metrics: config.metrics === "on" ? expose : null,
    pages: null,
    publicUrl: "",
    routes: [forwardAuthRoutes(verifyKey)],
    async answerUnrouted(request, reply, { sendUnread }) {
      const [asked, response] = [request.raw, reply.hijack().raw];
      const address = addressOf(asked, trustedProxies);
      passOnRequest(home, asked, response, {
        clock,
        address,
        random,
        complete: explaining(asked, address, { replica, rpc }),
        answerUnread: (answer) => sendUnread(reply, answer, ""),
        onFailure: (error) =>
          sendUnread(reply, edgeCalls.failed(new HomeUnavailable(`Home does not answer (${error.message})`), ""), ""),
      });
      return reply;
    },
  });
  let socket: UnixSocket | undefined;
  let grpcAddress: AddressInfo | undefined;
  opened.defer(() => closeRequests(http, socket, grpc, clock));
  return {
    get grpcAddress() {
      return grpcAddress;
    },
    async listen() {
      if (typeof config.metrics === "object") {
        const listener = await openMetricsListener(config.metrics.host, config.metrics.port, expose);
        opened.defer(() => listener.close());
      }
      if (grpc && grpcModule) grpcAddress = await grpcModule.listenForGrpc({ config, events }, grpc);
      if (options.socket !== undefined)
        socket = await listenAt(options.socket, (connection) => http.accept(connection));
      return http.listen(config.host, config.port);
    },
    async stop(drain = 0) {
      stopping = true;
      http.drain();
      grpc?.drain();
      if (drain > 0) await pause(clock, drain);
      await opened.disposeAsync();
    },
  };
}

/** Waits until home answers as one that has edges. A refusal ends the start. */
async function reachHome(replica: Replica, clock: Clock, events: Events, waits?: AbortSignal): Promise<void> {
  for (;;) {
    try {
      return await replica.start();
    } catch (error) {
      if (!(error instanceof HomeUnavailable) || waits?.aborted) throw error;
      if (error instanceof OperationUnknown) events.homeWithoutEdges(error);
      else events.startWaits("home", error.cause ?? error);
      await pause(clock, RETRY_INTERVAL, waits);
    }
  }
}

/** The operations that are not passed on as they arrive. */
const operations = [verifyKey, ...edgeLimits];

/** The parts of a call that only home has. */
const atHome = { read: decideByCall, transact: decideByCall } as unknown as RpcOptions["store"];

/** What the operations of an edge use. */
type EdgeServices = Pick<Services, "verification" | "gateways"> & EdgeLimitServices;

function edgeServices(config: Config, replica: Replica): EdgeServices {
  const { directories, charges } = replica;
  return {
    verification: { verify: verifying(replica.verification), inspect: decideByCall, watch: decideByCall },
    gateways: { trustedProxies: addressList(config.trustedProxies) },
    namespaces: new Namespaces<Principal>({ directories, create: decideByCall }),
    charges,
    get workspaceId() {
      return replica.stream.settings.workspaceId;
    },
  };
}

interface RpcParts {
  replica: Replica;
  services: EdgeServices;
  calls: CallMetrics | null;
}

function openRpc(
  config: Config,
  { clock, random, events }: EdgeDependencies,
  { replica, services, calls }: RpcParts,
): Rpc {
  const { directories } = replica;
  return new Rpc({
    clock,
    random,
    services,
    calls,
    directories,
    limiter: replica.limiter,
    authenticator: new Authenticator(directories),
    store: atHome,
    queues: new CallQueues(),
    quotas: quotaCounts(clock, atHome, config.perWorkspace),
    idempotencyRecordsMax: config.idempotencyRecordsMax,
    // Another workspace than that of this edge is home's.
    get defaultWorkspaceId() {
      const { allowsAnonymous, workspaceId } = replica.stream.settings;
      return allowsAnonymous ? workspaceId : "";
    },
    verifyAuth: "optional",
    publicUrl: config.publicUrl,
    failedAuthentications: new FailedAuthentications(),
    onAnswer: events.answered,
    onFailure: events.requestFailed,
  });
}

function verifying(verification: ReplicaVerification): Services["verification"]["verify"] {
  return (request) => {
    const answer = verification.verify(request);
    return answer instanceof Promise ? answer.catch(rejectCharge) : answer;
  };
}

async function closeRequests(
  http: HttpServer,
  socket: UnixSocket | undefined,
  grpc: GrpcListener | undefined,
  clock: Clock,
): Promise<void> {
  const timeout = clock.schedule(REQUESTS_STOP_MAX, () => {
    http.destroy();
    grpc?.destroy();
  });
  socket?.close();
  await Promise.all([http.close(), grpc?.close()]);
  timeout.cancel();
}

interface MetricSources {
  replica: Replica;
  edgeCalls: Pick<EdgeCalls, "passedOn">;
  calls: CallMetrics | null;
  counts: Pick<EdgeCounts, "waiting" | "lost"> | null;
  grpc: GrpcListener["counts"] | undefined;
}

function exposeMetrics({ replica, edgeCalls, calls, counts: counted, grpc }: MetricSources) {
  const metrics = new Metrics();
  calls?.register(metrics);
  const { stream, directories, counts, leases } = replica;
  metrics.counter("latchkey_edge_verifications_total", "Verifications that were decided here.", ["code"], () =>
    Object.entries(counts).map(([code, count]) => [{ code }, count] as const),
  );
  metrics.counter(
    "latchkey_edge_passed_on_total",
    "Calls of operations of an edge that were passed on to home.",
    [],
    () => [[{}, edgeCalls.passedOn]],
  );
  if (leases !== null) {
    metrics.gauge("latchkey_edge_leases", "Leases of limits that are held.", [], () => [[{}, leases.held]]);
    metrics.counter("latchkey_edge_leased_charges_total", "Charges of limits that leases covered.", [], () => [
      [{}, leases.counts.charges],
    ]);
    metrics.counter("latchkey_edge_lease_questions_total", "Questions to home about leases.", ["result"], () => [
      [{ result: "answered" }, leases.counts.questions - leases.counts.failures],
      [{ result: "failed" }, leases.counts.failures],
    ]);
  }
  metrics.gauge("latchkey_edge_records", "Keys and root keys that are cached.", [], () => [
    [{}, directories.counts.keys.entries + directories.counts.rootKeys.entries],
  ]);
  metrics.gauge("latchkey_edge_age_seconds", "Age of the records: time since home read its changes.", [], () => [
    [{}, stream.age() / 1_000],
  ]);
  metrics.gauge("latchkey_edge_waiting_reports", "Counts that home has not taken.", [], () => [
    [{}, counted?.waiting ?? 0],
  ]);
  metrics.counter("latchkey_edge_lost_total", "Verifications that are not counted anywhere.", [], () => [
    [{}, counted?.lost ?? 0],
  ]);
  for (const [name, help, read] of grpcMetrics(grpc)) {
    const add = name.endsWith("_total") ? metrics.counter : metrics.gauge;
    add.call(metrics, name, help, [], () => [[{}, read()]]);
  }
  return () => metrics.expose();
}
