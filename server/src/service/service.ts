import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import type { Clock } from "../../../engine/src/clock/clock.ts";
import { every } from "../../../engine/src/clock/every.ts";
import { pause } from "../../../engine/src/clock/pause.ts";
import { sweepRefills } from "../../../engine/src/credits/sweep.ts";
import { StoreUnavailable } from "../../../engine/src/errors/store-unavailable.ts";
import { readRestoredCopy } from "../backup/restored-copy.ts";
import type { IssuedRootKey } from "../features/workspaces/procedures.ts";
import { type Events, openEvents } from "../log/events.ts";
import type { Config } from "../platform/config/config.ts";
import type { Secrets } from "../platform/config/secrets.ts";
import type { GrpcListener } from "../platform/grpc/listener.ts";
import { ConnectionCounts } from "../platform/http/connection-counts.ts";
import type { Readiness } from "../platform/http/health.ts";
import { type Expose, openMetricsListener } from "../platform/http/metrics.ts";
import type { HttpServer } from "../platform/http/server.ts";
import { findObstacleToSharing } from "../platform/http/threads/shared-port.ts";
import type { Rpc } from "../platform/rpc/server.ts";
import { rejectMoving } from "../platform/store/move/moving.ts";
import { openAnalyticsStore } from "./analytics.ts";
import { type AppStore, embeddedUnusable, openStore } from "./app-store.ts";
import { claimFolder } from "./claim.ts";
import { openParts, type ServiceDependencies, type Start, type StoreOpeners } from "./open.ts";
import { readReadiness } from "./readiness.ts";
import { Waiting } from "./wait.ts";
import { wire, wireHttp } from "./wire.ts";
import { Workers } from "./workers/workers.ts";

export interface Service {
  /** The administrator's root key, if this start made it. The only copy. */
  readonly issued: IssuedRootKey | undefined;
  readonly events: Events;
  /** The number of threads that answer calls. */
  readonly threads: number;
  /** Creates a link that signs in to the dashboard once; returns its token. */
  createSignInLink(rootKeyId: string): Promise<string>;
  /** Answers one request without a listening server. */
  dispatch(request: IncomingMessage, response: ServerResponse): void;
  /** Reads a connection. */
  accept(connection: Duplex): void;
  /** Where gRPC listens, once it does. */
  readonly grpcAddress: AddressInfo | undefined;
  listen(): Promise<AddressInfo>;
  /**
   * Reports not ready at once and serves for `drain` milliseconds, so that load balancers leave the node out. Then
   * finishes open requests and closes everything, within 10 seconds.
   */
  stop(drain?: number): Promise<void>;
}

/** Time between two attempts to start without a database. */
const RETRY_INTERVAL = 500;

const SWEEP_INTERVAL = 60_000;
const ROOT_KEY_USES_INTERVAL = 60_000;

/** How long open requests may take to finish after the drain. */
const REQUESTS_STOP_MAX = 5_000;

/** Opens the service that the configuration describes. It does not listen yet. */
export async function openService(
  config: Config,
  secrets: Secrets,
  dependencies: ServiceDependencies,
  openers: StoreOpeners = { openStore, openAnalyticsStore },
): Promise<Service> {
  const events = openEvents(dependencies.log, () => dependencies.clock.monotonic());
  const waiting = new Waiting(dependencies.clock, events, dependencies.waits);
  const restored = readRestoredCopy(config.dataDirectory);
  rejectMoving(config.dataDirectory);
  const folder = (openers.claimFolder ?? claimFolder)(config, dependencies.random);
  if (restored) events.restoredCopy(restored);
  for (;;) {
    const opened = new AsyncDisposableStack();
    try {
      return await startService({ ...dependencies, config, secrets, openers, events, waiting, folder, opened });
    } catch (error) {
      await opened.disposeAsync();
      if (!(error instanceof StoreUnavailable) || config.database.kind === "sqlite") {
        folder.release();
        throw error instanceof StoreUnavailable ? embeddedUnusable(config, error) : error;
      }
      await waiting.wait("PostgreSQL at LATCHKEY_DATABASE_URL", error.cause ?? error, RETRY_INTERVAL).catch((cause) => {
        folder.release();
        throw cause === error.cause ? error : cause;
      });
    }
  }
}

