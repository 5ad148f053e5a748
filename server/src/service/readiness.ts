import type { Readiness } from "../platform/http/health.ts";
import type { Parts, Start } from "./open.ts";

/** Whether the service can do its work at the moment. */
export function readReadiness(
  { config }: Start,
  { store, directories, claim, limits, backups, schema, storage, vault }: Parts,
): Readiness {
  const checks: Record<string, string> = {};
  const { changes } = directories;
  const age = changes.reachable ? 0 : changes.age();
  if (!changes.reachable) checks.database = `has not answered for ${Math.round(age / 1000)} s`;
  if (claim.trouble !== undefined) checks.claim = claim.trouble;
  if (backups?.trouble !== undefined) checks.backup = "the last scheduled backup failed";
  if (storage.trouble !== undefined) checks.storage = storage.trouble;
  if (vault.trouble !== undefined) checks.vault = vault.trouble;
  if (store.failure !== undefined) {
    return { ready: false, status: "fail", checks: { ...checks, database: store.failure } };
  }
  if (schema.trouble !== undefined) {
    return { ready: false, status: "fail", checks: { ...checks, schema: schema.trouble } };
  }
  // Under `closed` a node without Redis rejects calls that have a limit, but it still verifies everything else.
  const { connection } = limits.redis ?? {};
  if (connection?.hasOutage)
    checks.redis = `${describeOutage(connection.servers)}; the policy is ${config.redis.policy}`;
  if (age > config.staleMax) return { ready: false, status: "fail", checks };
  return { ready: true, status: Object.keys(checks).length > 0 ? "degraded" : "ok", checks };
}

/** Which servers of Redis have an outage. None has if slots of a cluster have no primary. */
function describeOutage(servers: readonly { name: string; hasOutage: boolean }[]): string {
  const names = servers.filter(({ hasOutage }) => hasOutage).map(({ name }) => name);
  if (names.length === 0) return "slots of the cluster have no primary";
  return `${names.join(", ")} ${names.length === 1 ? "does" : "do"} not answer`;
}
