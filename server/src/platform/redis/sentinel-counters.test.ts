import { after, before } from "node:test";
import { SimulatedClock } from "../../../../engine/src/clock/simulated.ts";
import { systemClock } from "../../../../engine/src/clock/system.ts";
import { describeCounters } from "../../../../engine/src/limits/counters-contract.ts";
import { systemRandom } from "../../../../engine/src/random/system.ts";
import { countingOptions } from "../../../test/services/counting-redis.ts";
import { type SentinelGroup, startSentinels } from "../../../test/services/redis-groups.ts";
import { parseRedisAddress, type RedisAddress } from "./address.ts";
import { RedisConnection } from "./connection.ts";
import { RedisCounters } from "./redis-counters.ts";
import { Sentinels } from "./sentinel.ts";

let group: SentinelGroup;
let sentinels: Sentinels;
let redis: RedisConnection;
before(async () => {
  group = await startSentinels();
  sentinels = new Sentinels(parseRedisAddress(group.url) as RedisAddress & { kind: "sentinel" }, systemClock);
  redis = await RedisConnection.open({
    url: () => sentinels.findPrimary(),
    ...countingOptions,
  });
});
after(async () => {
  redis?.close();
  sentinels?.close();
  await group?.stop();
});

let opened = 0;
describeCounters("Redis behind Sentinels", () => {
  const clock = new SimulatedClock(1_800_000_000_000);
  const counters = new RedisCounters({
    redis,
    clock,
    random: systemRandom,
    policy: { kind: "open" },
    onLoss() {},
    prefix: `test:${opened++}:`,
    simulatedTime: () => clock.now(),
  });
  return { counters, lender: counters, now: () => clock.now(), advance: (length) => clock.step(length), close() {} };
});