/** Opens the parts, wires them, and schedules the periodic jobs. */
async function startService(start: Start): Promise<Service> {
  const { clock, events, opened } = start;
  const parts = await openParts(start);
  let stopping = false;
  const readiness = (): Readiness =>
    stopping ? { ready: false, status: "shutting down", checks: {} } : readReadiness(start, parts);
  // Who has no use for gRPC does not load it.
  const grpcModule = start.config.grpc.port === undefined ? undefined : await import("./grpc.ts");
  const wired = wire(start, parts, readiness, grpcModule);
  const { grpc } = wired;
  // They end after the last requests, whose root keys are recorded too.
  schedulePeriodicJobs(start, parts.store, wired.rpc);
  const { workers: threads } = start.config;
  const connections = new Int32Array(new SharedArrayBuffer(threads * Int32Array.BYTES_PER_ELEMENT));
  let workers: Workers | undefined;
  const makeRoom = async (network: string) => workers!.makeRoom(network);
  const otherThreads = threads > 1 ? { counts: new ConnectionCounts(connections, 0), makeRoom } : undefined;
  const http = await wireHttp(start, wired, readiness, otherThreads);
  if (otherThreads) workers = new Workers({ ...start, ...parts, ...wired, http, connections });
  if (workers) {
    wired.totals.others = workers;
    opened.defer(() => workers.close());
  }
  opened.defer(() => closeRequests(http, workers, grpc, clock));
  let stopped: Promise<void> | undefined;
  let grpcAddress: AddressInfo | undefined;
  return {
    issued: parts.issued,
    events,
    get threads() {
      return wired.totals.serving;
    },
    createSignInLink: async (rootKeyId) =>
      (await parts.store.transact("createSignInLink", { rootKeyId, now: clock.now() })).token,
    dispatch: http.dispatch,
    accept: http.accept,
    get grpcAddress() {
      return grpcAddress;
    },
    async listen() {
      await listenForMetrics(start, wired.expose);
      if (grpc && grpcModule) grpcAddress = await grpcModule.listenForGrpc(start, grpc);
      return listen(start, http, workers);
    },
    stop(drain = 0) {
      stopping = true;
      http.drain();
      workers?.drain();
      grpc?.drain();
      stopped ??= stopService(start, drain);
      return stopped;
    },
  };
}

/** Listens, on several threads if the configuration says so and the system can. */
async function listen({ config, events }: Start, http: HttpServer, workers: Workers | undefined): Promise<AddressInfo> {
  const { host, port } = config;
  const obstacle = workers && (await findObstacleToSharing(host, port));
  if (workers === undefined || obstacle !== undefined) {
    if (obstacle !== undefined) events.workersUnsupported(obstacle);
    return http.listen(host, port);
  }
  const address = await http.listen(host, port, true);
  await workers.start(http.addresses);
  return address;
}

/** Finishes open requests. A request that never becomes complete is ended: it would block the stop. */
async function closeRequests(
  http: HttpServer,
  workers: Workers | undefined,
  grpc: GrpcListener | undefined,
  clock: Clock,
): Promise<void> {
  const timeout = clock.schedule(REQUESTS_STOP_MAX, () => {
    workers?.destroyConnections();
    http.destroy();
    grpc?.destroy();
  });
  await Promise.all([http.close(), workers?.closeConnections(), grpc?.close()]);
  timeout.cancel();
}

/** A failed run is ignored: the next one does its work. */
function schedulePeriodicJobs({ clock, opened }: Start, store: AppStore, rpc: Rpc): void {
  const recordRootKeyUses = async () => {
    const uses = rpc.takeRootKeyUses();
    if (uses.length === 0) return;
    await store.transact("recordRootKeyUses", uses).catch(() => rpc.recordRootKeyUses(uses));
  };
  const jobs = [
    every(clock, ROOT_KEY_USES_INTERVAL, recordRootKeyUses),
    every(clock, SWEEP_INTERVAL, () => sweepRefills(clock.now(), (step) => store.transact("sweepRefills", step))),
  ];
  opened.defer(() => {
    for (const job of jobs) job.cancel();
    return recordRootKeyUses();
  });
}

/** Opens the separate listener for metrics, if the configuration names one. */
async function listenForMetrics({ config, opened }: Start, expose: Expose): Promise<void> {
  if (typeof config.metrics !== "object") return;
  const listener = await openMetricsListener(config.metrics.host, config.metrics.port, expose);
  opened.defer(() => listener.close());
}

async function stopService({ clock, opened, folder }: Start, drain: number): Promise<void> {
  if (drain > 0) await pause(clock, drain);
  await opened.disposeAsync();
  folder.release();
}
