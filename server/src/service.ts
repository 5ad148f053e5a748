import { mkdirSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname } from "node:path";
import { oldestKept } from "./analytics/levels.ts";
import { openAnalytics, openAnalyticsStore } from "./analyzing.ts";
import type { Clock } from "./clock/clock.ts";
import { every } from "./clock/every.ts";
import type { Config } from "./config/config.ts";
import type { Secrets } from "./config/secrets.ts";
import { version } from "./config/version.ts";
import { openCounting } from "./counting.ts";
import { BalanceReader } from "./credits/balance-reader.ts";
import { Ledger } from "./credits/ledger.ts";
import { sweepRefills } from "./credits/sweep.ts";
import { BloomFilter } from "./crypto/bloom-filter.ts";
import { Known } from "./directory/known.ts";
import type { Readiness } from "./http/health.ts";
import { openMetricsListener } from "./http/metrics.ts";
import { openHttp } from "./http/server.ts";
import type { Charge } from "./limits/counters.ts";
import { RememberedOutcomes } from "./limits/remembered-outcomes.ts";
import { StoredOutcomes } from "./limits/stored-outcomes.ts";
import { type Events, openEvents } from "./log/events.ts";
import type { Log } from "./log/log.ts";
import { measure } from "./measures.ts";
import { CallMetrics, StoreMetrics } from "./metrics/calls.ts";
import { namespaces, operations } from "./operations/index.ts";
import { type AppProcedures, openProcedures, type ProcedureOptions } from "./procedures.ts";
import type { Random } from "./random/random.ts";
import { openApiDocument } from "./rpc/document.ts";
import { problems } from "./rpc/problems.ts";
import { Rpc } from "./rpc/server.ts";
import { addressList } from "./rules/address.ts";
import type { IssuedRootKey } from "./store/administration.ts";
import { openPostgresStore } from "./store/postgres/store.ts";
import { openSqliteStore } from "./store/sqlite/store.ts";
import type { Store, StoreObserver } from "./store/store.ts";
import type { KeyRingSource } from "./vault/key-ring.ts";
import { Verification } from "./verification/verification.ts";

/** What the program needs of the world around it. Tests and simulations bring their own. */
export interface World {
  clock: Clock;
  random: Random;
  log: Log;
  /** Makes identifiers repeatable, for tests and simulations. */
  seed?: number | undefined;
}

export interface Service {
  /** The administrator's root key, when this start made it. The only copy. */
  readonly issued: IssuedRootKey | undefined;
  readonly events: Events;
  /** Answers one request without a listening server. */
  dispatch(request: IncomingMessage, response: ServerResponse): void;
  listen(): Promise<AddressInfo>;
  /** Not ready any more; finishes what is open; closes everything. */
  stop(): Promise<void>;
}

/** Another process serves from the same database, and each would count limits for itself. */
export class SecondNode extends Error {
  constructor() {
    super(
      "Another Latchkey serves from this database, and each would count limits for itself. Stop it, or give every node " +
        "the same LATCHKEY_REDIS_URL, where they count together.",
    );
    this.name = "SecondNode";
  }
}

const PRUNE_INTERVAL = 3_600_000;
const SWEEP_INTERVAL = 60_000;
/** How long open requests may take to finish once the service stops. */
const STOP_MAX = 30_000;

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
  mkdirSync(config.dataDirectory, { recursive: true, mode: 0o700 });
  if (config.database.kind === "postgres") {
    const options = { url: secrets.databaseUrl!, clock, observe, allowUnsafe: config.allowUnsafeDatabase };
    return openPostgresStore(options, openProcedures(procedures));
  }
  const { file } = config.database;
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const module = new URL("./procedures.ts", import.meta.url).href;
  const open = (options: ProcedureOptions) =>
    openSqliteStore<AppProcedures>(file, { module, options }, { clock, observe });
  // Without Redis it is this process's alone; with it, others may make keys.
  if (secrets.redisUrl !== undefined) return open(procedures);
  const keyFilter = BloomFilter.ofBytes(config.directoryBytesMax / KEY_FILTER_SHARE);
  return Object.assign(await open({ ...procedures, keyFilter: keyFilter.state }), { keyFilter });
}

function keyRingSource(config: Config, { vaultKeys }: Secrets): KeyRingSource {
  if (vaultKeys.length > 0) return { kind: "given", keys: vaultKeys };
  return config.database.kind === "sqlite" ? { kind: "folder", folder: config.dataDirectory } : { kind: "none" };
}

/** How the databases are opened. */
export interface StoreOpeners {
  openStore: typeof openStore;
  openAnalyticsStore: typeof openAnalyticsStore;
}

