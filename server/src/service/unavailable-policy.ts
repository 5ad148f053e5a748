import type { UnavailablePolicy } from "../../../engine/src/limits/limiter.ts";
import type { Config } from "../platform/config/config.ts";

/** What happens to calls that the counters cannot decide. */
export function unavailablePolicy({ redis }: Config): UnavailablePolicy {
  return redis.policy === "open" ? "open" : "closed";
}
