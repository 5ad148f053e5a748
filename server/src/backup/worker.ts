import { parentPort, workerData } from "node:worker_threads";
import { systemClock } from "../../../engine/src/clock/system.ts";
import { type BackupPlan, createBackup } from "./create.ts";

// A thread of its own, because the pauses of a copy block it.
const { bytes } = await createBackup(workerData as BackupPlan, systemClock);
parentPort!.postMessage(bytes);
