/**
 * Cost of counting in Redis: `node bench/redis.ts [url]`; starts a Redis of its own unless a URL is given. Batched
 * calls are decided by one script per turn of the event loop. Unbatched calls have a script each, pipelined all the
 * same. Each measurement takes two seconds, over the loopback address.
 */

import { setImmediate } from "node:timers/promises";
import { systemClock } from "../engine/src/clock/system.ts";
import type { Charge, Counters } from "../engine/src/limits/counters.ts";
import { systemRandom } from "../engine/src/random/system.ts";
import { RedisConnection } from "../server/src/platform/redis/connection.ts";
import { RedisCounters } from "../server/src/platform/redis/redis-counters.ts";
import { countingOptions } from "../server/test/services/counting-redis.ts";
import { startRedis } from "../server/test/services/redis.ts";
import { describeMachine } from "./lib/machine.ts";

const LENGTH_MS = 2_000;
const CALLERS = 256;

const given = process.argv[2];
const service = given === undefined ? await startRedis() : undefined;
const url = given ?? service!.url;
const open = () =>
  RedisConnection.open({
    url,
    ...countingOptions,
  });
const redis = await open();
const prefix = `bench:${systemRandom.below(2 ** 32)}:`;
const options = {
  redis,
  clock: systemClock,
  random: systemRandom,
  policy: { kind: "closed" },
  prefix,
  onLoss() {},
} as const;
const batched = new RedisCounters(options);

/** The same script, with one call each. */
const unbatched: Pick<Counters, "charge"> = {
  async charge([charge]) {
    const { counter, limit, duration, cost } = charge!;
    const calls = JSON.stringify([1, 1, 1, limit, duration, cost, 1]);
    const keys = [`${prefix}epoch`, `${prefix}${duration}:${counter}`];
    const reply = (await redis.run("charge", keys, [
      String(redis.deadline()),
      "",
      "single",
      "0",
      "0",
      calls,
    ])) as number[];
    return { outcome: "decided", at: reply[1]!, allowed: reply[6] === 0, retryAfter: reply[6], limits: [] };
  },
};

/** Runs callers that call again after each answer. A turn of the event loop passes in between, as with HTTP. */
async function measure(label: string, counters: Pick<Counters, "charge">, nextCharge: () => Charge): Promise<void> {
  const latencies: number[] = [];
  const { batches, sent, denialCacheHits } = batched;
  const begin = systemClock.monotonic();
  let calls = 0;
  const caller = async () => {
    while (systemClock.monotonic() - begin < LENGTH_MS) {
      const at = systemClock.monotonic();
      await counters.charge([nextCharge()]);
      latencies.push(systemClock.monotonic() - at);
      calls++;
      await setImmediate();
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
  const seconds = (systemClock.monotonic() - begin) / 1_000;
  latencies.sort((a, b) => a - b);
  const percentile = (part: number) => latencies[Math.floor(part * (latencies.length - 1))]!.toFixed(2);
  const evaluated = batched.sent - sent;
  const size = evaluated > 0 ? `, ${(evaluated / (batched.batches - batches)).toFixed(0)} per script` : "";
  const cached =
    batched.denialCacheHits > denialCacheHits
      ? `, ${Math.round(((batched.denialCacheHits - denialCacheHits) / calls) * 100)} % from the cache`
      : "";
  console.log(
    `${label.padEnd(38)} ${Math.round(calls / seconds)
      .toLocaleString("en")
      .padStart(9)} checks/s, ` + `${percentile(0.5)} ms (99 %: ${percentile(0.99)} ms)${size}${cached}`,
  );
}

const hour = 3_600_000;
const hot = (limit: number) => () => ({ counter: "hot", limit, duration: hour, cost: 1 });
const one = () => ({ counter: `user ${systemRandom.below(100_000)}`, limit: 1e9, duration: hour, cost: 1 });
const info = String(await redis.send(["INFO", "server"]));
console.log(`${describeMachine()}, Redis ${/redis_version:(\S+)/.exec(info)?.[1]}, ${CALLERS} callers`);
await measure("warming up", batched, one);
await measure("warming up", unbatched, one);
await measure("100,000 identifiers, unbatched", unbatched, one);
await measure("100,000 identifiers, batched", batched, one);
await measure("one identifier, unbatched", unbatched, hot(1e9));
await measure("one identifier, batched", batched, hot(1e9));
await measure("one exhausted identifier, unbatched", unbatched, hot(1));
await measure("one exhausted identifier, cached denial", batched, hot(1));
redis.close();
await service?.stop();
if (given !== undefined) {
  // Deletes only the keys of this run.
  const cleaner = await open();
  let cursor = "0";
  do {
    const [next, keys] = (await cleaner.send(["SCAN", cursor, "MATCH", `${prefix}*`, "COUNT", "1000"])) as [
      string,
      string[],
    ];
    if (keys.length > 0) await cleaner.send(["UNLINK", ...keys]);
    cursor = next;
  } while (cursor !== "0");
  cleaner.close();
}
