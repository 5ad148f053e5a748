/** The cost of a start of the service, and of its rest. Linux only. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { JSON_TYPE, post, VERIFY_PATH } from "./keys.ts";
import { pinned } from "./machine.ts";
import { addressLogged } from "./server-under-test.ts";

/** A start and the rest after it: seconds, MiB. */
export interface MeasuredStart {
  /** Until the first answered call. */
  answered: number;
  cpu: number;
  /** After the rest. PSS counts shared memory in parts. */
  rss: number;
  pss: number;
  threads: number;
}

/** The unit of CPU time in `/proc`. */
export const ticksPerSecond = Number(execFileSync("getconf", ["CLK_TCK"], { encoding: "utf8" }));

/** Starts a program of the service, verifies the key as soon as it listens, and leaves it at rest for some seconds. */
export function measureStart(
  program: string,
  settings: NodeJS.ProcessEnv,
  key: string,
  rest: number,
): Promise<MeasuredStart> {
  return withService(program, settings, async (url, { pid }, startedAt) => {
    const answer = JSON.parse(await post(url + VERIFY_PATH, JSON_TYPE, JSON.stringify({ key })));
    const answered = (performance.now() - startedAt) / 1_000;
    const cpu = cpuSeconds(pid!);
    if (answer.data.valid !== true) throw new Error(`The key is not valid: ${JSON.stringify(answer)}`);
    await sleep(rest * 1_000);
    return { answered, cpu, ...residence(pid!) };
  });
}

/** Starts a program of the service, does the work as soon as it listens, and stops it. */
export async function withService<T>(
  program: string,
  settings: NodeJS.ProcessEnv,
  work: (url: string, service: ChildProcess, startedAt: number) => Promise<T>,
): Promise<T> {
  const [command, ...args] = pinned(0, [process.execPath, program, "serve"]);
  const startedAt = performance.now();
  const service = spawn(command!, args, { env: { ...process.env, ...settings }, stdio: ["ignore", "pipe", "inherit"] });
  const exited = once(service, "exit");
  try {
    const address = await addressLogged(service);
    service.stdout!.resume();
    return await work(address, service, startedAt);
  } finally {
    service.kill();
    await exited;
  }
}

/** CPU time of all threads of a process since its start. */
export function cpuSeconds(pid: number): number {
  // proc(5): the fields after the name in parentheses; utime and stime are the 14th and 15th of all.
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}

function residence(pid: number): Pick<MeasuredStart, "rss" | "pss" | "threads"> {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
  const mib = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(text)![1]) / 1_024;
  return { rss: mib("Rss"), pss: mib("Pss"), threads: readdirSync(`/proc/${pid}/task`).length };
}
