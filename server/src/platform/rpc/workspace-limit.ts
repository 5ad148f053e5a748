import type { Charge, LimitDecision, LimitState } from "../../../../engine/src/limits/counters.ts";
import { type Limiter, LimiterUnavailable } from "../../../../engine/src/limits/limiter.ts";
import { type LimitField, limitHeaders } from "./limit-fields.ts";
import type { Principal } from "./principal.ts";
import { Problem } from "./problems.ts";

const MINUTE = 60_000;

/** The decision of a workspace's limit on a call: the headers of its answer, and the problem if it is rejected. */
export interface Admission {
  headers: Readonly<Record<string, string>>;
  rejection: Problem | undefined;
}

const uncounted: Admission = { headers: {}, rejection: undefined };

/** Counts a call against the limit of its workspace, which all root keys share. A call that cannot be counted passes. */
export function admit(
  { workspaceId }: Pick<Principal, "workspaceId">,
  requestsPerMinute: number,
  limiter: Limiter,
): Admission | Promise<Admission> {
  if (requestsPerMinute === 0) return stopped(workspaceId);
  const charge = { counter: `w\0${workspaceId}`, limit: requestsPerMinute, duration: MINUTE, cost: 1 };
  try {
    const decided = limiter.charge([charge]);
    if (!(decided instanceof Promise)) return admission(decided, requestsPerMinute, workspaceId);
    return decided.then((settled) => admission(settled, requestsPerMinute, workspaceId), letThrough);
  } catch (error) {
    return letThrough(error);
  }
}

/**
 * Counts a call against a limit beside that of its workspace. A call that cannot be counted passes.
 *
 * @param policy its name in the headers of a rejection.
 * @param detail what the caller reads beyond the limit.
 * @throws {Problem} or rejects with one beyond the limit.
 */
export async function admitCall(
  counted: Pick<Charge, "counter" | "limit" | "owner">,
  policy: string,
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
  // The name of a counter is that of its kind, a separator and the id of what it counts for.
  const partition = counted.counter.slice(counted.counter.indexOf("\0") + 1);
  throw rejection(decided, { name: policy, limit: counted.limit, duration, partition }, detail);
}

/** The limit of 0 has no known end, so a client retries once a minute. */
function stopped(workspaceId: string): Admission {
  const state = { allowed: false, remaining: 0, reset: MINUTE, retryAfter: MINUTE };
  return { headers: {}, rejection: rejection({ limits: [state], at: 0 }, policyOf(workspaceId, 0)) };
}

function admission(decided: LimitDecision, requestsPerMinute: number, workspaceId: string): Admission {
  const { allowed, remaining, reset } = onlyLimit(decided);
  const headers = {
    "RateLimit-Limit": String(requestsPerMinute),
    "RateLimit-Remaining": String(remaining),
    "RateLimit-Reset": seconds(reset - decided.at),
  };
  return { headers, rejection: allowed ? undefined : rejection(decided, policyOf(workspaceId, requestsPerMinute)) };
}

function policyOf(workspaceId: string, limit: number): Policy {
  return { name: "workspace", limit, duration: MINUTE, partition: workspaceId };
}

function letThrough(error: unknown): Admission {
  if (error instanceof LimiterUnavailable) return uncounted;
  throw error;
}

type Policy = Pick<LimitField, "name" | "limit" | "duration" | "partition">;

type Decided = Pick<LimitDecision, "limits" | "at">;

function onlyLimit({ limits }: Decided): LimitState {
  return limits[0]!;
}

/** The problem of a call that its only limit denied, with the headers that say when it can pass. */
function rejection(decided: Decided, policy: Policy, detail?: string): Problem {
  const { retryAfter = MINUTE, remaining, reset } = onlyLimit(decided);
  const fields = limitHeaders([{ ...policy, exceeded: true, remaining, reset, retryAfter }], decided.at);
  return new Problem("workspace_rate_limited", detail, { headers: { "retry-after": seconds(retryAfter), ...fields } });
}

function seconds(milliseconds: number): string {
  return String(Math.max(0, Math.ceil(milliseconds / 1_000)));
}
