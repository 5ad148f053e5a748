/**
 * A node of `redis-nodes.test.ts` in a process of its own: on "go" it makes all its calls at once, and reports the
 * outcomes.
 */
import { once } from "node:events";
import { systemClock } from "../../engine/src/clock/system.ts";
import { systemRandom } from "../../engine/src/random/system.ts";
import { DURATION_MAX } from "../../engine/src/rules/window.ts";
import { RedisConnection } from "../src/platform/redis/connection.ts";
import { counterScripts, RedisCounters } from "../src/platform/redis/redis-counters.ts";

export interface CallersTask {
  readonly url: string;
  readonly timeout: number;
  readonly calls: number;
  readonly prefix: string;
}

export interface CallersReport {
  admitted: number;
  denied: number;
  /** Attempts without a decision. */
  outages: number;
}

const { url, timeout, calls, prefix } = JSON.parse(process.argv[2]!) as CallersTask;
let back = () => {};
const redis = await RedisConnection.open({
  url,
  timeout,
  clock: systemClock,
  scripts: counterScripts,
  onOutage() {},
  onBack: () => back(),
});
const policy = { kind: "closed" } as const;
const options = { redis, prefix, policy, clock: systemClock, random: systemRandom, onLoss() {} };
const counters = new RedisCounters(options);
const report: CallersReport = { admitted: 0, denied: 0, outages: 0 };

let returned: Promise<void> | undefined;
/** Repeats each call until it is decided, as clients do after 503. */
async function call(): Promise<void> {
  for (;;) {
    const verdict = await counters.charge([{ counter: "a", limit: 100, duration: DURATION_MAX, cost: 1 }]);
    if (verdict.outcome === "decided") {
      if (verdict.allowed) report.admitted++;
      else report.denied++;
      return;
    }
    report.outages++;
    if (!redis.hasOutage) continue;
    returned ??= new Promise((resolve) => {
      back = () => {
        returned = undefined;
        resolve();
      };
    });
    await returned;
  }
}

// A timer of the clock does not keep the process alive while it waits for Redis; the listener for the parent does.
process.on("message", () => {});
process.send!("ready");
await once(process, "message");
await Promise.all(Array.from({ length: calls }, call));
redis.close();
process.send!(report);
process.disconnect();
