/** Services and libraries that users would otherwise take, how each is got, started and called. */
import { execFile, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { freePort } from "../../server/test/services/free-port.ts";
import { startRedis } from "../../server/test/services/redis.ts";
import { canPin, pinned } from "./machine.ts";
import { LOOP_CORE } from "./server-under-test.ts";
import { cpuSeconds } from "./start.ts";

const START_MAX_MS = 30_000;
/** Compiling a peer for the first time takes minutes. */
const GET_MAX_MS = 1_800_000;

/** A running server of a peer. */
export interface PeerServer {
  readonly url: string;
  /** CPU time since its start, in milliseconds. */
  cpuMs(): number | Promise<number>;
  /** Resident memory in bytes. */
  residentBytes(): number | Promise<number>;
  stop(): Promise<void>;
}

/** A rate limiter, and how it is called: each call costs 1 of a limit of an hour. */
export interface LimitPeer {
  readonly name: string;
  /** Installs it into the folder, if it is not there; rejects if it cannot be had. */
  get(folder: string): Promise<void>;
  /** `limits`: the limits that calls will name. */
  start(folder: string, limits: readonly number[]): Promise<PeerServer>;
  readonly path: string;
  body(identifier: string, limit: number): string;
  isAdmitted(status: number, body: string): boolean;
}

const HOUR_SECONDS = 3_600;

/** From crates.io. Decides by GCRA, which admits the limit at once and then one call per `period / limit`. */
const throttlecrab: LimitPeer = {
  name: "throttlecrab",
  get: (folder) => cargoInstall(folder, "throttlecrab-server", "0.4.40"),
  async start(folder) {
    const port = await freePort();
    const options = ["--http", "--http-host", "127.0.0.1", "--http-port", String(port), "--log-level", "error"];
    return startPeer([join(folder, "bin/throttlecrab-server"), ...options], {}, port);
  },
  path: "/throttle",
  body: (key, limit) =>
    JSON.stringify({ key, max_burst: limit, count_per_period: limit, period: HOUR_SECONDS, quantity: 1 }),
  isAdmitted: (_, body) => JSON.parse(body).allowed,
};

/** From the Go proxy, on one node. */
const gubernator: LimitPeer = {
  name: "Gubernator",
  get: (folder) => goInstall(folder, "github.com/gubernator-io/gubernator/v2/cmd/gubernator@v2.13.0", "gubernator"),
  async start(folder) {
    const [port, other] = [await freePort(), await freePort()];
    const environment = {
      GUBER_HTTP_ADDRESS: `127.0.0.1:${port}`,
      GUBER_GRPC_ADDRESS: `127.0.0.1:${other}`,
      GUBER_ADVERTISE_ADDRESS: `127.0.0.1:${other}`,
      GUBER_LOG_LEVEL: "error",
    };
    return startPeer([join(folder, "bin/gubernator")], environment, port);
  },
  path: "/v1/GetRateLimits",
  body: (unique_key, limit) =>
    JSON.stringify({ requests: [{ name: "bench", unique_key, hits: 1, limit, duration: 1_000 * HOUR_SECONDS }] }),
  isAdmitted(_, body) {
    const { status, error } = JSON.parse(body).responses[0];
    if (error) throw new Error(`Gubernator answered: ${error}`);
    return status !== "OVER_LIMIT";
  },
};

/** envoyproxy/ratelimit over both of its protocols. Its CPU is without that of Redis, unless `withRedis`. */
export interface EnvoyRatelimit extends PeerServer {
  readonly grpcUrl: string;
}

/** From the Go proxy. Counts in Redis, which runs beside it; limits are declared in a file. */
export const envoyRatelimit = {
  name: "envoyproxy/ratelimit",
  get: (folder) =>
    goInstall(
      folder,
      "github.com/envoyproxy/ratelimit/src/service_cmd@v1.4.1-0.20260122083618-3fb702589d36",
      "service_cmd",
    ),
  /** `withRedis`: Redis shares the core, and its CPU counts. */
  async start(folder: string, limits: readonly number[], { withRedis = false } = {}): Promise<EnvoyRatelimit> {
    const redis = await startRedis();
    const redisPid = withRedis ? await moveRedis(redis.url) : undefined;
    const [port, grpc, debug] = [await freePort(), await freePort(), await freePort()];
    const configuration = join(folder, "envoy/bench/config");
    mkdirSync(configuration, { recursive: true });
    const declared = limits.map(
      (limit) => `  - key: user${limit}\n    rate_limit:\n      unit: hour\n      requests_per_unit: ${limit}\n`,
    );
    writeFileSync(join(configuration, "bench.yaml"), `domain: bench\ndescriptors:\n${declared.join("")}`);
    const environment = {
      USE_STATSD: "false",
      USE_PROMETHEUS: "false",
      LOG_LEVEL: "error",
      RUNTIME_ROOT: join(folder, "envoy"),
      RUNTIME_SUBDIRECTORY: "bench",
      RUNTIME_WATCH_ROOT: "false",
      REDIS_SOCKET_TYPE: "tcp",
      REDIS_URL: new URL(redis.url).host,
      HOST: "127.0.0.1",
      PORT: String(port),
      GRPC_HOST: "127.0.0.1",
      GRPC_PORT: String(grpc),
      DEBUG_HOST: "127.0.0.1",
      DEBUG_PORT: String(debug),
    };
    const server = await startPeer([join(folder, "bin/service_cmd")], environment, port).catch(async (error) => {
      await redis.stop();
      throw error;
    });
    return {
      ...server,
      grpcUrl: `http://127.0.0.1:${grpc}`,
      cpuMs: async () => (await server.cpuMs()) + (redisPid === undefined ? 0 : 1_000 * cpuSeconds(redisPid)),
      stop: () => server.stop().finally(() => redis.stop()),
    };
  },
  path: "/json",
  body: (value: string, limit: number) =>
    JSON.stringify({ domain: "bench", descriptors: [{ entries: [{ key: `user${limit}`, value }] }] }),
  isAdmitted: (status: number) => status === 200,
} satisfies LimitPeer;

/** Moves a Redis to the core of the servers, and returns the id of its process. */
async function moveRedis(url: string): Promise<number> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.write("INFO server\r\n");
  const [answer] = (await once(socket, "data")) as [Buffer];
  socket.destroy();
  const pid = Number(/^process_id:(\d+)/m.exec(answer.toString())?.[1]);
  if (canPin) {
    execFileSync("taskset", ["--all-tasks", "--cpu-list", "--pid", String(LOOP_CORE), String(pid)], {
      stdio: "ignore",
    });
  }
  return pid;
}