/** Assembles a running service from configuration and world: the one place where that is done. */
export async function openService(
  config: Config,
  secrets: Secrets,
  world: World,
  openers: StoreOpeners = { openStore, openAnalyticsStore },
): Promise<Service> {
  // Closed in the reverse order of their opening: when the service stops, and when it does not come to its start.
  const opened = new AsyncDisposableStack();
  try {
    return await assemble(config, secrets, world, openers, opened);
  } catch (error) {
    await opened.disposeAsync();
    throw error;
  }
}

/** Until every key that is there is in the filter, invented ones cost look-ups. All else goes on meanwhile. */
async function fillKeyFilter(store: AppStore, known: Known, signal: AbortSignal): Promise<void> {
  if (store.keyFilter === undefined) return;
  try {
    for (let cursor: string | null = ""; cursor !== null; ) {
      if (signal.aborted) return;
      cursor = await store.read("noteKeyPlaces", cursor);
    }
    known.keyFilter = store.keyFilter;
  } catch {
    // A database that cannot be read is what every other call is about to say.
  }
}

async function assemble(
  config: Config,
  secrets: Secrets,
  world: World,
  openers: StoreOpeners,
  opened: AsyncDisposableStack,
): Promise<Service> {
  const { clock, random, log } = world;
  const events = openEvents(log);
  const stores = new StoreMetrics();
  const observe: StoreObserver = (name, waitedMs, ranMs) => stores.note(name, waitedMs, ranMs);
  const store = await openers.openStore(config, secrets, world, observe);
  opened.defer(() => store.close());
  // Without Redis this process counts for itself, which is right only while it is the only one.
  if (secrets.redisUrl === undefined && !(await store.claim())) throw new SecondNode();
  const { workspaceId, issued, otherAdministrators } = await store.transact("prepare", {
    now: clock.now(),
    rootKey: secrets.rootKey,
  });
  if (otherAdministrators) events.otherAdministrators(otherAdministrators);

  const known = new Known({
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
  await known.changes.start();
  opened.defer(() => known.changes.close());
  const filling = new AbortController();
  opened.defer(() => filling.abort());
  void fillKeyFilter(store, known, filling.signal);
  store.listen(() => known.changes.wake());

  const counting = await openCounting(config, secrets, { clock, random, events });
  opened.defer(() => counting.stop());
  const { limiter } = counting;
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
    noteKeyUses: (uses) => store.transact("noteKeyUses", uses),
  });
  opened.defer(() => analytics.stop());
  const recorder = config.analytics.enabled ? analytics.recorder : null;

  // Beside the counters: in this process, or where all nodes find them.
  const outcomes = counting.redis
    ? new StoredOutcomes({ clock, transact: (call, make) => store.transact("once", call, make) })
    : new RememberedOutcomes(clock);
  const verification = new Verification({
    ...{ clock, known, limiter, ledger, balances, outcomes, recorder },
    async noteFirstUses(uses) {
      const { tags, sequence } = await store.transact("noteFirstUses", { uses, now: clock.now() });
      known.generations.bump(tags);
      known.changes.noteOwn(sequence);
    },
  });
  const calls = new CallMetrics(
    operations.map(({ name }) => name),
    [200, ...new Set(Object.values(problems).map(({ status }) => status))],
  );
  const metrics = measure({ calls, stores, known, verification, counting, ledger, analytics });

  const rpc = new Rpc({
    clock,
    random,
    known,
    store,
    limiter,
    outcomes,
    verification,
    recorder,
    analytics: {
      stats: (question) => analytics.stats(question),
      oldest: (level, now) => oldestKept(level, config.analytics.retention, now),
    },
    defaultWorkspaceId: workspaceId,
    verifyAuth: config.verifyAuth,
    publicUrl: config.publicUrl,
    calls: config.metrics === "off" ? null : calls,
    onFailure: events.requestFailed,
  });

  let stopping = false;
  const readiness = (): Readiness => {
    if (stopping) return { ready: false, status: "shutting down", checks: {} };
    const checks: Record<string, string> = {};
    const age = known.changes.reachable ? 0 : known.changes.age();
    if (!known.changes.reachable) checks.database = `has not answered for ${Math.round(age / 1000)} s`;
    if (counting.redis?.connection.isAway) checks.redis = `does not answer; the policy is ${config.redis.policy}`;
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
    const patience = clock.schedule(STOP_MAX, () => http.destroy());
    await http.close();
    patience.cancel();
  });

  // Missing one turn of these costs nothing but time until the next.
  const chores = [
    every(clock, PRUNE_INTERVAL, () => store.transact("pruneChanges", clock.now())),
    every(clock, SWEEP_INTERVAL, async () => {
      while (await store.transact("pruneIdempotencyRecords", clock.now()));
    }),
    every(clock, SWEEP_INTERVAL, () => sweepRefills(clock.now(), (step) => store.transact("sweepRefills", step))),
  ];
  opened.defer(() => {
    for (const chore of chores) chore.cancel();
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
    stop() {
      stopping = true;
      stopped ??= opened.disposeAsync();
      return stopped;
    },
  };
}
