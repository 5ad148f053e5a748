import { parentPort, workerData } from "node:worker_threads";
import { type ArrivalOptions, sharedNow } from "./poisson-arrivals.ts";

/** The longest time in ms for which an arrival waits for others, so that high rates cost fewer messages. */
const TOGETHER_MS = 0.2;

const sleeper = new Int32Array(new SharedArrayBuffer(4));
const { perSecond, seconds } = workerData as ArrivalOptions;
const startedAt = sharedNow();
let arrivals: number[] = [];
for (let due = startedAt; ; ) {
  due += (-Math.log(1 - Math.random()) / perSecond) * 1_000;
  if (due > startedAt + seconds * 1_000) break;
  const [first] = arrivals;
  const now = sharedNow();
  if (first !== undefined && due > now && due > first + TOGETHER_MS) {
    parentPort!.postMessage(arrivals);
    arrivals = [];
  }
  if (due > now) Atomics.wait(sleeper, 0, 0, due - now);
  arrivals.push(due);
}
parentPort!.postMessage(arrivals);
