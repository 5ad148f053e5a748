import { availableParallelism, loadavg } from "node:os";

/**
 * How much longer work takes now than on a quiet machine, at least 1: the processes that want to run, in the mean of the
 * last minute, for each core. Bounds of wall time are multiplied by it.
 */
export function busyness(): number {
  return Math.max(1, loadavg()[0]! / availableParallelism());
}
