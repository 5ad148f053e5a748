import type { Charge, LimitDecision } from "../../../../engine/src/limits/counters.ts";
import { type Limiter, LimiterUnavailable } from "../../../../engine/src/limits/limiter.ts";
import type { Principal } from "./principal.ts";
import { Problem } from "./problems.ts";

const MINUTE = 60_000;

/** The decision of a workspace's limit on a call: the headers of its answer, and the problem if it is rejected. */
export interface Admission {
  headers: Readonly<Record<string, string>>;
  rejection: Problem | undefined;
}

const uncounted: Admission = { headers: {}, rejection: undefined };
// The limit of 0 has no known end, so a client retries once a minute.
const stopped: Admission = { headers: {}, rejection: rejection({ "retry-after": String(MINUTE / 1_000) }) };

/** Counts a call against the limit of its workspace, which all root keys share. A call that cannot be counted passes. */
export function admit(
  { workspaceId }: Pick<Principal, "workspaceId">,
  requestsPerMinute: number,
  limiter: Limiter,
): Admission | Promise<Admission> {
  if (requestsPerMinute === 0) return stopped;
  const charge = { counter: `w\0${workspaceId}`, limit: requestsPerMinute, duration: MINUTE, cost: 1 };
  try {
    const decided = limiter.charge([charge]);
    if (!(decided instanceof Promise)) return admission(decided, requestsPerMinute);
    return decided.then((settled) => admission(settled, requestsPerMinute), letThrough);
  } catch (error) {
    return letThrough(error);
  }
}

/**
 * Counts a call against a limit beside that of its workspace. A call that cannot be counted passes.
 *
 * @param detail what the caller reads beyond the limit.
 * @throws {Problem} or rejects with one beyond the limit.
 */
export async function admitCall(
  counted: Pick<Charge, "counter" | "limit" | "owner">,
  detail: string,
  limiter: Limiter,
  duration = MINUTE,
): Promise<void> {
  const charge = { ...counted, duration, cost: 1 };
  let decided: LimitDecision;
  try {
    decided = await limiter.charge([charge]);
  } catch (error) {
    letThrough(error);
    return;
  }
  if (decided.allowed) return;
  const { retryAfter = MINUTE } = decided;
  throw new Problem("workspace_rate_limited", detail, { headers: { "retry-after": seconds(retryAfter) } });
}

function admission({ limits, at }: LimitDecision, requestsPerMinute: number): Admission {
  const { allowed, remaining, reset, retryAfter = MINUTE } = limits[0]!;
  const headers = {
    "RateLimit-Limit": String(requestsPerMinute),
    "RateLimit-Remaining": String(remaining),
    "RateLimit-Reset": seconds(reset - at),
  };
  return { headers, rejection: allowed ? undefined : rejection({ "retry-after": seconds(retryAfter) }) };
}

function letThrough(error: unknown): Admission {
  if (error instanceof LimiterUnavailable) return uncounted;
  throw error;
}

function rejection(headers: Readonly<Record<string, string>>): Problem {
  return new Problem("workspace_rate_limited", undefined, { headers });
}

function seconds(milliseconds: number): string {
  return String(Math.max(0, Math.ceil(milliseconds / 1_000)));
}
