import type { Clock } from "../../../engine/src/clock/clock.ts";
import { every } from "../../../engine/src/clock/every.ts";
import type { Counters } from "../../../engine/src/limits/counters.ts";
import type { Random } from "../../../engine/src/random/random.ts";
import type { Events } from "../log/events.ts";
import { isOperatorError, OperatorError } from "../log/operator-error.ts";
import type { Config } from "../platform/config/config.ts";
import { parseRedisAddress, type RedisAddress } from "../platform/redis/address.ts";
import { RedisCluster } from "../platform/redis/cluster.ts";
import { ClusterCounters } from "../platform/redis/cluster-counters.ts";
import { isPermanentFailure, RedisConnection, type RedisOptions } from "../platform/redis/connection.ts";
import { prefixOf } from "../platform/redis/partitions.ts";
import { counterScripts, type OutagePolicy, RedisCounters } from "../platform/redis/redis-counters.ts";
import { Sentinels } from "../platform/redis/sentinel.ts";
import type { PartitionEpoch, RedisEpoch } from "../platform/store/redis-epochs.ts";
import type { Claim } from "../platform/store/store.ts";
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
  /** The same of the partitions in a cluster. */
  readPartitionEpochs(): Promise<PartitionEpoch[]>;
  keepPartitionEpochs(epochs: readonly PartitionEpoch[]): Promise<unknown>;
}

/** The counters in Redis, with their counts for the metrics. */
export type SharedCounters = RedisCounters | ClusterCounters;

/** The servers that count, and how to use them. */
export interface SharedRedis {
  /** One Redis, or the primary that Sentinels elect; or a cluster. */
  readonly connection: RedisConnection | RedisCluster;
  stop(): void;
}

/** How often the node records what it has learned of the data in Redis. */
const EPOCH_INTERVAL = 10_000;

/** Losses of partitions are reported together, at most once in this time. */
const LOSS_INTERVAL = 1_000;

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

/** Opens a connection, or what stands for one while Redis does not answer. */
interface Opener {
  open(): Promise<RedisConnection | RedisCluster>;
  openInOutage(cause: unknown): RedisConnection | RedisCluster;
  close(): void;
}

/**
 * Connects to Redis. If it does not answer, the start waits under the policy `closed`. Under `local` and `open` the node
 * starts without it.
 */
export async function openRedis(url: string, config: Config, dependencies: RedisDependencies): Promise<SharedRedis> {
  const { waiting } = dependencies;
  const { policy } = config.redis;
  const opener = openerOf(parseRedisAddress(url), config, dependencies);
  const opened = (connection: RedisConnection | RedisCluster): SharedRedis => ({
    connection,
    stop() {
      connection.close();
      opener.close();
    },
  });
  try {
    for (;;) {
      try {
        return opened(await opener.open());
      } catch (error) {
        if (isOperatorError(error) && error.name !== "RedisUnsuitable") throw error;
        const { code, name } = error as NodeJS.ErrnoException;
        const isPermanent = name === "RedisUnsuitable" || isPermanentFailure(error);
        if (isPermanent || code === "ENOTFOUND" || code === "EAI_AGAIN") throw new RedisUnusable(error as Error);
        const isMarkMissing = name === "MarkMissing";
        if (policy !== "closed" && !isMarkMissing) return opened(opener.openInOutage(error));
        await waiting.wait(
          isMarkMissing ? "the other nodes' mark in Redis" : "Redis at LATCHKEY_REDIS_URL",
          error,
          RETRY_INTERVAL,
        );
      }
    }
  } catch (error) {
    opener.close();
    throw error;
  }
}

function openerOf(address: RedisAddress, config: Config, dependencies: RedisDependencies): Opener {
  const { clock, events, claim, databaseId } = dependencies;
  const { policy, timeout } = config.redis;
  const common = { clock, timeout, scripts: counterScripts };
  if (address.kind === "cluster") {
    const options = {
      ...common,
      address,
      admit: (send: Send) => claim.join(groupMark(databaseId, send, prefixOf(0))),
      onOutage: (cause: unknown, server: string) => events.redisOutage(cause, policy, server),
      onBack: events.redisBack,
      onPrimaries: events.redisPrimaries,
      onWarning: events.redisWarning,
    };
    return {
      open: () => RedisCluster.open(options),
      openInOutage: (cause) => RedisCluster.openInOutage(options, cause),
      close() {},
    };
  }
  const sentinels = address.kind === "sentinel" ? new Sentinels(address, clock) : undefined;
  let primary: string | undefined;
  const options: RedisOptions = {
    ...common,
    url: address.kind === "single" ? address.url : () => sentinels!.findPrimary(),
    admit: (send) => claim.join(groupMark(databaseId, send)),
    onOutage: (cause, server) => {
      primary = server;
      events.redisOutage(cause, policy, server);
    },
    onBack: (outageMs, server) => {
      events.redisBack(outageMs, server);
      if (sentinels && server !== primary) events.redisPrimaries([server]);
    },
  };
  return {
    open: () => RedisConnection.open(options),
    openInOutage: (cause) => RedisConnection.openInOutage(options, cause),
    close: () => sentinels?.close(),
  };
}

