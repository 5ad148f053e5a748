import type { DirectoryIdentity, DirectoryKey, DirectoryRootKey } from "../../../../engine/src/directory/stored.ts";
import { hashVersions } from "../../../../engine/src/rules/imported-keys.ts";

/** What judging a key needs beyond the members of its record. An edge passes on the calls of keys with one that it lacks. */
export const replicaNeeds = ["limits", "balance", "budgets", "concurrency", "plan", "first_use"] as const;

export type ReplicaNeed = (typeof replicaNeeds)[number];

/**
 * `sent`: the record has it. `unneeded`: no verification depends on it. Otherwise the need that the value makes. An edge of an
 * earlier release ignores members that it does not know: a further column that restricts a key makes a need.
 */
type Treatment<T> = { readonly [K in keyof T]-?: "sent" | "unneeded" | ((value: T[K]) => ReplicaNeed | false) };

/**
 * Every column of a key. One that is added does not compile until it is decided here, so that no restriction of a key is
 * lost on the way to an edge.
 */
const keyColumns: Treatment<DirectoryKey> = {
  hash: "sent",
  workspace_id: "sent",
  id: "sent",
  api_id: "sent",
  pool_id: "sent",
  hash_version: (version) => version === hashVersions["prefixed-api-key"] && "first_use",
  is_unused: (isUnused) => isUnused === 1 && "first_use",
  name: "sent",
  meta: "sent",
  enabled: "sent",
  expires_at: "sent",
  // The look-up has left out keys of migrations.
  migration_id: "unneeded",
  allowed_ips: "sent",
  api_allowed_ips: "sent",
  api_own_key_access: "unneeded",
  api_own_key_derivation: "unneeded",
  workspace_enabled: "sent",
  balance: (balance) => balance !== null && "balance",
  budgets: (budgets) => budgets.length > 0 && "budgets",
  identity: "sent",
  plan: (plan) => plan !== null && "plan",
  concurrency: (concurrency) => concurrency !== null && "concurrency",
  ratelimits: (limits) => limits.length > 0 && "limits",
  roles: "sent",
  permissions: "sent",
};

/** The same of its identity. */
const identityColumns: Treatment<DirectoryIdentity> = {
  id: "sent",
  external_id: "sent",
  meta: "sent",
  concurrency: (concurrency) => concurrency !== null && "concurrency",
  ratelimits: (limits) => limits.length > 0 && "limits",
  plan: (plan) => plan !== null && "plan",
  budget_id: (budget) => budget !== null && "budgets",
};

function needsOf<T extends object>(row: T, columns: Treatment<T>): ReplicaNeed[] {
  const needs: ReplicaNeed[] = [];
  for (const name of Object.keys(columns) as (keyof T)[]) {
    const treatment = columns[name] as "sent" | "unneeded" | ((value: unknown) => ReplicaNeed | false);
    const need = typeof treatment === "function" && treatment(row[name]);
    if (need) needs.push(need);
  }
  return needs;
}

/** A key as an edge gets it. Texts of JSON stay texts, as they are stored. */
export function replicaKey(key: DirectoryKey) {
  const { identity } = key;
  const needs = [...needsOf(key, keyColumns), ...(identity ? needsOf(identity, identityColumns) : [])];
  return {
    keyId: key.id,
    apiId: key.api_id,
    poolId: key.pool_id,
    name: key.name,
    meta: key.meta,
    enabled: key.enabled === 1,
    workspaceEnabled: key.workspace_enabled === 1,
    expiresAt: key.expires_at,
    allowedIps: key.allowed_ips,
    apiAllowedIps: key.api_allowed_ips,
    identity: identity && {
      id: identity.id,
      externalId: identity.external_id,
      meta: identity.meta,
      ratelimits: identity.ratelimits,
    },
    ratelimits: key.ratelimits,
    roles: key.roles,
    permissions: key.permissions,
    needs: [...new Set(needs)],
  };
}

export function replicaRootKey(rootKey: DirectoryRootKey) {
  return {
    rootKeyId: rootKey.id,
    grants: JSON.parse(rootKey.grants) as string[],
    enabled: rootKey.enabled === 1,
    expiresAt: rootKey.expires_at,
    workspaceEnabled: rootKey.workspace_enabled === 1,
    requestsPerMinute: rootKey.workspace_requests_per_minute,
  };
}
