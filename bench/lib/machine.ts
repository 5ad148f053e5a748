import { execFileSync } from "node:child_process";
import { availableParallelism, cpus } from "node:os";

/** The machine in one line, for the head of a report. */
export function describeMachine(): string {
  const model = cpus()[0]?.model.trim() || process.arch;
  return `Node ${process.versions.node}, ${availableParallelism()} cores, ${model}, ${process.platform}`;
}

/** The command pinned to one core; unchanged if there is no `taskset` or no second core. */
export function pinned(core: number, command: readonly string[]): string[] {
  return canPin ? ["taskset", "--cpu-list", String(core), ...command] : [...command];
}

export const canPin = availableParallelism() > 1 && answers("taskset", ["--version"]);

/** Ends a bench whose figures need a core for the load and one for the server. */
export function requirePinning(): void {
  if (canPin) return;
  console.error("This bench needs two cores and taskset.");
  process.exit(1);
}

/** Whether the program can be run, with any exit code. */
export function answers(program: string, args: readonly string[]): boolean {
  try {
    execFileSync(program, args, { stdio: "ignore", timeout: 5_000 });
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ENOENT";
  }
}
