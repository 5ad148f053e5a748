/** Several nodes on one Redis, over real sockets. */
import assert from "node:assert/strict";
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { systemRandom } from "../../engine/src/random/system.ts";
import type { CallersReport, CallersTask } from "./redis-callers.ts";
import { sharedRedis } from "./services/redis.ts";
import { TcpProxy } from "./tcp-proxy.ts";

const program = fileURLToPath(new URL("redis-callers.ts", import.meta.url));

describe("three processes on one Redis", () => {
  let proxy: TcpProxy;
  before(async () => {
    proxy = await TcpProxy.open(await sharedRedis());
  });
  after(() => proxy.close());

  /** Makes 1,000 calls at once at one limit of 100. `prepare` runs when all nodes are connected. */
  async function burst(url: string, prepare = () => {}): Promise<CallersReport> {
    const prefix = `nodes:${systemRandom.below(2 ** 32)}:`;
    const nodes = [334, 333, 333].map((calls) => {
      const task: CallersTask = { url, calls, prefix, timeout: 2_000 };
      return fork(program, [JSON.stringify(task)], { stdio: "inherit" });
    });
    try {
      await Promise.all(nodes.map(nextMessage));
      prepare();
      const reports = nodes.map(nextMessage);
      for (const node of nodes) node.send("go");
      const total = { admitted: 0, denied: 0, outages: 0 };
      for (const report of (await Promise.all(reports)) as CallersReport[]) {
        for (const name of Object.keys(total) as (keyof CallersReport)[]) total[name] += report[name];
      }
      return total;
    } finally {
      for (const node of nodes) node.kill("SIGKILL");
    }
  }

  it("admit exactly 100 of 1,000 calls at once", async () => {
    assert.deepEqual(await burst(await sharedRedis()), { admitted: 100, denied: 900, outages: 0 });
  });

  it("admit exactly 100 with 2 ms more delay", async () => {
    proxy.delayMs = 1;
    assert.deepEqual(await burst(proxy.url), { admitted: 100, denied: 900, outages: 0 });
    proxy.delayMs = 0;
  });

  it("never admit more than 100 when connections are cut after the script was sent", async () => {
    const { admitted, denied, outages } = await burst(proxy.url, () => {
      proxy.cuts = 4;
    });
    assert.equal(proxy.cuts, 0);
    assert.ok(outages > 0);
    // The caller of a lost answer got 503, but its charge counts.
    assert.ok(admitted <= 100, `admitted ${admitted}`);
    assert.equal(admitted + denied, 1000);
  });
});

async function nextMessage(node: ChildProcess): Promise<unknown> {
  const [message] = await Promise.race([
    once(node, "message"),
    once(node, "exit").then(([code]) => {
      throw new Error(`A node ended with ${code}`);
    }),
  ]);
  return message;
}
