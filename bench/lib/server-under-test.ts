/**
 * Servers under test: a process each, on core 0, that reports its use of CPU and memory over its IPC channel.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { resolve } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { Collection } from "./collections.ts";
import { ROOT_KEY } from "./keys.ts";
import { canPin, pinned } from "./machine.ts";

/** The core of a server's event loop. */
export const LOOP_CORE = 0;
const OTHER_CORE = 1;
const ANSWER_TIMEOUT_MS = 30_000;

interface Usage {
  cpuMs: number;
  residentBytes: number;
}

export interface ServerUnderTest {
  readonly url: string;
  /** CPU time of all threads of the process since its start, in milliseconds. */
  cpuMs(): Promise<number>;
  /** Resident memory of the process. */
  residentBytes(): Promise<number>;
  stop(): Promise<void>;
}

/** A server of one process. */
export interface ProcessUnderTest extends ServerUnderTest {
  readonly pid: number;
  /** `cpuMs` by the names of the threads. Linux only. */
  cpuMsByThread(): Promise<Readonly<Record<string, number>>>;
  /** The collections of garbage on the event loop since the last call, of which the first returns none. */
  collections(): Promise<Collection[]>;
  /** Bytes of the event loop that are in use after a full collection, on its heap and outside of it. */
  inUseBytes(): Promise<number>;
}

/** Starts a program of `bench/`, which calls `connectToBench`. */
export function startServerUnderTest(program: string, args: readonly string[] = []): Promise<ServerUnderTest> {
  return start([fileURLToPath(new URL(`../${program}`, import.meta.url)), ...args], {}, "together", addressSent);
}

export interface LatchkeyOptions {
  /** The data folder. */
  folder: string;
  /** Settings without their prefix `LATCHKEY_`; the others have their defaults. */
  settings?: Readonly<Record<string, string>>;
  nodeFlags?: readonly string[];
  /** The core of its event loop: 0 by default. */
  core?: number | undefined;
  /** "together" (default): all threads on that core. "loop apart": the other threads on core 1. */
  threads?: "together" | "loop apart";
  /** Another clone whose service is started. */
  clone?: string | undefined;
}

/** Starts the service as its users do: the bundle, with `ROOT_KEY` as the administrator's root key. */
export function startLatchkey({
  folder,
  settings = {},
  nodeFlags = [],
  core,
  threads = "together",
  clone,
}: LatchkeyOptions): Promise<ProcessUnderTest> {
  const given = { DATA_DIR: folder, ROOT_KEY, PORT: "0", DRAIN: "0", ...settings };
  const environment = Object.fromEntries(Object.entries(given).map(([name, value]) => [`LATCHKEY_${name}`, value]));
  const program = clone === undefined ? LATCHKEY : resolve(clone, "server/bin/latchkey.js");
  const command = [...nodeFlags, "--import", REPORT_USAGE, program, "serve"];
  return start(command, environment, threads, addressLogged, core);
}

/** Starts `latchkey edge` for a service of `startLatchkey`, with its administrator's root key. */
export function startEdge({ folder, upstream }: { folder: string; upstream: string }): Promise<ProcessUnderTest> {
  const given = { DATA_DIR: folder, ROOT_KEY, PORT: "0", DRAIN: "0", URL: upstream };
  const environment = Object.fromEntries(Object.entries(given).map(([name, value]) => [`LATCHKEY_${name}`, value]));
  return start(["--import", REPORT_USAGE, LATCHKEY, "edge"], environment, "together", addressLogged);
}

/** The command of the service. */
export const LATCHKEY = fileURLToPath(new URL("../../server/bin/latchkey.js", import.meta.url));
const REPORT_USAGE = new URL("report-usage.js", import.meta.url).href;

const running = new Set<ServerUnderTest>();

/** Stops all servers that are still running, at the end of a bench. */
export async function stopServers(): Promise<void> {
  await Promise.all([...running].map((server) => server.stop()));
}

/** Starts a Node on a core. `readAddress` reads where it listens. */
async function start(
  command: readonly string[],
  environment: NodeJS.ProcessEnv,
  threads: "together" | "loop apart",
  readAddress: (child: ChildProcess) => Promise<string>,
  core = LOOP_CORE,
): Promise<ProcessUnderTest> {
  const [program, ...args] = pinned(core, [process.execPath, ...command]);
  const child = spawn(program!, args, {
    env: { ...process.env, ...environment },
    stdio: ["ignore", "pipe", "inherit", "ipc"],
  });
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const ended = exited.then(() => Promise.reject(new Error("The server has ended")));
  ended.catch(() => {});
  const stop = async () => {
    if (child.connected) child.disconnect();
    await exited;
  };
  const ask = async (question: string): Promise<unknown> => {
    const answer = Promise.race([message(child), ended]);
    child.send(question);
    return answer;
  };
  const usage = () => ask("usage") as Promise<Usage>;
  try {
    const url = await Promise.race([readAddress(child), ended]);
    child.stdout!.resume();
    if (threads === "loop apart") moveThreads(child.pid!);
    const server: ProcessUnderTest = {
      url,
      pid: child.pid!,
      cpuMs: async () => (await usage()).cpuMs,
      cpuMsByThread: () => ask("threads") as Promise<Record<string, number>>,
      collections: () => ask("collections") as Promise<Collection[]>,
      inUseBytes: () => ask("inUse") as Promise<number>,
      residentBytes: async () => (await usage()).residentBytes,
      stop() {
        running.delete(server);
        return stop();
      },
    };
    running.add(server);
    return server;
  } catch (error) {
    await stop();
    throw error;
  }
}

async function message(child: ChildProcess): Promise<unknown> {
  const [received] = await once(child, "message", { signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS) });
  return received;
}

async function addressSent(child: ChildProcess): Promise<string> {
  return ((await message(child)) as { url: string }).url;
}

/** Where a service listens, from its log. */
export async function addressLogged(child: ChildProcess): Promise<string> {
  for await (const line of createInterface({ input: child.stdout! })) {
    const { address } = line.startsWith("{") ? JSON.parse(line) : {};
    // That of gRPC is logged before it.
    if (address?.startsWith("http") === true) return address;
  }
  throw new Error("The service has ended");
}

/** Moves all threads except the first, which runs the event loop. Threads that they start inherit the core. */
function moveThreads(pid: number): void {
  if (!canPin) return;
  for (const thread of readdirSync(`/proc/${pid}/task`).filter((id) => id !== String(pid))) {
    execFileSync("taskset", ["--cpu-list", "--pid", String(OTHER_CORE), thread], { stdio: "ignore" });
  }
}

/** Runs in a server of the bench: sends its address, reports its use of CPU and memory, and closes it at the end. */
export function connectToBench(url: string, close: () => Promise<unknown>): void {
  process.on("SIGTERM", () => void close().finally(() => process.exit()));
  void import(REPORT_USAGE).then(() => process.send!({ url }));
}
