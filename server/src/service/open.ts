import { dirname, join } from "node:path";
import type { Clock, Milliseconds } from "../../../engine/src/clock/clock.ts";
import { every } from "../../../engine/src/clock/every.ts";
import { pause } from "../../../engine/src/clock/pause.ts";
import { FEED_ROWS_MAX } from "../../../engine/src/directory/changes-feed.ts";
import { Directories, type DirectoriesOptions } from "../../../engine/src/directory/directories.ts";
import type { KeyLocation } from "../../../engine/src/directory/stored.ts";
import type { Limiter } from "../../../engine/src/limits/limiter.ts";
import type { Random } from "../../../engine/src/random/random.ts";
import { BackupSchedule } from "../backup/schedule.ts";
import type { Analytics } from "../features/analytics/analytics.ts";
import { EventSweep } from "../features/events/sweep.ts";
import { openWebhookDelivery, type WebhookDelivery } from "../features/webhooks/delivery.ts";
import type { IssuedRootKey } from "../features/workspaces/procedures.ts";
import type { Events } from "../log/events.ts";
import type { Log } from "../log/log.ts";
import { OperatorError } from "../log/operator-error.ts";
import { StoreMetrics } from "../metrics/calls.ts";
import type { Config } from "../platform/config/config.ts";
import type { Secrets } from "../platform/config/secrets.ts";
import { version } from "../platform/config/version.ts";
import { OutboundThread } from "../platform/outbound/outbound-thread.ts";
import type { Claim, StoreObserver } from "../platform/store/store.ts";
import { openAnalytics, type openAnalyticsStore } from "./analytics.ts";
import type { AppStore, openStore } from "./app-store.ts";
import { type ClaimedFolder, claimDatabase, type claimFolder } from "./claim.ts";
import { directorySource } from "./directory-source.ts";
import { type LimitsService, openLimits } from "./limits.ts";
import { type OAuth, openOAuth } from "./oauth.ts";
import { Retention } from "./retention.ts";
import { type StoragePlace, StorageWatch } from "./storage-watch.ts";
import { type TroubleWatch, watchSchema, watchVault } from "./trouble-watch.ts";
import type { Waiting } from "./wait.ts";
import { measureTurn, type WarmUpOptions, warmUp } from "./warm-up.ts";

/** How long each part may take to stop. A part that does not stop must not prevent that counters are written. */
const PART_STOP_MAX = 1_500;

/** What the service needs from its environment. Tests and simulations provide their own. */
export interface ServiceDependencies {
  clock: Clock;
  random: Random;
  log: Log;
  /** Makes identifiers repeatable, for tests and simulations. */
  seed?: number | undefined;
  /** If given, a start waits for a database or a Redis that does not answer, until this signal is aborted. */
  waits?: AbortSignal | undefined;
  /** Gets the administrator's root key as soon as a start has made it, before any step that can fail. */
  onIssued?: ((issued: IssuedRootKey) => void) | undefined;
  /** The folder with the files of the dashboard; undefined: it is not served. */
  dashboardFolder?: string | undefined;
  /** The service must not continue; the program has to stop it. */
  onFatal?: ((error: Error) => void) | undefined;
}

/** How the databases and the data folder are opened. */
export interface StoreOpeners {
  openStore: typeof openStore;
  openAnalyticsStore: typeof openAnalyticsStore;
  claimFolder?: typeof claimFolder;
}

/** What every step of a start needs. */
export interface Start extends ServiceDependencies {
  config: Config;
  secrets: Secrets;
  openers: StoreOpeners;
  events: Events;
  waiting: Waiting;
  folder: ClaimedFolder;
  /** Closes the parts in the reverse order of opening, at a stop and after a failed start. */
  opened: AsyncDisposableStack;
}

/** The parts that have state or connections. */
export interface Parts {
  store: AppStore;
  storeMetrics: StoreMetrics;
  claim: Claim;
  workspaceId: string;
  /** The key that signs tokens of sessions. */
  tokenKey: string;
  /** The administrator's root key, if this start made it. */
  issued: IssuedRootKey | undefined;
  directories: Directories;
  limits: LimitsService;
  analytics: Analytics;
  /** Undefined without a schedule. */
  backups: BackupSchedule | undefined;
  schema: TroubleWatch;
  vault: TroubleWatch;
  storage: StorageWatch;
  retention: Retention;
  /** Sends the requests of webhooks, upstream verifiers and the like. */
  outbound: OutboundThread;
  webhooks: WebhookDelivery;
  oauth: OAuth;
}

