// Loaded into a service under test (`node --import`): collects the garbage of the event loop at SIGUSR2, and gives the memory
// back. JavaScript, because loading TypeScript takes memory that is not the service's.
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { isMainThread } from "node:worker_threads";

if (isMainThread) {
  process.on("SIGUSR2", () => {
    setFlagsFromString("--expose-gc");
    runInNewContext("gc")({ type: "major", flavor: "last-resort" });
  });
}