type Send = (args: readonly string[]) => Promise<unknown>;

/** Opens counters in Redis. `local`: the counters of this node, for the policy of this name. */
export async function openRedisCounters(
  { connection, stop }: SharedRedis,
  local: Counters,
  config: Config,
  dependencies: RedisDependencies,
): Promise<{ counters: SharedCounters; stop(): Promise<void> }> {
  const { clock, events, claim, databaseId } = dependencies;
  const { policy: kind } = config.redis;
  for (const warning of connection.warnings) events.redisWarning(warning);
  const policy: OutagePolicy = kind === "local" ? { kind, counters: local } : { kind };
  const isCluster = connection instanceof RedisCluster;
  const { counters, record } = isCluster
    ? await openInCluster(connection, policy, dependencies)
    : await openInOne(connection, policy, dependencies);
  const recording = every(clock, EPOCH_INTERVAL, record);
  const mark = groupMark(databaseId, (args) => connection.send(args), isCluster ? prefixOf(0) : undefined);
  // Nodes that start look for the mark of their group, so an emptied Redis gets it again.
  const marking = every(clock, MARK_INTERVAL, async () => {
    if (isCluster ? connection.isAdmitted : !connection.hasOutage) await claim.join(mark);
  });
  return {
    counters,
    async stop() {
      marking.cancel();
      recording.cancel();
      if (counters instanceof ClusterCounters) counters.close();
      stop();
    },
  };
}

/** Counters, and how to record in the database what they know of the data in Redis. */
interface Recorded<T extends SharedCounters> {
  counters: T;
  record(): Promise<void>;
}

async function openInOne(
  connection: RedisConnection,
  policy: OutagePolicy,
  { clock, random, events, readEpoch, keepEpoch }: RedisDependencies,
): Promise<Recorded<RedisCounters>> {
  let recorded = await readEpoch();
  const record = async () => {
    const known = counters.epoch;
    if (known === undefined || JSON.stringify(known) === JSON.stringify(recorded)) return;
    await keepEpoch(known);
    recorded = known;
  };
  const counters = new RedisCounters({
    redis: connection,
    clock,
    random,
    policy,
    lastEpoch: recorded ?? undefined,
    // Failures are ignored; the next run retries.
    onEpoch: () => void record().catch(() => {}),
    onLoss: (at) => events.redisLost({ at, servers: connection.servers.map(({ name }) => name) }),
  });
  return { counters, record };
}

async function openInCluster(
  cluster: RedisCluster,
  policy: OutagePolicy,
  { clock, random, events, readPartitionEpochs, keepPartitionEpochs }: RedisDependencies,
): Promise<Recorded<ClusterCounters>> {
  const recorded = new Map((await readPartitionEpochs()).map(({ partition, ...epoch }) => [partition, epoch]));
  let isRecording = false;
  const record = async () => {
    if (isRecording) return;
    isRecording = true;
    try {
      for (;;) {
        const changed = [...counters.epochs].filter(
          ([partition, epoch]) => JSON.stringify(epoch) !== JSON.stringify(recorded.get(partition)),
        );
        if (changed.length === 0) return;
        await keepPartitionEpochs(changed.map(([partition, epoch]) => ({ partition, ...epoch })));
        for (const [partition, epoch] of changed) recorded.set(partition, epoch);
      }
    } finally {
      isRecording = false;
    }
  };
  let lost: { at: number; servers: Set<string>; partitions: number } | undefined;
  const counters = new ClusterCounters({
    clock,
    random,
    policy,
    partition: (number) => cluster.partition(number),
    lastEpochs: recorded,
    onEpoch: () => void record().catch(() => {}),
    onLoss: (at, partition) => {
      if (!lost) {
        lost = { at, servers: new Set(), partitions: 0 };
        clock.schedule(LOSS_INTERVAL, () => {
          const { servers, ...rest } = lost!;
          lost = undefined;
          events.redisLost({ ...rest, servers: [...servers] });
        });
      }
      lost.at = Math.max(lost.at, at);
      lost.partitions++;
      lost.servers.add(cluster.serverOf(partition) ?? "");
    },
  });
  return { counters, record };
}
