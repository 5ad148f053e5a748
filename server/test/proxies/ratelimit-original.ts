/** envoyproxy/ratelimit with a Redis of its own, and the client that is generated from the definitions of its protocol. */
import { type ChildProcessByStdio, execFileSync, spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import type { Descriptor } from "../grpc/rate-limit-messages.ts";
import { freePort } from "../services/free-port.ts";
import { startRedis } from "../services/redis.ts";
import { startService } from "../services/service.ts";

const MODULE = "github.com/envoyproxy/ratelimit/src/service_cmd@v1.4.1-0.20260122083618-3fb702589d36";
const BUILD_MAX_MS = 500_000;
const units = ["UNKNOWN", "SECOND", "MINUTE", "HOUR", "DAY", "MONTH", "YEAR", "WEEK"];

export interface Original {
  readonly url: string;
  /** Replaces the configuration of a domain, which it reads again when it notices. */
  configure(domain: string, text: string): void;
  stop(): Promise<void>;
}

/** Builds it from the proxy of Go modules, and starts it with these texts as the configurations of domains. */
export async function startOriginal(
  directory: string,
  configurations: Readonly<Record<string, string>>,
): Promise<Original> {
  const env = { ...process.env, GOFLAGS: "-mod=mod", GOBIN: directory };
  execFileSync("go", ["install", MODULE], { env, stdio: "pipe", timeout: BUILD_MAX_MS });
  const redis = await startRedis();
  const folder = join(directory, "runtime/ratelimit/config");
  mkdirSync(folder, { recursive: true });
  const configure = (domain: string, text: string) => writeFileSync(join(folder, `${domain}.yaml`), text);
  for (const [domain, text] of Object.entries(configurations)) configure(domain, text);
  const [http, debug] = [await freePort(), await freePort()];
  const service = await startService(
    (port) => ({
      program: join(directory, "service_cmd"),
      args: [],
      directory,
      account: undefined,
      environment: {
        GRPC_HOST: "127.0.0.1",
        GRPC_PORT: String(port),
        HOST: "127.0.0.1",
        PORT: String(http),
        DEBUG_HOST: "127.0.0.1",
        DEBUG_PORT: String(debug),
        USE_STATSD: "false",
        REDIS_SOCKET_TYPE: "tcp",
        REDIS_URL: new URL(redis.url).host,
        RUNTIME_ROOT: join(directory, "runtime"),
        RUNTIME_SUBDIRECTORY: "ratelimit",
        RUNTIME_WATCH_ROOT: "false",
        LOG_LEVEL: "info",
      },
      stopSignal: "SIGTERM",
    }),
    /Listening for gRPC/i,
    (port) => `http://127.0.0.1:${port}`,
  ).catch(async (error) => {
    await redis.stop();
    throw error;
  });
  return { url: service.url, configure, stop: () => service.stop().finally(() => redis.stop()) };
}

/** Builds the generated client, and returns its program. */
export function buildClient(directory: string): string {
  const program = join(directory, "ratelimit-client");
  const cwd = fileURLToPath(new URL("ratelimit-client", import.meta.url));
  execFileSync("go", ["build", "-o", program, "."], { cwd, stdio: "pipe", timeout: BUILD_MAX_MS });
  return program;
}

/** What a service says of one descriptor. */
export interface OriginalStatus {
  code: string;
  limit: { requestsPerUnit?: number; unit?: string; name?: string } | undefined;
  remaining: number;
  /** Seconds. */
  reset: number | undefined;
}

export type OriginalAnswer = { code: string; statuses: OriginalStatus[] } | { error: string };

/** Calls of the generated client, one after the other. */
export class GeneratedClient {
  readonly #process: ChildProcessByStdio<Writable, Readable, null>;
  readonly #lines: AsyncIterator<string>;

  constructor(program: string, address: string, rootKey?: string) {
    const authorization = rootKey === undefined ? "" : `Bearer ${rootKey}`;
    const env = { ...process.env, RATELIMIT_AUTHORIZATION: authorization };
    this.#process = spawn(program, [new URL(address).host], { env, stdio: ["pipe", "pipe", "inherit"] });
    this.#lines = createInterface({ input: this.#process.stdout })[Symbol.asyncIterator]();
  }

  async call(domain: string, descriptors: readonly Descriptor[], hits = 0): Promise<OriginalAnswer> {
    const request = {
      domain,
      hitsAddend: hits,
      descriptors: descriptors.map(({ entries, limit, hits: own }) => ({
        entries: entries.map(([key, value]) => ({ key, value })),
        ...(limit && { limit: { requestsPerUnit: limit[0], unit: units[limit[1]] } }),
        ...(own !== undefined && { hitsAddend: own }),
      })),
    };
    this.#process.stdin.write(`${JSON.stringify(request)}\n`);
    const { value, done } = await this.#lines.next();
    if (done) throw new Error("The generated client has ended");
    return read(JSON.parse(value));
  }

  close(): void {
    this.#process.stdin.end();
  }
}

/** An answer as JSON of protobuf, which leaves out members with the value of a missing field. */
interface JsonAnswer {
  error?: string;
  overallCode?: string;
  statuses?: {
    code?: string;
    currentLimit?: OriginalStatus["limit"];
    limitRemaining?: number;
    durationUntilReset?: string;
  }[];
}

function read({ error, overallCode = "UNKNOWN", statuses = [] }: JsonAnswer): OriginalAnswer {
  if (error !== undefined) return { error };
  return {
    code: overallCode,
    statuses: statuses.map(({ code = "UNKNOWN", currentLimit, limitRemaining = 0, durationUntilReset }) => ({
      code,
      limit: currentLimit,
      remaining: limitRemaining,
      reset: durationUntilReset === undefined ? undefined : Number.parseFloat(durationUntilReset),
    })),
  };
}