/** How long rows of the tables stay that PostgreSQL divides by month. */
function monthlyRetention({ retention: { audit }, analytics: { retention } }: Config) {
  return {
    audit_events: audit,
    audit_targets: audit,
    analytics_minutes: retention.minute,
    analytics_hours: retention.hour,
    analytics_days: retention.day,
    analytics_usage_hours: retention.hour,
    analytics_usage_days: retention.day,
  };
}

/** How long the first rejection of a limit waits to be written as an event. */
const EXCEEDED_INTERVAL: Milliseconds = 2_000;
/** Exceeded limits per transaction. */
const EXCEEDED_PER_WRITE = 500;

/** Rows of `changes` from before the start that are kept for edges. */
const FEED_ROWS_FILLED = FEED_ROWS_MAX / 2;

/** Opens every part of the service. */
export async function openParts(start: Start): Promise<Parts> {
  const storeMetrics = new StoreMetrics();
  const observe: StoreObserver = (name, waitedMs, ranMs) => storeMetrics.record(name, waitedMs, ranMs);
  const { config, secrets, openers } = start;
  const store = await openers.openStore(config, secrets, start, observe);
  deferStop(start, () => store.close());
  const { claim, workspaceId, tokenKey, issued } = await prepare(start, store);
  const directories = await openDirectories(start, store);
  const { clock, random, events, waiting, opened } = start;
  const limits = await openLimits(config, secrets, {
    clock,
    random,
    events,
    claim,
    waiting,
    databaseId: workspaceId,
    readEpoch: () => store.read("redisEpoch", null),
    keepEpoch: (epoch) => store.transact("keepRedisEpoch", epoch),
    readPartitionEpochs: () => store.read("partitionEpochs", null),
    keepPartitionEpochs: (epochs) => store.transact("keepPartitionEpochs", epochs),
  });
  opened.defer(() => limits.stop());
  recordExceededLimits(start, store, limits.limiter);
  const analytics = await openAnalytics(config, secrets, {
    clock,
    random,
    events,
    openStore: () =>
      openers.openAnalyticsStore(config, secrets, clock, (name, ...times) => observe(`analytics.${name}`, ...times)),
    recordKeyUses: (uses) => store.transact("recordKeyUses", uses),
  });
  deferStop(start, () => analytics.stop());
  startWarmUp(start, store, directories, (count) => analytics.newestUses(count));
  const backups = scheduleBackups(start);
  if (backups) deferStop(start, () => backups.stop());
  const schema = watchSchema(() => store.read("schemaState", null), clock, events);
  opened.defer(() => schema.stop());
  const vault = watchVault(() => store.read("isVaultLocked", null), clock, events);
  opened.defer(() => vault.stop());
  const storage = new StorageWatch({ places: placesOf(config), store, clock, events });
  opened.defer(() => storage.stop());
  void storage.look();
  const { holder, formerHolders } = start.folder;
  const leased = { store, clock, events, holder, formerHolders };
  const retention = new Retention({
    ...leased,
    analytics,
    times: config.retention,
    monthly: monthlyRetention(config),
  });
  deferStop(start, () => retention.stop());
  const eventSweep = new EventSweep(leased);
  deferStop(start, () => eventSweep.stop());
  const outbound = new OutboundThread({ clock, onLoss: events.outboundThreadLost });
  deferStop(start, () => outbound.close());
  const { allowPrivate } = config.webhooks;
  const webhooks = openWebhookDelivery({ ...leased, allowPrivate, random, outbound });
  deferStop(start, () => webhooks.stop());
  const oauth = await openOAuth({ ...start, store, directories, defaultWorkspaceId: workspaceId });
  return {
    store,
    storeMetrics,
    claim,
    workspaceId,
    tokenKey,
    issued,
    directories,
    limits,
    analytics,
    backups,
    schema,
    vault,
    storage,
    retention,
    outbound,
    webhooks,
    oauth,
  };
}

/** The folders that the service writes to. */
function placesOf({ dataDirectory, database }: Config): StoragePlace[] {
  const places: StoragePlace[] = [{ name: "data", folder: dataDirectory }];
  if (database.kind !== "sqlite" || dirname(database.file) === dataDirectory) return places;
  return [...places, { name: "database", folder: dirname(database.file) }];
}

/** Writes the first rejections of limits as events. Those that could not be written are tried again. */
function recordExceededLimits(start: Start, store: AppStore, { exceeded }: Limiter): void {
  const record = async () => {
    const waiting = exceeded.take();
    for (let i = 0; i < waiting.length; i += EXCEEDED_PER_WRITE) {
      await store.transact("recordExceeded", waiting.slice(i, i + EXCEEDED_PER_WRITE)).catch((error: unknown) => {
        exceeded.adopt(waiting.slice(i));
        throw error;
      });
    }
  };
  const recording = every(start.clock, EXCEEDED_INTERVAL, record);
  deferStop(start, () => {
    recording.cancel();
    // As after a crash: the next process reports the next window. A stop does not fail because the database is unreachable.
    return record().catch((error: unknown) => start.events.limitEventsLost(exceeded.take().length, error));
  });
}

