import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { needProgram } from "../process.ts";
import { makeDirectory, type Service, startService, unprivilegedAccount } from "./service.ts";

/** The interval of HAProxy's checks of a node, and the number of checks before it removes or adds the node. */
const CHECK = "check inter 200ms fall 2 rise 2";

/**
 * Starts an HAProxy in front of these ports of the loopback address. It keeps connections open, checks `/health/ready`,
 * and does not retry: every failure reaches the caller. The header `x-node` of an answer names the node: `node0` is the first.
 */
export async function startHaproxy(ports: readonly number[]): Promise<Service> {
  const program = await needProgram("haproxy");
  const account = unprivilegedAccount("haproxy");
  return startService(
    (port) => {
      const directory = makeDirectory("haproxy", account);
      const config = join(directory, "haproxy.cfg");
      writeFileSync(
        config,
        `
global
  maxconn 1000
  log stdout format raw local0 notice
defaults
  mode http
  log global
  timeout connect 2s
  timeout client 30s
  timeout server 30s
  # A busy machine answers later than the interval of the checks, which is the default.
  timeout check 3s
  retries 0
  option http-keep-alive
  http-reuse always
frontend callers
  bind 127.0.0.1:${port}
  default_backend nodes
  http-response set-header x-node %s
backend nodes
  option httpchk GET /health/ready
${ports.map((node, i) => `  server node${i} 127.0.0.1:${node} ${CHECK}`).join("\n")}
`,
        { mode: 0o644 },
      );
      return { program, args: ["-V", "-db", "-f", config], directory, account, stopSignal: "SIGTERM" };
    },
    /as the polling mechanism/,
    (port) => `http://127.0.0.1:${port}`,
  );
}