/**
 * From crates.io, which has its library but not its server: the library in memory, behind the HTTP framework that its server uses
 * (`lib/limitador/`).
 */
const limitador: LimitPeer = {
  name: "Limitador",
  get: (folder) => cargoBuild(folder, fileURLToPath(new URL("limitador", import.meta.url)), "limitador-bench"),
  async start(folder, limits) {
    const port = await freePort();
    return startPeer([join(folder, "bin/limitador-bench"), String(port), ...limits.map(String)], {}, port);
  },
  path: "/check_and_report",
  body: (user, limit) => JSON.stringify({ namespace: `bench ${limit}`, values: { user }, delta: 1 }),
  isAdmitted: (status) => status === 200,
};

export const limitPeers: readonly LimitPeer[] = [throttlecrab, limitador, gubernator, envoyRatelimit];

/** The verification of API keys by better-auth's plugin: a server, and its keys. */
export const betterAuth = {
  name: "better-auth",
  get: (folder: string) => npmInstall(folder, ["better-auth@1.7.5", "@better-auth/api-key@1.7.5"]),
  async start(folder: string, count: number): Promise<{ server: PeerServer; keys: readonly string[] }> {
    const program = fileURLToPath(new URL("better-auth-server.js", import.meta.url));
    const command = [process.execPath, program, join(folder, "npm"), String(count)];
    const [file, ...args] = pinned(0, command);
    const child = spawn(file!, args, { stdio: ["ignore", "ignore", "ignore", "ipc"] });
    const signal = AbortSignal.timeout(10 * START_MAX_MS);
    const [{ url, keys }] = (await once(child, "message", { signal })) as [{ url: string; keys: string[] }];
    return { server: serverOf(child, url), keys };
  },
};

async function startPeer(
  command: readonly string[],
  environment: NodeJS.ProcessEnv,
  port: number,
): Promise<PeerServer> {
  const [file, ...args] = pinned(0, command);
  const child = spawn(file!, args, { env: { ...process.env, ...environment }, stdio: "ignore" });
  const server = serverOf(child, `http://127.0.0.1:${port}`);
  const deadline = performance.now() + START_MAX_MS;
  for (;;) {
    const socket = connect(port, "127.0.0.1");
    try {
      await once(socket, "connect");
      return server;
    } catch (error) {
      if (child.exitCode !== null) throw new Error(`${command[0]} has ended with ${child.exitCode}`);
      if (performance.now() > deadline) {
        await server.stop();
        throw error;
      }
      await sleep(100);
    } finally {
      socket.destroy();
    }
  }
}

function serverOf(child: ReturnType<typeof spawn>, url: string): PeerServer {
  return {
    url,
    cpuMs: () => 1_000 * cpuSeconds(child.pid!),
    residentBytes: () => 1_024 * Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))![1]),
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill();
      await once(child, "exit");
    },
  };
}

async function cargoInstall(folder: string, crate: string, version: string, ...options: string[]): Promise<void> {
  if (existsSync(join(folder, "bin", crate))) return;
  await run("cargo", ["install", "--locked", "--root", folder, `${crate}@${version}`, ...options]);
}

/** Compiles a program of this folder. */
async function cargoBuild(folder: string, source: string, program: string): Promise<void> {
  if (existsSync(join(folder, "bin", program))) return;
  const environment = { CARGO_TARGET_DIR: join(folder, "target") };
  await run("cargo", ["install", "--root", folder, "--path", source], environment);
}

async function goInstall(folder: string, module: string, program: string): Promise<void> {
  if (existsSync(join(folder, "bin", program))) return;
  await run("go", ["install", module], { GOBIN: join(folder, "bin") });
}

async function npmInstall(folder: string, packages: readonly string[]): Promise<void> {
  const target = join(folder, "npm");
  if (existsSync(join(target, "node_modules"))) return;
  mkdirSync(target, { recursive: true });
  writeFileSync(join(target, "package.json"), "{}");
  // Its optional peers are frameworks that the bench does not use.
  const options = ["--no-audit", "--no-fund", "--legacy-peer-deps", "--ignore-scripts"];
  await run("npm", ["install", "--prefix", target, ...options, ...packages]);
}

/** @throws with the last line of what the program printed. */
async function run(program: string, args: readonly string[], environment: NodeJS.ProcessEnv = {}): Promise<void> {
  console.error(`Installing a peer, which can take minutes: ${program} ${args.join(" ")}`);
  try {
    await promisify(execFile)(program, args, {
      env: { ...process.env, ...environment },
      timeout: GET_MAX_MS,
      maxBuffer: 64 * 2 ** 20,
    });
  } catch (error) {
    const { stderr = "", code } = error as { stderr?: string; code?: unknown };
    const reason = code === "ENOENT" ? `${program} is not installed` : stderr.trim().split("\n").at(-1);
    throw new Error(reason || `${program} failed`, { cause: error });
  }
}