function scheduleBackups({ config, clock, events }: Start): BackupSchedule | undefined {
  const { backup, database, dataDirectory } = config;
  if (backup.every === undefined) return undefined;
  if (database.kind !== "sqlite") {
    throw new OperatorError(
      "LATCHKEY_BACKUP_EVERY is for the embedded database. Unset it, and make backups of PostgreSQL with its own tools.",
    );
  }
  const folder = backup.folder ?? join(dataDirectory, "backups");
  const plan = { database: database.file, dataDirectory, version };
  return new BackupSchedule({ every: backup.every, keep: backup.keep, folder, plan }, clock, events);
}

/** Stops a part when the service stops, and continues without it after a timeout. */
export function deferStop({ clock, opened }: Start, stop: () => Promise<unknown>): void {
  opened.defer(async () => {
    const timeout = Promise.withResolvers<void>();
    const timer = clock.schedule(PART_STOP_MAX, timeout.resolve);
    await Promise.race([stop(), timeout.promise]);
    timer.cancel();
  });
}

/** Claims the database, migrates it, and makes sure that the default workspace and its administrator exist. */
async function prepare(
  start: Start,
  store: AppStore,
): Promise<Pick<Parts, "claim" | "workspaceId" | "tokenKey" | "issued">> {
  const { config, secrets, clock, folder, events } = start;
  const options = { shared: secrets.redisUrl !== undefined, lease: config.staleMax };
  const claim = await claimDatabase(store, options, folder, events, (error) => start.onFatal?.(error));
  deferStop(start, () => claim.release());
  const { workspaceId, tokenKey, issued, otherAdministrators } = await store.transact("prepare", {
    now: clock.now(),
    rootKey: secrets.rootKey,
  });
  if (issued) start.onIssued?.(issued);
  if (otherAdministrators) events.otherAdministrators(otherAdministrators);
  const move = await store.read("findMove", null);
  if (move?.role === "source") events.moveUnfinished({ to: move.other, startedAt: move.startedAt });
  await claim.settle();
  return { claim, workspaceId, tokenKey, issued };
}

async function openDirectories({ config, clock, events, opened }: Start, store: AppStore): Promise<Directories> {
  const options: DirectoriesOptions = {
    clock,
    staleMax: config.staleMax,
    bytesMax: config.directoryBytesMax,
    lookupsPerSecond: config.lookupsPerSecond,
    source: directorySource(store, clock),
    onReachability: (reachable, cause) =>
      reachable ? events.databaseBack() : events.databaseLost(cause, config.staleMax),
    onLost: events.databaseChanged,
  };
  const directories = new Directories(options, config.directoryBytesMax / config.workers);
  await directories.changes.start();
  // Edges that followed another node, or this one before its restart, continue where they were.
  directories.feed.fill(await store.read("readRecentChanges", FEED_ROWS_FILLED));
  opened.defer(() => directories.changes.close());
  const stopped = new AbortController();
  opened.defer(() => stopped.abort());
  void fillKeyFilter(clock, store, directories, stopped.signal);
  store.listen(() => directories.changes.wake());
  return directories;
}

function startWarmUp(
  { config, clock, opened }: Start,
  store: AppStore,
  directories: Directories,
  newest: WarmUpOptions["newest"],
): void {
  const stopped = new AbortController();
  opened.defer(() => stopped.abort());
  warmUp({
    clock,
    turnTime: () => measureTurn(clock),
    store,
    newest,
    directories,
    counts: directories.counts.keys,
    bytesMax: config.directoryBytesMax / config.workers,
    stopped: stopped.signal,
  }).catch(() => {
    // Every other call reports that the database is unavailable, and keys are loaded when callers ask for them.
  });
}

/**
 * Adds every key in the database to the filter, in the background, in steps with pauses of the same length. Until the end, unknown
 * keys cost look-ups.
 */
async function fillKeyFilter(
  clock: Clock,
  store: AppStore,
  directories: Directories,
  stopped: AbortSignal,
): Promise<void> {
  if (store.keyFilter === undefined) return;
  try {
    for (let last: KeyLocation | null = { hash: "", workspace_id: "" }; last !== null; ) {
      const startedAt = clock.monotonic();
      last = await store.read("recordKeyLocations", last);
      await pause(clock, clock.monotonic() - startedAt, stopped);
      if (stopped.aborted) return;
    }
    directories.keyFilter = store.keyFilter;
  } catch {
    // The service works without the filter, and every other call reports that the database is unavailable.
  }
}
