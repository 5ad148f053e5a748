import { type Log, loggable } from "./log.ts";
import { Sampling } from "./sampling.ts";

/**
 * The log events. Each event has one function, so its line always has the same form. Events that every request can
 * cause are sampled.
 *
 * @param monotonic milliseconds of elapsed time.
 */
export function openEvents(log: Log, monotonic: () => number) {
  const sampling = new Sampling(monotonic);
  /** Tables of which it was said that they are not divided. */
  const kept = new Set<string>();
  const sampled = (kind: string, error: unknown, fields: object, message: string) => {
    const suppressed = sampling.admit(`${kind} ${(error as Error)?.name} ${(error as NodeJS.ErrnoException)?.code}`);
    if (suppressed !== undefined) log.error({ ...fields, ...(suppressed > 0 && { suppressed }) }, message);
  };
  return {
    started: (fields: { address: string; database: string; threads: number }) =>
      log.info(fields, "latchkey is listening"),
    grpcStarted: (fields: { address: string; tls: boolean }) => log.info(fields, "gRPC is listening"),
    grpcCertificateUnusable: (cause: unknown) =>
      sampled(
        "grpc certificate",
        cause,
        loggable(cause),
        "the changed certificate for gRPC cannot be used: the former one stays",
      ),
    workersUnsupported: (cause: unknown) =>
      log.warn(
        loggable(cause),
        "this system does not let several threads listen on one port: calls are answered by one thread",
      ),
    workerEnded: (thread: number, cause: unknown, restartInMs: number) =>
      log.error({ ...loggable(cause), thread, restartInMs }, "a worker thread has ended and will be replaced"),
    outboundThreadLost: (cause: unknown) =>
      sampled(
        "outbound",
        cause,
        loggable(cause),
        "the thread that sends requests to webhooks and upstream verifiers has ended and will be replaced",
      ),
    startWaits: (what: string, cause: unknown) =>
      log.warn({ ...loggable(cause), what }, "the start waits for a service that does not answer"),
    edgeStarted: (fields: { address: string; home: string; socket: string | undefined }) =>
      log.info(fields, "the edge is listening"),
    homeLost: (state: "unreachable" | "refused", cause: unknown) =>
      state === "refused"
        ? log.error(loggable(cause), "home refuses the root key of this edge: it decides nothing until home accepts it")
        : log.error(loggable(cause), "home does not answer: cached keys are verified as long as --stale allows"),
    homeWithoutEdges: (cause: unknown) =>
      log.error(loggable(cause), "home has no operations of edges: upgrade the service first, or correct --upstream"),
    homeUnusable: (error: Error & { operation: string }) =>
      sampled(
        `home ${error.operation}`,
        error,
        { operation: error.operation, ...loggable(error) },
        "an answer is not one of the service: the edge takes it for an outage. A proxy before the service may have given it",
      ),
    countsRejected: (verifications: number, cause: unknown) =>
      sampled("counts", cause, { verifications, ...loggable(cause) }, "home does not count verifications of this edge"),
    homeBack: () => log.info({}, "home answers again"),
    claimWaits: (length: number) =>
      log.warn(
        { waitMs: length },
        "another process did not release the database and may still count: calls with limits get 503 until its claim expires. A process with the data folder of the other one does not wait",
      ),
    claimLost: () =>
      log.warn({}, "the connection that holds the claim on the database is lost: the claim is requested again"),
    claimRegained: () => log.info({}, "this process has claimed the database"),
    stopping: (signal: string, drainMs: number) =>
      log.info({ signal, drainMs }, "stopping: not ready for new requests, open requests are completed"),
    forcedStop: () => log.error({}, "the stop took too long and was aborted"),
    stopped: () => log.info({}, "stopped"),
    databaseLost: (cause: unknown, staleMax: number) =>
      log.error(
        { ...loggable(cause), staleMaxMs: staleMax },
        "the database does not answer: cached keys are still verified, changes and keys that are not cached get 503",
      ),
    limitEventsLost: (count: number, cause: unknown) =>
      log.warn(
        { ...loggable(cause), count },
        "the database does not answer: events of exceeded limits are lost by the stop",
      ),
    databaseBack: () => log.info({}, "the database answers again"),
    storageTroubled: (trouble: string, freeBytes: Readonly<Record<string, number>>) =>
      log.error(
        { trouble, freeBytes },
        "the disk is full, slow or refuses writes: changes and spends get 503 or wait, cached keys without credits verify",
      ),
    storageRecovered: () => log.info({}, "the disk takes writes again"),
    databaseChanged: () =>
      log.warn({}, "the database is another server, another timeline or a restored copy: all caches were invalidated"),
    vaultLocked: () =>
      log.error(
        {},
        "the master key of the vault was changed to one that this process does not have: recoverable keys of some workspaces " +
          "cannot be read or made. Set LATCHKEY_VAULT_KEY to it, on every node",
      ),
    schemaTooNew: ({ database, needs, program }: { database: number; needs: number; program: number }) =>
      log.error(
        { databaseSchema: database, needsSchema: needs, programSchema: program },
        "a newer release has changed the database so that this one cannot run on it: this node is not ready. Replace it",
      ),
    retained: (rows: Readonly<Record<string, number>>, tookMs: number) =>
      log.info({ rows, tookMs }, "rows beyond their retention were deleted"),
    retentionFailed: (table: string, cause: unknown) =>
      sampled("retention", cause, { table, ...loggable(cause) }, "rows beyond their retention could not be deleted"),
    retentionPostponed: (jumpedMs: number, waitMs: number) =>
      log.error(
        { jumpedMs, waitMs },
        "the clock of this machine jumped ahead by more than a week: nothing is deleted for its age in the next hour. Set it right",
      ),
    tableDivided: (table: string) => log.info({ table }, "a table of PostgreSQL was divided by month"),
    partitionDropped: (partition: string, rows: number) =>
      log.info({ partition, rows }, "a partition whose rows were all beyond their retention was dropped"),
    tableKept: (table: string, reason: string) => {
      if (kept.has(table)) return;
      kept.add(table);
      log.warn({ table, reason }, "a table of PostgreSQL is not divided by month: its old rows are deleted one by one");
    },
    layoutFailed: (table: string, cause: unknown) =>
      sampled(
        "layout",
        cause,
        { table, ...loggable(cause) },
        "the partitions of PostgreSQL could not be changed: this is tried again. A long transaction may hold a lock",
      ),
    eventSweepFailed: (cause: unknown) =>
      sampled(
        "eventSweep",
        cause,
        loggable(cause),
        "events of keys that expire or are not used could not be recorded: this is tried again",
      ),
    holdSweepFailed: (cause: unknown) =>
      sampled("holdSweep", cause, loggable(cause), "holds could not be expired: this is tried again"),
    webhookDisabled: (webhook: { webhookId: string; workspaceId: string; reason: string }) =>
      log.warn(webhook, "a webhook was disabled: its deliveries failed for too long, or its endpoint answered 410"),
    webhooksFailed: (cause: unknown) =>
      sampled("webhooks", cause, loggable(cause), "events could not be handed to webhooks: this is tried again"),
    restoredCopy: (copy: { copiedAt: string; restoredAt: string; file: string }) =>
      log.warn(
        copy,
        "this data folder was restored from a copy: changes after copiedAt are lost, so keys that were revoked since " +
          "work again. Delete them again, then remove the file",
      ),
    moveUnfinished: (move: { to: string; startedAt: number }) =>
      log.warn(
        move,
        "a move of this database was begun and has not ended: the keys of all changed rows are recorded. Run `latchkey " +
          "migrate-store` again, or end it with --undo",
      ),
    backupMade: (backup: { file: string; bytes: number; tookMs: number }) => log.info(backup, "a backup was made"),
    backupFailed: (cause: unknown) =>
      log.error(loggable(cause), "the scheduled backup failed; it is tried again within a minute"),
    countersFailed: (cause: unknown) =>
      log.error(loggable(cause), "counters could not be written to disk: a restart would lose some of them"),
    countersDropped: (counters: number) =>
      log.error(
        { counters },
        "counters on disk do not fit into memory, so their limits start at zero: raise LATCHKEY_COUNTER_BYTES",
      ),
    clockStepped: (differenceMs: number) =>
      log.warn({ differenceMs }, "the clock of this machine was set: limits use the new time after a minute"),
    redisOutage: (cause: unknown, policy: string, server: string) =>
      log.error({ ...loggable(cause), policy, server }, "Redis does not answer: the policy decides limits"),
    redisBack: (outageMs: number, server: string) => log.info({ awayForMs: outageMs, server }, "Redis answers again"),
    redisLost: (loss: { at: number; servers: readonly string[]; partitions?: number }) =>
      log.error(loss, "Redis has lost counters: it was emptied, or a failover restored older data"),
    redisPrimaries: (servers: readonly string[]) => log.info({ servers }, "the primaries of Redis have changed"),
    redisWarning: (warning: string) => log.warn({}, warning),
    analyticsOutage: (cause: unknown) =>
      log.error(loggable(cause), "the store of the analytics does not answer: batches wait on disk"),
    analyticsBack: () => log.info({}, "the store of the analytics answers again"),
    analyticsLost: (events: number, cause: unknown) =>
      log.error({ events, ...loggable(cause) }, "analytics were lost: neither their store nor the disk accepts them"),
    analyticsUnreadable: (cause: unknown) =>
      sampled("analytics", cause, loggable(cause), "analytics on disk cannot be read"),
    analyticsMergeFailed: (cause: unknown) =>
      sampled("merge", cause, loggable(cause), "counts of analytics cannot be merged, so statistics become slower"),
    requestFailed: (error: unknown, requestId: string, path: string) =>
      sampled("request", error, { requestId, path, ...failure(error) }, "a request failed"),
    authenticationsFailed: (failed: {
      address: string;
      network: string;
      failures: number;
      problem: string;
      path: string;
      requestId: string;
    }) => log.warn(failed, "requests were refused because of their credentials"),
    /** Undefined unless the level is `debug` or lower. */
    answered:
      log.debug &&
      ((answer: { requestId: string; path: string; status: number; address?: string; tookMs?: number }) =>
        log.debug!(answer, "answered")),
    upstreamFailed: (apiId: string, cause: unknown) =>
      sampled(
        `upstream ${apiId}`,
        cause,
        { apiId, ...loggable(cause) },
        "an upstream verifier gave no answer: keys that are unknown here are answered as the API says",
      ),
    leakReportFailed: (error: unknown) =>
      sampled("leaks", error, failure(error), "reports of leaked keys could not be handled and are lost"),
    otherAdministrators: (count: number) =>
      log.warn(
        { count, command: "latchkey root-key revoke-others" },
        "other administrators' root keys work beside LATCHKEY_ROOT_KEY: list them with `latchkey root-key list`, " +
          "revoke them with `latchkey root-key revoke-others`",
      ),
    dashboardMissing: (folder: string) =>
      log.warn(
        { folder },
        "the dashboard is not built, so /, /docs and /reference answer 404: run `npm run build --workspace dashboard`",
      ),
    rootKeyWritten: (file: string) => log.warn({ file }, "the administrator's root key was written to a file"),
  };
}

export type Events = ReturnType<typeof openEvents>;

/** Omits the stack if the database is unreachable: it does not help. */
function failure(error: unknown): object {
  if (!(error instanceof Error) || error.name !== "StoreUnavailable") return loggable(error);
  const { name, message } = error;
  return { error: { name, message } };
}
