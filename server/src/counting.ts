import type { Clock } from "./clock/clock.ts";
import type { Config } from "./config/config.ts";
import type { Secrets } from "./config/secrets.ts";
import { newFingerprintKey } from "./crypto/secret.ts";
import { CountingClock } from "./limits/counting-clock.ts";
import { Limiter } from "./limits/limiter.ts";
import type { MemoryTable } from "./limits/memory-table.ts";
import { openMemoryCounters } from "./limits/open-memory.ts";
import { counterScripts, RedisCounters } from "./limits/redis-counters.ts";
import type { Events } from "./log/events.ts";
import type { Random } from "./random/random.ts";
import { RedisConnection } from "./redis/connection.ts";

/** Where limits are counted: in this process, or in Redis for several nodes. */
export interface Counting {
  limiter: Limiter;
  table: MemoryTable;
  /** Counters on disk that found no room in memory at the start. */
  dropped: number;
  /** Undefined: this process counts for itself, and must be the only one. */
  redis: { connection: RedisConnection; counters: RedisCounters } | undefined;
  stop(): Promise<void>;
}

export interface CountingWorld {
  clock: Clock;
  random: Random;
  events: Events;
}

/** Redis was configured and cannot be reached at the start. */
export class RedisUnreachable extends Error {
  constructor(cause: Error) {
    super(`Redis at LATCHKEY_REDIS_URL cannot be reached: ${cause.message}`, { cause });
    this.name = "RedisUnreachable";
  }
}

/** Opens the counters that the configuration names, with what was counted before. */
export async function openCounting(config: Config, secrets: Secrets, world: CountingWorld): Promise<Counting> {
  const { clock, random, events } = world;
  const { policy, timeout } = config.redis;
  const connection =
    secrets.redisUrl === undefined
      ? undefined
      : await RedisConnection.open({
          url: secrets.redisUrl,
          clock,
          timeout,
          scripts: counterScripts,
          onAway: (cause) => events.redisAway(cause, policy),
          onBack: (awayForMs) => events.redisBack(awayForMs),
        }).catch((error: Error) => {
          throw error.name === "RedisUnsuitable" ? error : new RedisUnreachable(error);
        });
  // Windows that are counted here and in Redis have to begin and end at the same moments.
  const countingClock = connection ?? new CountingClock(clock, events.clockStepped);
  const memory = await openMemoryCounters({
    clock,
    countingClock,
    bytes: config.counterBytesMax,
    folder: config.dataDirectory,
    freshKey: newFingerprintKey(),
    onFailure: events.countersFailed,
    onDropped: events.countersDropped,
  });
  const whenUndecided = policy === "open" ? "open" : "closed";
  if (!connection) {
    return {
      limiter: new Limiter(memory.counters, whenUndecided, countingClock),
      table: memory.table,
      dropped: memory.dropped,
      redis: undefined,
      stop: memory.stop,
    };
  }
  for (const warning of connection.warnings) events.redisWarning(warning);
  const counters = new RedisCounters({
    redis: connection,
    clock,
    random,
    policy: policy === "local" ? { kind: "local", counters: memory.counters } : { kind: policy },
    onLoss: (at) => events.redisLost(at),
  });
  return {
    limiter: new Limiter(counters, whenUndecided, countingClock),
    table: memory.table,
    dropped: memory.dropped,
    redis: { connection, counters },
    async stop() {
      await connection.close();
      await memory.stop();
    },
  };
}
