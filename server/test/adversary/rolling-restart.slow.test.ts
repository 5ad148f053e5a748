/**
 * A rolling restart behind a load balancer fails no call: two real nodes behind HAProxy, under load on keep-alive
 * connections.
 */
import assert from "node:assert/strict";
import { Agent, request } from "node:http";
import { join } from "node:path";
import { describe, it } from "node:test";
import { eventually, makeFolder, ROOT_KEY, type Server, start } from "../process.ts";
import { freePort } from "../services/free-port.ts";
import { startHaproxy } from "../services/haproxy.ts";
import { freshDatabase } from "../services/postgres.ts";
import { sharedRedis } from "../services/redis.ts";

const CALLERS = 8;
const ROUNDS = 1;

describe("a rolling restart of two nodes behind HAProxy", () => {
  it("fails no call", async (t) => {
    const database = await freshDatabase();
    const directory = makeFolder(t);
    t.after(() => database.drop());
    const ports = [await freePort(), await freePort()];
    const redis = await sharedRedis();
    const launchNode = (i: number) =>
      start({
        directory,
        // The last occurrence of a flag applies.
        args: ["--port", String(ports[i])],
        settings: {
          DATABASE_URL: database.url,
          REDIS_URL: redis,
          DATA_DIR: join(directory, `data${i}`),
          DRAIN: "2s",
          ANALYTICS: "off",
        },
      });
    const nodes: Server[] = [await launchNode(0), await launchNode(1)];
    const { apiId } = await nodes[0]!.ok("apis.createApi", { name: "rolling" });
    const { key } = await nodes[0]!.ok("keys.createKey", { apiId });
    const haproxy = await startHaproxy(ports);
    t.after(() => haproxy.stop());

    const counts = { calls: 0, failed: 0 };
    const failures = new Map<string, number>();
    const body = JSON.stringify({ key });
    const agent = new Agent({ keepAlive: true, maxSockets: CALLERS });
    t.after(() => agent.destroy());
    let isOver = false;
    t.after(() => {
      isOver = true;
    });
    const answered = () =>
      new Promise<string>((resolve) => {
        const call = request(
          `${haproxy.url}/v2/keys.verifyKey`,
          {
            method: "POST",
            agent,
            headers: {
              "content-type": "application/json",
              "content-length": body.length,
              authorization: `Bearer ${ROOT_KEY}`,
            },
          },
          (response) => {
            response
              .resume()
              // HAProxy's own errors have no such header.
              .on("end", () => resolve(`${response.statusCode} of ${response.headers["x-node"] ?? "HAProxy"}`))
              .on("error", (error) => resolve(error.message));
          },
        );
        call.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message)).end(body);
      });
    await eventually("HAProxy to reach a node", async () => (await answered()).startsWith("200"));
    const caller = async () => {
      while (!isOver) {
        const answer = await answered();
        counts.calls++;
        if (answer.startsWith("200")) continue;
        counts.failed++;
        failures.set(answer, (failures.get(answer) ?? 0) + 1);
      }
    };
    const callers = Array.from({ length: CALLERS }, caller);
    for (let round = 0; round < ROUNDS; round++) {
      for (const i of [0, 1]) {
        assert.deepEqual(await nodes[i]!.kill("SIGTERM"), { code: 0, signal: null });
        nodes[i] = await launchNode(i);
        // An operator continues when the balancer uses the node again.
        const before = await callsOf(nodes[i]!);
        await eventually("the balancer to use the node again", async () => (await callsOf(nodes[i]!)) > before + 50);
      }
    }
    isOver = true;
    await Promise.all(callers);
    t.diagnostic(
      `${2 * ROUNDS} restarts: ${counts.failed} of ${counts.calls} calls failed ${JSON.stringify([...failures])}`,
    );
    assert(counts.calls > 1_000, "there was load");
    assert.deepEqual([...failures], []);
  });
});

/** The number of verifications that a node has answered. */
async function callsOf(node: Server): Promise<number> {
  const text = await (await fetch(`${node.address}/metrics`)).text();
  return Number(/^latchkey_verifications_total\{code="VALID"\} (\d+)/m.exec(text)?.[1] ?? 0);
}
