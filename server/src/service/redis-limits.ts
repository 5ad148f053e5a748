import type { Clock } from "../clock/clock.ts";
import { every } from "../clock/every.ts";
import type { Config } from "../config/config.ts";
import type { Counters } from "../limits/counters.ts";
import { counterScripts, RedisCounters } from "../limits/redis-counters.ts";
import type { Events } from "../log/events.ts";
import { isOperatorError, OperatorError } from "../log/operator-error.ts";
import type { Random } from "../random/random.ts";
import { isPermanentFailure, RedisConnection, type RedisOptions } from "../redis/connection.ts";
import type { RedisEpoch } from "../store/redis-epochs.ts";
import type { Claim } from "../store/store.ts";
import { groupMark } from "./claim.ts";
import type { Waiting } from "./wait.ts";

export interface RedisDependencies {
  clock: Clock;
  random: Random;
  events: Events;
  /** The right to count for the database. */
  claim: Claim;
  /** Names the database in Redis. */
  databaseId: string;
  /** Waits for Redis at the start. */
  waiting: Waiting;
  /** Reads what the nodes last recorded of the data in Redis. */
  readEpoch(): Promise<RedisEpoch | null>;
  /** Records it in the database, where it outlives all nodes. */
  keepEpoch(epoch: RedisEpoch): Promise<unknown>;
}

/** How often the node records what it has learned of the data in Redis. */
const EPOCH_INTERVAL = 10_000;

/** Redis is configured and cannot be used. */
export class RedisUnusable extends OperatorError {
  constructor(cause: Error) {
    super(`LATCHKEY_REDIS_URL: Redis cannot be used: ${cause.message}`, { cause });
    this.name = "RedisUnusable";
  }
}

/** How often the node writes the mark of its group, which a Redis that was emptied has lost. */
const MARK_INTERVAL = 1_000;

/** Time between two attempts to reach Redis at the start. */
const RETRY_INTERVAL = 250;

/**
 * Connects to Redis. If it does not answer, the start waits under the policy `closed`. Under `local` and `open` the node
 * starts without it.
 */
export async function openRedis(
  url: string,
  config: Config,
  dependencies: RedisDependencies,
): Promise<RedisConnection> {
  const { clock, events, claim, databaseId, waiting } = dependencies;
  const { policy, timeout } = config.redis;
  const options: RedisOptions = {
    ...{ url, clock, timeout, scripts: counterScripts },
    admit: (send) => claim.join(groupMark(databaseId, send)),
    onAway: (cause) => events.redisAway(cause, policy),
    onBack: (awayForMs) => events.redisBack(awayForMs),
  };
  for (;;) {
    try {
      return await RedisConnection.open(options);
    } catch (error) {
      if (isOperatorError(error)) throw error;
      const { code, name } = error as NodeJS.ErrnoException;
      if (code === "ENOTFOUND" || code === "EAI_AGAIN" || isPermanentFailure(error))
        throw new RedisUnusable(error as Error);
      const isMarkMissing = name === "MarkMissing";
      if (policy !== "closed" && !isMarkMissing) return RedisConnection.openAway(options, error);
      await waiting.wait(
        isMarkMissing ? "the other nodes' mark in Redis" : "Redis at LATCHKEY_REDIS_URL",
        error,
        RETRY_INTERVAL,
      );
    }
  }
}

/** Opens counters in Redis. `local`: the counters of this node, for the policy of this name. */
export async function openRedisCounters(
  connection: RedisConnection,
  local: Counters,
  config: Config,
  dependencies: RedisDependencies,
): Promise<{ counters: RedisCounters; stop(): Promise<void> }> {
  const { clock, random, events, claim, readEpoch, keepEpoch } = dependencies;
  const { policy } = config.redis;
  for (const warning of connection.warnings) events.redisWarning(warning);
  let recorded = await readEpoch();
  const recordEpoch = async () => {
    const known = counters.epoch;
    if (known === undefined || JSON.stringify(known) === JSON.stringify(recorded)) return;
    await keepEpoch(known);
    recorded = known;
  };
  const counters = new RedisCounters({
    redis: connection,
    lastEpoch: recorded ?? undefined,
    // Failures are ignored; the next run retries.
    onEpoch: () => void recordEpoch().catch(() => {}),
    clock,
    random,
    policy: policy === "local" ? { kind: "local", counters: local } : { kind: policy },
    onLoss: (at) => events.redisLost(at),
  });
  const recording = every(clock, EPOCH_INTERVAL, recordEpoch);
  // Nodes that start look for the mark of their group, so an emptied Redis gets it again.
  const marking = every(clock, MARK_INTERVAL, async () => {
    if (!connection.isAway) await claim.join(groupMark(dependencies.databaseId, (args) => connection.send(args)));
  });
  return {
    counters,
    async stop() {
      marking.cancel();
      recording.cancel();
      await connection.close();
    },
  };
}
