/**
 * Counting in a Redis Cluster: `node bench/redis-cluster.ts`, with a cluster of six servers on this machine. Two nodes with
 * 64 callers each charge limits in one partition, then in two. The last run has scarce limits: it counts the calls that were
 * denied only because another call held charges that it gave back.
 */

import { systemClock } from "../engine/src/clock/system.ts";
import type { Charge, LimitDecision } from "../engine/src/limits/counters.ts";
import { systemRandom } from "../engine/src/random/system.ts";
import { parseRedisAddress, type RedisAddress } from "../server/src/platform/redis/address.ts";
import { RedisCluster } from "../server/src/platform/redis/cluster.ts";
import { ClusterCounters } from "../server/src/platform/redis/cluster-counters.ts";
import { countingOptions } from "../server/test/services/counting-redis.ts";
import { startRedisCluster } from "../server/test/services/redis-groups.ts";
import { describeMachine } from "./lib/machine.ts";

const LENGTH_MS = 2_000;
const CALLERS = 64;
const DAY = 86_400_000;
const PLENTY = 1_000_000_000;

const servers = await startRedisCluster();
const clusters: RedisCluster[] = [];
const nodes: ClusterCounters[] = [];
for (let i = 0; i < 2; i++) {
  const cluster = await RedisCluster.open({
    address: parseRedisAddress(servers.url) as RedisAddress & { kind: "cluster" },
    ...countingOptions,
    onPrimaries() {},
    onWarning: console.warn,
  });
  clusters.push(cluster);
  nodes.push(
    new ClusterCounters({
      partition: (number) => cluster.partition(number),
      clock: systemClock,
      random: systemRandom,
      policy: { kind: "closed" },
      onLoss() {},
    }),
  );
}

const limitOf = (counter: string, limit: number): Charge => ({ counter, limit, duration: DAY, cost: 1 });

/** Runs callers on both nodes that call again after each answer. Returns all answers. */
async function run(label: string, lengthMs: number, next: () => Charge[]): Promise<[Charge[], LimitDecision][]> {
  const answers: [Charge[], LimitDecision][] = [];
  const latencies: number[] = [];
  const begin = systemClock.monotonic();
  const caller = async (counters: ClusterCounters) => {
    while (systemClock.monotonic() - begin < lengthMs) {
      const charges = next();
      const at = systemClock.monotonic();
      answers.push([charges, (await counters.charge(charges)) as LimitDecision]);
      latencies.push(systemClock.monotonic() - at);
    }
  };
  await Promise.all(nodes.flatMap((counters) => Array.from({ length: CALLERS }, () => caller(counters))));
  latencies.sort((a, b) => a - b);
  const percentile = (part: number) => latencies[Math.floor(part * (latencies.length - 1))]!.toFixed(2);
  const rate = Math.round((answers.length * 1_000) / (systemClock.monotonic() - begin));
  console.log(`${label}: ${rate} calls/s, p50 ${percentile(0.5)} ms, p99 ${percentile(0.99)} ms`);
  return answers;
}

console.log(describeMachine());
let number = 0;
await run("one partition", LENGTH_MS, () => [limitOf(`key\0${number++ % 10_000}\0a`, PLENTY)]);
await run("two partitions", LENGTH_MS, () => [
  limitOf(`key\0${number++ % 10_000}\0a`, PLENTY),
  limitOf(`identity\0${number % 1_000}\0a`, PLENTY),
]);

// Every key has room for 40 calls, and every identity of four keys for 100.
let scarce = 0;
const limits = { key: 40, identity: 100 };
const answers = await run("scarce limits", LENGTH_MS, () => {
  const key = scarce++ % 40;
  return [limitOf(`key\0scarce ${key}\0a`, limits.key), limitOf(`identity\0scarce ${key % 10}\0a`, limits.identity)];
});
const used = new Map<string, number>();
let early = 0;
for (const [charges, { allowed }] of answers) {
  // Answers are in order of their arrival, so this is an approximation from below of what was used at a denial.
  const isFull = charges.some(({ counter, limit }) => (used.get(counter) ?? 0) >= limit);
  if (!allowed && !isFull) early++;
  if (allowed) for (const { counter } of charges) used.set(counter, (used.get(counter) ?? 0) + 1);
}
const over = answers.flatMap(([charges]) => charges).filter(({ counter, limit }) => (used.get(counter) ?? 0) > limit);
const returned = nodes.reduce((sum, counters) => sum + counters.returned, 0);
console.log(
  `of ${answers.length} calls, ${answers.filter(([, { allowed }]) => allowed).length} were allowed, ${returned} parts given ` +
    `back, ${early} denied while there was room, ${over.length} beyond a limit`,
);
for (const one of [...nodes, ...clusters]) one.close();
await servers.stop();
