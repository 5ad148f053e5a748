import type { Clock } from "../../../engine/src/clock/clock.ts";
import { newFingerprintKey, systemSecrets } from "../../../engine/src/crypto/secret.ts";
import { ClaimedCounters, ClaimedLender } from "../../../engine/src/limits/claimed-counters.ts";
import type { Counters } from "../../../engine/src/limits/counters.ts";
import { CountingClock } from "../../../engine/src/limits/counting-clock.ts";
import type { Lender } from "../../../engine/src/limits/lender.ts";
import { Limiter } from "../../../engine/src/limits/limiter.ts";
import { MemoryLender } from "../../../engine/src/limits/memory-lender.ts";
import type { MemoryTable } from "../../../engine/src/limits/memory-table.ts";
import { openMemoryCounters } from "../../../engine/src/limits/open-memory.ts";
import type { Config } from "../platform/config/config.ts";
import type { Secrets } from "../platform/config/secrets.ts";
import type { RedisDependencies, SharedCounters, SharedRedis } from "./redis-limits.ts";
import { unavailablePolicy } from "./unavailable-policy.ts";

/** Where limits are counted: in this process, or in Redis for several nodes. */
export interface LimitsService {
  limiter: Limiter;
  /** The counters behind the limiter. */
  counters: Counters;
  /** Leases what they count. */
  lender: Lender;
  /** The clock of the windows. */
  countingClock: Pick<Clock, "now">;
  table: MemoryTable;
  /** The memory of the table, if several threads count in it. */
  sharedTable: SharedArrayBuffer | undefined;
  /** Counters on disk that did not fit in memory at the start. */
  dropped: number;
  /** Undefined if this process counts in its memory. It must then be the only one. */
  redis: { connection: SharedRedis["connection"]; counters: SharedCounters } | undefined;
  stop(): Promise<void>;
}

/** Opens the counters that the configuration names, with the counts of earlier processes. */
export async function openLimits(
  config: Config,
  secrets: Secrets,
  dependencies: RedisDependencies,
): Promise<LimitsService> {
  const { clock, events, claim } = dependencies;
  // Loaded only for Redis, because its package takes time and memory.
  const redis = secrets.redisUrl === undefined ? undefined : await import("./redis-limits.ts");
  const shared = await redis?.openRedis(secrets.redisUrl!, config, dependencies);
  const connection = shared?.connection;
  // Windows in memory and in Redis must begin and end at the same instants.
  const countingClock = connection ?? new CountingClock(clock, events.clockStepped);
  const memory = await openMemoryCounters({
    clock,
    countingClock,
    bytes: config.counterBytesMax,
    isShared: config.workers > 1 && !shared,
    folder: config.dataDirectory,
    freshKey: newFingerprintKey(),
    epoch: Buffer.from(systemSecrets(12)).toString("base64url"),
    onFailure: events.countersFailed,
    onDropped: events.countersDropped,
  });
  const whenUndecided = unavailablePolicy(config);
  // The claim on a file lasts until the process ends, so it needs no check.
  const claimed = (counters: Counters) =>
    config.database.kind === "sqlite" ? counters : new ClaimedCounters(counters, claim);
  const claimedLender = (lender: Lender) =>
    config.database.kind === "sqlite" ? lender : new ClaimedLender(lender, claim);
  const { table, buffer } = memory;
  const sharedTable = buffer instanceof SharedArrayBuffer ? buffer : undefined;
  if (!shared) {
    const counters = claimed(memory.counters);
    return {
      limiter: new Limiter(counters, whenUndecided, countingClock),
      counters,
      lender: claimedLender(new MemoryLender({ counters: memory.counters, clock, flush: memory.flush })),
      countingClock,
      table,
      sharedTable,
      dropped: memory.dropped,
      redis: undefined,
      stop: memory.stop,
    };
  }
  const { counters: inRedis, stop } = await redis!.openRedisCounters(shared, memory.counters, config, dependencies);
  const counters = claimed(inRedis);
  return {
    limiter: new Limiter(counters, whenUndecided, countingClock),
    counters,
    lender: claimedLender(inRedis),
    countingClock,
    table,
    sharedTable,
    dropped: memory.dropped,
    redis: { connection: shared.connection, counters: inRedis },
    async stop() {
      await stop();
      await memory.stop();
    },
  };
}
