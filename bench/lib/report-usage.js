// Loaded into a server under test (`node --import`): reports its use of CPU and memory to the bench over IPC, and ends it
// when the bench disconnects. JavaScript, because loading TypeScript takes memory that is not the server's.
import { readdirSync, readFileSync } from "node:fs";
import { PerformanceObserver } from "node:perf_hooks";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

const collections = [];
let isObserving = false;

const answers = {
  usage() {
    const { user, system } = process.cpuUsage();
    return { cpuMs: (user + system) / 1_000, residentBytes: process.memoryUsage.rss() };
  },
  threads: cpuMsByThread,
  /** The collections of the event loop since the last question. The first one starts to observe them. */
  collections() {
    if (!isObserving) observeCollections();
    return collections.splice(0);
  },
  /** Bytes of the event loop that are in use: its heap after a full collection, and what it has outside of it. */
  inUse() {
    setFlagsFromString("--expose-gc");
    // Which gives memory back, where others keep pages for new objects.
    runInNewContext("gc")({ type: "major", flavor: "last-resort" });
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  },
};

process.on("message", (asked) => process.send(answers[asked]()));
process.once("disconnect", () => process.kill(process.pid, "SIGTERM"));

function observeCollections() {
  isObserving = true;
  const observer = new PerformanceObserver((list) => {
    for (const { detail, duration } of list.getEntries()) collections.push({ kind: detail.kind, ms: duration });
  });
  observer.observe({ entryTypes: ["gc"] });
}

/** Milliseconds of CPU by the name of the thread, in the ticks of Linux, which are 10 ms. Threads of one name count together. */
function cpuMsByThread() {
  const used = {};
  for (const id of readdirSync("/proc/self/task")) {
    const stat = readFileSync(`/proc/self/task/${id}/stat`, "utf8");
    const nameEnd = stat.lastIndexOf(")");
    const name = stat.slice(stat.indexOf("(") + 1, nameEnd);
    const fields = stat.slice(nameEnd + 2).split(" ");
    used[name] = (used[name] ?? 0) + (Number(fields[11]) + Number(fields[12])) * 10;
  }
  return used;
}
