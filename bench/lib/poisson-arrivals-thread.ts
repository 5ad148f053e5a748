import { parentPort, workerData } from "node:worker_threads";
import { type ArrivalOptions, sharedNow } from "./poisson-arrivals.ts";

const sleeper = new Int32Array(new SharedArrayBuffer(4));
const { perSecond, seconds } = workerData as ArrivalOptions;
const startedAt = sharedNow();
for (let due = startedAt; ; ) {
  due += (-Math.log(1 - Math.random()) / perSecond) * 1_000;
  if (due > startedAt + seconds * 1_000) break;
  Atomics.wait(sleeper, 0, 0, Math.max(0, due - sharedNow()));
  parentPort!.postMessage(due);
}
