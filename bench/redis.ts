/**
 * What counting in Redis costs: `node bench/redis.ts [url]`, with a Redis of its own unless it is given one. Gathered
 * calls are decided by one script per turn of the loop; one by one means a script for each call, pipelined all the same.
 * Each measurement takes two seconds, over the loopback address.
 */
import { setImmediate } from "node:timers/promises";
import { systemClock } from "../server/src/clock/system.ts";
import type { Charge, Counters } from "../server/src/limits/counters.ts";
import { counterScripts, RedisCounters } from "../server/src/limits/redis-counters.ts";
import { systemRandom } from "../server/src/random/system.ts";
import { RedisConnection } from "../server/src/redis/connection.ts";
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
    clock: systemClock,
    timeout: 5_000,
    scripts: counterScripts,
    onAway(cause) {
      throw cause;
    },
    onBack() {},
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
const gathered = new RedisCounters(options);

/** The same script, with one call each. */
const oneByOne: Pick<Counters, "charge"> = {
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

/** So many callers, each of whom calls again when answered. A turn of the loop passes between, as with HTTP. */
async function measure(label: string, counters: Pick<Counters, "charge">, nextCharge: () => Charge): Promise<void> {
  const waits: number[] = [];
  const { batches, sent, denialCacheHits } = gathered;
  const begin = systemClock.monotonic();
  let calls = 0;
  const caller = async () => {
    while (systemClock.monotonic() - begin < LENGTH_MS) {
      const at = systemClock.monotonic();
      await counters.charge([nextCharge()]);
      waits.push(systemClock.monotonic() - at);
      calls++;
      await setImmediate();
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
  const seconds = (systemClock.monotonic() - begin) / 1_000;
  waits.sort((a, b) => a - b);
  const wait = (part: number) => waits[Math.floor(part * (waits.length - 1))]!.toFixed(2);
  const asked = gathered.sent - sent;
  const size = asked > 0 ? `, ${(asked / (gathered.batches - batches)).toFixed(0)} a script` : "";
  const known =
    gathered.denialCacheHits > denialCacheHits
      ? `, ${Math.round(((gathered.denialCacheHits - denialCacheHits) / calls) * 100)} % not asked`
      : "";
  console.log(
    `${label.padEnd(38)} ${Math.round(calls / seconds)
      .toLocaleString("en")
      .padStart(9)} checks/s, ` + `${wait(0.5)} ms (99 %: ${wait(0.99)} ms)${size}${known}`,
  );
}

const hour = 3_600_000;
const hot = (limit: number) => () => ({ counter: "hot", limit, duration: hour, cost: 1 });
const one = () => ({ counter: `user ${systemRandom.below(100_000)}`, limit: 1e9, duration: hour, cost: 1 });
const info = String(await redis.send(["INFO", "server"]));
console.log(`${describeMachine()}, Redis ${/redis_version:(\S+)/.exec(info)?.[1]}, ${CALLERS} callers`);
await measure("warming up", gathered, one);
await measure("warming up", oneByOne, one);
await measure("100,000 identifiers, one by one", oneByOne, one);
await measure("100,000 identifiers, gathered", gathered, one);
await measure("one identifier, one by one", oneByOne, hot(1e9));
await measure("one identifier, gathered", gathered, hot(1e9));
await measure("one exhausted identifier, one by one", oneByOne, hot(1));
await measure("one exhausted identifier, remembered", gathered, hot(1));
redis.close();
await service?.stop();
if (given !== undefined) {
  // Only what was made here.
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
