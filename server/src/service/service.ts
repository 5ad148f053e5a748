import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname } from "node:path";
import { oldestKept } from "../analytics/levels.ts";
import type { Clock } from "../clock/clock.ts";
import { every } from "../clock/every.ts";
import type { Config } from "../config/config.ts";
import type { Secrets } from "../config/secrets.ts";
import { version } from "../config/version.ts";
import { BalanceReader } from "../credits/balance-reader.ts";
import { Ledger } from "../credits/ledger.ts";
import { sweepRefills } from "../credits/sweep.ts";
import { BloomFilter } from "../crypto/bloom-filter.ts";
import { Directories } from "../directory/directories.ts";
import type { Readiness } from "../http/health.ts";
import { openMetricsListener } from "../http/metrics.ts";
import { openHttp } from "../http/server.ts";
import type { Charge } from "../limits/counters.ts";
import { DatabaseReplayStore } from "../limits/database-replay-store.ts";
import { MemoryReplayStore } from "../limits/memory-replay-store.ts";
import { type Events, openEvents } from "../log/events.ts";
import type { Log } from "../log/log.ts";
import { isOperatorError, OperatorError } from "../log/operator-error.ts";
import { CallMetrics, StoreMetrics } from "../metrics/calls.ts";
import { namespaces, operations } from "../operations/index.ts";
import type { Random } from "../random/random.ts";
import { openApiDocument } from "../rpc/document.ts";
import { problems } from "../rpc/problems.ts";
import { Rpc } from "../rpc/server.ts";
import { addressList } from "../rules/address.ts";
import type { IssuedRootKey } from "../store/administration/procedures.ts";
import { openPostgresStore } from "../store/postgres/store.ts";
import { openSqliteStore } from "../store/sqlite/store.ts";
import { type Store, type StoreObserver, StoreUnavailable } from "../store/store.ts";
import type { KeyRingSource } from "../vault/key-ring.ts";
import { Verification } from "../verification/verification.ts";
import { openAnalytics, openAnalyticsStore } from "./analytics.ts";
import { type ClaimedFolder, claimDatabase, claimFolder, makeFolder, unusable } from "./claim.ts";
import { openLimits } from "./limits.ts";
import { measure } from "./metrics.ts";
import { type AppProcedures, openProcedures, type ProcedureOptions } from "./procedures.ts";
import { Waiting } from "./wait.ts";

/** What the program needs of the world around it. Tests and simulations bring their own. */
export interface World {
  clock: Clock;
  random: Random;
  log: Log;
  /** Makes identifiers repeatable, for tests and simulations. */
  seed?: number | undefined;
  /** Given: a start waits for a database or a Redis that is away, until this is aborted. */
  waits?: AbortSignal | undefined;
  /** Takes the administrator's root key as soon as a start has made it: before anything that may fail. */
  onIssued?: ((issued: IssuedRootKey) => void) | undefined;
  /** The service must not go on; it is for the program to stop it. */
  onFatal?: ((error: Error) => void) | undefined;
}

export interface Service {
  /** The administrator's root key, when this start made it. The only copy. */
  readonly issued: IssuedRootKey | undefined;
  readonly events: Events;
  /** Answers one request without a listening server. */
  dispatch(request: IncomingMessage, response: ServerResponse): void;
  listen(): Promise<AddressInfo>;
  /**
   * Not ready from here on. Serves for `drain` milliseconds more, so that load balancers can notice; then finishes what
   * is open and closes everything, within 10 seconds.
   */
  stop(drain?: number): Promise<void>;
}

/** From one attempt to start without a database to the next. */
const RETRY_INTERVAL = 500;

const PRUNE_INTERVAL = 3_600_000;
const SWEEP_INTERVAL = 60_000;
/** How long open requests may take to finish once the drain is over. */
const REQUESTS_STOP_MAX = 5_000;
/** How long each of the other parts may take: none keeps the counters from being written, or the process from its end. */
const PART_STOP_MAX = 1_500;

