import type { Config } from "../config/config.ts";
import type { UnavailablePolicy } from "../limits/limiter.ts";

/** What happens to calls that the counters cannot decide. */
export function unavailablePolicy({ redis }: Config): UnavailablePolicy {
  return redis.policy === "open" ? "open" : "closed";
}
