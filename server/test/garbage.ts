import { getHeapSpaceStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** Collects the garbage of this thread: all, or that among young objects, of which those that survive two of these become old. */
export const collect = exposedCollector();

/** Bytes that objects of the old generation take. Before a full collection, this includes garbage. */
export function oldBytes(): number {
  const spaces = getHeapSpaceStatistics().filter(({ space_name }) => /^(old|large_object)_space$/.test(space_name));
  return spaces.reduce((sum, { space_used_size }) => sum + space_used_size, 0);
}

function exposedCollector(): (options?: { type: "minor" }) => void {
  setFlagsFromString("--expose-gc");
  return runInNewContext("gc");
}
