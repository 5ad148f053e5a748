/**
 * A server under test, from both sides: a process of its own on core 0 that reports over its IPC channel where it
 * listens and how much CPU time it has used.
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { canPin, pinned } from "./machine.ts";

/** The core of a server's event loop. */
export const LOOP_CORE = 0;
const OTHER_CORE = 1;
const ANSWER_TIMEOUT_MS = 30_000;

/** A message of the server: its address once it listens, then its use of CPU and memory on request. */
type Message = { url: string } | Usage;

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

/** Starts a program of `bench/`, which calls `connectToBench`. */
export async function startServerUnderTest(
  program: string,
  args: readonly string[] = [],
  nodeFlags: readonly string[] = [],
  /** "together": all threads on core 0. "loop apart": the event loop on core 0, the other threads on core 1. */
  threads: "together" | "loop apart" = "together",
): Promise<ServerUnderTest> {
  const file = fileURLToPath(new URL(`../${program}`, import.meta.url));
  const [command, ...rest] = pinned(LOOP_CORE, [process.execPath, ...nodeFlags, file, ...args]);
  const child = spawn(command!, rest, { stdio: ["ignore", "inherit", "inherit", "ipc"] });
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));

  const receive = async (): Promise<Message> => {
    const signal = AbortSignal.timeout(ANSWER_TIMEOUT_MS);
    const ended = exited.then(() => Promise.reject(new Error(`${program} has ended`)));
    const [message] = await Promise.race([once(child, "message", { signal }), ended]);
    return message as Message;
  };
  const stop = async () => {
    if (child.connected) child.disconnect();
    await exited;
  };

  try {
    const { url } = (await receive()) as { url: string };
    if (threads === "loop apart") moveThreads(child.pid!);
    const usage = async () => {
      const answer = receive();
      child.send("usage");
      return (await answer) as Usage;
    };
    return {
      url,
      cpuMs: async () => (await usage()).cpuMs,
      residentBytes: async () => (await usage()).residentBytes,
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Moves all threads except the first, which runs the event loop. Threads that they start inherit the core. */
function moveThreads(pid: number): void {
  if (!canPin) return;
  for (const thread of readdirSync(`/proc/${pid}/task`).filter((id) => id !== String(pid))) {
    execFileSync("taskset", ["--cpu-list", "--pid", String(OTHER_CORE), thread], { stdio: "ignore" });
  }
}

/**
 * Runs in the process of the server: reports its address, answers with its use of CPU and memory, closes when the bench disconnects.
 */
export function connectToBench(url: string, close: () => Promise<unknown>): void {
  const send = (message: Message) => process.send!(message);
  process.on("message", () => {
    const { user, system } = process.cpuUsage();
    send({ cpuMs: (user + system) / 1_000, residentBytes: process.memoryUsage.rss() });
  });
  process.once("disconnect", () => void close().finally(() => process.exit()));
  send({ url });
}
