import { parentPort, workerData } from "node:worker_threads";
import { systemClock } from "../../../../../engine/src/clock/system.ts";
import { collectStartGarbage } from "../../memory/collect-garbage.ts";
import { serveRequests, type ThreadData } from "./serve-requests.ts";

await serveRequests(parentPort!, workerData as ThreadData);
collectStartGarbage({ clock: systemClock });
