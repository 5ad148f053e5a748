import { constants, getPriority, setPriority } from "node:os";

/** By how much the nice value of a thread is raised: to about a tenth of the weight of the others. */
export const NICE_STEP = 10;

/**
 * Lowers the priority of the calling thread, so that on a shared core the event loop runs first. Does so only on Linux,
 * where a thread has a priority of its own; elsewhere it would be that of the whole process.
 */
export function lowerThreadPriority(): void {
  if (process.platform !== "linux") return;
  try {
    setPriority(0, Math.min(getPriority(0) + NICE_STEP, constants.priority.PRIORITY_LOW));
  } catch {
    // A sandbox may forbid the system call. The thread works all the same.
  }
}