/** A database and, where no other process makes keys in it, what learns where its keys are. */
export type AppStore = Store<AppProcedures> & { readonly keyFilter?: BloomFilter };

/** The part of the directory's memory, on top of it, that the filter of keys has. */
const KEY_FILTER_SHARE = 16;

/** Opens the database that the configuration names. */
export async function openStore(
  config: Config,
  secrets: Secrets,
  { clock, seed }: Pick<World, "clock" | "seed">,
  observe?: StoreObserver,
): Promise<AppStore> {
  const procedures: ProcedureOptions = { seed, vault: keyRingSource(config, secrets) };
  if (config.database.kind === "postgres") {
    const options = { url: secrets.databaseUrl!, clock, observe, allowUnsafe: config.allowUnsafeDatabase };
    try {
      return await openPostgresStore(options, openProcedures(procedures));
    } catch (error) {
      throw refusedByPostgres(error);
    }
  }
  const { file } = config.database;
  const module = new URL("./procedures.ts", import.meta.url).href;
  // One process serves from an embedded database, so no other one makes keys there.
  const keyFilter = BloomFilter.ofBytes(config.directoryBytesMax / KEY_FILTER_SHARE);
  try {
    makeFolder(dirname(file));
    const options = { ...procedures, keyFilter: keyFilter.state };
    const store = await openSqliteStore<AppProcedures>(file, { module, options }, { clock, observe });
    return Object.assign(store, { keyFilter });
  } catch (error) {
    throw unusable(settingOf(config), file, error);
  }
}

/** The setting that decides where the embedded database is. */
function settingOf({ database, dataDirectory }: Config): string {
  return database.kind === "sqlite" && dirname(database.file) === dataDirectory
    ? "LATCHKEY_DATA_DIR"
    : "LATCHKEY_DATABASE_URL";
}

function embeddedUnusable(config: Config, { message }: Error): OperatorError {
  const file = config.database.kind === "sqlite" ? config.database.file : "";
  return new OperatorError(`${settingOf(config)}=${file}: ${message}`);
}

/** A server that answers and will not have us, or an address that leads nowhere, does not get better by waiting. */
function refusedByPostgres(error: unknown): unknown {
  if (isOperatorError(error)) return error;
  const cause = error instanceof StoreUnavailable ? error.cause : error;
  const { code, message } = cause as NodeJS.ErrnoException;
  if (error instanceof StoreUnavailable && code !== "ENOTFOUND" && code !== "EAI_AGAIN") return error;
  return new OperatorError(`LATCHKEY_DATABASE_URL: PostgreSQL cannot be used: ${message}`, { cause });
}

function keyRingSource(config: Config, { vaultKeys }: Secrets): KeyRingSource {
  if (vaultKeys.length > 0) return { kind: "given", keys: vaultKeys };
  return config.database.kind === "sqlite" ? { kind: "folder", folder: config.dataDirectory } : { kind: "none" };
}

/** How the databases are opened. */
export interface StoreOpeners {
  openStore: typeof openStore;
  openAnalyticsStore: typeof openAnalyticsStore;
  claimFolder?: typeof claimFolder;
}

