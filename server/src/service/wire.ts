import { every } from "../../../engine/src/clock/every.ts";
import { BalanceReader } from "../../../engine/src/credits/balance-reader.ts";
import { Ledger } from "../../../engine/src/credits/ledger.ts";
import { applyOwnChange } from "../../../engine/src/directory/directories.ts";
import type { Charge } from "../../../engine/src/limits/counters.ts";
import { MemoryReplayStore } from "../../../engine/src/limits/memory-replay-store.ts";
import { addressList } from "../../../engine/src/rules/address.ts";
import { jsonAnswers } from "../../../engine/src/verification/answers.ts";
import { SingleCalls } from "../../../engine/src/verification/single-calls.ts";
import { Verification } from "../../../engine/src/verification/verification.ts";
import { ChangeWatch } from "../features/dashboard/change-watch.ts";
import { dashboardSessionRoutes } from "../features/dashboard/routes.ts";
import { DashboardSessions } from "../features/dashboard/sessions.ts";
import { countExpiry } from "../features/holds/ends.ts";
import { HoldSubjects } from "../features/holds/hold-subjects.ts";
import { OpenHolds } from "../features/holds/open-holds.ts";
import { HoldSweep } from "../features/holds/sweep.ts";
import { forwardAuthRoutes } from "../features/keys/forward-auth.ts";
import type { GithubKeys } from "../features/leaks/github-keys.ts";
import { LeakReports } from "../features/leaks/reports.ts";
import { leakRoutes } from "../features/leaks/routes.ts";
import { oauthRoutes } from "../features/oauth/routes.ts";
import { portalCallRoutes } from "../features/portal/calls.ts";
import { addPortalPages } from "../features/portal/pages.ts";
import { PortalSessions } from "../features/portal/session-authentication.ts";
import { CallMetrics } from "../metrics/calls.ts";
import { RecentRise } from "../metrics/recent.ts";
import { version } from "../platform/config/version.ts";
import type { GrpcListener } from "../platform/grpc/listener.ts";
import type { OtherThreads } from "../platform/http/connections.ts";
import type { Readiness } from "../platform/http/health.ts";
import type { Expose } from "../platform/http/metrics.ts";
import { BuiltFiles } from "../platform/http/pages/built-files.ts";
import { type HttpServer, openHttp } from "../platform/http/server.ts";
import { Authenticator } from "../platform/rpc/authenticate.ts";
import { CallQueues } from "../platform/rpc/call-queues.ts";
import { FailedAuthentications } from "../platform/rpc/failed-authentications.ts";
import { answerStatuses } from "../platform/rpc/problems.ts";
import { quotaCounts, Rpc } from "../platform/rpc/server.ts";
import { DatabaseReplayStore } from "../platform/store/database-replay-store.ts";
import { AuthenticationFailures } from "./authentication-failures.ts";
import { publishedDocument } from "./document.ts";
import { openGithubKeys } from "./github-keys.ts";
import type * as grpcModule from "./grpc.ts";
import { openMetrics } from "./metrics.ts";
import { DESCRIBED_MINUTES, NodeDescription, recentNumbers } from "./node.ts";
import { type OAuth, oauthOperations } from "./oauth.ts";
import { deferStop, type Parts, type Start } from "./open.ts";
import { operationServices } from "./operation-services.ts";
import { operations, portalOperations, replicaOperations } from "./operations.ts";
import { openReplicas } from "./replicas.ts";
import { openUpstreams } from "./upstreams.ts";
import { Totals } from "./workers/totals.ts";

const MINUTE = 60_000;

export interface Wired {
  rpc: Rpc;
  sessions: { dashboard: DashboardSessions; portal: PortalSessions };
  /** Windows of the dashboard that wait for changes. */
  changes: ChangeWatch;
  leaks: LeakReports;
  oauth: OAuth;
  /** Undefined without a place of such keys. */
  githubKeys: GithubKeys | undefined;
  /** All metrics, in Prometheus' text format. */
  expose: Expose;
  totals: Totals;
  /** The operations and statuses that are counted. */
  counted: { operations: readonly string[]; statuses: readonly number[] };
  recordFirstUses: RecordFirstUses;
  failedAuthentications: FailedAuthentications;
  /** Undefined without a port for it. */
  grpc: GrpcListener | undefined;
}

type RecordFirstUses = ConstructorParameters<typeof Verification>[0]["recordFirstUses"];

