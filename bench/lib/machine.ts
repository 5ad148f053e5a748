import { execFileSync } from "node:child_process";
import { availableParallelism, cpus } from "node:os";

/** What a figure was measured on, in one line. */
export function describeMachine(): string {
  const model = cpus()[0]?.model.trim() || process.arch;
  return `Node ${process.versions.node}, ${availableParallelism()} cores, ${model}, ${process.platform}`;
}

/**
 * A command that runs another on one core, where that is possible and there is a second core for the rest; otherwise the
 * other command as it is.
 */
export function pinned(core: number, command: readonly string[]): string[] {
  return canPin ? ["taskset", "--cpu-list", String(core), ...command] : [...command];
}

export const canPin = availableParallelism() > 1 && answers("taskset", ["--version"]);

/** Whether there is such a program. What it answers does not matter. */
export function answers(program: string, args: readonly string[]): boolean {
  try {
    execFileSync(program, args, { stdio: "ignore", timeout: 5_000 });
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ENOENT";
  }
}
