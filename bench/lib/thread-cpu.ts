/** CPU time of single threads and of servers that this process started. Linux only. */
import { readdirSync, readFileSync } from "node:fs";
import { ticksPerSecond } from "./start.ts";

/** CPU time of each thread of this process in milliseconds, by its id. */
export function threadCpu(): Map<string, number> {
  const cpu = new Map<string, number>();
  for (const thread of readdirSync("/proc/self/task")) {
    try {
      // The first field is the time on a CPU in nanoseconds.
      const [ran] = readFileSync(`/proc/self/task/${thread}/schedstat`, "utf8").split(" ");
      cpu.set(thread, Number(ran) / 1e6);
    } catch {
      // The thread has ended.
    }
  }
  return cpu;
}

/**
 * CPU time in milliseconds of the processes that this one started, directly or not, with those that have ended.
 *
 * @param programs only processes with these names.
 */
export function childrenCpu(programs?: readonly string[]): number {
  const processes = new Map<string, { name: string; parent: string; seconds: number }>();
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      // proc(5): the fields after the name in parentheses. The 14th to 17th of all are the times of the process and of its
      // children that have ended.
      const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
      const nameEnd = stat.lastIndexOf(")");
      const name = stat.slice(stat.indexOf("(") + 1, nameEnd);
      const [, parent = "", ...fields] = stat.slice(nameEnd + 2).split(" ");
      const ticks = fields.slice(9, 13).reduce((sum, field) => sum + Number(field), 0);
      processes.set(pid, { name, parent, seconds: ticks / ticksPerSecond });
    } catch {
      // The process has ended.
    }
  }
  const own = String(process.pid);
  const isChild = (pid: string): boolean => {
    const found = processes.get(pid);
    return found !== undefined && (found.parent === own || isChild(found.parent));
  };
  let sum = 0;
  for (const [pid, { name, seconds }] of processes) {
    if (isChild(pid) && (programs?.includes(name) ?? true)) sum += seconds * 1_000;
  }
  return sum;
}