/**
 * Connects the parts with one another: what answers calls, and what reads the metrics.
 *
 * @param grpc the module with the listener for gRPC, if the configuration has a port for it.
 */
export function wire(
  start: Start,
  parts: Parts,
  readiness: () => Readiness,
  { openGrpc, grpcMethods = [] }: Partial<typeof grpcModule> = {},
): Wired {
  const { config, clock, random, events } = start;
  const { store, storeMetrics, directories, limits, analytics, workspaceId, tokenKey, oauth } = parts;
  const { limiter } = limits;
  const openHolds = new OpenHolds({
    clock,
    maxima: config.holds,
    accept: () => store.transact("acceptHolds", null),
    count: (of) => store.read("countOpenHolds", { workspaceId: of, now: clock.now() }),
    isShared: !store.isEmbedded,
  });
  const holdSubjects = new HoldSubjects((ids) => store.read("findHoldSubjects", { ids }));
  const recorder = config.analytics.enabled ? analytics.recorder : null;
  const ledger = new Ledger({
    clock,
    random,
    // In memory a receipt costs little. In Redis it is a key, so calls without a hold that fail keep what they charged there.
    charge: (charges: readonly Charge[], needsReceipt) => limiter.charge(charges, needsReceipt || !limits.redis),
    async giveBack({ receipt }, isKept) {
      // A failed batch of an embedded database is rolled back for certain.
      if (receipt && (store.isEmbedded || !isKept))
        await limiter.adjust(
          receipt,
          receipt.charges.map(() => 0),
        );
    },
    async transact(batch, answer) {
      const spent = await store.transact("spend", batch, answer);
      for (const hold of spent.expired) countExpiry(hold, clock.now(), { openHolds, recorder });
      return spent;
    },
    onOpened: (holds) => holdSubjects.add(holds),
  });
  const { holder, formerHolders } = start.folder;
  const holdSweep = new HoldSweep({ store, clock, events, holder, formerHolders, ledger });
  deferStop(start, () => holdSweep.stop());
  const queues = new CallQueues();
  // Replays are stored with the counters: in this process, or where all nodes find them.
  const replays = limits.redis
    ? new DatabaseReplayStore({
        clock,
        transact: (call, make) => queues.metered.run(call.workspaceId, () => store.transact("once", call, make)),
      })
    : new MemoryReplayStore(clock);
  const recordFirstUses: RecordFirstUses = async (uses) => {
    applyOwnChange(directories, await store.transact("recordFirstUses", { uses, now: clock.now() }));
  };
  const quotas = quotaCounts(clock, store, config.perWorkspace);
  const upstreams = openUpstreams(start, parts, quotas);
  const verification = new Verification({
    form: jsonAnswers,
    clock,
    directories,
    limiter,
    ledger,
    openHolds,
    random,
    recorder,
    prepareBalances: (of) =>
      queues.metered.run(of.workspaceId, () => store.transact("prepareBalances", { ...of, now: clock.now() })),
    recordFirstUses,
    upstreams,
    singleCalls: new SingleCalls({
      clock,
      replays,
      isReachable: () => directories.changes.reachable,
      findRecorded: (question) => store.read("idempotencyRecords", question),
    }),
    balances: new BalanceReader({ clock, read: (question) => store.read("readBalances", question) }),
  });
  const leaks = new LeakReports({
    clock,
    limiter: directories.reportLookups,
    isReachable: () => directories.changes.reachable,
    find: (hashes) => store.read("leakedHashes", hashes),
    async record(reports, now) {
      const change = await store.transact("recordLeaks", { reports, now });
      if (change !== null) applyOwnChange(directories, change);
    },
    onFailure: events.leakReportFailed,
  });
  deferStop(start, () => leaks.close());
  const failedAuthentications = new FailedAuthentications();
  const authenticationFailures = new AuthenticationFailures({
    collected: failedAuthentications,
    clock,
    events,
    defaultWorkspaceId: workspaceId,
    record: (bursts) => store.transact("recordAuthFailures", bursts),
  });
  deferStop(start, () => authenticationFailures.stop());
  const counted = {
    operations: [...operations, ...portalOperations, ...replicaOperations, ...oauthOperations, ...grpcMethods].map(
      ({ name }) => name,
    ),
    statuses: answerStatuses,
  };
  const calls = new CallMetrics(counted.operations, counted.statuses);
  const totals = new Totals({ calls, verification, directories, limiter }, counted);
  const readRecent = () => {
    totals.update();
    return recentNumbers(totals.calls, directories);
  };
  const recent = new RecentRise(readRecent, DESCRIBED_MINUTES + 1, clock.now());
  const marking = every(clock, MINUTE, async () => recent.mark(clock.now()));
  start.opened.defer(() => marking.cancel());
  const node = new NodeDescription(start, parts, recent);
  const authenticator = new Authenticator(directories);
  const replicas = openReplicas(start, parts, {
    authenticator,
    problemOf: (error, requestId) => rpc.problemOf(error, requestId, "replica.charge"),
    recordRootKeyUses: (uses) => rpc.recordRootKeyUses(uses),
  });
  const wiring = {
    verification,
    ledger,
    openHolds,
    holdSubjects,
    replays,
    recorder,
    leaks,
    oauth: oauth.services,
    replicas,
    queues,
    quotas,
    node,
    totals,
  };
  const sessions = {
    dashboard: new DashboardSessions({ clock, store, directories, tokenKey, authenticator, queues, limiter }),
    portal: new PortalSessions({ clock, directories, tokenKey, limiter }),
  };
  const changes = new ChangeWatch({ clock, read: (questions) => store.read("changedKinds", questions) });
  const services = operationServices(start, parts, wiring);
  const rpc: Rpc = new Rpc({
    clock,
    random,
    authenticator,
    directories,
    store,
    limiter,
    queues,
    services,
    defaultWorkspaceId: workspaceId,
    quotas,
    idempotencyRecordsMax: config.idempotencyRecordsMax,
    verifyAuth: config.verifyAuth,
    publicUrl: config.publicUrl,
    calls: config.metrics === "off" ? null : calls,
    failedAuthentications,
    onAnswer: events.answered,
    onFailure: events.requestFailed,
  });
  const grpc = openGrpc?.(start, { rpc, services, isReady: () => readiness().ready });
  const metrics = openMetrics({
    grpc: grpc?.counts,
    totals,
    storeMetrics,
    directories,
    limits,
    ledger,
    analytics,
    backups: parts.backups,
    storage: parts.storage,
    retention: parts.retention,
    webhooks: parts.webhooks,
    upstreams,
    authenticationFailures,
    quotas,
    replicas,
  });
  const expose = async () => {
    quotas.refresh();
    await totals.refresh();
    return metrics.expose();
  };
  const githubKeys = openGithubKeys(start, parts);
  return {
    rpc,
    sessions,
    changes,
    leaks,
    oauth,
    githubKeys,
    expose,
    totals,
    counted,
    recordFirstUses,
    failedAuthentications,
    grpc,
  };
}

