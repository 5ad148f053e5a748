/**
 * Unary calls of gRPC from a process of their own. It writes and reads frames of HTTP/2 by hand, so that it is not the slower
 * side.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { pinned } from "./machine.ts";
import type { Load } from "./wrk.ts";

const LOAD_CORE = 1;

/**
 * Calls that are sent in turn. Each follows an answer, and a connection has as many open ones as it has streams; or they
 * arrive at random, and the latency of each counts from when it was due.
 */
export interface GrpcCalls {
  /** `package.Service/Method`. */
  method: string;
  /** With names in lower case. Names and values are shorter than 127 characters, all together than 3,000. */
  metadata: Readonly<Record<string, string>>;
  /** In hexadecimal. */
  messages: readonly string[];
  /** What the messages of successful answers begin with, in hexadecimal. */
  expected: string;
  connections: number;
  streams: number;
  /** Calls per second that arrive at random (Poisson). Omitted: each follows an answer. */
  perSecond?: number;
}

export interface GrpcWindow {
  port: number;
  seconds: number;
  calls: GrpcCalls;
}

/**
 * Runs one window against the server at this address.
 *
 * @throws if a call had no successful answer.
 */
export async function runGrpcLoad(url: string, seconds: number, calls: GrpcCalls): Promise<Load> {
  const program = fileURLToPath(new URL("grpc-load-process.ts", import.meta.url));
  const [command, ...args] = pinned(LOAD_CORE, [process.execPath, "--max-semi-space-size=256", program]);
  const child = spawn(command!, args, { stdio: ["ignore", "inherit", "inherit", "ipc"] });
  const ended = once(child, "exit").then(() => Promise.reject(new Error("The load generator has ended")));
  ended.catch(() => {});
  const answered = once(child, "message");
  child.send({ port: Number(new URL(url).port), seconds, calls } satisfies GrpcWindow);
  const [load] = (await Promise.race([answered, ended])) as [Load];
  if (load.rejected > 0) throw new Error(`${load.rejected} of ${load.requests} calls failed`);
  return load;
}
