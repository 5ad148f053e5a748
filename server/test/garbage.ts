import { getHeapSpaceStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** Collects the garbage of this thread: all, or that among young objects, of which those that survive two of these become old. */
export const collect = exposedCollector();

/**
 * By how many bytes the old generation grows while `work` runs, with garbage that waits for a full collection: the least of
 * three runs, because a full collection that V8 has begun meanwhile, or code that it compiles, can add megabytes to one.
 */
export function growthOfOld(work: () => void): number {
  const runs = Array.from({ length: 3 }, () => {
    collect();
    const before = oldBytes();
    work();
    return oldBytes() - before;
  });
  return Math.min(...runs);
}

/** Bytes that objects of the old generation take. Before a full collection, this includes garbage. */
function oldBytes(): number {
  const spaces = getHeapSpaceStatistics().filter(({ space_name }) => /^(old|large_object)_space$/.test(space_name));
  return spaces.reduce((sum, { space_used_size }) => sum + space_used_size, 0);
}

function exposedCollector(): (options?: { type: "minor" }) => void {
  setFlagsFromString("--expose-gc");
  return runInNewContext("gc");
}
