import { parentPort, workerData } from "node:worker_threads";
import type { Milliseconds } from "../../../../../engine/src/clock/clock.ts";
import { systemClock } from "../../../../../engine/src/clock/system.ts";
import { collectGarbage } from "./collect-garbage.ts";
import { serveRequests, type ThreadData } from "./serve-requests.ts";

/** When the thread collects the garbage of its start, a quarter of its heap: after the start of the service. */
const COLLECT_AFTER: Milliseconds = 2_000;

await serveRequests(parentPort!, workerData as ThreadData);
systemClock.schedule(COLLECT_AFTER, collectGarbage);