/** Opens the HTTP server, which does not listen yet. */
export function wireHttp(
  start: Start,
  { rpc, sessions, changes, leaks, oauth, githubKeys, expose }: Wired,
  readiness: () => Readiness,
  otherThreads: OtherThreads | undefined,
): Promise<HttpServer> {
  const { config, clock } = start;
  const { publicUrl } = config;
  const verifyKey = operations.find(({ name }) => name === "keys.verifyKey")!;
  const built = readBuiltFiles(start);
  return openHttp({
    operations: [...operations, ...replicaOperations],
    rpc,
    clock,
    readiness,
    publicUrl,
    otherThreads,
    trustedProxies: addressList(config.trustedProxies),
    limits: config,
    fastLane: config.fastLane,
    routes: [
      forwardAuthRoutes(verifyKey),
      portalCallRoutes(portalOperations, sessions.portal),
      addPortalPages,
      leakRoutes({ leaks, githubKeys, verifyKey }),
      oauthRoutes(oauth.routes),
      ...(config.dashboard ? [dashboardSessionRoutes(version, sessions.dashboard, changes)] : []),
      ...(built ? [built.addRoutes] : []),
      ...(built ? [config.dashboard ? built.addDashboard : built.addWayToDocs] : []),
    ],
    answerUnrouted: config.dashboard ? built?.sendDashboard : undefined,
    metrics: config.metrics === "on" ? expose : null,
    pages: { securityContact: config.securityContact, document: publishedDocument({ version, publicUrl }, clock) },
  });
}

function readBuiltFiles({ dashboardFolder, events }: Start): BuiltFiles | undefined {
  if (dashboardFolder === undefined) return undefined;
  const files = BuiltFiles.read(dashboardFolder);
  if (files === undefined) events.dashboardMissing(dashboardFolder);
  return files;
}
