import type { Readiness } from "../http/health.ts";
import type { Parts, Start } from "./open.ts";

/** Whether the service can do its work at the moment. */
export function readReadiness(
  { config }: Start,
  { store, directories, claim, limits, backups, schema }: Parts,
): Readiness {
  const checks: Record<string, string> = {};
  const { changes } = directories;
  const age = changes.reachable ? 0 : changes.age();
  if (!changes.reachable) checks.database = `has not answered for ${Math.round(age / 1000)} s`;
  if (claim.trouble !== undefined) checks.claim = claim.trouble;
  if (backups?.trouble !== undefined) checks.backup = "the last scheduled backup failed";
  if (store.failure !== undefined) {
    return { ready: false, status: "fail", checks: { ...checks, database: store.failure } };
  }
  if (schema.trouble !== undefined) {
    return { ready: false, status: "fail", checks: { ...checks, schema: schema.trouble } };
  }
  // Under `closed` a node without Redis rejects calls that have a limit, but it still verifies everything else.
  if (limits.redis?.connection.isAway) checks.redis = `does not answer; the policy is ${config.redis.policy}`;
  if (age > config.staleMax) return { ready: false, status: "fail", checks };
  return { ready: true, status: Object.keys(checks).length > 0 ? "degraded" : "ok", checks };
}
