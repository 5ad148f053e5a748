import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/**
 * Collects the garbage of the calling thread and gives the memory back to the system. Takes about 40 ms of CPU for a heap
 * of 10 MB. V8 does the same at rest, but not as part of Node 24: it waits for a low allocation rate of C++ objects, which
 * it never measures there.
 */
export function collectGarbage(): void {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as (options: { type: "major"; flavor: "last-resort" }) => void;
  // The regular flavor keeps freed pages for the next objects.
  collect({ type: "major", flavor: "last-resort" });
}
