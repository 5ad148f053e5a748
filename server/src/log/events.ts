import { type Log, loggable } from "./log.ts";
import { Sampling } from "./sampling.ts";

/**
 * What an operator is told. One function an event, so that its line is always the same. Events that can come with every
 * request are sampled.
 *
 * @param monotonic milliseconds of elapsed time.
 */
export function openEvents(log: Log, monotonic: () => number) {
  const sampling = new Sampling(monotonic);
  const sampled = (kind: string, error: unknown, fields: object, message: string) => {
    const suppressed = sampling.admit(`${kind} ${(error as Error)?.name} ${(error as NodeJS.ErrnoException)?.code}`);
    if (suppressed !== undefined) log.error({ ...fields, ...(suppressed > 0 && { suppressed }) }, message);
  };
  return {
    started: (fields: { address: string; database: string }) => log.info(fields, "latchkey is listening"),
    startWaits: (what: string, cause: unknown) =>
      log.warn({ ...loggable(cause), what }, "the start waits for a service that does not answer"),
    claimWaits: (length: number) =>
      log.warn(
        { waitMs: length },
        "another process did not release the database and may still count: limits get 503 until it cannot. A process on the former one's data folder need not wait",
      ),
    claimLost: () => log.warn({}, "the connection that holds the claim on the database is lost: it is asked for again"),
    claimRegained: () => log.info({}, "the database is claimed by this process"),
    stopping: (signal: string, drainMs: number) =>
      log.info({ signal, drainMs }, "stopping: not ready any more, open requests are finished"),
    forcedStop: () => log.error({}, "the stop took too long and was broken off"),
    stopped: () => log.info({}, "stopped"),
    databaseLost: (cause: unknown, staleMax: number) =>
      log.error(
        { ...loggable(cause), staleMaxMs: staleMax },
        "the database does not answer: known keys go on verifying, changes and unknown keys get 503",
      ),
    databaseBack: () => log.info({}, "the database answers again"),
    databaseChanged: () =>
      log.warn(
        {},
        "the database is another server, another timeline or a restored copy: everything cached was invalidated",
      ),
    countersFailed: (cause: unknown) =>
      log.error(loggable(cause), "counters could not be kept on disk: a restart would forget some of them"),
    countersDropped: (counters: number) =>
      log.error(
        { counters },
        "counters on disk found no room in memory, and their limits begin anew: raise LATCHKEY_COUNTER_BYTES",
      ),
    clockStepped: (differenceMs: number) =>
      log.warn({ differenceMs }, "the clock of this machine was set: limits follow it after a minute"),
    redisAway: (cause: unknown, policy: string) =>
      log.error({ ...loggable(cause), policy }, "Redis does not answer: limits are decided by the policy"),
    redisBack: (awayForMs: number) => log.info({ awayForMs }, "Redis answers again"),
    redisLost: (at: number) =>
      log.error({ at }, "Redis has lost counters: it was emptied, or a failover went back in time"),
    redisWarning: (warning: string) => log.warn({}, warning),
    analyticsAway: (cause: unknown) =>
      log.error(loggable(cause), "the store of the analytics does not take them: they wait on disk"),
    analyticsBack: () => log.info({}, "the store of the analytics takes them again"),
    analyticsLost: (events: number, cause: unknown) =>
      log.error({ events, ...loggable(cause) }, "analytics were lost: neither their store nor the disk takes them"),
    analyticsUnreadable: (cause: unknown) =>
      sampled("analytics", cause, loggable(cause), "analytics that wait on disk cannot be read"),
    requestFailed: (error: unknown, requestId: string, path: string) =>
      sampled("request", error, { requestId, path, ...failure(error) }, "a request failed"),
    otherAdministrators: (count: number) =>
      log.warn(
        { count, command: "latchkey root-key revoke-others" },
        "other administrators' root keys work beside LATCHKEY_ROOT_KEY: list them with `latchkey root-key list`, " +
          "revoke them with `latchkey root-key revoke-others`",
      ),
    rootKeyWritten: (file: string) => log.warn({ file }, "the administrator's root key was written to a file"),
  };
}

export type Events = ReturnType<typeof openEvents>;

/** Where the code was when the database was away says nothing. */
function failure(error: unknown): object {
  if (!(error instanceof Error) || error.name !== "StoreUnavailable") return loggable(error);
  const { name, message } = error;
  return { error: { name, message } };
}
