/** Many simultaneous calls on a machine without spare CPU. */
import { type ChildProcess, spawn } from "node:child_process";
import { Agent, request } from "node:http";
import { ROOT_KEY, type Server } from "./process.ts";

/** 30 days: no burst reaches the end of a window. */
const DURATION = 2_592_000_000;

/** Processes that use all the CPU they get, for at most 6 s. As root, they get precedence. */
export function saturate(): { end(): void } {
  const spinners = Array.from({ length: process.getuid?.() === 0 ? 3 : 12 }, spin);
  return {
    end() {
      for (const spinner of spinners) spinner.kill("SIGKILL");
    },
  };
}

function spin(): ChildProcess {
  const code = "const end = performance.now() + 6_000; while (performance.now() < end);";
  return spawn("nice", ["-n", "-10", process.execPath, "-e", code], { stdio: "ignore" });
}

/** Makes all calls at once at one limit, spread over the nodes, and counts their outcomes. */
export async function burst(
  nodes: readonly Server[],
  { identifier, limit, calls: count }: { identifier: string; limit: number; calls: number },
): Promise<Map<string, number>> {
  const agent = new Agent({ keepAlive: true });
  const body = JSON.stringify({ namespace: "burst", identifier, limit, duration: DURATION });
  const tally = new Map<string, number>();
  const calls = Array.from({ length: count }, async (_, i) => {
    const outcome = await call(nodes[i % nodes.length]!.address, agent, body);
    tally.set(outcome, (tally.get(outcome) ?? 0) + 1);
  });
  await Promise.all(calls);
  agent.destroy();
  return tally;
}

function call(address: string, agent: Agent, body: string): Promise<string> {
  const headers = {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(body),
    authorization: `Bearer ${ROOT_KEY}`,
  };
  return new Promise((resolve, reject) => {
    const sent = request(`${address}/v2/ratelimits.limit`, { method: "POST", agent, headers }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (piece: string) => {
        text += piece;
      });
      response.on("end", () => {
        if (response.statusCode !== 200) resolve(String(response.statusCode));
        else resolve(JSON.parse(text).data.success ? "admitted" : "denied");
      });
    });
    sent.on("error", reject);
    sent.end(body);
  });
}