/** Assembles a running service from configuration and world: the one place where that is done. */
export async function openService(
  config: Config,
  secrets: Secrets,
  world: World,
  openers: StoreOpeners = { openStore, openAnalyticsStore },
): Promise<Service> {
  const events = openEvents(world.log, () => world.clock.monotonic());
  const waiting = new Waiting(world.clock, events, world.waits);
  const folder = (openers.claimFolder ?? claimFolder)(config, world.random);
  for (;;) {
    // Closed in the reverse order of their opening: when the service stops, and when it does not come to its start.
    const opened = new AsyncDisposableStack();
    try {
      return await assemble(config, secrets, { ...world, events, waiting, folder }, openers, opened);
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

interface Assembly extends World {
  events: Events;
  waiting: Waiting;
  folder: ClaimedFolder;
}

/** Until every key that is there is in the filter, invented ones cost look-ups. All else goes on meanwhile. */
async function fillKeyFilter(store: AppStore, directories: Directories, signal: AbortSignal): Promise<void> {
  if (store.keyFilter === undefined) return;
  try {
    for (let cursor: string | null = ""; cursor !== null; ) {
      if (signal.aborted) return;
      cursor = await store.read("recordKeyLocations", cursor);
    }
    directories.keyFilter = store.keyFilter;
  } catch {
    // A database that cannot be read is what every other call is about to say.
  }
}

async function assemble(
  config: Config,
  secrets: Secrets,
  world: Assembly,
  openers: StoreOpeners,
  opened: AsyncDisposableStack,
): Promise<Service> {
  const { clock, random, events, waiting, folder } = world;
  /** Stops a part of the service, and leaves it to itself when it takes too long. */
  const closing = (stop: () => Promise<unknown>) =>
    opened.defer(async () => {
      const patience = Promise.withResolvers<void>();
      const timer = clock.schedule(PART_STOP_MAX, patience.resolve);
      await Promise.race([stop(), patience.promise]);
      timer.cancel();
    });
  const stores = new StoreMetrics();
  const observe: StoreObserver = (name, waitedMs, ranMs) => stores.record(name, waitedMs, ranMs);
  const store = await openers.openStore(config, secrets, world, observe);
  closing(() => store.close());
  const claimed = { shared: secrets.redisUrl !== undefined, lease: config.staleMax };
  const claim = await claimDatabase(store, claimed, folder, events, (error) => world.onFatal?.(error));
  closing(() => claim.release());
  const { workspaceId, issued, otherAdministrators } = await store.transact("prepare", {
    now: clock.now(),
    rootKey: secrets.rootKey,
  });
  if (issued) world.onIssued?.(issued);
  if (otherAdministrators) events.otherAdministrators(otherAdministrators);
  await claim.settle();

  const directories = new Directories({
    clock,
    staleMax: config.staleMax,
    bytesMax: config.directoryBytesMax,
    lookupsPerSecond: config.lookupsPerSecond,
    source: {
      keysAt: (places) => store.read("keysAt", places),
      rootKeysByHashes: (hashes) => store.read("rootKeysByHashes", hashes),
      workspaces: (ids) => store.read("workspacesByIds", ids),
      keyMigrations: (references) => store.read("keyMigrationsByReferences", references),
      namespaces: (references) => store.read("namespacesByReferences", references),
      changes: (cursor) => store.read("readChanges", cursor),
    },
    onReachability: (reachable, cause) =>
      reachable ? events.databaseBack() : events.databaseLost(cause, config.staleMax),
    onLost: events.databaseChanged,
  });
  await directories.changes.start();
  opened.defer(() => directories.changes.close());
  const filling = new AbortController();
  opened.defer(() => filling.abort());
  void fillKeyFilter(store, directories, filling.signal);
  store.listen(() => directories.changes.wake());

  const limits = await openLimits(config, secrets, {
    ...{ clock, random, events, claim, waiting },
    databaseId: workspaceId,
    readEpoch: () => store.read("redisEpoch", null),
    keepEpoch: (epoch) => store.transact("keepRedisEpoch", epoch),
  });
  opened.defer(() => limits.stop());
  const { limiter } = limits;
  const ledger = new Ledger({
    clock,
    charge: (charges: readonly Charge[]) => limiter.charge(charges),
    transact: (batch, settle) => store.transact("spend", batch, settle),
  });
  const balances = new BalanceReader({ clock, read: (question) => store.read("readBalances", question) });

  const analytics = await openAnalytics(config, secrets, {
    ...{ clock, random, events },
    openStore: () =>
      openers.openAnalyticsStore(config, secrets, clock, (name, ...times) => observe(`analytics.${name}`, ...times)),
    recordKeyUses: (uses) => store.transact("recordKeyUses", uses),
  });
  closing(() => analytics.stop());
  const recorder = config.analytics.enabled ? analytics.recorder : null;

  // Beside the counters: in this process, or where all nodes find them.
  const replays = limits.redis
    ? new DatabaseReplayStore({ clock, transact: (call, make) => store.transact("once", call, make) })
    : new MemoryReplayStore(clock);
  const verification = new Verification({
    ...{ clock, directories, limiter, ledger, balances, replays, recorder },
    async recordFirstUses(uses) {
      const { tags, sequence } = await store.transact("recordFirstUses", { uses, now: clock.now() });
      directories.generations.bump(tags);
      directories.changes.recordOwn(sequence);
    },
  });
  const calls = new CallMetrics(
    operations.map(({ name }) => name),
    [200, ...new Set(Object.values(problems).map(({ status }) => status))],
  );
  const metrics = measure({ calls, stores, directories, verification, limits, ledger, analytics });

  const rpc = new Rpc({
    clock,
    random,
    directories,
    store,
    limiter,
    replays,
    verification,
    recorder,
    analytics: {
      stats: (question) => analytics.stats(question),
      oldest: (level, now) => oldestKept(level, config.analytics.retention, now),
    },
    defaultWorkspaceId: workspaceId,
    perWorkspace: config.perWorkspace,
    verifyAuth: config.verifyAuth,
    publicUrl: config.publicUrl,
    calls: config.metrics === "off" ? null : calls,
    onFailure: events.requestFailed,
  });

  let stopping = false;
  const readiness = (): Readiness => {
    if (stopping) return { ready: false, status: "shutting down", checks: {} };
    const checks: Record<string, string> = {};
    const age = directories.changes.reachable ? 0 : directories.changes.age();
    if (!directories.changes.reachable) checks.database = `has not answered for ${Math.round(age / 1000)} s`;
    if (claim.trouble !== undefined) checks.claim = claim.trouble;
    if (store.failure !== undefined) {
      return { ready: false, status: "fail", checks: { ...checks, database: store.failure } };
    }
    if (limits.redis?.connection.isAway) checks.redis = `does not answer; the policy is ${config.redis.policy}`;
    // Under `closed` a node without Redis refuses whatever has a limit, but it still verifies everything else.
    if (age > config.staleMax) return { ready: false, status: "fail", checks };
    return { ready: true, status: Object.keys(checks).length > 0 ? "degraded" : "ok", checks };
  };
  const { publicUrl } = config;
  const http = await openHttp({
    operations,
    rpc,
    clock,
    readiness,
    trustedProxies: addressList(config.trustedProxies),
    bounds: config,
    metrics: config.metrics === "on" ? () => metrics.expose() : null,
    document: () => JSON.stringify(openApiDocument({ operations, namespaces, version, publicUrl })),
    publicUrl,
  });
  opened.defer(async () => {
    // A request that never becomes complete would hold the stop for ever.
    const patience = clock.schedule(REQUESTS_STOP_MAX, () => http.destroy());
    await http.close();
    patience.cancel();
  });

  // Missing one turn of these costs nothing but time until the next.
  const periodicJobs = [
    every(clock, PRUNE_INTERVAL, () => store.transact("pruneChanges", clock.now())),
    every(clock, SWEEP_INTERVAL, async () => {
      while (await store.transact("pruneIdempotencyRecords", clock.now()));
    }),
    every(clock, SWEEP_INTERVAL, () => sweepRefills(clock.now(), (step) => store.transact("sweepRefills", step))),
  ];
  opened.defer(() => {
    for (const job of periodicJobs) job.cancel();
  });

  let stopped: Promise<void> | undefined;
  return {
    issued,
    events,
    dispatch: http.dispatch,
    async listen() {
      if (typeof config.metrics === "object") {
        const { host, port } = config.metrics;
        const listener = await openMetricsListener(host, port, () => metrics.expose());
        opened.defer(() => listener.close());
      }
      return http.listen(config.host, config.port);
    },
    stop(drain = 0) {
      stopping = true;
      http.drain();
      stopped ??= (async () => {
        if (drain > 0) await new Promise<void>((resolve) => clock.schedule(drain, resolve));
        await opened.disposeAsync();
        folder.release();
      })();
      return stopped;
    },
  };
}
