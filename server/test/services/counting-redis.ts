import { systemClock } from "../../../engine/src/clock/system.ts";
import { counterScripts } from "../../src/platform/redis/redis-counters.ts";

/** Options of connections whose Redis counts, and has no outage. */
export const countingOptions = {
  clock: systemClock,
  timeout: 10_000,
  scripts: counterScripts,
  onOutage(cause: unknown): void {
    throw cause;
  },
  onBack(): void {},
};
